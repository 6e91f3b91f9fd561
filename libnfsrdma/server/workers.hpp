// SPDX-License-Identifier: Apache-2.0
// Threads for file calls that may block. A coroutine moves onto one with co_await workers.enter() and stays there
// until it moves back to its loop, so that a compound with ten file calls changes threads twice, not twenty times.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/intrusive_list.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::server {

class WorkerPool {
 public:
  // With fewer threads where there are no more; nothing may be queued unless usable() is without error.
  explicit WorkerPool(uint32_t threads);
  Result<void> usable() const { return usable_; }
  // Runs what is queued, then joins. Nothing may be queued afterwards.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // True on a thread of any pool.
  static bool on_worker();

  // Any thread; continues on a worker, at once when already on one.
  struct Enter : base::ListNode<> {
    WorkerPool& pool;
    std::coroutine_handle<> handle;
    explicit Enter(WorkerPool& p) : pool(p) {}
    bool await_ready() const noexcept { return on_worker(); }
    // Not inlined, for the reason at IoLoop::Enter.
    [[gnu::noinline]] void await_suspend(std::coroutine_handle<> h) {
      handle = h;
      pool.push(*this);
    }
    void await_resume() const noexcept {}
  };
  Enter enter() { return Enter(*this); }

 private:
  void push(Enter& waiter);
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  base::IntrusiveList<Enter> queue_;  // guarded by mutex_
  uint32_t idle_ = 0;
  bool stop_ = false;
  Result<void> usable_;
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma::server
