// SPDX-License-Identifier: Apache-2.0
// Open files and directories, by the number that the kernel hands back (fh).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "inode.hpp"
#include "nfsrdma/mount.hpp"

namespace nfsrdma::fuse {

struct OpenFile {
  OpenFile(InodePtr inode_, File file_, Credentials who_)
      : inode(std::move(inode_)), file(std::move(file_)), who(std::move(who_)) {}
  const InodePtr inode;
  const File file;
  const Credentials who;       // of the opener: reads and writes go out in that name
  bool writable = false;
  std::atomic<bool> closing{false};
  // errno of a write-back that nobody asked for: the next flush or fsync tells it.
  std::atomic<int> kept_error{0};
};

struct OpenDirectory {
  InodePtr inode;
  bool is_root = false;
  // Entries that the server has sent and the kernel has not taken yet. One reader at a time; another one that comes
  // meanwhile (its predecessor was interrupted) works on a page of its own.
  struct Position {
    uint64_t verifier = 0;
    uint64_t place = 0;        // in the directory, of the next entry of `page`
    bool with_attributes = false;
    bool filled = false;
    size_t next = 0;
    DirectoryPage page;
  };
  bool busy = false;           // guarded by mutex
  std::mutex mutex;
  Position position;
};

// A file of the control directory, as it was when opened.
struct OpenText {
  std::string text;
};

// Any thread. Numbers are never used twice, so that one which was released names nothing.
template <class T>
class HandleTable {
 public:
  uint64_t add(std::shared_ptr<T> handle) {
    uint64_t id = next_.fetch_add(1, std::memory_order_relaxed);
    Shard& shard = shard_of(id);
    std::scoped_lock lock(shard.mutex);
    shard.handles.emplace(id, std::move(handle));
    return id;
  }
  std::shared_ptr<T> get(uint64_t id) {
    Shard& shard = shard_of(id);
    std::scoped_lock lock(shard.mutex);
    auto found = shard.handles.find(id);
    return found == shard.handles.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> remove(uint64_t id) {
    Shard& shard = shard_of(id);
    std::scoped_lock lock(shard.mutex);
    auto node = shard.handles.extract(id);
    return node ? std::move(node.mapped()) : nullptr;
  }
  std::vector<std::shared_ptr<T>> all() {
    std::vector<std::shared_ptr<T>> out;
    for (Shard& shard : shards_) {
      std::scoped_lock lock(shard.mutex);
      for (const auto& [id, handle] : shard.handles) out.push_back(handle);
    }
    return out;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::shared_ptr<T>> handles;
  };
  Shard& shard_of(uint64_t id) { return shards_[id % shards_.size()]; }
  std::array<Shard, 16> shards_;
  std::atomic<uint64_t> next_{1};
};

}  // namespace nfsrdma::fuse
