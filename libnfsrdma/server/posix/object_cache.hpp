// SPDX-License-Identifier: Apache-2.0
// Objects by handle. Each holds a descriptor, and a descriptor keeps a removed file's blocks: so their number is
// bounded, idle ones go after some seconds, and a removed file's at once. One that somebody holds is never replaced,
// which makes an object unique for its file.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

#include "server/posix/object.hpp"

namespace nfsrdma::server {

// Thread safe. Must outlive its objects.
class ObjectCache {
 public:
  explicit ObjectCache(size_t objects_max) : shard_max_(objects_max / shard_count + 1) {}
  ~ObjectCache();

  PosixObjectRef find(const FileHandle& handle);
  // The object for fd's file: the known one, or a new one that takes fd over.
  PosixObjectRef insert(const FileHandle& handle, FileType type, Fd fd, uint64_t inode);
  // The file was removed: its object goes as soon as nobody else holds it.
  void release(const FileHandle& handle);
  // Called once a second: drops what was not used during idle_seconds.
  void tick(uint32_t idle_seconds);
  // Called by an object's destructor. What it counted within one clock tick is kept for the file's next object.
  void forget(const FileHandle& handle, const PosixObject::ChangeMemory& change);
  size_t size();

 private:
  using Age = std::list<const FileHandle*>;
  struct Entry {
    PosixObjectRef object;             // empty: released, `weak` tells whether somebody still holds it
    std::weak_ptr<PosixObject> weak;
    Age::iterator age;                 // when object is set
    uint32_t used_s = 0;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<FileHandle, Entry> objects;
    Age by_age;                        // youngest first; points at the map's keys
    std::unordered_map<FileHandle, PosixObject::ChangeMemory> changes;
  };
  using Dropped = std::vector<PosixObjectRef>;
  static constexpr size_t shard_count = 16;
  static constexpr size_t changes_max = 4096;

  Shard& shard_of(const FileHandle& handle) { return shards_[handle.hash() % shard_count]; }
  PosixObjectRef use(Shard& shard, Entry& entry);
  static bool drop_oldest(Shard& shard, Dropped& dropped);

  std::array<Shard, shard_count> shards_;
  size_t shard_max_;
  std::atomic<uint32_t> now_s_{0};
};

}  // namespace nfsrdma::server
