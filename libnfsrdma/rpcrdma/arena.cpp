// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/arena.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::rpcrdma {

Result<std::unique_ptr<Arena>> Arena::create(rdma::ProtectionDomain& pd, size_t bytes) {
  std::unique_ptr<Arena> arena(new Arena);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Error(errno, ErrorOrigin::local, base::text("no memory for %zu bytes of message buffers", bytes));
  arena->memory_ = static_cast<std::byte*>(memory);
  arena->bytes_ = bytes;
  rdma::MemoryRange range;
  range.address = memory;
  range.length_bytes = bytes;
  auto region = pd.register_memory(range);
  if (!region) return region.error().in("registering message buffers");
  arena->region_ = std::move(*region);
  return arena;
}

Arena::~Arena() {
  region_.reset();
  if (memory_) munmap(memory_, bytes_);
}

}  // namespace nfsrdma::rpcrdma
