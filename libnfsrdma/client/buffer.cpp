// SPDX-License-Identifier: Apache-2.0
#include "nfsrdma/buffer.hpp"

#include <algorithm>
#include <new>

#include "client/buffer_state.hpp"

namespace nfsrdma {

using client::BufferState;

static_assert(sizeof(BufferState) <= Buffer::state_bytes && alignof(BufferState) <= 8);

Region::Region() = default;
Region::Region(std::unique_ptr<client::RegionState> state) : state_(std::move(state)) {}
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;
Region::~Region() = default;

size_t Region::size() const { return state_ ? state_->region->length_bytes() : 0; }

Slice Region::slice(size_t at, size_t length) const {
  if (!state_ || at >= size()) return {};
  return {state_->region.get(), at, std::min(length, size() - at)};
}

Buffer::Buffer() { ::new (static_cast<void*>(state_)) BufferState; }
Buffer::Buffer(Buffer&& other) noexcept {
  ::new (static_cast<void*>(state_)) BufferState{std::move(BufferState::of(other).buffer)};
}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  BufferState::of(*this).buffer = std::move(BufferState::of(other).buffer);
  return *this;
}
Buffer::~Buffer() { BufferState::of(*this).~BufferState(); }

Buffer::operator bool() const { return static_cast<bool>(BufferState::of(*this).buffer); }
std::byte* Buffer::data() const { return BufferState::of(*this).buffer.data(); }
size_t Buffer::size() const { return BufferState::of(*this).buffer.size(); }

Slice Buffer::slice(size_t at, size_t length) const {
  const mem::Buffer& b = BufferState::of(*this).buffer;
  if (!b || at >= b.size()) return {};
  return {b.region(), b.offset() + at, std::min<size_t>(length, b.size() - at)};
}

}  // namespace nfsrdma
