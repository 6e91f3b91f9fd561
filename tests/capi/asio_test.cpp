// SPDX-License-Identifier: Apache-2.0
#include "nfsrdma/asio.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "tests/capi/served.hpp"

namespace {

using boost::asio::awaitable;
using boost::asio::use_awaitable;
using namespace nfsrdma;

class Asio : public served::ServedTest {
 protected:
  void SetUp() override {
    auto options = parse_url(server->url());
    ASSERT_TRUE(options);
    auto connected = Mount::connect(*options);
    ASSERT_TRUE(connected) << connected.error().text();
    mount = std::move(*connected);
  }
  Credentials who() { return mount->default_credentials(); }

  std::unique_ptr<Mount> mount;
};

// Writes a file, reads it back, and tells on which thread it ran.
awaitable<std::string> round_trip(Mount& mount, const std::string& data,
                                  std::vector<std::thread::id>& threads) {
  const Credentials who = mount.default_credentials();
  auto root = co_await nfsrdma::asio::resolve(mount, "/", true, who, use_awaitable);
  if (!root) co_return root.error().text();
  threads.push_back(std::this_thread::get_id());
  auto made = co_await nfsrdma::asio::create(mount, root->node, "coroutine", open_read | open_write, 0644,
                                             who, use_awaitable);
  if (!made) co_return made.error().text();
  auto wrote = co_await nfsrdma::asio::write(mount, made->file, 0, std::as_bytes(std::span(data)),
                                             Stability::unstable, use_awaitable);
  if (!wrote) co_return wrote.error().text();
  auto synced = co_await nfsrdma::asio::sync(mount, made->file, use_awaitable);
  if (!synced) co_return synced.error().text();
  std::string back(data.size(), '\0');
  auto read = co_await nfsrdma::asio::read(mount, made->file, 0, std::as_writable_bytes(std::span(back)),
                                           use_awaitable);
  if (!read) co_return read.error().text();
  threads.push_back(std::this_thread::get_id());
  auto closed = co_await nfsrdma::asio::close(mount, made->file, use_awaitable);
  if (!closed) co_return closed.error().text();
  co_return back == data ? "same" : "different";
}

TEST_F(Asio, CoroutinesRunOnTheirOwnExecutor) {
  const std::string data = served::pattern(1'500'000);
  boost::asio::io_context context;
  std::vector<std::thread::id> threads;
  std::string outcome;
  boost::asio::co_spawn(
      context, round_trip(*mount, data, threads),
      [&](std::exception_ptr fault, std::string text) { outcome = fault ? "fault" : text; });
  context.run();  // ends by itself, and not before the last call has
  EXPECT_EQ(outcome, "same");
  for (std::thread::id id : threads) EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_EQ(server->read("coroutine"), data);
}

TEST_F(Asio, FailuresAreValues) {
  boost::asio::io_context context;
  int errno_value = 0;
  auto look = [&]() -> awaitable<void> {
    auto found = co_await nfsrdma::asio::resolve(*mount, "/nothing", true, who(), use_awaitable);
    errno_value = found ? 0 : found.error().errno_value();
  };
  boost::asio::co_spawn(context, look(), boost::asio::detached);
  context.run();
  EXPECT_EQ(errno_value, ENOENT);
}

TEST_F(Asio, Futures) {
  server->write("f", "text");
  auto found = nfsrdma::asio::resolve(*mount, "/f", true, who(), boost::asio::use_future).get();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->attributes.size_bytes, 4u);
}

TEST_F(Asio, AHandlerWithoutExecutorRunsOnTheLoop) {
  std::promise<Loop*> ran;
  nfsrdma::asio::resolve(*mount, "/", true, who(), [&](Result<Entry>) { ran.set_value(Loop::current()); });
  EXPECT_NE(ran.get_future().get(), nullptr);
}

TEST_F(Asio, HandlersMayOnlyMove) {
  boost::asio::io_context context;
  auto owned = std::make_unique<int>(7);
  int seen = 0;
  nfsrdma::asio::resolve(
      *mount, "/", true, who(),
      boost::asio::bind_executor(
          context, [&seen, owned = std::move(owned)](Result<Entry> found) { seen = found ? *owned : -1; }));
  context.run();
  EXPECT_EQ(seen, 7);
}

}  // namespace
