// SPDX-License-Identifier: Apache-2.0
// Registered memory of a device. On a device with type-2 windows the registration itself gives the peer nothing:
// each exposure is a window of its own. Elsewhere the registration's key is what exposures hand out.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "rdma/verbs/device.hpp"

namespace nfsrdma::rdma::verbs {

class VerbsRegion final : public Region {
 public:
  static Result<std::unique_ptr<Region>> create(std::shared_ptr<VerbsDomain> domain, const MemoryRange& range);
  ~VerbsRegion() override;
  Result<void> copy_in(uint64_t offset, ConstBytes from) override;
  Result<void> copy_out(uint64_t offset, Bytes to) override;
  Result<void> make_visible(uint64_t offset, size_t length) override;
  void revoke() override;

  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= length_bytes() && length <= length_bytes() - offset;
  }
  bool revoked() const { return revoked_.load(std::memory_order_acquire); }
  uint64_t address() const { return address_; }  // of byte 0, as the device counts
  uint32_t lkey() const { return lkey_; }
  uint32_t rkey() const { return rkey_; }
  ibv_mr* mr() const { return mr_; }             // loop threads, under the queue pair's mutex, not when revoked

 private:
  VerbsRegion(std::shared_ptr<VerbsDomain> domain, ibv_mr* mr, uint64_t address, std::byte* host,
              const MemoryRange& range, bool mapped);
  Result<void> usable(uint64_t offset, size_t length) const;
  void deregister();

  std::shared_ptr<VerbsDomain> domain_;
  ibv_mr* mr_;
  uint64_t address_;
  uint32_t lkey_;
  uint32_t rkey_;
  std::mutex copying_;
  std::mutex revoking_;  // whoever revokes second returns no earlier than the first
  std::atomic<bool> revoked_{false};
  bool mapped_;
};

}  // namespace nfsrdma::rdma::verbs
