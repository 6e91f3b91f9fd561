// SPDX-License-Identifier: Apache-2.0
// Coroutines of several loops that wait for one thing.
#pragma once

#include <coroutine>
#include <mutex>

#include "base/intrusive_list.hpp"
#include "io/loop.hpp"

namespace nfsrdma::session {

struct Waiter : base::ListNode<> {
  io::IoLoop* loop = nullptr;
  std::coroutine_handle<> handle;
  io::Timer timer;

  void park(std::coroutine_handle<> h) {
    loop = io::IoLoop::current();
    handle = h;
  }
  // Continues at deadline_ns if nobody woke it before. To be called under `mutex`, which guards the list.
  void park(std::coroutine_handle<> h, base::TimeNs deadline_ns, std::mutex& mutex) {
    park(h);
    if (deadline_ns == base::never_ns) return;
    timer.set([this, &mutex] {
      {
        std::lock_guard lock(mutex);
        if (!linked()) return;  // woken, and about to be resumed
        unlink();
      }
      std::coroutine_handle<> h2 = handle;
      h2.resume();
    });
    loop->arm(timer, deadline_ns);
  }
  // Continues on the loop that it was parked on. The Waiter may be gone when this returns.
  void wake() {
    if (loop->is_current())
      loop->defer(handle);
    else
      loop->post([h = handle] { h.resume(); });
  }
};

// Guarded by its owner's mutex.
class Waiters {
 public:
  void push_back(Waiter& w) { list_.push_back(w); }
  void push_front(Waiter& w) { list_.push_front(w); }
  Waiter* pop_front() { return list_.pop_front(); }
  bool empty() const { return list_.empty(); }
  void wake_all() {
    while (Waiter* w = list_.pop_front()) w->wake();
  }

 private:
  base::IntrusiveList<Waiter> list_;
};

}  // namespace nfsrdma::session
