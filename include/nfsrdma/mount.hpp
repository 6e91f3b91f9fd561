// SPDX-License-Identifier: Apache-2.0
// Mount: a connection to one export, and everything that can be done there.
//
// Every operation has two forms. The asynchronous one takes a callback that is called exactly once, on a loop of the
// mount: the calling loop when called on one, else one that the mount picks. The synchronous one blocks, and must not
// be called on a loop thread (EDEADLK). Any thread may call both, at the same time.
//
// Errors: the server's refusal comes as the errno that the Linux client gives for it, origin server. A lost
// connection is no error while the retry policy is hard: calls wait and are replayed exactly once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nfsrdma/buffer.hpp"
#include "nfsrdma/callback.hpp"
#include "nfsrdma/credentials.hpp"
#include "nfsrdma/error.hpp"
#include "nfsrdma/export.hpp"
#include "nfsrdma/loop.hpp"
#include "nfsrdma/node.hpp"
#include "nfsrdma/options.hpp"
#include "nfsrdma/stats.hpp"

namespace nfsrdma {

template <class T>
using Done = Callback<void(Result<T>)>;

enum OpenFlag : uint32_t {
  open_read = 1,
  open_write = 2,
  open_truncate = 4,   // size 0 at open
  open_exclusive = 8,  // create(): EEXIST when there is one
};

enum class Stability : uint8_t {
  unstable,   // acknowledged when the server has it; durable after sync() or close()
  durable,    // on stable storage before the acknowledgement
};

struct MountInfo {
  std::string server;               // host as given
  std::string address;              // "10.100.0.1:20049"
  std::string export_path;
  std::string implementation;       // the server's own words, may be empty
  std::vector<std::string> paths;   // per connection: provider, device, sizes, credits
  uint32_t minor_version = 1;
  uint32_t rsize_bytes = 0, wsize_bytes = 0;  // effective
  uint32_t lease_s = 0;
  uint32_t slots = 0;
  uint32_t name_bytes_max = 255;
  uint64_t file_size_max = 0;
  uint64_t pool_bytes_max = 0;
};

// One step of reaching a server, as `nfsrdma ping` shows it.
struct ProbeStep {
  std::string name;      // "name", "route and device", "connect", "private data", "NULL", "EXCHANGE_ID", "session", "root"
  bool ok = false;
  uint64_t time_us = 0;
  std::string detail;    // what was found, or the cause of the failure and what to do
};

class NFSRDMA_API Mount {
 public:
  // Connects, opens the session, walks to options.path. Blocks at most options.connect_timeout_ms. Must be called
  // after the process's last fork: devices are opened here.
  static Result<std::unique_ptr<Mount>> connect(const Options& options);
  // Goes the same way step by step and stops at the first failure; nothing is left open.
  static std::vector<ProbeStep> probe(const Options& options);

  // Sends what is dirty, closes files, ends the session. Blocks at most about two connect_timeout_ms. The destructor
  // does the same and drops the error. No call may be running or made afterwards.
  Result<void> shut_down();
  ~Mount();

  Node root() const;
  MountInfo info() const;
  Stats stats() const;  // blocking: empty on a loop thread
  void stats(Done<Stats> done) const;
  std::span<Loop* const> loops() const;
  const Credentials& default_credentials() const;

  // Memory. register_memory: ENOMEM names needed and allowed bytes. borrow: empty when the pool is used up or bytes is
  // above the pool's largest buffer (1 MiB + 4 KiB).
  Result<Region> register_memory(void* address, size_t length_bytes);
  Buffer borrow(size_t bytes);

  // ---- names -------------------------------------------------------------------------------------------------
  // Path relative to the mount's root, "/a/b"; symbolic links are followed (40 at most, ELOOP), the last one only if
  // follow. Absolute link targets count from the mount's root.
  void resolve(std::string_view path, bool follow, const Credentials& who, Done<Entry> done);
  void lookup(const Node& directory, std::string_view name, const Credentials& who, Done<Entry> done);
  void lookup_parent(const Node& directory, const Credentials& who, Done<Entry> done);
  void read_link(const Node& link, const Credentials& who, Done<std::string> done);
  // Entries after `cookie` (0 = start). bytes_max bounds the server's answer (4096..1 MiB). with_attributes asks for
  // handle and attributes of each entry. A verifier that the server no longer knows restarts nothing: EBADCOOKIE-like
  // ESTALE, and the caller begins at 0.
  void read_directory(const Node& directory, uint64_t cookie, uint64_t verifier, uint32_t bytes_max,
                      bool with_attributes, const Credentials& who, Done<DirectoryPage> done);
  void make_directory(const Node& directory, std::string_view name, uint32_t mode, const Credentials& who,
                      Done<Entry> done);
  // type: block, character, socket or fifo.
  void make_node(const Node& directory, std::string_view name, NodeType type, uint32_t mode, uint32_t rdev_major,
                 uint32_t rdev_minor, const Credentials& who, Done<Entry> done);
  void make_symlink(const Node& directory, std::string_view name, std::string_view target, const Credentials& who,
                    Done<Entry> done);
  void make_link(const Node& file, const Node& directory, std::string_view name, const Credentials& who,
                 Done<Entry> done);
  // Removes a file or an empty directory, whatever the name is: the caller knows which it wants.
  void remove(const Node& directory, std::string_view name, const Credentials& who, Done<void> done);
  void rename(const Node& from_directory, std::string_view from_name, const Node& to_directory,
              std::string_view to_name, const Credentials& who, Done<void> done);

