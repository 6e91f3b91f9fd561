// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <deque>
#include <mutex>

#include "nfsrdma/loop.hpp"

namespace nfsrdma::fuse {

// Serialises coroutines of several loops without blocking any: a waiter goes on, on its own loop, when its turn comes.
// Must be locked on a loop.
class AsyncMutex {
 public:
  struct Lock {
    AsyncMutex& mutex;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) const {
      std::scoped_lock lock(mutex.guard_);
      if (!mutex.held_) {
        mutex.held_ = true;
        return false;
      }
      mutex.waiting_.push_back({Loop::current(), waiter});
      return true;
    }
    void await_resume() const noexcept {}
  };
  Lock lock() { return {*this}; }
  void unlock() {
    std::scoped_lock lock(guard_);
    if (waiting_.empty()) {
      held_ = false;
      return;
    }
    Waiter next = waiting_.front();
    waiting_.pop_front();
    next.loop->post([handle = next.handle] { handle.resume(); });
  }

 private:
  struct Waiter {
    Loop* loop;
    std::coroutine_handle<> handle;
  };
  std::mutex guard_;
  bool held_ = false;
  std::deque<Waiter> waiting_;
};

}  // namespace nfsrdma::fuse
