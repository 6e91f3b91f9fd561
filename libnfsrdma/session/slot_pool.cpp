// SPDX-License-Identifier: Apache-2.0
#include "session/slot_pool.hpp"

namespace nfsrdma::session {

void SlotPool::reset(const nfs4::SessionId& session, uint32_t slots) {
  std::lock_guard lock(mutex_);
  table_.reset(slots);
  session_ = session;
  generation_++;
  serve_waiters();
}

void SlotPool::shut() {
  std::lock_guard lock(mutex_);
  shut_ = true;
}

void SlotPool::open() {
  std::lock_guard lock(mutex_);
  shut_ = false;
  serve_waiters();
}

void SlotPool::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  urgent_.wake_all();
  waiting_.wake_all();
}

uint64_t SlotPool::generation() const {
  std::lock_guard lock(mutex_);
  return generation_;
}

uint32_t SlotPool::slots() const {
  std::lock_guard lock(mutex_);
  return table_.usable();
}

uint32_t SlotPool::in_use() const {
  std::lock_guard lock(mutex_);
  return table_.in_use();
}

bool SlotPool::take(Acquire& a) {
  if (shut_ && !a.privileged) return false;
  auto slot = table_.acquire();
  if (!slot) return false;
  a.lease = SlotLease{*slot, table_.sequence_id(*slot), generation_};
  return true;
}

bool SlotPool::Acquire::await_suspend(std::coroutine_handle<> h) {
  std::lock_guard lock(pool.mutex_);
  bool first = urgent || privileged || (pool.urgent_.empty() && pool.waiting_.empty());
  if (pool.ended_ || (first && pool.take(*this))) return false;
  park(h, deadline_ns, pool.mutex_);
  if (privileged)
    pool.urgent_.push_front(*this);
  else if (urgent)
    pool.urgent_.push_back(*this);
  else
    pool.waiting_.push_back(*this);
  return true;
}

// A freed slot goes straight to the next waiter, so that nobody can overtake the queue.
void SlotPool::serve_waiters() {
  for (Waiters* queue : {&urgent_, &waiting_}) {
    while (Waiter* w = queue->pop_front()) {
      Acquire* a = static_cast<Acquire*>(w);
      if (!take(*a)) {
        queue->push_front(*w);
        break;
      }
      w->wake();
    }
  }
}

bool SlotPool::stamp(Compound& c, const SlotLease& lease) {
  std::lock_guard lock(mutex_);
  if (lease.generation != generation_) return false;
  if (table_.state(lease.slot) == slots::SlotState::replay) table_.resent(lease.slot);
  nfs4::SequenceArgs args = table_.sequence(lease.slot, session_, c.repeat() == Repeat::exactly_once);
  c.stamp(session_, lease, args.highest_slotid);
  return true;
}

void SlotPool::release(const SlotLease& lease, bool accepted) {
  std::lock_guard lock(mutex_);
  if (lease.generation != generation_) return;
  if (accepted)
    table_.accepted(lease.slot);
  else
    table_.not_executed(lease.slot);
  serve_waiters();
}

void SlotPool::lost(const SlotLease& lease) {
  std::lock_guard lock(mutex_);
  if (lease.generation == generation_) table_.lost(lease.slot);
}

void SlotPool::abandon(const SlotLease& lease) {
  std::lock_guard lock(mutex_);
  if (lease.generation == generation_) table_.abandon(lease.slot);
}

slots::ReplyCheck SlotPool::on_sequence(const SlotLease& lease, const nfs4::SequenceResult& result) {
  std::lock_guard lock(mutex_);
  // Of a session that was replaced meanwhile: the answer came in time nevertheless.
  if (lease.generation != generation_) return slots::ReplyCheck::good;
  auto check = table_.on_sequence(lease.slot, session_, result);
  if (!waiting_.empty() || !urgent_.empty()) serve_waiters();
  return check;
}

bool SlotPool::bad_slot(const SlotLease& lease) {
  std::lock_guard lock(mutex_);
  return lease.generation == generation_ && table_.bad_slot(lease.slot);
}

bool SlotPool::misordered(const SlotLease& lease) {
  std::lock_guard lock(mutex_);
  if (lease.generation != generation_ || !table_.misordered(lease.slot)) return false;
  table_.not_executed(lease.slot);
  serve_waiters();
  return true;
}

void SlotPool::set_target(uint32_t target_highest_slot) {
  std::lock_guard lock(mutex_);
  table_.set_target(target_highest_slot);
  serve_waiters();
}

// The server wants fewer slots, we use no more than that, and it does not know yet.
bool SlotPool::shrink_unconfirmed() const {
  std::lock_guard lock(mutex_);
  return table_.shrink_unconfirmed();
}

}  // namespace nfsrdma::session
