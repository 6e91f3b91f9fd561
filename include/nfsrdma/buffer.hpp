// SPDX-License-Identifier: Apache-2.0
// Memory that RDMA goes straight in and out of: Region is the caller's, registered; Buffer is borrowed from the
// mount's pool; Slice names a piece of either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nfsrdma/export.hpp"

namespace nfsrdma {

namespace client {
struct RegionState;
struct BufferState;
}  // namespace client
namespace rdma {
class Region;
}

// A piece of registered memory. A plain value: what it names must stay alive for as long as it is used.
struct Slice {
  rdma::Region* region = nullptr;  // internal
  uint64_t offset = 0;
  size_t length = 0;               // bytes

  Slice sub(size_t at, size_t n) const { return {region, offset + at, n}; }
};

// Caller memory registered with a mount (Mount::register_memory). Move-only; destroying it unregisters. It must not be
// destroyed while a call uses it, and must go before the Mount does. Any thread.
class NFSRDMA_API Region {
 public:
  Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();
  explicit operator bool() const { return state_ != nullptr; }
  size_t size() const;
  // The piece [at, at + length); it is cut at the end of the region.
  Slice slice(size_t at, size_t length) const;
  Slice all() const { return slice(0, size()); }

  explicit Region(std::unique_ptr<client::RegionState> state);  // internal

 private:
  std::unique_ptr<client::RegionState> state_;
};

// A registered buffer from the mount's pool, page aligned. Move-only, may be freed on any thread, must go before the
// Mount does.
class NFSRDMA_API Buffer {
 public:
  Buffer();
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();
  explicit operator bool() const;
  std::byte* data() const;
  size_t size() const;
  std::span<std::byte> bytes() const { return {data(), size()}; }
  Slice slice(size_t at, size_t length) const;

  static constexpr size_t state_bytes = 48;

 private:
  friend struct client::BufferState;
  alignas(8) std::byte state_[state_bytes];
};

}  // namespace nfsrdma
