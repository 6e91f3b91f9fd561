// SPDX-License-Identifier: Apache-2.0
// Calls of a Mount with Boost.Asio completion tokens: callbacks, boost::asio::use_awaitable, use_future and
// others.
//
//   boost::asio::awaitable<void> copy(nfsrdma::Mount& mount) {
//     using boost::asio::use_awaitable;
//     auto found = co_await nfsrdma::asio::resolve(mount, "/a", true, mount.default_credentials(),
//     use_awaitable); if (!found) co_return;  // errors are values here too: every call gives a Result, none
//     throws
//     ...
//   }
//
// The completion's signature is void(Result<T>), without an error_code. It is dispatched to the handler's
// associated executor, which is kept busy until then; a handler without one runs on the mount's loop and must
// not block. What a call is given (nodes, slices, memory) must stay as Mount's own form wants it. Handlers
// are allocated by their associated allocator.
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "nfsrdma/mount.hpp"

namespace nfsrdma::asio {

namespace detail {

// A handler on the heap, with work on its executor: what Mount keeps of it is one pointer.
template <class T, class Handler>
class Pending {
  using Executor = boost::asio::associated_executor_t<Handler>;
  using Work = std::decay_t<decltype(boost::asio::prefer(std::declval<const Executor&>(),
                                                         boost::asio::execution::outstanding_work.tracked))>;
  using Allocator = typename std::allocator_traits<
      boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<Pending>;
  struct Delete {
    void operator()(Pending* pending) const { Pending::destroy(pending); }
  };

 public:
  using Pointer = std::unique_ptr<Pending, Delete>;

  static Pointer make(Handler handler) {
    Allocator allocator(boost::asio::get_associated_allocator(handler));
    Pending* place = std::allocator_traits<Allocator>::allocate(allocator, 1);
    return Pointer(::new (static_cast<void*>(place)) Pending(std::move(handler)));
  }

  // The memory is given back before the handler runs, which may begin the next call with it.
  static void complete(Pointer pending, Result<T> result) {
    Handler handler = std::move(pending->handler_);
    Work work = std::move(pending->work_);
    pending.reset();
    boost::asio::dispatch(work, [handler = std::move(handler), result = std::move(result)]() mutable {
      std::move(handler)(std::move(result));
    });
  }

