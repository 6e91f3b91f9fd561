// SPDX-License-Identifier: Apache-2.0
// The keys (STags) by which one peer reaches our memory over one queue pair. A key is 24 bits of index and 8
// bits that change on each reuse of the index, so that a stale key does not fit (RFC 5040 section 5.2 leaves
// both to us). Each table takes its indices from a block of its own: a key of another connection is never
// valid here, and is told apart from one that never was. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "rdma/host_memory.hpp"

namespace nfsrdma::rdma {

enum class KeyVerdict : uint8_t { ok, unknown_key, foreign_key, out_of_bounds, wraps, no_access };

struct KeyEntry {
  HostRegion* region = nullptr;
  uint64_t offset = 0;  // of the exposure in the region
  uint64_t base = 0;    // tagged offset of its first byte, as the peer sees it
  uint64_t fence_id = 0;
  uint32_t length = 0;
  uint32_t key = 0;
  uint32_t users = 0;  // answers to the peer's Reads not yet sent: the memory is still needed
  Purpose purpose = Purpose::write_target;
  bool live = false;          // the peer may use it
  bool fence_wanted = false;  // fence() waits for users to become 0

  std::byte* at(uint64_t tagged_offset) const { return region->host() + offset + (tagged_offset - base); }
};

class KeyTable {
 public:
  static constexpr uint32_t entries_max = 4096;
  // Exposures of at least this length are counted as bulk: their data should not pass through a staging
  // buffer.
  static constexpr uint32_t bulk_bytes_min = 16 << 10;

  // What makes keys hard to guess. A fixed one is for tests and fuzzing only: equal tables give equal keys.
  struct Secret {
    uint32_t block = 0;
    uint64_t random = 0;
    bool owns_block = false;
  };
  static Secret fresh_secret();

  explicit KeyTable(const Secret& secret = fresh_secret());
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  Result<Exposure> add(HostRegion& region, uint64_t offset, uint32_t length, Purpose purpose);
  // Is [tagged_offset, +length) reachable with key for this purpose? entry is set only on ok.
  KeyVerdict find(uint32_t key, uint64_t tagged_offset, uint64_t length, Purpose purpose, KeyEntry** entry);
  // The entry that a key names now, live or waiting for its fence; nullptr if none.
  KeyEntry* lookup(uint32_t key);
  // The peer cannot use it any more; the index stays taken until release().
  void disable(KeyEntry& entry);
  // Makes the index free. The key will not be given out again for the next 255 uses of its index.
  void release(KeyEntry& entry);
  uint32_t bulk_expected() const {
    return bulk_expected_;
  }  // live write targets and read sinks of bulk length
  // Every entry that is still taken.
  template <class F>
  void for_each(F&& f) {
    for (KeyEntry& entry : entries_)
      if (entry.region) f(entry);
  }

 private:
  uint64_t next_random();

  std::vector<KeyEntry> entries_;
  std::vector<uint32_t>
      free_;  // ring of indices, oldest first, so that a key rests before its index is used again
  size_t free_head_ = 0;
  size_t free_count_ = 0;
  uint32_t block_;
  bool owns_block_;
  uint32_t bulk_expected_ = 0;
  uint64_t random_;
};

}  // namespace nfsrdma::rdma
