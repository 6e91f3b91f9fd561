// SPDX-License-Identifier: Apache-2.0
#include "io/loop.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "base/random.hpp"

namespace nfsrdma::io {
namespace {

struct LoopTest : ::testing::Test {
  base::ManualClock clock;
  IoLoop loop{clock, {}};
};

TEST_F(LoopTest, PostedRunInOrderAndOnTheLoop) {
  std::vector<int> order;
  EXPECT_EQ(IoLoop::current(), nullptr);
  loop.post([&] {
    order.push_back(1);
    EXPECT_EQ(IoLoop::current(), &loop);
    EXPECT_TRUE(loop.is_current());
    loop.post([&] { order.push_back(3); });
  });
  loop.post([&] { order.push_back(2); });
  EXPECT_FALSE(loop.idle());
  EXPECT_TRUE(loop.turn(0));
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_TRUE(loop.turn(0));
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_FALSE(loop.turn(0));
  EXPECT_TRUE(loop.idle());
  EXPECT_EQ(IoLoop::current(), nullptr);
}

TEST_F(LoopTest, TimersFireInOrderOfTheirDeadlines) {
  std::vector<int> order;
  std::vector<std::unique_ptr<Timer>> timers;
  base::SeededRandom random(1);
  std::vector<std::pair<TimeNs, int>> expected;
  for (int i = 0; i < 200; i++) {
    const TimeNs at = clock.now_ns() + base::us(1 + random.below(1000) * 200 + static_cast<uint64_t>(i));
    timers.push_back(std::make_unique<Timer>([&order, i] { order.push_back(i); }));
    loop.arm(*timers.back(), at);
    EXPECT_EQ(timers.back()->deadline_ns(), at);
    if (random.below(4) == 0) {
      loop.cancel(*timers.back());
      EXPECT_FALSE(timers.back()->armed());
    } else {
      expected.emplace_back(at, i);
    }
  }
  std::ranges::sort(expected);
  EXPECT_EQ(loop.next_deadline_ns(), expected[0].first);
  loop.turn(0);
  EXPECT_TRUE(order.empty());
  while (loop.next_deadline_ns() != base::never_ns) {
    clock.advance(loop.next_deadline_ns() - clock.now_ns());
    EXPECT_TRUE(loop.turn(0));
  }
  ASSERT_EQ(order.size(), expected.size());
  for (size_t i = 0; i < order.size(); i++) EXPECT_EQ(order[i], expected[i].second);
}

TEST_F(LoopTest, TimerMayRearmOrDestroyItself) {
  int fired = 0;
  Timer again;
  again.set([&] {
    if (++fired < 3) loop.arm(again, clock.now_ns() + base::ms(1));
  });
  loop.arm(again, clock.now_ns());
  loop.arm(again, clock.now_ns() + base::ms(1));  // only the last arming counts
  for (int i = 0; i < 5; i++) {
    clock.advance(base::ms(1));
    loop.turn(0);
  }
  EXPECT_EQ(fired, 3);
  auto suicidal = std::make_unique<Timer>();
  Timer* raw = suicidal.get();
  raw->set([&] { suicidal.reset(); });
  loop.arm(*raw, 0);
  EXPECT_TRUE(loop.turn(0));
  EXPECT_EQ(suicidal, nullptr);
  {
    Timer scoped([] { FAIL(); });
    loop.arm(scoped, 0);
  }
  EXPECT_FALSE(loop.turn(0));
}

struct Descriptor final : FdHandler {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int calls = 0;
  ~Descriptor() { close(fd); }
  void set() {
    uint64_t one = 1;
    EXPECT_EQ(write(fd, &one, 8), 8);
  }
  void on_ready(uint32_t events) override {
    EXPECT_TRUE(events & EPOLLIN);
    uint64_t n;
    EXPECT_EQ(read(fd, &n, 8), 8);
    calls++;
  }
};

TEST_F(LoopTest, WatchedDescriptors) {
  Descriptor d;
  ASSERT_TRUE(loop.watch(d.fd, EPOLLIN, d));
  EXPECT_FALSE(loop.watch(d.fd, EPOLLIN, d));
  EXPECT_FALSE(loop.watch(-1, EPOLLIN, d));
  loop.turn(0);
  EXPECT_EQ(d.calls, 0);
  d.set();
  loop.turn(base::never_ns);  // would sleep for ever if it did not see it
  EXPECT_EQ(d.calls, 1);
  // Also seen while other work goes on.
  d.set();
  loop.post([] {});
  loop.turn(0);
  EXPECT_EQ(d.calls, 2);
  loop.unwatch(d.fd, d);
  d.set();
  loop.turn(0);
  EXPECT_EQ(d.calls, 2);
}

// Two are ready at once, and the first that is told ends the other's watch: nothing comes after that.
TEST_F(LoopTest, UnwatchHoldsWithinOneBatch) {
  struct Ending final : FdHandler {
    IoLoop& loop;
    Descriptor& other;
    explicit Ending(IoLoop& l, Descriptor& o) : loop(l), other(o) {}
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ~Ending() { close(fd); }
    void on_ready(uint32_t) override { loop.unwatch(other.fd, other); }
  };
  for (bool first : {true, false}) {
    Descriptor told;
    Ending ending(loop, told);
    if (first) told.set();
    uint64_t one = 1;
    ASSERT_EQ(write(ending.fd, &one, 8), 8);
    told.set();
    // epoll tells in the order of becoming ready, so that one of the two rounds has the ending one first.
    ASSERT_TRUE(loop.watch(first ? told.fd : ending.fd, EPOLLIN, first ? static_cast<FdHandler&>(told) : ending));
    ASSERT_TRUE(loop.watch(first ? ending.fd : told.fd, EPOLLIN, first ? static_cast<FdHandler&>(ending) : told));
    loop.turn(base::never_ns);
    EXPECT_EQ(told.calls, first ? 1 : 0);
    loop.unwatch(ending.fd, ending);
  }
}

struct Source final : Pollable {
  int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int work = 0, polls = 0, arms = 0;
  TimeNs deadline = base::never_ns;
  ~Source() { close(event); }
  bool poll(TimeNs) override {
    polls++;
    if (work == 0) return false;
    work--;
    return true;
  }
  bool arm() override {
    arms++;
    return work == 0;
  }
  int fd() const override { return event; }
  TimeNs deadline_ns() const override { return deadline; }
};

TEST_F(LoopTest, SourcesArePolledAndArmedBeforeSleep) {
  Source source;
  loop.add(source);
  source.work = 2;
  EXPECT_TRUE(loop.turn(base::never_ns));
  EXPECT_TRUE(loop.turn(base::never_ns));
  EXPECT_EQ(source.arms, 0);
  // Its deadline ends a sleep that nothing else would.
  source.deadline = clock.now_ns() + base::ms(1);
  EXPECT_EQ(loop.next_deadline_ns(), source.deadline);
  loop.turn(base::never_ns);
  EXPECT_EQ(source.arms, 1);
  loop.remove(source);
  const int polls = source.polls;
  loop.turn(0);
  EXPECT_EQ(source.polls, polls);
}

TEST_F(LoopTest, SleepEndsWhenASourceBecomesReadable) {
  Source source;
  loop.add(source);
  uint64_t one = 1;
  ASSERT_EQ(write(source.event, &one, 8), 8);
  loop.turn(base::never_ns);
  EXPECT_EQ(source.arms, 1);
  loop.remove(source);
}

TEST_F(LoopTest, DestructionRunsWhatWasPosted) {
  auto owned = std::make_unique<int>(5);
  int seen = 0;
  {
    IoLoop other(clock, {});
    other.post([&seen, p = std::move(owned)] { seen = *p; });
  }
  EXPECT_EQ(seen, 5);
}

TEST(IoThread, PostsFromManyThreadsWakeTheSleeper) {
  IoThread io(base::system_clock(), {.spin_us = 0, .name = "a name longer than fifteen"});
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 300; i++) {
        const int before = count.load();
        io.loop().post([&] { count++; });
        // Every tenth time waits for it: the loop is asleep by then, again and again.
        while (i % 10 == 0 && count.load() == before) std::this_thread::yield();
      }
    });
  for (auto& t : threads) t.join();
  while (count.load() < 900) std::this_thread::yield();
  EXPECT_EQ(count.load(), 900);
  EXPECT_FALSE(io.loop().stopped());
}

size_t threads_now() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// With one descriptor left a thread would sleep in a loop that nothing can wake, not even to end it.
TEST(IoThread, WithoutDescriptorsThereIsAnErrorAndNoThread) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  int next = dup(STDERR_FILENO);
  ASSERT_GE(next, 0);
  close(next);
  const size_t threads = threads_now();
  for (rlim_t left : {0u, 1u}) {
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(next) + left;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    IoThread io(base::system_clock(), {});
    auto started = IoThread::start(base::system_clock(), {});
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(io.loop().unusable(), EMFILE);
    ASSERT_EQ(threads_now(), threads);
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().errno_value(), EMFILE);
  }
  EXPECT_TRUE(IoThread::start(base::system_clock(), {}).ok());
}

TEST(IoThread, StopIsPromptAndRunsTheRest) {
  std::atomic<int> count{0};
  {
    IoThread io(base::system_clock(), {});
    for (int i = 0; i < 100; i++) io.loop().post([&] { count++; });
  }
  EXPECT_EQ(count.load(), 100);
}

}  // namespace
}  // namespace nfsrdma::io
