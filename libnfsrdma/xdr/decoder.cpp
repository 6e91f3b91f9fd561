// SPDX-License-Identifier: Apache-2.0
#include "xdr/decoder.hpp"

namespace nfsrdma::xdr {

std::span<const std::byte> Decoder::body(uint32_t length, uint32_t max) {
  if (length > max) {
    fail(Fault::limit);
    return {};
  }
  if (!have(padded_bytes(length))) return {};
  std::span<const std::byte> view(at_, length);
  at_ += padded_bytes(length);
  return view;
}

void Decoder::ddp_slowly(DdpItem& v, uint32_t max) {
  v = {};
  uint32_t length = 0;
  word(length);
  const uint32_t position = whole_position();
  const bool here = apart_position_ == position_any || apart_position_ == position;
  v.position = position;
  if (apart_ != Apart::pending || !here) {
    v.inline_bytes = body(length, max);
    v.length = static_cast<uint32_t>(v.inline_bytes.size());
    return;
  }
  if (length > max) return fail(Fault::limit);
  // Some peers send the padding along.
  if (apart_length_ != length && apart_length_ != padded_bytes(length)) return fail(Fault::mismatch);
  if (!ok()) return;
  v.length = length;
  apart_length_ = length;
  apart_position_ = position;
  apart_ = Apart::taken;
}

void Decoder::fixed(std::byte* bytes, size_t n) {
  if (!have(padded_bytes(n))) {
    std::memset(bytes, 0, n);
    return;
  }
  std::memcpy(bytes, at_, n);
  at_ += padded_bytes(n);
}

void Decoder::inline_bytes(uint32_t& size, std::byte* bytes, uint32_t max) {
  uint32_t length = 0;
  word(length);
  const std::span<const std::byte> view = body(length, max);
  size = static_cast<uint32_t>(view.size());
  if (size != 0) std::memcpy(bytes, view.data(), size);
}

void Decoder::opaque(std::span<const std::byte>& v, uint32_t max) {
  uint32_t length = 0;
  word(length);
  v = body(length, max);
}

void Decoder::text(std::string_view& v, uint32_t max) {
  uint32_t length = 0;
  word(length);
  const std::span<const std::byte> view = body(length, max);
  v = std::string_view(reinterpret_cast<const char*>(view.data()), view.size());
}

}  // namespace nfsrdma::xdr
