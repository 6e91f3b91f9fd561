// SPDX-License-Identifier: Apache-2.0
// The requester's side of a session's slots (RFC 8881, 2.10.6): which slot the next request takes, with which
// sequence id, and how the table follows the replier's wish for more or fewer slots. Used by the client for
// its requests and by the server for its callbacks. Pure bookkeeping: no I/O, no clock, not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nfs4/callback_ops.hpp"
#include "nfs4/session_ops.hpp"

namespace nfsrdma::slots {

inline constexpr uint32_t slots_max = 2048;

//   free ──acquire──▶ sent ──accepted──▶ free (next sequence id)
//                     sent ──not_executed──▶ free (same sequence id)
//                     sent ──lost──▶ replay ──resent──▶ sent
//          sent, replay ──abandon──▶ orphan ──accepted, not_executed──▶ free
// An orphan's caller has gone; its slot stays taken until its reply is known or the session ends, because the
// replier may still be at work on it.
enum class SlotState : uint8_t { free, sent, replay, orphan };

// What a reply's SEQUENCE result says about the replier.
enum class ReplyCheck : uint8_t {
  good,
  mismatch,  // session, slot or sequence id are not those of the request: the replier is broken, reset the
             // session
};

class SlotTable {
 public:
  // negotiated: ca_maxrequests of the channel, at least 1. limit: how far the replier may make the table
  // grow.
  explicit SlotTable(uint32_t negotiated, uint32_t limit = slots_max);

  // A new session: every slot is free and starts at sequence id 1, whatever was outstanding.
  void reset(uint32_t negotiated);

  // Takes the lowest free slot within the target; none when all are taken.
  std::optional<uint32_t> acquire();

  // The SEQUENCE arguments of the request that holds this slot, for its first transmission and every replay.
  nfs4::SequenceArgs sequence(uint32_t slot, const nfs4::SessionId& session, bool cache_this) const;

  // The reply's SEQUENCE succeeded: checks the echo and, when this request is the newest answered so far,
  // follows the target it carries. Does not free the slot.
  ReplyCheck on_sequence(uint32_t slot, const nfs4::SessionId& session, const nfs4::SequenceResult& result);
  ReplyCheck on_sequence(uint32_t slot, const nfs4::SessionId& session, const nfs4::CbSequenceResult& result);

  // The replier has consumed the sequence id (whatever became of the operations after SEQUENCE). Frees the
  // slot.
  void accepted(uint32_t slot);
  // The request never reached the replier or SEQUENCE itself failed: the sequence id is still due. Frees the
  // slot.
  void not_executed(uint32_t slot);
  // The connection was lost behind the request: it has to go again, identical, on the same slot.
  void lost(uint32_t slot);
  void resent(uint32_t slot);
  // Nobody waits for this request any more.
  void abandon(uint32_t slot);
  // SEQUENCE was answered with SEQ_MISORDERED. True: the slot had been given up and came back, and the
  // replier has forgotten its sequence id; send the request again with the new one. False: recover the
  // session. (RFC 8881, 2.10.6.1 lets a replier keep or forget a slot that it wants no more. Going on with
  // the old sequence id first is the safe order: 1 could be taken for a repetition of the slot's very first
  // request.)
  bool misordered(uint32_t slot);
  // SEQUENCE was answered with BADSLOT: frees the slot. True: the target now lies below it (targets arrive
  // out of order, so it may have been retired without our knowing) and the request may take a lower one.
  // False: it was slot 0, which always exists; recover the session.
  bool bad_slot(uint32_t slot);

  // CB_RECALL_SLOT: a new target outside of a reply.
  void set_target(uint32_t target_highest_slotid);

  SlotState state(uint32_t slot) const { return slots_[slot].state; }
  uint32_t sequence_id(uint32_t slot) const { return slots_[slot].sequence_id; }
  // sa_highest_slotid: the highest slot in use, 0 when none is.
  uint32_t highest_in_use() const;
  uint32_t target_highest() const { return target_; }
  uint32_t usable() const { return target_ + 1; }
  uint32_t in_use() const { return in_use_; }
  uint32_t available() const;
  // Slots above the target are drained but the replier was not told so by an accepted request yet: a lone
  // SEQUENCE should go out soon.
  bool shrink_unconfirmed() const;

 private:
  struct Slot {
    uint32_t sequence_id = 1;
    uint32_t sent_highest = 0;  // sa_highest_slotid of the last transmission
    uint64_t issued = 0;        // order of the last transmission
    SlotState state = SlotState::free;
    bool retired = false;  // was above the target since its last request: the replier may have forgotten it
  };
  ReplyCheck follow(uint32_t slot, bool same_session, uint32_t sequence_id, uint32_t slotid, uint32_t target);
  void mark_free(uint32_t slot, bool is_free);
  void release(uint32_t slot);
  void issue(uint32_t slot);

  std::vector<Slot> slots_;
  std::vector<uint64_t> free_bits_;
  uint32_t limit_;
  uint32_t target_ = 0;
  uint32_t in_use_ = 0;
  uint64_t issue_counter_ = 0;
  uint64_t newest_target_ = 0;   // issue order of the request whose reply set the target
  uint64_t shrunk_at_ = 0;       // issue order when the target last fell
  bool shrink_pending_ = false;  // no accepted request has shown the replier that the slots above are drained
};

}  // namespace nfsrdma::slots
