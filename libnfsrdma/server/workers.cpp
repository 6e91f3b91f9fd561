// SPDX-License-Identifier: Apache-2.0
#include "server/workers.hpp"

#include <pthread.h>

#include "base/no_thread.hpp"
#include "server/identity.hpp"

namespace nfsrdma::server {
namespace {
thread_local bool worker_thread = false;
}

bool WorkerPool::on_worker() { return worker_thread; }

WorkerPool::WorkerPool(uint32_t threads) {
  threads_.reserve(threads);
  try {
    for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& failed) {
    if (threads_.empty()) usable_ = base::no_thread(failed);
  }
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::push(Enter& waiter) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(waiter);
    wake = idle_ > 0;
  }
  if (wake) wake_.notify_one();
}

void WorkerPool::work() {
  worker_thread = true;
  pthread_setname_np(pthread_self(), "store");
  IdentityScope::dedicate_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    Enter* next = queue_.pop_front();
    if (!next) {
      if (stop_) return;
      ++idle_;
      wake_.wait(lock);
      --idle_;
      continue;
    }
    // The waiter lives in the coroutine's frame, which may end during resume().
    std::coroutine_handle<> handle = next->handle;
    lock.unlock();
    handle.resume();
    lock.lock();
  }
}

}  // namespace nfsrdma::server
