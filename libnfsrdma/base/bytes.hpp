// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nfsrdma::base {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// Big-endian loads and stores at any alignment: every protocol here is big-endian.
template <class T>
inline T load_be(const std::byte* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(v));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(v));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(v));
  return v;
}

template <class T>
inline void store_be(std::byte* at, T v) {
  if constexpr (sizeof(T) == 2) v = static_cast<T>(__builtin_bswap16(v));
  if constexpr (sizeof(T) == 4) v = static_cast<T>(__builtin_bswap32(v));
  if constexpr (sizeof(T) == 8) v = static_cast<T>(__builtin_bswap64(v));
  std::memcpy(at, &v, sizeof v);
}

inline ConstBytes bytes_of(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view text_of(ConstBytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

constexpr uint32_t pad4(uint32_t n) { return (4 - n % 4) % 4; }

}  // namespace nfsrdma::base
