// SPDX-License-Identifier: Apache-2.0
#include "client/node_state.hpp"

#include "client/mount_impl.hpp"

namespace nfsrdma {

bool Node::same(const Node& other) const { return state_ == other.state_; }

uint64_t Node::key() const {
  if (!state_) return 0;
  return state_->handle.hash() ^ (state_->fsid.major * 0x9e3779b97f4a7c15u + state_->fsid.minor);
}

Node File::node() const { return state_ ? Node(state_->node) : Node(); }

namespace client {

NodeState::~NodeState() {
  if (table) table->forget(*this);
}

FileState::~FileState() {
  if (!link) return;
  std::lock_guard lock(link->mutex);
  link->open_files.erase(this);
  if (open && link->impl) link->impl->close_abandoned(*this);
}

std::shared_ptr<NodeState> NodeTable::get(const nfs4::FileHandle& handle, const nfs4::Fsid& fsid, uint64_t fileid,
                                          NodeType type) {
  std::shared_ptr<NodeState> node;  // released outside the lock: its destructor locks
  std::lock_guard lock(mutex_);
  std::weak_ptr<NodeState>& place = nodes_[Key{handle, fsid}];
  node = place.lock();
  if (!node) {
    node = std::make_shared<NodeState>();
    node->handle = handle;
    node->fsid = fsid;
    node->fileid = fileid;
    node->type = type;
    node->table = shared_from_this();
    place = node;
  }
  return node;
}

size_t NodeTable::size() const {
  std::lock_guard lock(mutex_);
  return nodes_.size();
}

std::vector<std::shared_ptr<NodeState>> NodeTable::all() const {
  std::vector<std::shared_ptr<NodeState>> held;
  std::lock_guard lock(mutex_);
  held.reserve(nodes_.size());
  for (auto& [key, place] : nodes_)
    if (auto node = place.lock()) held.push_back(std::move(node));
  return held;
}

// Another NodeState of the same object may stand there by now: only an expired place goes.
void NodeTable::forget(NodeState& node) {
  std::lock_guard lock(mutex_);
  auto at = nodes_.find(Key{node.handle, node.fsid});
  if (at != nodes_.end() && at->second.expired()) nodes_.erase(at);
}

}  // namespace client
}  // namespace nfsrdma
