// SPDX-License-Identifier: Apache-2.0
// The exposures of one queue pair: a table whose entries own a memory window each where the device has them, and
// merely remember the region where it has none. Guarded by the queue pair's mutex.
#pragma once

#include <infiniband/verbs.h>

#include <vector>

#include "rdma/ring.hpp"
#include "rdma/verbs/region.hpp"

namespace nfsrdma::rdma::verbs {

class Exposures {
 public:
  enum class State : uint8_t { free, live, fencing };
  struct Entry {
    ibv_mw* window = nullptr;
    const VerbsRegion* region = nullptr;  // while live or fencing
    uint32_t key = 0;
    State state = State::free;
  };

  Exposures(ibv_pd* pd, bool windows, uint32_t entries_max) : pd_(pd), windows_(windows), entries_max_(entries_max), free_(entries_max) {
    entries_.reserve(entries_max);
  }
  ~Exposures() { drop_all(); }
  Exposures(const Exposures&) = delete;
  Exposures& operator=(const Exposures&) = delete;

  bool windows() const { return windows_; }
  // Windows that are bound or will be: each needs room in the send queue for its invalidation.
  uint32_t bound() const { return bound_; }
  // An entry in state live, with a key that it did not have before. ENOBUFS: all are taken.
  Result<uint32_t> take(const VerbsRegion& region);
  Entry& at(uint32_t index) { return entries_[index]; }
  // The live entry that an exposure names; nullptr if it ended (fenced, invalidated by the peer, dropped).
  Entry* find(const Exposure& exposure);
  // The peer invalidated a key, perhaps one that is none of ours.
  void invalidated(uint32_t key);
  // The queue pair sent an invalidation for a live entry; release() follows when it is done.
  void start_fence(uint32_t index);
  void release(uint32_t index);
  bool names_revoked() const;
  // Ends all. The hardware queue pair must be in the error state or gone.
  void drop_all();

 private:
  ibv_pd* pd_;
  bool windows_;
  uint32_t entries_max_;
  uint32_t bound_ = 0;
  std::vector<Entry> entries_;
  Ring<uint32_t> free_;  // oldest first
};

}  // namespace nfsrdma::rdma::verbs
