// SPDX-License-Identifier: Apache-2.0
#include "io/task.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "io/loop.hpp"
#include "io/sync.hpp"

namespace nfsrdma::io {
namespace {

struct TaskTest : ::testing::Test {
  base::ManualClock clock;
  IoLoop loop{clock, {}};
  std::vector<int> order;
  void turn(int n = 10) {
    for (int i = 0; i < n; i++) loop.turn(0);
  }
};

Task<int> number(int n) { co_return n; }

Task<int> sum(int n) {
  int total = 0;
  for (int i = 1; i <= n; i++) total += co_await number(i);
  co_return total;
}

TEST_F(TaskTest, LazyNestedAndDeep) {
  int got = 0;
  Task<int> task = sum(100);
  EXPECT_EQ(got, 0);
  spawn(std::move(task), [&](int v) { got = v; });
  EXPECT_EQ(got, 5050);
  // Symmetric transfer: a long chain of tasks that end at once does not grow the stack.
  spawn(sum(20'000), [&](int v) { got = v; });
  EXPECT_EQ(got, 20'000 * 20'001 / 2);
}

TEST_F(TaskTest, SleepYieldAndEnter) {
  spawn([](TaskTest& t) -> Task<void> {
    co_await t.loop.enter();
    t.order.push_back(1);
    co_await t.loop.sleep_for(base::ms(5));
    t.order.push_back(2);
    co_await t.loop.yield();
    t.order.push_back(3);
  }(*this));
  EXPECT_TRUE(order.empty());  // not on the loop yet
  turn();
  EXPECT_EQ(order, (std::vector{1}));
  clock.advance(base::ms(4));
  turn();
  EXPECT_EQ(order, (std::vector{1}));
  clock.advance(base::ms(1));
  turn();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_F(TaskTest, EnterMovesBetweenThreads) {
  IoThread other(base::system_clock(), {});
  std::atomic<bool> done{false};
  std::thread::id here = std::this_thread::get_id(), there;
  spawn([](IoLoop& first, IoLoop& second, std::thread::id& seen, std::atomic<bool>& flag) -> Task<void> {
    co_await second.enter();
    seen = std::this_thread::get_id();
    co_await first.enter();
    flag = true;
  }(loop, other.loop(), there, done));
  while (!done) loop.turn(0);
  EXPECT_NE(there, here);
  EXPECT_NE(there, std::thread::id());
}

TEST_F(TaskTest, OneShotBeforeAndAfterTheWait) {
  OneShot<int> early, late;
  early.set(1);
  EXPECT_TRUE(early.ready());
  spawn([](TaskTest& t, OneShot<int>& a, OneShot<int>& b) -> Task<void> {
    t.order.push_back(co_await a);
    t.order.push_back(co_await b);
  }(*this, early, late));
  EXPECT_EQ(order, (std::vector{1}));
  late.set(2);
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_F(TaskTest, WaitQueueWakesInOrder) {
  WaitQueue queue(loop);
  for (int i = 0; i < 4; i++)
    spawn([](TaskTest& t, WaitQueue& q, int n) -> Task<void> {
      co_await q.wait();
      t.order.push_back(n);
    }(*this, queue, i));
  EXPECT_FALSE(queue.empty());
  EXPECT_TRUE(queue.wake_one());
  EXPECT_TRUE(order.empty());  // becomes ready, runs in the loop's turn
  turn();
  EXPECT_EQ(order, (std::vector{0}));
  queue.wake_all();
  turn();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(queue.wake_one());
}

TEST_F(TaskTest, JoinWaitsForAll) {
  Join join;
  OneShot<int> gates[3];
  bool all = false;
  for (auto& gate : gates) {
    join.add();
    spawn([](OneShot<int>& g, Join& j) -> Task<void> {
      co_await g;
      j.done();
    }(gate, join));
  }
  spawn([](Join& j, bool& flag) -> Task<void> {
    co_await j;
    flag = true;
  }(join, all));
  gates[2].set(0);
  gates[0].set(0);
  EXPECT_FALSE(all);
  EXPECT_EQ(join.count(), 1u);
  gates[1].set(0);
  EXPECT_TRUE(all);
}

// A task that is destroyed while it sleeps takes its locals and its timer with it.
TEST_F(TaskTest, DestroyedWhileWaiting) {
  auto token = std::make_shared<int>(1);
  {
    auto sleeper = [](IoLoop& l, std::shared_ptr<int> held) -> Task<void> {
      co_await l.sleep_for(base::ms(1));
      ADD_FAILURE() << *held;
    }(loop, token);
    auto awaiter = sleeper.operator co_await();
    awaiter.await_suspend(std::noop_coroutine()).resume();
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
  clock.advance(base::seconds(1));
  turn();
}

TEST(FramePool, FramesComeBack) {
  void* a = frame_allocate(300);
  frame_free(a, 300);
  void* b = frame_allocate(400);  // the same class of sizes
  EXPECT_EQ(a, b);
  void* c = frame_allocate(400);
  EXPECT_NE(b, c);
  frame_free(b, 400);
  frame_free(c, 400);
  void* big = frame_allocate(100'000);
  frame_free(big, 100'000);
  void* moved = frame_allocate(500);
  std::thread([&] { frame_free(moved, 500); }).join();
}

}  // namespace
}  // namespace nfsrdma::io
