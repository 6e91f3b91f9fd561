// SPDX-License-Identifier: Apache-2.0
// IoLoop: run queue, timers, epoll and polled sources of one thread. Data never changes threads inside a loop, so
// only post() and stop() may be called from elsewhere.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "nfsrdma/callback.hpp"
#include "nfsrdma/error.hpp"

struct epoll_event;

namespace nfsrdma::io {

using base::TimeNs;

// A source that is polled every turn: a completion queue, a FUSE device.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual bool poll(TimeNs now_ns) = 0;  // true: something was done
  virtual bool arm() = 0;                // false: something is there, do not sleep
  virtual int fd() const = 0;            // readable when poll() would find something after arm()
  virtual TimeNs deadline_ns() const { return base::never_ns; }
};

class FdHandler {
 public:
  virtual ~FdHandler() = default;
  virtual void on_ready(uint32_t epoll_events) = 0;
};

// Fires once per arming, on the loop thread. Owned by the user; its destructor cancels. The callable may re-arm its
// timer, or destroy it if it touches none of its captures afterwards.
class Timer {
 public:
  explicit Timer(Callback<void()> fire = {}) : fire_(std::move(fire)) {}
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void set(Callback<void()> fire) { fire_ = std::move(fire); }
  bool armed() const { return index_ != unarmed; }
  TimeNs deadline_ns() const { return deadline_ns_; }

 private:
  friend class IoLoop;
  static constexpr size_t unarmed = ~size_t{0};
  class IoLoop* loop_ = nullptr;
  Callback<void()> fire_;
  TimeNs deadline_ns_ = 0;
  size_t index_ = unarmed;
};

struct LoopParams {
  uint32_t spin_us = 0;  // how long to poll after the last event before sleeping
  std::string name = "loop";
};

class IoLoop {
 public:
  IoLoop(base::Clock& clock, const LoopParams& params);
  ~IoLoop();
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  // The loop that is turning on this thread, or nullptr.
  static IoLoop* current();
  bool is_current() const { return current() == this; }
  base::Clock& clock() { return clock_; }
  TimeNs now_ns() { return clock_.now_ns(); }
  const std::string& name() const { return name_; }

  // Any thread. f runs on the loop thread, in order of posting.
  void post(Callback<void()> f);
  // Loop thread. h is resumed later in this turn.
  void defer(std::coroutine_handle<> h);

  void arm(Timer& timer, TimeNs deadline_ns);
  void cancel(Timer& timer);

  void add(Pollable& source);
  void remove(Pollable& source);
  // events: EPOLLIN and so on. One handler per descriptor; the handler must outlive unwatch().
  Result<void> watch(int fd, uint32_t epoll_events, FdHandler& handler);
  void unwatch(int fd, FdHandler& handler);

  // Runs what is ready; when nothing was, sleeps until something is or sleep_until_ns. Returns whether work was done.
  bool turn(TimeNs sleep_until_ns);
  // Turns until stop(). stop(): any thread.
  void run();
  void stop();
  int unusable() const { return unusable_; }  // errno of what it could not open, 0 when all is there
  bool stopped() const { return stop_.load(std::memory_order_acquire); }
  // Earliest of the timers' and sources' deadlines; for a simulation that moves the clock itself.
  TimeNs next_deadline_ns() const;
  bool idle() const { return ready_.empty() && !posted_any_.load(std::memory_order_acquire); }

  // co_await loop.enter(): continues on the loop thread, at once when already there.
  struct Enter {
    IoLoop& loop;
    bool await_ready() const noexcept { return loop.is_current(); }
    // Not inlined: clang 16 would keep what is left of this function in the frame, which another thread already uses.
    [[gnu::noinline]] void await_suspend(std::coroutine_handle<> h) const {
      loop.post([h] { h.resume(); });
    }
    void await_resume() const noexcept {}
  };
  Enter enter() { return {*this}; }
  // co_await loop.sleep_until(t): loop thread.
  struct Sleep {
    IoLoop& loop;
    TimeNs until_ns;
    Timer timer{};
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) {
      timer.set([h] { h.resume(); });
      loop.arm(timer, until_ns);
    }
    void await_resume() const noexcept {}
  };
  Sleep sleep_until(TimeNs until_ns) { return Sleep{*this, until_ns}; }
  Sleep sleep_for(TimeNs for_ns) { return Sleep{*this, now_ns() + for_ns}; }
  // co_await loop.yield(): lets other work of this turn go first.
  struct Yield {
    IoLoop& loop;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const { loop.defer(h); }
    void await_resume() const noexcept {}
  };
  Yield yield() { return {*this}; }

 private:
  bool run_posted();
  bool run_ready();
  bool run_timers(TimeNs now);
  bool run_sources(TimeNs now);
  bool run_epoll(int timeout_ms);
  void sleep(TimeNs now, TimeNs until);
  void heap_place(size_t index, Timer* timer);
  void heap_up(size_t index);
  void heap_down(size_t index);

  base::Clock& clock_;
  std::string name_;
  TimeNs spin_ns_;
  TimeNs last_work_ns_ = 0;
  int epoll_fd_ = -1;
  int event_fd_ = -1;
  int unusable_ = 0;
  size_t watched_ = 0;
  epoll_event* dispatching_ = nullptr;  // what run_epoll() is going through
  size_t dispatching_count_ = 0;
  std::vector<Pollable*> sources_;
  std::vector<Timer*> heap_;
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> running_;

  std::mutex post_mutex_;
  std::vector<Callback<void()>> posted_;     // guarded by post_mutex_
  std::vector<Callback<void()>> executing_;
  std::atomic<bool> posted_any_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> stop_{false};
};

// A loop and the thread that turns it. The destructor stops and joins.
class IoThread {
 public:
  // Throws std::system_error when there is no thread to be had; starts none when loop().unusable().
  IoThread(base::Clock& clock, const LoopParams& params);
  ~IoThread();
  // As the constructor, with an error that says what was missing.
  static Result<std::unique_ptr<IoThread>> start(base::Clock& clock, const LoopParams& params);
  IoLoop& loop() { return loop_; }

 private:
  IoLoop loop_;
  std::thread thread_;
};

}  // namespace nfsrdma::io
