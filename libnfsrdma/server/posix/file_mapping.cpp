// SPDX-License-Identifier: Apache-2.0
#include "server/posix/file_mapping.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

namespace nfsrdma::server {
namespace {

// The kernel allows a process 65530 mappings unless told otherwise.
constexpr uint32_t mappings_max = 16384;
constexpr uint64_t page_bytes = 4096;
constexpr size_t pages_at_once = 512;
std::atomic<uint32_t> mappings{0};

}  // namespace

std::shared_ptr<FileMapping> FileMapping::map(int fd, uint64_t offset, rdma::ProtectionDomain& pd) {
  if (mappings.fetch_add(1, std::memory_order_relaxed) >= mappings_max) {
    mappings.fetch_sub(1, std::memory_order_relaxed);
    return {};
  }
  std::shared_ptr<FileMapping> mapping(new FileMapping);
  void* memory = mmap(nullptr, window_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return {};
  mapping->memory_ = memory;
  mapping->offset_ = offset;
  mapping->domain_ = &pd;
  rdma::MemoryRange range;
  range.address = memory;
  range.length_bytes = window_bytes;
  range.kind = rdma::MemoryKind::memfd;
  auto region = pd.register_memory(range);
  if (!region) return {};
  mapping->region_ = std::move(*region);
  return mapping;
}

FileMapping::~FileMapping() {
  region_.reset();
  if (memory_) munmap(memory_, window_bytes);
  mappings.fetch_sub(1, std::memory_order_relaxed);
}

bool FileMapping::resident(uint64_t at, uint32_t bytes) const {
  uint64_t begin = (at - offset_) / page_bytes * page_bytes;
  uint64_t end = at - offset_ + bytes;
  std::array<unsigned char, pages_at_once> pages;
  for (; begin < end; begin += pages_at_once * page_bytes) {
    uint64_t step = std::min(end - begin, pages_at_once * page_bytes);
    if (mincore(static_cast<char*>(memory_) + begin, step, pages.data()) != 0) return false;
    size_t count = (step + page_bytes - 1) / page_bytes;
    if (!std::all_of(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(count),
                     [](unsigned char p) { return (p & 1) != 0; })) {
      return false;
    }
  }
  return true;
}

std::shared_ptr<FileMapping> FileWindows::find(int fd, uint64_t offset, uint32_t bytes, rdma::ProtectionDomain& pd) {
  uint64_t base = offset / FileMapping::window_bytes * FileMapping::window_bytes;
  if (offset + bytes > base + FileMapping::window_bytes) return {};
  std::shared_ptr<FileMapping> dropped;
  std::lock_guard lock(mutex_);
  for (auto& window : windows_) {
    if (!window || window->offset() != base || window->domain() != &pd) continue;
    std::swap(window, windows_[0]);
    return windows_[0];
  }
  std::shared_ptr<FileMapping> fresh = FileMapping::map(fd, base, pd);
  if (!fresh) return {};
  dropped = std::exchange(windows_[1], std::exchange(windows_[0], fresh));
  return fresh;
}

}  // namespace nfsrdma::server