  // ---- attributes --------------------------------------------------------------------------------------------
  void get_attributes(const Node& node, const Credentials& who, Done<Attributes> done);
  void set_attributes(const Node& node, const AttributeChange& change, const Credentials& who, Done<Attributes> done);
  // Through an open file: its state is used, so that a size change works where a new open would not.
  void set_attributes(const File& file, const AttributeChange& change, const Credentials& who, Done<Attributes> done);
  // wanted: ACCESS bits of RFC 8881 (1 read, 2 lookup, 4 modify, 8 extend, 16 delete, 32 execute); gives the granted.
  void access(const Node& node, uint32_t wanted, const Credentials& who, Done<uint32_t> done);
  void file_system_stats(const Node& node, const Credentials& who, Done<FileSystemStats> done);

  // ---- open files --------------------------------------------------------------------------------------------
  void open(const Node& file, uint32_t open_flags, const Credentials& who, Done<Opened> done);
  void create(const Node& directory, std::string_view name, uint32_t open_flags, uint32_t mode,
              const Credentials& who, Done<Opened> done);
  // Reads of any length are split at rsize and kept in flight. The Slice form places data straight into the memory.
  void read(const File& file, uint64_t offset, Slice into, Done<ReadResult> done);
  void read(const File& file, uint64_t offset, std::span<std::byte> into, Done<ReadResult> done);  // by the pool
  // Hands over a buffer: sent as it lies, kept until a COMMIT with the same verifier made it durable. ENOSPC, EDQUOT,
  // EIO of earlier writes come at the latest from sync() and close().
  void write(const File& file, uint64_t offset, Buffer buffer, size_t at, size_t length, Stability stability,
             Done<size_t> done);
  // Registered caller memory. unstable: it must stay unchanged until sync() or close() succeeded.
  void write(const File& file, uint64_t offset, Slice from, Stability stability, Done<size_t> done);
  void write(const File& file, uint64_t offset, std::span<const std::byte> from, Stability stability,
             Done<size_t> done);  // copied to the pool
  // All that was written through any handle of this file is on stable storage, or an error says it is not.
  void sync(const File& file, Done<void> done);
  // sync, then CLOSE. The handle is gone whatever the result.
  void close(const File& file, Done<void> done);

  // ---- the same, blocking ------------------------------------------------------------------------------------
  Result<Entry> resolve(std::string_view path, bool follow, const Credentials& who);
  Result<Entry> lookup(const Node& directory, std::string_view name, const Credentials& who);
  Result<Entry> lookup_parent(const Node& directory, const Credentials& who);
  Result<std::string> read_link(const Node& link, const Credentials& who);
  Result<DirectoryPage> read_directory(const Node& directory, uint64_t cookie, uint64_t verifier, uint32_t bytes_max,
                                       bool with_attributes, const Credentials& who);
  Result<Entry> make_directory(const Node& directory, std::string_view name, uint32_t mode, const Credentials& who);
  Result<Entry> make_node(const Node& directory, std::string_view name, NodeType type, uint32_t mode,
                          uint32_t rdev_major, uint32_t rdev_minor, const Credentials& who);
  Result<Entry> make_symlink(const Node& directory, std::string_view name, std::string_view target,
                             const Credentials& who);
  Result<Entry> make_link(const Node& file, const Node& directory, std::string_view name, const Credentials& who);
  Result<void> remove(const Node& directory, std::string_view name, const Credentials& who);
  Result<void> rename(const Node& from_directory, std::string_view from_name, const Node& to_directory,
                      std::string_view to_name, const Credentials& who);
  Result<Attributes> get_attributes(const Node& node, const Credentials& who);
  Result<Attributes> set_attributes(const Node& node, const AttributeChange& change, const Credentials& who);
  Result<Attributes> set_attributes(const File& file, const AttributeChange& change, const Credentials& who);
  Result<uint32_t> access(const Node& node, uint32_t wanted, const Credentials& who);
  Result<FileSystemStats> file_system_stats(const Node& node, const Credentials& who);
  Result<Opened> open(const Node& file, uint32_t open_flags, const Credentials& who);
  Result<Opened> create(const Node& directory, std::string_view name, uint32_t open_flags, uint32_t mode,
                        const Credentials& who);
  Result<ReadResult> read(const File& file, uint64_t offset, Slice into);
  Result<ReadResult> read(const File& file, uint64_t offset, std::span<std::byte> into);
  Result<size_t> write(const File& file, uint64_t offset, Buffer buffer, size_t at, size_t length, Stability stability);
  Result<size_t> write(const File& file, uint64_t offset, Slice from, Stability stability);
  Result<size_t> write(const File& file, uint64_t offset, std::span<const std::byte> from, Stability stability);
  Result<void> sync(const File& file);
  Result<void> close(const File& file);

  class Impl;
  explicit Mount(std::unique_ptr<Impl> impl);  // internal
  Impl& impl() { return *impl_; }              // internal

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace nfsrdma
