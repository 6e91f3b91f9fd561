// SPDX-License-Identifier: Apache-2.0
// Byte-range locks of one file, with POSIX rules: an owner's new lock replaces what it overlaps of its own, equal
// neighbours join. Pure bookkeeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nfsrdma::server {

struct LockOwner;

// [first, last], both inclusive: a range to the end of the file ends at UINT64_MAX.
struct LockRange {
  uint64_t first = 0;
  uint64_t last = 0;
  bool write = false;
  LockOwner* owner = nullptr;
};

class LockRanges {
 public:
  // The lock of another owner that is in the way, or nullptr.
  const LockRange* conflict(const LockRange& wanted) const;
  // There must be no conflict.
  void set(const LockRange& range);
  void clear(LockOwner* owner, uint64_t first, uint64_t last);
  void clear_all(LockOwner* owner) { clear(owner, 0, UINT64_MAX); }
  bool holds_any(const LockOwner* owner) const;
  size_t size() const { return ranges_.size(); }

 private:
  std::vector<LockRange> ranges_;  // by owner in no order; one owner's never overlap
};

}  // namespace nfsrdma::server
