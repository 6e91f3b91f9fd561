// SPDX-License-Identifier: Apache-2.0
// Coroutines for everything but READ and WRITE. Each runs on one loop from its first to its last line, since a call
// made on a loop is answered there; so nothing here needs a lock.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "nfsrdma/mount.hpp"

namespace nfsrdma::fuse {

// Nobody waits for it: it starts at once and frees itself at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // bad_alloc: nobody is left to be told
  };
};

// Starts when awaited; the awaiting coroutine owns it.
template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type {
    struct Final {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
        return ended.promise().waiter;
      }
      void await_resume() const noexcept {}
    };
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    Final final_suspend() const noexcept { return {}; }
    void return_value(T result) { value.emplace(std::move(result)); }
    void unhandled_exception() const noexcept { std::terminate(); }
    std::optional<T> value;
    std::coroutine_handle<> waiter;
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    handle_.promise().waiter = waiter;
    return handle_;
  }
  T await_resume() { return std::move(*handle_.promise().value); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// One call of the library, as seen by a coroutine:
//   Wait<Entry> wait;
//   mount.lookup(directory, name, who, wait.done());
//   Result<Entry> entry = co_await wait;
template <class T>
class Wait {
 public:
  Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  Done<T> done() {
    return [this](Result<T> result) { complete(std::move(result)); };
  }
  void complete(Result<T> result) {
    result_.emplace(std::move(result));
    if (waiter_) std::exchange(waiter_, nullptr).resume();
  }
  bool await_ready() const noexcept { return result_.has_value(); }
  void await_suspend(std::coroutine_handle<> waiter) noexcept { waiter_ = waiter; }
  Result<T> await_resume() { return std::move(*result_); }

 private:
  std::optional<Result<T>> result_;
  std::coroutine_handle<> waiter_;
};

}  // namespace nfsrdma::fuse
