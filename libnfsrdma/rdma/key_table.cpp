// SPDX-License-Identifier: Apache-2.0
#include "rdma/key_table.hpp"

#include <errno.h>

#include <bitset>
#include <mutex>

#include "base/random.hpp"

namespace nfsrdma::rdma {
namespace {

constexpr uint32_t index_bits = 12;  // within a block of KeyTable::entries_max
constexpr uint32_t blocks = 1u << (24 - index_bits);

// Which blocks belong to a living table. Block 0 stays unused: STag 0 is privileged in hardware.
class Blocks {
 public:
  uint32_t take() {
    std::lock_guard lock(mutex_);
    for (uint32_t tries = 0; tries < blocks; tries++) {
      next_ = next_ % (blocks - 1) + 1;
      if (!taken_[next_]) break;
    }
    // With more than 4095 tables alive blocks are shared, and only the 8 changing bits tell keys apart.
    taken_[next_] = true;
    return next_;
  }
  void give_back(uint32_t block) {
    std::lock_guard lock(mutex_);
    taken_[block] = false;
  }
  bool taken(uint32_t block) {
    std::lock_guard lock(mutex_);
    return taken_[block];
  }

 private:
  std::mutex mutex_;
  std::bitset<blocks> taken_;
  uint32_t next_ = static_cast<uint32_t>(base::system_random().below(blocks));
};

Blocks& all_blocks() {
  static Blocks b;
  return b;
}

constexpr uint32_t block_of(uint32_t key) { return key >> (8 + index_bits); }
constexpr uint32_t index_of(uint32_t key) { return key >> 8 & (KeyTable::entries_max - 1); }

bool expects_bulk(const KeyEntry& entry) {
  return entry.purpose != Purpose::read_source && entry.length >= KeyTable::bulk_bytes_min;
}

}  // namespace

KeyTable::Secret KeyTable::fresh_secret() {
  return {all_blocks().take(), base::system_random().next(), true};
}

KeyTable::KeyTable(const Secret& secret)
    : free_(entries_max), block_(secret.block), owns_block_(secret.owns_block), random_(secret.random | 1) {
  entries_.reserve(entries_max);  // entries never move; untouched pages cost nothing
}

KeyTable::~KeyTable() {
  if (owns_block_) all_blocks().give_back(block_);
}

uint64_t KeyTable::next_random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

Result<Exposure> KeyTable::add(HostRegion& region, uint64_t offset, uint32_t length, Purpose purpose) {
  if (length == 0 || !region.contains(offset, length))
    return Error(EINVAL, ErrorOrigin::local, "an exposure must lie within its registered memory");
  if (region.revoked()) return Error(EIO, ErrorOrigin::local, "registered memory was revoked");
  uint32_t index;
  if (free_count_ > 0 && (free_count_ >= 32 || entries_.size() == entries_max)) {
    index = free_[free_head_++ % entries_max];
    free_count_--;
  } else if (entries_.size() < entries_max) {
    index = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back().key = static_cast<uint32_t>(next_random() & 0xff);
  } else {
    return Error(ENOBUFS, ErrorOrigin::local, "all keys of the connection are in use");
  }
  KeyEntry& entry = entries_[index];
  uint32_t variant = (entry.key + 1) & 0xff;
  // A base that is no address tells the peer nothing; page steps keep the caller's alignment visible in
  // traces.
  uint64_t base = (next_random() & 0xffffffffu) << 12;
  entry = KeyEntry{&region, offset,  base, 0,    length, block_ << (8 + index_bits) | index << 8 | variant,
                   0,       purpose, true, false};
  if (expects_bulk(entry)) bulk_expected_++;
  return Exposure{entry.key, entry.base, length, index};
}

KeyVerdict KeyTable::find(uint32_t key, uint64_t tagged_offset, uint64_t length, Purpose purpose,
                          KeyEntry** out) {
  KeyEntry* entry = lookup(key);
  if (!entry || !entry->live || entry->region->revoked()) {
    bool foreign = block_of(key) != block_ && all_blocks().taken(block_of(key));
    return foreign ? KeyVerdict::foreign_key : KeyVerdict::unknown_key;
  }
  if (entry->purpose != purpose) return KeyVerdict::no_access;
  if (tagged_offset + length < tagged_offset) return KeyVerdict::wraps;
  if (tagged_offset < entry->base || tagged_offset - entry->base > entry->length ||
      length > entry->length - (tagged_offset - entry->base))
    return KeyVerdict::out_of_bounds;
  *out = entry;
  return KeyVerdict::ok;
}

KeyEntry* KeyTable::lookup(uint32_t key) {
  uint32_t index = index_of(key);
  if (block_of(key) != block_ || index >= entries_.size()) return nullptr;
  KeyEntry& entry = entries_[index];
  return entry.region && entry.key == key ? &entry : nullptr;
}

void KeyTable::disable(KeyEntry& entry) {
  if (!entry.live) return;
  entry.live = false;
  if (expects_bulk(entry)) bulk_expected_--;
}

void KeyTable::release(KeyEntry& entry) {
  disable(entry);
  uint32_t key = entry.key;
  entry = KeyEntry{};
  entry.key = key & 0xff;
  free_[(free_head_ + free_count_++) % entries_max] = index_of(key);
}

}  // namespace nfsrdma::rdma
