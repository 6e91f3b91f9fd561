// SPDX-License-Identifier: Apache-2.0
#include "mem/buffer_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::mem {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  pool_ = std::exchange(other.pool_, nullptr);
  region_ = other.region_;
  host_ = other.host_;
  offset_ = other.offset_;
  size_ = other.size_;
  size_class_ = other.size_class_;
  return *this;
}

void Buffer::reset() {
  if (pool_) pool_->give_back(*this);
}

BufferPool::BufferPool(std::shared_ptr<rdma::ProtectionDomain> pd, const PoolParams& params)
    : pd_(std::move(pd)), params_(params) {
  classes_[0].bytes = params_.small_bytes;
  classes_[0].stride = params_.small_bytes;
  classes_[1].bytes = params_.large_bytes + 4096;
  classes_[1].stride = params_.large_bytes + 4096;
  stats_.bytes_max = params_.bytes_max;
}

BufferPool::~BufferPool() {
  for (Slab& slab : slabs_) {
    slab.region.reset();
    munmap(slab.memory, slab.bytes);
  }
}

BufferPool::SizeClass* BufferPool::class_for(uint32_t bytes) {
  for (SizeClass& c : classes_)
    if (bytes <= c.bytes) return &c;
  return nullptr;
}

Result<void> BufferPool::grow(SizeClass& c) {
  uint64_t want = std::min(params_.slab_bytes, params_.bytes_max - stats_.bytes_registered);
  // Small buffers are few: a slab of 2 MiB serves 256 of them.
  if (c.stride <= 8192) want = std::min<uint64_t>(want, 2u << 20);
  want = want / c.stride * c.stride;
  if (want == 0) return Error(ENOBUFS, ErrorOrigin::local, "the buffer pool is used up");
  size_t bytes = (want + (2u << 20) - 1) & ~size_t{(2u << 20) - 1};
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Error(errno, ErrorOrigin::local, base::text("no memory for a buffer slab of %zu bytes", bytes));
  madvise(memory, bytes, MADV_HUGEPAGE);
  rdma::MemoryRange range;
  range.address = memory;
  range.length_bytes = bytes;
  auto region = pd_->register_memory(range);
  if (!region) {
    munmap(memory, bytes);
    return region.error().in("registering a buffer slab");
  }
  Slab slab{static_cast<std::byte*>(memory), bytes, std::move(*region)};
  c.free.reserve(c.free.capacity() + want / c.stride);
  for (uint64_t at = 0; at + c.stride <= want; at += c.stride) {
    Buffer b;
    b.region_ = slab.region.get();
    b.host_ = slab.memory + at;
    b.offset_ = at;
    b.size_ = c.bytes;
    b.size_class_ = static_cast<uint32_t>(&c - classes_);
    c.free.push_back(std::move(b));
  }
  stats_.bytes_registered += want;
  slabs_.push_back(std::move(slab));
  return {};
}

Buffer BufferPool::try_borrow(uint32_t bytes) {
  SizeClass* c = class_for(bytes);
  if (!c) return {};
  std::lock_guard lock(mutex_);
  if (c->free.empty() && !grow(*c)) {
    stats_.refusals++;
    return {};
  }
  Buffer b = std::move(c->free.back());
  c->free.pop_back();
  b.pool_ = this;
  stats_.bytes_used += c->stride;
  stats_.bytes_used_peak = std::max(stats_.bytes_used_peak, stats_.bytes_used);
  return b;
}

Result<void> BufferPool::warm(uint32_t bytes) {
  SizeClass* c = class_for(bytes);
  if (!c) return Error(EINVAL, ErrorOrigin::local, "no buffer class for this size");
  std::lock_guard lock(mutex_);
  return c->free.empty() ? grow(*c) : Result<void>{};
}

void BufferPool::give_back(Buffer& buffer) {
  std::lock_guard lock(mutex_);
  SizeClass& c = classes_[buffer.size_class_];
  buffer.pool_ = nullptr;
  stats_.bytes_used -= c.stride;
  c.free.push_back(std::move(buffer));  // within capacity: never allocates
}

PoolStats BufferPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace nfsrdma::mem
