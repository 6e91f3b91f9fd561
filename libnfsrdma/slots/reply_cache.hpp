// SPDX-License-Identifier: Apache-2.0
// The replier's side of a session's slots (RFC 8881, 2.10.6): tells a new request from a repeated one and
// keeps replies so that a repeated request is answered, not executed, again. Used by the server for requests
// and by the client for callbacks. Pure bookkeeping: no I/O, no clock, not thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nfs4/constants.hpp"

namespace nfsrdma::slots {

enum class Verdict : uint8_t {
  fresh,        // execute it; the slot is in progress until complete() or forget()
  replay,       // answer with the cached reply
  uncached,     // executed before, reply not kept: RETRY_UNCACHED_REP on the operation after SEQUENCE
  in_progress,  // the same request is still being executed: DELAY
  false_retry,  // same slot and sequence id, other content: SEQ_FALSE_RETRY, or take_over()
  misordered,   // SEQ_MISORDERED
  bad_slot,     // BADSLOT
  bad_highest,  // BAD_HIGH_SLOT
};
// What SEQUENCE answers for a verdict; ok for fresh, replay and uncached.
nfs4::Status status_of(Verdict verdict);

// A request as its SEQUENCE or CB_SEQUENCE names it.
struct Request {
  uint32_t slot = 0;
  uint32_t sequence_id = 0;
  uint32_t highest_slot = 0;
  bool cache_this = false;
  // Hash of what makes a repetition "the same request": the whole body, the credential, or the xid, as the
  // user of the cache decides; always 0 accepts every repetition.
  uint64_t fingerprint = 0;
};

class ReplyCache {
 public:
  // slots: at least 1. cached_bytes_max: largest reply kept for a slot (ca_maxresponsesize_cached).
  ReplyCache(uint32_t slots, uint32_t cached_bytes_max);

  struct Answer {
    Verdict verdict;
    std::span<const std::byte> reply;  // for replay; valid until the slot's next request
  };
  // Fresh marks the slot as in progress. Every other verdict leaves the cache as it was.
  Answer check(const Request& request);

  // The request on this slot was executed. keep: hold the reply for repetitions; what is not kept is answered
  // as uncached. False when a reply to be kept is above cached_bytes_max (it is not kept then).
  bool complete(uint32_t slot, std::span<const std::byte> reply, bool keep);
  // The request was not executed after all (SEQUENCE itself failed behind check()): its sequence id is due
  // again.
  void forget(uint32_t slot);
  // Executes a request that check() called false_retry as a new one under the same sequence id. For repliers
  // whose requester reuses a sequence id after a lost request, as Linux does on its callback channel.
  void take_over(const Request& request);

  // The number of slots that the requester shall come to use, 1..slots_max. Growing holds at once. Shrinking
  // only announces: slots above are retired by a request whose sender has seen the announcement and uses none
  // of them.
  void set_target(uint32_t slots);

  uint32_t slots() const { return static_cast<uint32_t>(slots_.size()) - retired_; }
  uint32_t highest() const { return slots() - 1; }         // sr_highest_slotid
  uint32_t target_highest() const { return target_ - 1; }  // sr_target_highest_slotid
  uint32_t in_progress() const { return in_progress_; }
  uint32_t cached_bytes_max() const { return cached_bytes_max_; }
  uint64_t cached_bytes() const { return cached_bytes_; }  // held now

 private:
  struct Slot {
    uint32_t sequence_id = 0;  // of the last request taken
    uint32_t generation = 0;   // of the target that the last reply carried
    uint32_t reply_bytes = 0;
    uint32_t reply_capacity = 0;
    uint64_t fingerprint = 0;
    std::unique_ptr<std::byte[]> reply;
    bool used = false;  // ever took a request
    bool busy = false;
    bool cached = false;
    bool reopened = false;  // came back after being retired: starts at 1 or goes on
  };
  void begin(Slot& slot, const Request& request);
  void drop_reply(Slot& slot);
  void retire(const Slot& slot, uint32_t highest_slot);

  std::vector<Slot> slots_;  // the last retired_ of them are retired
  uint32_t retired_ = 0;
  uint32_t target_;
  uint32_t generation_ = 0;  // counts changes of target_
  uint32_t cached_bytes_max_;
  uint32_t in_progress_ = 0;
  uint64_t cached_bytes_ = 0;
};

}  // namespace nfsrdma::slots
