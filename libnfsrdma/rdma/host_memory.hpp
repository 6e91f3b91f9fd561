// SPDX-License-Identifier: Apache-2.0
// Registered memory of the providers that move bytes with the CPU (iwarp, loop): nothing is pinned and
// nothing has a key by itself; what a Region adds is bounds and the right to be revoked.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/intrusive_list.hpp"
#include "rdma/provider.hpp"

namespace nfsrdma::rdma {

// Something that may be touching registered memory on another thread: a queue pair.
class MemoryUser : public base::ListNode<MemoryUser> {
 public:
  // Returns after every access that began before the call has ended; accesses that begin later see the
  // revocation.
  virtual void quiesce() = 0;

 protected:
  ~MemoryUser() = default;
};

// The queue pairs that may name memory of one protection domain. Thread safe.
class MemoryUsers {
 public:
  void add(MemoryUser& user);
  void remove(MemoryUser& user);
  void quiesce_all();
  // Grows with each revocation: queue pairs compare it to know when to look at what they hold.
  uint64_t revocations() const { return revocations_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  base::IntrusiveList<MemoryUser, MemoryUser> users_;
  std::atomic<uint64_t> revocations_{0};
};

class HostRegion final : public Region {
 public:
  // mapped: the region owns the mapping and ends it.
  HostRegion(std::shared_ptr<MemoryUsers> users, std::byte* host, size_t length, MemoryKind kind,
             bool mapped);
  ~HostRegion() override;
  Result<void> copy_in(uint64_t offset, ConstBytes from) override;
  Result<void> copy_out(uint64_t offset, Bytes to) override;
  Result<void> make_visible(uint64_t offset, size_t length) override;
  void revoke() override;

  bool revoked() const { return revoked_.load(std::memory_order_acquire); }
  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= length_bytes() && length <= length_bytes() - offset;
  }

 private:
  std::shared_ptr<MemoryUsers> users_;
  std::mutex copying_;
  std::atomic<bool> revoked_{false};
  bool mapped_;
};

// Bounds and revocation of pieces that a request names; the Regions must be HostRegions.
Result<void> check_pieces(std::span<const Sge> pieces);

// For MemoryKind::host and ::memfd; ENOTSUP for memory that the CPU cannot reach.
Result<std::unique_ptr<Region>> register_host_memory(std::shared_ptr<MemoryUsers> users,
                                                     const MemoryRange& range);

}  // namespace nfsrdma::rdma
