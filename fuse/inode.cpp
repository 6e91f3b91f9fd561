// SPDX-License-Identifier: Apache-2.0
#include "inode.hpp"

#include <algorithm>

namespace nfsrdma::fuse {

InodeTable::InodeTable(Node root) : root_(std::make_shared<Inode>(std::move(root), root_id)) {
  root_->type = NodeType::directory;
}

InodePtr InodeTable::get(uint64_t id) {
  if (id == root_id) return root_;
  Shard& shard = shards_[id & (shards_.size() - 1)];
  std::scoped_lock lock(shard.mutex);
  auto found = shard.by_id.find(id);
  return found == shard.by_id.end() ? nullptr : found->second;
}

InodePtr InodeTable::find_in(Shard& shard, const Node& node, uint64_t key) {
  auto [first, last] = shard.by_key.equal_range(key);
  auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second->node.same(node); });
  return found == last ? nullptr : found->second;
}

InodePtr InodeTable::find(const Node& node) {
  uint64_t key = node.key();
  if (root_->node.same(node)) return root_;
  Shard& shard = shard_of_key(key);
  std::scoped_lock lock(shard.mutex);
  return find_in(shard, node, key);
}

InodePtr InodeTable::remember(const Node& node) {
  uint64_t key = node.key();
  if (root_->node.same(node)) return root_;
  Shard& shard = shard_of_key(key);
  std::scoped_lock lock(shard.mutex);
  InodePtr inode = find_in(shard, node, key);
  if (!inode) {
    uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    uint64_t id = number << shard_bits | static_cast<uint64_t>(&shard - shards_.data());
    inode = std::make_shared<Inode>(node, id);
    shard.by_key.emplace(key, inode);
    shard.by_id.emplace(id, inode);
  }
  inode->lookups_++;
  return inode;
}

void InodeTable::forget(uint64_t id, uint64_t lookups) {
  if (id == root_id) return;
  Shard& shard = shards_[id & (shards_.size() - 1)];
  InodePtr last;  // freed after the lock
  std::scoped_lock lock(shard.mutex);
  auto found = shard.by_id.find(id);
  if (found == shard.by_id.end()) return;
  Inode& inode = *found->second;
  inode.lookups_ -= std::min(lookups, inode.lookups_);
  if (inode.lookups_ != 0) return;
  last = found->second;
  shard.by_id.erase(found);
  auto [first, end] = shard.by_key.equal_range(last->node.key());
  auto same = std::find_if(first, end, [&](const auto& entry) { return entry.second == last; });
  if (same != end) shard.by_key.erase(same);
}

size_t InodeTable::size() const {
  size_t count = 1;
  for (const Shard& shard : shards_) {
    std::scoped_lock lock(shard.mutex);
    count += shard.by_id.size();
  }
  return count;
}

std::vector<InodePtr> InodeTable::all() {
  std::vector<InodePtr> inodes{root_};
  for (Shard& shard : shards_) {
    std::scoped_lock lock(shard.mutex);
    for (const auto& [id, inode] : shard.by_id) inodes.push_back(inode);
  }
  return inodes;
}

}  // namespace nfsrdma::fuse
