// SPDX-License-Identifier: Apache-2.0
// What a hardware work request carries as its id: whose it is and which one of them.
#pragma once

#include <cstdint>

namespace nfsrdma::rdma::verbs {

class WorkId {
 public:
  static constexpr uint32_t slot_max = 0xffff;
  static constexpr uint32_t sequence_mask = 0x7fffffff;

  WorkId(uint16_t slot, uint16_t generation, bool receive, uint32_t sequence)
      : value_(uint64_t{slot} << 48 | uint64_t{generation} << 32 | uint64_t{receive} << 31 |
               (sequence & sequence_mask)) {}
  explicit WorkId(uint64_t value) : value_(value) {}

  uint64_t value() const { return value_; }
  uint16_t slot() const { return static_cast<uint16_t>(value_ >> 48); }
  uint16_t generation() const { return static_cast<uint16_t>(value_ >> 32); }
  bool receive() const { return (value_ >> 31) & 1; }
  uint32_t sequence() const { return static_cast<uint32_t>(value_) & sequence_mask; }

 private:
  uint64_t value_;
};

}  // namespace nfsrdma::rdma::verbs
