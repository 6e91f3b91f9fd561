// SPDX-License-Identifier: Apache-2.0
#include "server/posix/object_cache.hpp"

namespace nfsrdma::server {

// Objects end outside the shards' locks, because their destructors come back here: `dropped` vectors are declared
// before the lock.

ObjectCache::~ObjectCache() {
  for (Shard& shard : shards_) {
    Dropped dropped;
    std::lock_guard lock(shard.mutex);
    while (!shard.by_age.empty()) {
      Entry& entry = shard.objects.find(*shard.by_age.back())->second;
      shard.by_age.pop_back();
      dropped.push_back(std::move(entry.object));
    }
  }
}

PosixObjectRef ObjectCache::use(Shard& shard, Entry& entry) {
  // A removed file's is lent, not taken back.
  if (!entry.object) return entry.weak.lock();
  entry.used_s = now_s_.load(std::memory_order_relaxed);
  shard.by_age.splice(shard.by_age.begin(), shard.by_age, entry.age);
  return entry.object;
}

PosixObjectRef ObjectCache::find(const FileHandle& handle) {
  Shard& shard = shard_of(handle);
  std::lock_guard lock(shard.mutex);
  auto it = shard.objects.find(handle);
  return it == shard.objects.end() ? PosixObjectRef() : use(shard, it->second);
}

PosixObjectRef ObjectCache::insert(const FileHandle& handle, FileType type, Fd fd, uint64_t inode) {
  Dropped dropped;
  Shard& shard = shard_of(handle);
  std::lock_guard lock(shard.mutex);
  auto [it, fresh] = shard.objects.try_emplace(handle);
  if (!fresh) {
    if (PosixObjectRef known = use(shard, it->second)) return known;
  }
  Entry& entry = it->second;
  entry.object = std::make_shared<PosixObject>(*this, handle, type, std::move(fd), inode);
  entry.weak = entry.object;
  if (auto past = shard.changes.extract(handle)) entry.object->recall_change(past.mapped());
  entry.used_s = now_s_.load(std::memory_order_relaxed);
  shard.by_age.push_front(&it->first);
  entry.age = shard.by_age.begin();
  PosixObjectRef object = entry.object;
  constexpr int look_at_most = 8;
  for (int i = 0; i < look_at_most && shard.by_age.size() > shard_max_; ++i) drop_oldest(shard, dropped);
  return object;
}

void ObjectCache::release(const FileHandle& handle) {
  Dropped dropped;
  Shard& shard = shard_of(handle);
  std::lock_guard lock(shard.mutex);
  auto it = shard.objects.find(handle);
  if (it == shard.objects.end() || !it->second.object) return;
  shard.by_age.erase(it->second.age);
  dropped.push_back(std::move(it->second.object));
}

// Only the cache hands out new references, and it is locked: a count of one stays one. One in use becomes young.
bool ObjectCache::drop_oldest(Shard& shard, Dropped& dropped) {
  Entry& entry = shard.objects.find(*shard.by_age.back())->second;
  if (entry.object.use_count() > 1) {
    shard.by_age.splice(shard.by_age.begin(), shard.by_age, entry.age);
    return false;
  }
  shard.by_age.pop_back();
  dropped.push_back(std::move(entry.object));
  return true;
}

void ObjectCache::tick(uint32_t idle_seconds) {
  uint32_t now = now_s_.fetch_add(1, std::memory_order_relaxed) + 1;
  for (Shard& shard : shards_) {
    Dropped dropped;
    std::lock_guard lock(shard.mutex);
    for (size_t left = shard.by_age.size(); left > 0; --left) {
      Entry& oldest = shard.objects.find(*shard.by_age.back())->second;
      if (now - oldest.used_s <= idle_seconds) break;
      if (!drop_oldest(shard, dropped)) oldest.used_s = now;
    }
  }
}

void ObjectCache::forget(const FileHandle& handle, const PosixObject::ChangeMemory& change) {
  Shard& shard = shard_of(handle);
  std::lock_guard lock(shard.mutex);
  if (change.extra > 0) {
    if (shard.changes.size() >= changes_max) shard.changes.erase(shard.changes.begin());
    shard.changes.insert_or_assign(handle, change);
  }
  auto it = shard.objects.find(handle);
  if (it != shard.objects.end() && it->second.weak.expired()) shard.objects.erase(it);
}

size_t ObjectCache::size() {
  size_t sum = 0;
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    sum += shard.by_age.size();
  }
  return sum;
}

}  // namespace nfsrdma::server
