// SPDX-License-Identifier: Apache-2.0
#include "rdma/host_memory.hpp"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma {

void MemoryUsers::add(MemoryUser& user) {
  std::lock_guard lock(mutex_);
  users_.push_back(user);
}

void MemoryUsers::remove(MemoryUser& user) {
  std::lock_guard lock(mutex_);
  user.unlink();
}

void MemoryUsers::quiesce_all() {
  std::lock_guard lock(mutex_);
  revocations_.fetch_add(1, std::memory_order_acq_rel);
  users_.for_each([](MemoryUser& user) { user.quiesce(); });
}

HostRegion::HostRegion(std::shared_ptr<MemoryUsers> users, std::byte* host, size_t length, MemoryKind kind,
                       bool mapped)
    : Region(host, length, kind), users_(std::move(users)), mapped_(mapped) {}

HostRegion::~HostRegion() {
  if (mapped_) munmap(host(), length_bytes());
}

Result<void> HostRegion::copy_in(uint64_t offset, ConstBytes from) {
  if (!contains(offset, from.size()))
    return Error(EFAULT, ErrorOrigin::local, "copy outside of registered memory");
  std::lock_guard lock(copying_);
  if (revoked()) return Error(EIO, ErrorOrigin::local, "registered memory was revoked");
  if (!from.empty()) std::memcpy(host() + offset, from.data(), from.size());
  return {};
}

Result<void> HostRegion::copy_out(uint64_t offset, Bytes to) {
  if (!contains(offset, to.size()))
    return Error(EFAULT, ErrorOrigin::local, "copy outside of registered memory");
  std::lock_guard lock(copying_);
  if (revoked()) return Error(EIO, ErrorOrigin::local, "registered memory was revoked");
  if (!to.empty()) std::memcpy(to.data(), host() + offset, to.size());
  return {};
}

Result<void> HostRegion::make_visible(uint64_t offset, size_t length) {
  if (!contains(offset, length))
    return Error(EFAULT, ErrorOrigin::local, "range outside of registered memory");
  if (revoked()) return Error(EIO, ErrorOrigin::local, "registered memory was revoked");
  return {};
}

void HostRegion::revoke() {
  {
    std::lock_guard lock(copying_);
    revoked_.store(true, std::memory_order_release);
  }
  users_->quiesce_all();
}

Result<void> check_pieces(std::span<const Sge> pieces) {
  for (const Sge& piece : pieces) {
    if (!piece.region && piece.length == 0) continue;
    const HostRegion* region = static_cast<const HostRegion*>(piece.region);
    if (!region || !region->contains(piece.offset, piece.length))
      return Error(EINVAL, ErrorOrigin::local, "a request names bytes outside of its registered memory");
    if (region->revoked()) return Error(EIO, ErrorOrigin::local, "a request names memory that was revoked");
  }
  return {};
}

namespace {

Result<std::unique_ptr<Region>> map_memfd(std::shared_ptr<MemoryUsers> users, const MemoryRange& range) {
  if (range.address)
    return std::unique_ptr<Region>(std::make_unique<HostRegion>(
        std::move(users), static_cast<std::byte*>(range.address), range.length_bytes, range.kind, false));
  void* at = mmap(nullptr, range.length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, range.fd,
                  static_cast<off_t>(range.fd_offset));
  if (at == MAP_FAILED) {
    int error = errno;
    return Error(error, ErrorOrigin::local,
                 base::text("cannot map %zu bytes of a memfd: %s", range.length_bytes, strerror(error)));
  }
  return std::unique_ptr<Region>(std::make_unique<HostRegion>(std::move(users), static_cast<std::byte*>(at),
                                                              range.length_bytes, range.kind, true));
}

}  // namespace

Result<std::unique_ptr<Region>> register_host_memory(std::shared_ptr<MemoryUsers> users,
                                                     const MemoryRange& range) {
  if (range.length_bytes == 0) return Error(EINVAL, ErrorOrigin::usage, "cannot register 0 bytes");
  switch (range.kind) {
    case MemoryKind::host:
      if (!range.address)
        return Error(EINVAL, ErrorOrigin::usage, "cannot register memory at a null address");
      return std::unique_ptr<Region>(std::make_unique<HostRegion>(
          std::move(users), static_cast<std::byte*>(range.address), range.length_bytes, range.kind, false));
    case MemoryKind::memfd:
      return map_memfd(std::move(users), range);
    case MemoryKind::cuda:
    case MemoryKind::dmabuf:
      break;
  }
  return Error(ENOTSUP, ErrorOrigin::local,
               "this provider moves bytes with the CPU and cannot reach device memory");
}

}  // namespace nfsrdma::rdma
