// SPDX-License-Identifier: Apache-2.0
#include "slots/reply_cache.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace nfsrdma::slots {

nfs4::Status status_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fresh:
    case Verdict::replay:
    case Verdict::uncached:
      return nfs4::Status::ok;
    case Verdict::in_progress:
      return nfs4::Status::delay;
    case Verdict::false_retry:
      return nfs4::Status::seq_false_retry;
    case Verdict::misordered:
      return nfs4::Status::seq_misordered;
    case Verdict::bad_slot:
      return nfs4::Status::badslot;
    case Verdict::bad_highest:
      return nfs4::Status::bad_high_slot;
  }
  return nfs4::Status::serverfault;
}

ReplyCache::ReplyCache(uint32_t slots, uint32_t cached_bytes_max)
    : slots_(std::max(slots, 1u)),
      target_(static_cast<uint32_t>(slots_.size())),
      cached_bytes_max_(cached_bytes_max) {}

ReplyCache::Answer ReplyCache::check(const Request& request) {
  if (request.slot >= slots()) return {Verdict::bad_slot, {}};
  if (request.highest_slot >= slots()) return {Verdict::bad_highest, {}};
  Slot& slot = slots_[request.slot];
  if (slot.used && request.sequence_id == slot.sequence_id && !slot.reopened) {
    if (request.fingerprint != slot.fingerprint) {
      return {slot.busy ? Verdict::misordered : Verdict::false_retry, {}};
    }
    if (slot.busy) return {Verdict::in_progress, {}};
    if (!slot.cached) return {Verdict::uncached, {}};
    return {Verdict::replay, {slot.reply.get(), slot.reply_bytes}};
  }
  const bool next = request.sequence_id == slot.sequence_id + 1;
  const bool restart = slot.reopened && request.sequence_id == 1;
  if (slot.busy || !(next || restart)) return {Verdict::misordered, {}};
  // A request uses its own slot, whatever it says about the highest.
  retire(slot, std::max(request.highest_slot, request.slot));
  begin(slot, request);
  return {Verdict::fresh, {}};
}

void ReplyCache::begin(Slot& slot, const Request& request) {
  slot.sequence_id = request.sequence_id;
  slot.fingerprint = request.fingerprint;
  slot.used = true;
  slot.busy = true;
  slot.cached = false;
  slot.reopened = false;
  ++in_progress_;
}

bool ReplyCache::complete(uint32_t slot_id, std::span<const std::byte> reply, bool keep) {
  Slot& slot = slots_[slot_id];
  assert(slot.busy);
  slot.busy = false;
  --in_progress_;
  slot.generation = generation_;
  if (!keep) {
    drop_reply(slot);
    return true;
  }
  if (reply.size() > cached_bytes_max_) {
    drop_reply(slot);
    return false;
  }
  const uint32_t bytes = static_cast<uint32_t>(reply.size());
  if (bytes > slot.reply_capacity) {
    cached_bytes_ += bytes - slot.reply_capacity;
    slot.reply.reset(new std::byte[bytes]);
    slot.reply_capacity = bytes;
  }
  if (bytes != 0) std::memcpy(slot.reply.get(), reply.data(), bytes);
  slot.reply_bytes = bytes;
  slot.cached = true;
  return true;
}

void ReplyCache::forget(uint32_t slot_id) {
  Slot& slot = slots_[slot_id];
  assert(slot.busy);
  slot.busy = false;
  --in_progress_;
  --slot.sequence_id;
  slot.used = slot.sequence_id != 0;
}

void ReplyCache::take_over(const Request& request) {
  Slot& slot = slots_[request.slot];
  assert(!slot.busy && slot.sequence_id == request.sequence_id);
  begin(slot, request);
}

void ReplyCache::drop_reply(Slot& slot) {
  cached_bytes_ -= slot.reply_capacity;
  slot.reply.reset();
  slot.reply_capacity = 0;
  slot.reply_bytes = 0;
  slot.cached = false;
}

void ReplyCache::set_target(uint32_t count) {
  count = std::max(count, 1u);
  if (count == target_) return;
  target_ = count;
  ++generation_;
  while (slots() < target_) {
    if (retired_ == 0) {
      slots_.emplace_back();
    } else {
      slots_[slots()].reopened = slots_[slots()].used;
      --retired_;
    }
  }
}

void ReplyCache::retire(const Slot& slot, uint32_t highest_slot) {
  if (slots() <= target_ || slot.generation != generation_ || highest_slot >= target_) return;
  while (slots() > target_ && !slots_[slots() - 1].busy) {
    drop_reply(slots_[slots() - 1]);
    ++retired_;
  }
}

}  // namespace nfsrdma::slots
