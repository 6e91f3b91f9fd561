// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rdma/provider.hpp"

namespace nfsrdma::rpcrdma {

// Registered memory of one connection for the messages that it sends and receives. No key to it ever leaves
// this process: it is a Region of its own, apart from the pool whose buffers peers may reach.
class Arena {
 public:
  // Pages are taken from the system when first touched, not here. Errors as
  // ProtectionDomain::register_memory.
  static Result<std::unique_ptr<Arena>> create(rdma::ProtectionDomain& pd, size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* at(uint64_t offset) { return memory_ + offset; }
  rdma::Sge sge(uint64_t offset, uint32_t length) { return {region_.get(), offset, length}; }

 private:
  Arena() = default;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<rdma::Region> region_;
};

}  // namespace nfsrdma::rpcrdma
