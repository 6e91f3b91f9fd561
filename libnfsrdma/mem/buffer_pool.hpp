// SPDX-License-Identifier: Apache-2.0
// Registered memory in fixed-size pieces. Slabs are huge-page backed where the system has them, registered once with
// one protection domain, and bounded: an empty pool is an answer (nullptr), not an allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rdma/provider.hpp"

namespace nfsrdma::mem {

class BufferPool;

// A borrowed piece. Move-only; its destructor gives it back. May be moved to and freed on any thread.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }
  explicit operator bool() const { return pool_ != nullptr; }
  void reset();

  std::byte* data() const { return host_; }         // page aligned
  uint32_t size() const { return size_; }
  base::Bytes bytes() const { return {host_, size_}; }
  rdma::Region* region() const { return region_; }
  uint64_t offset() const { return offset_; }       // of data() within region()
  rdma::Sge sge(uint32_t at, uint32_t length) const { return {region_, offset_ + at, length}; }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  rdma::Region* region_ = nullptr;
  std::byte* host_ = nullptr;
  uint64_t offset_ = 0;
  uint32_t size_ = 0;
  uint32_t size_class_ = 0;
};

struct PoolParams {
  uint64_t bytes_max = 256u << 20;   // all slabs together
  uint32_t large_bytes = 1u << 20;   // payload class (plus one page, so that a header fits in front)
  uint32_t small_bytes = 8192;       // headers, inline messages, small payload
  uint64_t slab_bytes = 16u << 20;   // growth step
};

struct PoolStats {
  uint64_t bytes_max = 0, bytes_registered = 0, bytes_used = 0, bytes_used_peak = 0, refusals = 0;
};

// Thread safe. Must outlive its buffers.
class BufferPool {
 public:
  BufferPool(std::shared_ptr<rdma::ProtectionDomain> pd, const PoolParams& params);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer of at least `bytes` (up to large_bytes + 4096); empty when the pool is used up or bytes is too large.
  Buffer try_borrow(uint32_t bytes);
  // Registers the first slab of the class that `bytes` falls into, so that a memlock limit shows at start: the
  // registration's error otherwise.
  Result<void> warm(uint32_t bytes);
  PoolStats stats() const;
  const PoolParams& params() const { return params_; }
  rdma::ProtectionDomain& protection_domain() { return *pd_; }
  uint32_t largest_bytes() const { return params_.large_bytes + 4096; }

 private:
  friend class Buffer;
  struct Slab {
    std::byte* memory = nullptr;
    size_t bytes = 0;
    std::unique_ptr<rdma::Region> region;
  };
  struct SizeClass {
    uint32_t bytes = 0;
    uint32_t stride = 0;
    std::vector<Buffer> free;  // entries have pool_ == nullptr while they lie here
  };
  Result<void> grow(SizeClass& c);
  void give_back(Buffer& buffer);
  SizeClass* class_for(uint32_t bytes);

  std::shared_ptr<rdma::ProtectionDomain> pd_;
  PoolParams params_;
  mutable std::mutex mutex_;
  std::vector<Slab> slabs_;
  SizeClass classes_[2];
  PoolStats stats_;
};

}  // namespace nfsrdma::mem
