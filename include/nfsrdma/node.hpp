// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nfsrdma/export.hpp"

namespace nfsrdma {

namespace client {
struct NodeState;
struct FileState;
}  // namespace client

enum class NodeType : uint8_t { none = 0, regular = 1, directory = 2, block = 3, character = 4, symlink = 5, socket = 6, fifo = 7 };

struct Time {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  auto operator<=>(const Time&) const = default;
};

// Attributes of a file as the server last said them.
struct Attributes {
  NodeType type = NodeType::none;
  uint32_t mode = 0;          // permission bits with suid, sgid, sticky; no file type
  uint32_t links = 0;
  uint32_t uid = 65534, gid = 65534;
  uint64_t size_bytes = 0;
  uint64_t used_bytes = 0;    // st_blocks * 512
  uint32_t rdev_major = 0, rdev_minor = 0;
  uint64_t fsid_major = 0, fsid_minor = 0;
  uint64_t fileid = 0;
  Time atime, mtime, ctime;
  uint64_t change = 0;        // moves with every change of data or attributes
};

// A file, directory or other object of the server: a copyable handle, any thread. Two lookups of one object may give
// two handles; same() compares.
class NFSRDMA_API Node {
 public:
  Node() = default;
  explicit operator bool() const { return state_ != nullptr; }
  bool same(const Node& other) const;
  // Stable for the object's life on the server: a hash of fsid and file handle.
  uint64_t key() const;

  explicit Node(std::shared_ptr<client::NodeState> state) : state_(std::move(state)) {}  // internal
  const std::shared_ptr<client::NodeState>& state() const { return state_; }             // internal

 private:
  std::shared_ptr<client::NodeState> state_;
};

struct Entry {
  Node node;
  Attributes attributes;
};

struct DirectoryEntry {
  std::string name;
  uint64_t cookie = 0;   // where reading goes on after this entry
  Node node;             // empty when the server gave no handle
  Attributes attributes; // type none when the server gave none
};

struct DirectoryPage {
  std::vector<DirectoryEntry> entries;  // without "." and ".."
  uint64_t verifier = 0;                // pass it back with the next cookie
  bool eof = false;
};

// What set_attributes changes; what is empty stays.
struct AttributeChange {
  std::optional<uint32_t> mode, uid, gid;
  std::optional<uint64_t> size_bytes;
  std::optional<Time> atime, mtime;
  bool atime_now = false, mtime_now = false;  // by the server's clock
};

struct FileSystemStats {
  uint64_t total_bytes = 0, free_bytes = 0, available_bytes = 0;
  uint64_t total_files = 0, free_files = 0, available_files = 0;
  uint32_t name_bytes_max = 255;
};

// An open file: a copyable handle, any thread. Mount::close ends it; the last handle's destruction closes in the
// background and any error is then only logged.
class NFSRDMA_API File {
 public:
  File() = default;
  explicit operator bool() const { return state_ != nullptr; }
  Node node() const;

  explicit File(std::shared_ptr<client::FileState> state) : state_(std::move(state)) {}  // internal
  const std::shared_ptr<client::FileState>& state() const { return state_; }             // internal

 private:
  std::shared_ptr<client::FileState> state_;
};

struct Opened {
  File file;
  Node node;
  Attributes attributes;
  bool created = false;
};

struct ReadResult {
  size_t length = 0;  // bytes read; short only at the end of the file
  bool eof = false;
};

}  // namespace nfsrdma
