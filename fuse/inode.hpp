// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of the server's objects: one inode per object, found by the number that the kernel uses or
// by the object itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "async_mutex.hpp"
#include "nfsrdma/credentials.hpp"
#include "nfsrdma/node.hpp"

namespace nfsrdma::fuse {

// A name that an unlinked but open file keeps on the server until its last close.
struct SillyName {
  Node directory;
  std::string name;
  Credentials who;  // of the one who unlinked it
};

struct OpenFile;

class Inode {
 public:
  Inode(Node node_, uint64_t id_) : node(std::move(node_)), id(id_) {}

  const Node node;
  const uint64_t id;  // FUSE's nodeid, never used twice

  // Directory: entries below it may be cached by the kernel only if everybody may search it, since the kernel asks
  // nobody on a cached name.
  std::atomic<bool> everybody_searches{false};
  std::atomic<NodeType> type{NodeType::none};
  std::atomic<uint64_t> number{0};  // st_ino

  std::atomic<bool> may_have_pages{false};  // some handle has used the kernel's page cache

  AsyncMutex appending;

  std::mutex mutex;  // guards what follows
  uint32_t opens = 0;            // open handles, and opens under way
  std::optional<uint64_t> pages_change;  // the kernel's pages are not older than this change attribute
  std::optional<SillyName> silly;
  std::weak_ptr<OpenFile> writer;        // the youngest handle that can write

 private:
  friend class InodeTable;
  uint64_t lookups_ = 0;  // guarded by the table's shard
};

using InodePtr = std::shared_ptr<Inode>;

// Any thread.
class InodeTable {
 public:
  static constexpr uint64_t root_id = 1;

  explicit InodeTable(Node root);
  const InodePtr& root() const { return root_; }

  // Empty for a number that was never given out or was forgotten.
  InodePtr get(uint64_t id);
  // The inode of an object that is about to be told to the kernel: counts one lookup.
  InodePtr remember(const Node& node);
  // The inode of an object if the kernel knows it; counts nothing.
  InodePtr find(const Node& node);
  void forget(uint64_t id, uint64_t lookups);
  size_t size() const;
  std::vector<InodePtr> all();

 private:
  static constexpr size_t shard_bits = 4;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_multimap<uint64_t, InodePtr> by_key;
    std::unordered_map<uint64_t, InodePtr> by_id;
  };
  // The low bits of a number say in which shard its inode lies; those of the root's do not matter.
  Shard& shard_of_key(uint64_t key) { return shards_[(key >> 32 ^ key) & (shards_.size() - 1)]; }
  static InodePtr find_in(Shard& shard, const Node& node, uint64_t key);

  InodePtr root_;
  std::array<Shard, size_t{1} << shard_bits> shards_;
  std::atomic<uint64_t> next_{1};
};

}  // namespace nfsrdma::fuse
