// SPDX-License-Identifier: Apache-2.0
#include "server/lock_ranges.hpp"

#include <algorithm>

namespace nfsrdma::server {

const LockRange* LockRanges::conflict(const LockRange& wanted) const {
  for (const LockRange& r : ranges_) {
    if (r.owner != wanted.owner && (r.write || wanted.write) && r.first <= wanted.last && wanted.first <= r.last) {
      return &r;
    }
  }
  return nullptr;
}

void LockRanges::clear(LockOwner* owner, uint64_t first, uint64_t last) {
  size_t count = ranges_.size();
  for (size_t i = 0; i < count; ++i) {
    LockRange& r = ranges_[i];
    if (r.owner != owner || r.first > last || first > r.last) continue;
    LockRange tail = r;
    bool has_head = r.first < first, has_tail = r.last > last;
    if (has_head) r.last = first - 1;
    if (has_tail) {
      tail.first = last + 1;
      if (has_head) {
        ranges_.push_back(tail);
      } else {
        ranges_[i] = tail;
      }
    } else if (!has_head) {
      r.owner = nullptr;
    }
  }
  std::erase_if(ranges_, [](const LockRange& r) { return r.owner == nullptr; });
}

void LockRanges::set(const LockRange& range) {
  LockRange joined = range;
  clear(range.owner, range.first, range.last);
  std::erase_if(ranges_, [&joined](const LockRange& r) {
    if (r.owner != joined.owner || r.write != joined.write) return false;
    bool before = joined.first > 0 && r.last == joined.first - 1;
    bool after = joined.last < UINT64_MAX && r.first == joined.last + 1;
    if (before) joined.first = r.first;
    if (after) joined.last = r.last;
    return before || after;
  });
  ranges_.push_back(joined);
}

bool LockRanges::holds_any(const LockOwner* owner) const {
  return std::ranges::any_of(ranges_, [owner](const LockRange& r) { return r.owner == owner; });
}

}  // namespace nfsrdma::server
