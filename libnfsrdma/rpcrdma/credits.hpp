// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace nfsrdma::rpcrdma {

// Flow control of one direction of one connection (RFC 8166 section 3.3.1): how many calls may be unanswered.
// One until the first reply; then the peer's latest grant, at least 1 and never more than what we can receive
// answers for.
class Credits {
 public:
  explicit Credits(uint32_t ceiling) : ceiling_(ceiling) {}
  uint32_t ceiling() const { return ceiling_; }
  uint32_t granted() const { return granted_; }
  uint32_t used() const { return used_; }
  uint32_t free() const { return used_ < granted_ ? granted_ - used_ : 0; }
  void take() { used_++; }
  void give_back() { used_--; }
  // The peer may shrink the grant below what is in use: nothing more is sent until enough was answered.
  void grant(uint32_t n) { granted_ = std::clamp(n, 1u, ceiling_); }

 private:
  uint32_t ceiling_;
  uint32_t granted_ = 1;
  uint32_t used_ = 0;
};

}  // namespace nfsrdma::rpcrdma
