// SPDX-License-Identifier: Apache-2.0
// The exported directory, and the one question that keeps the server inside it: does this descriptor lie beneath?
#pragma once

#include <mutex>
#include <string>

#include "nfsrdma/error.hpp"
#include "server/posix/fd.hpp"

namespace nfsrdma::server {

// Thread safe once opened.
class ExportRoot {
 public:
  // ENOENT, ENOTDIR, EACCES ... with the path in the text.
  static Result<ExportRoot> open(const std::string& path);
  ExportRoot(ExportRoot&& other) noexcept;

  int fd() const { return fd_.get(); }          // opened for reading: good as a mount descriptor too
  int proc_fd() const { return proc_.get(); }   // /proc/self/fd, to name descriptors as paths
  bool is_root(uint64_t device, uint64_t inode) const { return device == device_ && inode == inode_; }

  enum class Where { inside, outside, unknown };
  // unknown: the kernel holds no path for it (a file opened by handle whose directory it never saw), or the path is
  // too long to be told. Works with any identity of the thread.
  Where where(int fd) const;
  // The same for a directory, climbing when the path does not tell. The thread must have its own identity.
  bool holds_directory(int fd) const;

 private:
  ExportRoot() = default;
  std::string path_of(int fd) const;

  Fd fd_;
  Fd proc_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  mutable std::mutex mutex_;
  mutable std::string path_;  // guarded by mutex_; of fd_, as it was last seen
};

}  // namespace nfsrdma::server
