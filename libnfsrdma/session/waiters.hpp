// SPDX-License-Identifier: Apache-2.0
// Coroutines of several loops that wait for one thing.
#pragma once

#include <coroutine>

#include "base/intrusive_list.hpp"
#include "io/loop.hpp"

namespace nfsrdma::session {

struct Waiter : base::ListNode<> {
  io::IoLoop* loop = nullptr;
  std::coroutine_handle<> handle;

  void park(std::coroutine_handle<> h) {
    loop = io::IoLoop::current();
    handle = h;
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
