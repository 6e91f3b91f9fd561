// SPDX-License-Identifier: Apache-2.0
// What handles of nodes and open files point to. State of a file has one mutex per file, never held across a
// co_await.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/identity.hpp"
#include "mem/buffer_pool.hpp"
#include "nfs4/io_ops.hpp"
#include "nfs4/types.hpp"
#include "nfsrdma/credentials.hpp"
#include "nfsrdma/mount.hpp"
#include "nfsrdma/node.hpp"
#include "session/waiters.hpp"

namespace nfsrdma::client {

class NodeTable;

// The way back from an open file to its mount, which may be gone first; and from the mount to its open files.
struct MountLink {
  std::mutex mutex;
  Mount::Impl* impl = nullptr;                // guarded
  std::unordered_set<FileState*> open_files;  // guarded
};

// A piece of UNSTABLE data that the server may still lose: what to send again if its verifier changes. The bytes lie
// in a pool buffer that we own, or in memory that the caller promised to keep.
struct DirtyExtent {
  uint64_t offset = 0;
  uint32_t length = 0;
  rdma::Sge source;
  mem::Buffer buffer;               // ours, or empty: then shared_buffer or caller memory
  std::shared_ptr<mem::Buffer> shared_buffer;  // one buffer under several extents
  nfs4::Verifier verifier{};
  uint64_t held_bytes = 0;          // what it keeps from use: at least its buffer's size, else its length
  bool mixed = false;               // its parts were written under different verifiers
  std::shared_ptr<FileState> file;  // stateid and credential to write with
};

struct NodeState {
  nfs4::FileHandle handle;
  nfs4::Fsid fsid;
  uint64_t fileid = 0;
  NodeType type = NodeType::none;
  std::shared_ptr<NodeTable> table;

  std::mutex mutex;
  // All below: guarded by mutex.
  std::vector<DirtyExtent> dirty;
  std::vector<DirtyExtent> committing;    // of the sync under way, which alone touches them
  bool syncing = false;
  bool flush_queued = false;              // stands in the mount's list of files to commit
  session::Waiters sync_waiters;
  std::optional<Error> write_error;       // of a write whose writer has its answer already
  uint64_t write_error_count = 0;         // moves with each; handles compare

  ~NodeState();
};

struct FileState {
  std::shared_ptr<NodeState> node;
  Credentials who;
  uint32_t open_flags = 0;
  uint64_t epoch = 0;                     // of the session's state when it was opened
  uint64_t owner_id = 0;                  // open owner: one per open file, so that one CLOSE ends one open
  std::mutex mutex;
  nfs4::Stateid stateid;                  // guarded
  bool open = true;                       // guarded
  bool lost = false;                      // guarded: the server forgot it
  uint64_t errors_seen = 0;               // guarded: node->write_error_count as last reported here

  std::shared_ptr<MountLink> link;        // set once the server holds an open for us

  explicit FileState(Credentials c) : who(std::move(c)) {}
  // The last handle went: what nobody closed is closed in the background.
  ~FileState();
};

// One NodeState per object, so that all handles of a file share what has to be committed.
class NodeTable : public std::enable_shared_from_this<NodeTable> {
 public:
  std::shared_ptr<NodeState> get(const nfs4::FileHandle& handle, const nfs4::Fsid& fsid, uint64_t fileid, NodeType type);
  size_t size() const;
  // Those that somebody holds.
  std::vector<std::shared_ptr<NodeState>> all() const;

 private:
  friend struct NodeState;
  struct Key {
    nfs4::FileHandle handle;
    nfs4::Fsid fsid;
    bool operator==(const Key& o) const { return handle == o.handle && fsid == o.fsid; }
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return k.handle.hash() ^ (k.fsid.major * 0x9e3779b97f4a7c15u) ^ k.fsid.minor;
    }
  };
  void forget(NodeState& node);

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::weak_ptr<NodeState>, Hash> nodes_;
};

}  // namespace nfsrdma::client