 private:
  explicit Pending(Handler handler)
      : work_(boost::asio::prefer(boost::asio::get_associated_executor(handler),
                                  boost::asio::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}

  static void destroy(Pending* pending) {
    Allocator allocator(boost::asio::get_associated_allocator(pending->handler_));
    pending->~Pending();
    std::allocator_traits<Allocator>::deallocate(allocator, pending, 1);
  }

  Work work_;
  Handler handler_;
};

}  // namespace detail

// Any call: start(Done<T>) begins it. What the functions below are made of.
template <class T, class Start, class Token>
auto call(Start start, Token&& token) {
  return boost::asio::async_initiate<Token, void(Result<T>)>(
      [](auto&& handler, Start begin) {
        using Handler = std::decay_t<decltype(handler)>;
        using Pending = detail::Pending<T, Handler>;
        auto pending = Pending::make(std::forward<decltype(handler)>(handler));
        begin([pending = std::move(pending)](Result<T> result) mutable {
          Pending::complete(std::move(pending), std::move(result));
        });
      },
      token, std::move(start));
}

// ---- names: as Mount's functions of the same name; a lazy token (use_awaitable) may begin later, so names
// and credentials are copied.

template <class Token>
auto resolve(Mount& mount, std::string path, bool follow, Credentials who, Token&& token) {
  return call<Entry>([&mount, path = std::move(path), follow, who = std::move(who)](
                         Done<Entry> done) { mount.resolve(path, follow, who, std::move(done)); },
                     std::forward<Token>(token));
}

template <class Token>
auto lookup(Mount& mount, Node directory, std::string name, Credentials who, Token&& token) {
  return call<Entry>([&mount, directory = std::move(directory), name = std::move(name), who = std::move(who)](
                         Done<Entry> done) { mount.lookup(directory, name, who, std::move(done)); },
                     std::forward<Token>(token));
}

template <class Token>
auto read_link(Mount& mount, Node link, Credentials who, Token&& token) {
  return call<std::string>([&mount, link = std::move(link), who = std::move(who)](
                               Done<std::string> done) { mount.read_link(link, who, std::move(done)); },
                           std::forward<Token>(token));
}

template <class Token>
auto read_directory(Mount& mount, Node directory, uint64_t cookie, uint64_t verifier, uint32_t bytes_max,
                    bool with_attributes, Credentials who, Token&& token) {
  return call<DirectoryPage>(
      [&mount, directory = std::move(directory), cookie, verifier, bytes_max, with_attributes,
       who = std::move(who)](Done<DirectoryPage> done) {
        mount.read_directory(directory, cookie, verifier, bytes_max, with_attributes, who, std::move(done));
      },
      std::forward<Token>(token));
}

template <class Token>
auto make_directory(Mount& mount, Node directory, std::string name, uint32_t mode, Credentials who,
                    Token&& token) {
  return call<Entry>(
      [&mount, directory = std::move(directory), name = std::move(name), mode, who = std::move(who)](
          Done<Entry> done) { mount.make_directory(directory, name, mode, who, std::move(done)); },
      std::forward<Token>(token));
}

template <class Token>
auto make_symlink(Mount& mount, Node directory, std::string name, std::string target, Credentials who,
                  Token&& token) {
  return call<Entry>(
      [&mount, directory = std::move(directory), name = std::move(name), target = std::move(target),
       who = std::move(who)](Done<Entry> done) {
        mount.make_symlink(directory, name, target, who, std::move(done));
      },
      std::forward<Token>(token));
}

template <class Token>
auto make_link(Mount& mount, Node file, Node directory, std::string name, Credentials who, Token&& token) {
  return call<Entry>([&mount, file = std::move(file), directory = std::move(directory),
                      name = std::move(name), who = std::move(who)](
                         Done<Entry> done) { mount.make_link(file, directory, name, who, std::move(done)); },
                     std::forward<Token>(token));
}

template <class Token>
auto remove(Mount& mount, Node directory, std::string name, Credentials who, Token&& token) {
  return call<void>([&mount, directory = std::move(directory), name = std::move(name), who = std::move(who)](
                        Done<void> done) { mount.remove(directory, name, who, std::move(done)); },
                    std::forward<Token>(token));
}

template <class Token>
auto rename(Mount& mount, Node from_directory, std::string from_name, Node to_directory, std::string to_name,
            Credentials who, Token&& token) {
  return call<void>(
      [&mount, from_directory = std::move(from_directory), from_name = std::move(from_name),
       to_directory = std::move(to_directory), to_name = std::move(to_name),
       who = std::move(who)](Done<void> done) {
        mount.rename(from_directory, from_name, to_directory, to_name, who, std::move(done));
      },
      std::forward<Token>(token));
}

// ---- attributes

template <class Token>
auto get_attributes(Mount& mount, Node node, Credentials who, Token&& token) {
  return call<Attributes>([&mount, node = std::move(node), who = std::move(who)](
                              Done<Attributes> done) { mount.get_attributes(node, who, std::move(done)); },
                          std::forward<Token>(token));
}

template <class Token>
auto set_attributes(Mount& mount, Node node, AttributeChange change, Credentials who, Token&& token) {
  return call<Attributes>(
      [&mount, node = std::move(node), change, who = std::move(who)](Done<Attributes> done) {
        mount.set_attributes(node, change, who, std::move(done));
      },
      std::forward<Token>(token));
}

template <class Token>
auto set_attributes(Mount& mount, File file, AttributeChange change, Credentials who, Token&& token) {
  return call<Attributes>(
      [&mount, file = std::move(file), change, who = std::move(who)](Done<Attributes> done) {
        mount.set_attributes(file, change, who, std::move(done));
      },
      std::forward<Token>(token));
}

template <class Token>
auto file_system_stats(Mount& mount, Node node, Credentials who, Token&& token) {
  return call<FileSystemStats>(
      [&mount, node = std::move(node), who = std::move(who)](Done<FileSystemStats> done) {
        mount.file_system_stats(node, who, std::move(done));
      },
      std::forward<Token>(token));
}

// ---- open files

template <class Token>
auto open(Mount& mount, Node file, uint32_t open_flags, Credentials who, Token&& token) {
  return call<Opened>([&mount, file = std::move(file), open_flags, who = std::move(who)](
                          Done<Opened> done) { mount.open(file, open_flags, who, std::move(done)); },
                      std::forward<Token>(token));
}

template <class Token>
auto create(Mount& mount, Node directory, std::string name, uint32_t open_flags, uint32_t mode,
            Credentials who, Token&& token) {
  return call<Opened>(
      [&mount, directory = std::move(directory), name = std::move(name), open_flags, mode,
       who = std::move(who)](Done<Opened> done) {
        mount.create(directory, name, open_flags, mode, who, std::move(done));
      },
      std::forward<Token>(token));
}

// into: a Slice of registered memory, or a span.
template <class Into, class Token>
auto read(Mount& mount, File file, uint64_t offset, Into into, Token&& token) {
  return call<ReadResult>([&mount, file = std::move(file), offset,
                           into](Done<ReadResult> done) { mount.read(file, offset, into, std::move(done)); },
                          std::forward<Token>(token));
}

// from: a Slice of registered memory, or a span.
template <class From, class Token>
auto write(Mount& mount, File file, uint64_t offset, From from, Stability stability, Token&& token) {
  return call<size_t>([&mount, file = std::move(file), offset, from, stability](
                          Done<size_t> done) { mount.write(file, offset, from, stability, std::move(done)); },
                      std::forward<Token>(token));
}

template <class Token>
auto sync(Mount& mount, File file, Token&& token) {
  return call<void>([&mount, file = std::move(file)](Done<void> done) { mount.sync(file, std::move(done)); },
                    std::forward<Token>(token));
}

template <class Token>
auto close(Mount& mount, File file, Token&& token) {
  return call<void>([&mount, file = std::move(file)](Done<void> done) { mount.close(file, std::move(done)); },
                    std::forward<Token>(token));
}

}  // namespace nfsrdma::asio
