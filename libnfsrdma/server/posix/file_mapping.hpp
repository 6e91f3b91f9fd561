// SPDX-License-Identifier: Apache-2.0
// Parts of a file mapped and registered, so that a READ is sent out of the page cache without a copy of ours.
// Nothing in this process may touch such memory: a truncation by others would make that a fault. The kernel's own
// access answers with an error instead, which costs the connection.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "rdma/provider.hpp"
#include "server/posix/fd.hpp"

namespace nfsrdma::server {

class FileMapping {
 public:
  static constexpr uint64_t window_bytes = uint64_t{256} << 20;

  // The window of the file that begins at `offset`, whatever the file's size is now. Empty when mappings are used up or
  // the system refuses.
  static std::shared_ptr<FileMapping> map(int fd, uint64_t offset, rdma::ProtectionDomain& pd);
  ~FileMapping();

  uint64_t offset() const { return offset_; }
  rdma::ProtectionDomain* domain() const { return domain_; }
  rdma::Region* region() const { return region_.get(); }
  // Every page of the range is in memory: sending it will not wait for a disk.
  bool resident(uint64_t at, uint32_t bytes) const;

 private:
  FileMapping() = default;
  void* memory_ = nullptr;
  uint64_t offset_ = 0;
  rdma::ProtectionDomain* domain_ = nullptr;
  std::unique_ptr<rdma::Region> region_;
};

// The windows of one open file. Thread safe.
class FileWindows {
 public:
  // The window that holds [offset, offset + bytes), or empty: mapped now if need be.
  std::shared_ptr<FileMapping> find(int fd, uint64_t offset, uint32_t bytes, rdma::ProtectionDomain& pd);

 private:
  std::mutex mutex_;
  std::array<std::shared_ptr<FileMapping>, 2> windows_;  // the last used first
};

}  // namespace nfsrdma::server
