// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counting_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_THREAD__)
#define NFSRDMA_FOREIGN_NEW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NFSRDMA_FOREIGN_NEW 1
#endif
#endif

namespace {

std::atomic<uint64_t> allocations{0}, watched_allocations{0};
thread_local bool watched = false;

#ifndef NFSRDMA_FOREIGN_NEW
void* counted(size_t bytes, size_t align) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (watched) watched_allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = std::aligned_alloc(align, (bytes + align) / align * align);
  if (!p) throw std::bad_alloc();
  return p;
}
#endif

}  // namespace

#ifndef NFSRDMA_FOREIGN_NEW
void* operator new(size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace nfsrdma::testing {

uint64_t heap_allocations() { return allocations.load(std::memory_order_relaxed); }
uint64_t watched_heap_allocations() { return watched_allocations.load(std::memory_order_relaxed); }
void watch_this_thread() { watched = true; }

}  // namespace nfsrdma::testing
