// SPDX-License-Identifier: Apache-2.0
// Waiting inside one loop: all of these belong to one loop thread.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "base/intrusive_list.hpp"
#include "io/loop.hpp"

namespace nfsrdma::io {

// One value, one waiter; set() may come before or after the wait. set() resumes the waiter directly.
template <class T>
class OneShot {
 public:
  void set(T value) {
    value_.emplace(std::move(value));
    if (waiter_) std::exchange(waiter_, {}).resume();
  }
  bool ready() const { return value_.has_value(); }
  bool await_ready() const noexcept { return ready(); }
  void await_suspend(std::coroutine_handle<> h) noexcept { waiter_ = h; }
  T await_resume() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  std::coroutine_handle<> waiter_;
};

// A queue of waiters; wake_one()/wake_all() make them ready in order of arrival.
class WaitQueue {
 public:
  explicit WaitQueue(IoLoop& loop) : loop_(loop) {}
  struct Wait : base::ListNode<> {
    WaitQueue& queue;
    std::coroutine_handle<> handle;
    explicit Wait(WaitQueue& q) : queue(q) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) {
      handle = h;
      queue.waiters_.push_back(*this);
    }
    void await_resume() const noexcept {}
  };
  Wait wait() { return Wait(*this); }
  bool wake_one() {
    Wait* w = waiters_.pop_front();
    if (w) loop_.defer(w->handle);
    return w != nullptr;
  }
  void wake_all() {
    while (wake_one()) {
    }
  }
  bool empty() const { return waiters_.empty(); }

 private:
  IoLoop& loop_;
  base::IntrusiveList<Wait> waiters_;
};

// Counts work that was spawned; co_await join.wait() returns when all of it is done. One waiter.
class Join {
 public:
  void add() { count_++; }
  void done() {
    if (--count_ == 0 && waiter_) std::exchange(waiter_, {}).resume();
  }
  bool await_ready() const noexcept { return count_ == 0; }
  void await_suspend(std::coroutine_handle<> h) noexcept { waiter_ = h; }
  void await_resume() const noexcept {}
  size_t count() const { return count_; }

 private:
  size_t count_ = 0;
  std::coroutine_handle<> waiter_;
};

}  // namespace nfsrdma::io
