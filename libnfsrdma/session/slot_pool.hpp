// SPDX-License-Identifier: Apache-2.0
// The session's slots as several loops share them: the pure slot table behind a mutex, a queue of waiters, and a gate
// that is shut while the session is being rebuilt.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "nfs4/types.hpp"
#include "session/compound.hpp"
#include "session/waiters.hpp"
#include "slots/slot_table.hpp"

namespace nfsrdma::session {

class SlotPool {
 public:
  // A new session: all slots free at sequence 1, generation + 1. The gate stays as it is.
  void reset(const nfs4::SessionId& session, uint32_t slots);
  void shut();  // acquire() waits from now on, except for privileged callers
  void open();
  void end();   // acquire() gives nothing from now on, and nobody waits any more
  uint64_t generation() const;
  uint32_t slots() const;
  uint32_t in_use() const;

  // co_await pool.acquire(urgent, privileged, deadline_ns): a slot of the current session; nothing when none was free
  // until then, or after end(). Urgent waiters go first.
  struct Acquire : Waiter {
    SlotPool& pool;
    bool urgent;
    bool privileged;
    base::TimeNs deadline_ns;
    std::optional<SlotLease> lease;
    Acquire(SlotPool& p, bool u, bool v, base::TimeNs d) : pool(p), urgent(u), privileged(v), deadline_ns(d) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h);
    std::optional<SlotLease> await_resume() const noexcept { return lease; }
  };
  Acquire acquire(bool urgent, bool privileged, base::TimeNs deadline_ns) {
    return Acquire(*this, urgent, privileged, deadline_ns);
  }

  // Writes the slot's numbers into the compound for a transmission. False: the session is another one by now.
  bool stamp(Compound& c, const SlotLease& lease);
  // The server accepted the sequence id (the next request uses the following one), or did not.
  void release(const SlotLease& lease, bool accepted);
  // The connection was lost behind the request: it goes again on this slot.
  void lost(const SlotLease& lease);
  // A good SEQUENCE result of the request on this slot: checks the echo, follows the target.
  slots::ReplyCheck on_sequence(const SlotLease& lease, const nfs4::SequenceResult& result);
  // SEQUENCE answered BADSLOT: true when the slot was dropped and the request may take another one.
  bool bad_slot(const SlotLease& lease);
  // SEQUENCE answered SEQ_MISORDERED: true when the server had forgotten a slot that it wanted back, and the request may
  // take it again, or another one.
  bool misordered(const SlotLease& lease);
  // The slot's fate is unknown and its caller is gone: it is not used again before release() says what became of it.
  void abandon(const SlotLease& lease);
  // CB_RECALL_SLOT.
  void set_target(uint32_t target_highest_slot);
  bool shrink_unconfirmed() const;

 private:
  bool take(Acquire& a);
  void serve_waiters();

  mutable std::mutex mutex_;
  slots::SlotTable table_{1};
  nfs4::SessionId session_{};
  uint64_t generation_ = 0;
  bool shut_ = true;
  bool ended_ = false;
  Waiters urgent_;
  Waiters waiting_;
};

}  // namespace nfsrdma::session
