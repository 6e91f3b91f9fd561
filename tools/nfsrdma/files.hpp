// SPDX-License-Identifier: Apache-2.0
// Single files between here and there.
#pragma once

#include <sys/types.h>

#include <string>

#include "session.hpp"

namespace cli {

class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  // close(2) and its error, which is where some file systems report a full disk.
  nfsrdma::Result<void> close();

 private:
  int fd_;
};

// Reading it takes setting it for a moment: main thread, before others create files.
mode_t process_umask();

// The remote file to an open descriptor.
nfsrdma::Result<uint64_t> copy_to_fd(Session& session, const nfsrdma::Entry& from, int fd,
                                     const std::string& name);

// The remote file to `name` in a local directory (AT_FDCWD for any path). An existing file is overwritten in
// place; a new one is removed again when the copy fails. Symbolic links are followed only if `follow_local`.
nfsrdma::Result<uint64_t> copy_to_local(Session& session, const nfsrdma::Entry& from, int directory_fd,
                                        const std::string& name, bool follow_local);

// What fd gives into `existing`, overwritten in place, or without one into a new file, which is removed again
// when the copy fails. The bytes are on the server's stable storage when this returns.
nfsrdma::Result<uint64_t> copy_to_remote(Session& session, int fd, uint64_t size_bytes, uint32_t mode,
                                         const Place& place, const nfsrdma::Entry* existing);

}  // namespace cli
