// SPDX-License-Identifier: Apache-2.0
#include "xdr/generator.hpp"

#include <algorithm>

namespace nfsrdma::xdr {

void Generator::word(uint32_t& v) {
  switch (below(8)) {
    case 0:
      v = 0;
      break;
    case 1:
      v = UINT32_MAX;
      break;
    case 2:
      v = below(64);
      break;
    default:
      v = static_cast<uint32_t>(next());
  }
}

void Generator::hyper(uint64_t& v) {
  switch (below(8)) {
    case 0:
      v = 0;
      break;
    case 1:
      v = UINT64_MAX;
      break;
    default:
      v = next();
  }
}

uint32_t Generator::small_number() {
  switch (below(5)) {
    case 0:
    case 1:
      return 0;
    case 2:
    case 3:
      return below(16);
    default:
      return static_cast<uint32_t>(next());
  }
}

// Mostly short, sometimes at the limit itself.
uint32_t Generator::length(uint32_t max) {
  if (below(16) == 0) return std::min(max, 4096u);
  return below(std::min(max, 40u) + 1);
}

void* Generator::allocate(size_t n) {
  constexpr size_t unit = sizeof(std::max_align_t);
  arena_.push_back(std::make_unique<std::max_align_t[]>((n + unit - 1) / unit + 1));
  return arena_.back().get();
}

std::span<const std::byte> Generator::bytes(uint32_t n) {
  std::byte* at = static_cast<std::byte*>(allocate(n));
  fixed(at, n);
  return {at, n};
}

void Generator::fixed(std::byte* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(next());
}

void Generator::inline_bytes(uint32_t& size, std::byte* out, uint32_t max) {
  size = length(max);
  fixed(out, size);
}

void Generator::text(std::string_view& v, uint32_t max) {
  const uint32_t n = length(max);
  char* at = static_cast<char*>(allocate(n));
  // No zero bytes: XDR strings are C strings to other implementations.
  for (uint32_t i = 0; i < n; ++i) at[i] = static_cast<char>(1 + below(255));
  v = std::string_view(at, n);
}

}  // namespace nfsrdma::xdr
