// SPDX-License-Identifier: Apache-2.0
#include "slots/slot_table.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace nfsrdma::slots {

SlotTable::SlotTable(uint32_t negotiated, uint32_t limit) : limit_(std::max(limit, 1u)) { reset(negotiated); }

void SlotTable::reset(uint32_t negotiated) {
  const uint32_t count = std::clamp(negotiated, 1u, limit_);
  slots_.assign(count, Slot{});
  free_bits_.assign((count + 63) / 64, 0);
  for (uint32_t i = 0; i < count; ++i) mark_free(i, true);
  target_ = count - 1;
  in_use_ = 0;
  issue_counter_ = newest_target_ = shrunk_at_ = 0;
  shrink_pending_ = false;
}

void SlotTable::mark_free(uint32_t slot, bool is_free) {
  const uint64_t bit = uint64_t{1} << (slot % 64);
  if (is_free) {
    free_bits_[slot / 64] |= bit;
  } else {
    free_bits_[slot / 64] &= ~bit;
  }
}

void SlotTable::issue(uint32_t slot) {
  slots_[slot].issued = ++issue_counter_;
  slots_[slot].sent_highest = highest_in_use();
}

std::optional<uint32_t> SlotTable::acquire() {
  for (uint32_t w = 0; w < free_bits_.size(); ++w) {
    if (free_bits_[w] == 0) continue;
    const uint32_t slot = w * 64 + static_cast<uint32_t>(std::countr_zero(free_bits_[w]));
    if (slot > target_) return std::nullopt;
    mark_free(slot, false);
    slots_[slot].state = SlotState::sent;
    ++in_use_;
    issue(slot);
    return slot;
  }
  return std::nullopt;
}

nfs4::SequenceArgs SlotTable::sequence(uint32_t slot, const nfs4::SessionId& session, bool cache_this) const {
  return nfs4::SequenceArgs{session, slots_[slot].sequence_id, slot, slots_[slot].sent_highest, cache_this};
}

ReplyCheck SlotTable::on_sequence(uint32_t slot, const nfs4::SessionId& session,
                                  const nfs4::SequenceResult& result) {
  return follow(slot, result.session_id == session, result.sequenceid, result.slotid,
                result.target_highest_slotid);
}

ReplyCheck SlotTable::on_sequence(uint32_t slot, const nfs4::SessionId& session,
                                  const nfs4::CbSequenceResult& result) {
  return follow(slot, result.session_id == session, result.sequenceid, result.slotid,
                result.target_highest_slotid);
}

ReplyCheck SlotTable::follow(uint32_t slot, bool same_session, uint32_t sequence_id, uint32_t slotid,
                             uint32_t target) {
  const Slot s = slots_[slot];  // a copy: a new target may move the table
  if (!same_session || slotid != slot || sequence_id != s.sequence_id) return ReplyCheck::mismatch;
  // Replies overtake each other: an older request's target is out of date.
  if (s.issued > newest_target_) {
    newest_target_ = s.issued;
    set_target(target);
  }
  if (s.issued > shrunk_at_ && s.sent_highest <= target_) shrink_pending_ = false;
  return ReplyCheck::good;
}

void SlotTable::set_target(uint32_t target_highest_slotid) {
  const uint32_t target = std::min(target_highest_slotid, limit_ - 1);
  if (target < target_) {
    shrunk_at_ = issue_counter_;
    shrink_pending_ = true;
    for (uint32_t i = target + 1; i <= target_; ++i) slots_[i].retired = true;
  }
  for (uint32_t i = static_cast<uint32_t>(slots_.size()); i <= target; ++i) {
    slots_.emplace_back();
    if (free_bits_.size() * 64 <= i) free_bits_.push_back(0);
    mark_free(i, true);
  }
  target_ = target;
}

void SlotTable::release(uint32_t slot) {
  assert(slots_[slot].state != SlotState::free);
  slots_[slot].state = SlotState::free;
  --in_use_;
  mark_free(slot, true);
}

void SlotTable::accepted(uint32_t slot) {
  ++slots_[slot].sequence_id;
  if (slot <= target_) slots_[slot].retired = false;
  release(slot);
}

void SlotTable::not_executed(uint32_t slot) { release(slot); }

void SlotTable::lost(uint32_t slot) {
  assert(slots_[slot].state != SlotState::free);
  if (slots_[slot].state == SlotState::sent) slots_[slot].state = SlotState::replay;
}

void SlotTable::resent(uint32_t slot) {
  assert(slots_[slot].state != SlotState::free);
  if (slots_[slot].state == SlotState::replay) slots_[slot].state = SlotState::sent;
  issue(slot);
}

void SlotTable::abandon(uint32_t slot) {
  assert(slots_[slot].state != SlotState::free);
  slots_[slot].state = SlotState::orphan;
}

bool SlotTable::misordered(uint32_t slot) {
  Slot& s = slots_[slot];
  if (!s.retired || s.sequence_id == 1) return false;
  s.retired = false;
  s.sequence_id = 1;
  return true;
}

bool SlotTable::bad_slot(uint32_t slot) {
  release(slot);
  if (slot == 0) return false;
  if (slot <= target_) set_target(slot - 1);
  return true;
}

uint32_t SlotTable::highest_in_use() const {
  if (in_use_ == 0) return 0;
  for (uint32_t i = static_cast<uint32_t>(slots_.size()); i-- > 0;) {
    if (slots_[i].state != SlotState::free) return i;
  }
  return 0;
}

uint32_t SlotTable::available() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i <= target_; ++i) count += slots_[i].state == SlotState::free;
  return count;
}

bool SlotTable::shrink_unconfirmed() const { return shrink_pending_ && highest_in_use() <= target_; }

}  // namespace nfsrdma::slots
