// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/crc32c.hpp"

#include <array>

#ifdef NFSRDMA_HAVE_ISAL
#include <isa-l/crc.h>
#endif
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace nfsrdma::rdma::iwarp {
namespace {

using base::ConstBytes;

// Slicing by 8: table[k][b] is the effect of byte b followed by k zero bytes.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t v = b;
    for (int bit = 0; bit < 8; bit++) v = v & 1 ? v >> 1 ^ 0x82f63b78u : v >> 1;
    t[0][b] = v;
  }
  for (size_t k = 1; k < 8; k++)
    for (uint32_t b = 0; b < 256; b++) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xff];
  return t;
}

constexpr Tables tables = make_tables();

uint64_t load_le64(const std::byte* at) {
  uint64_t v = 0;
  for (int i = 7; i >= 0; i--) v = v << 8 | static_cast<uint8_t>(at[i]);
  return v;
}

}  // namespace

uint32_t crc32c_table(uint32_t state, ConstBytes data) {
  const std::byte* at = data.data();
  size_t left = data.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t v = load_le64(at) ^ state;
    state = 0;
    for (size_t i = 0; i < 8; i++) state ^= tables[7 - i][v >> (8 * i) & 0xff];
  }
  for (; left > 0; at++, left--) state = state >> 8 ^ tables[0][(state ^ static_cast<uint8_t>(*at)) & 0xff];
  return state;
}

#if defined(__x86_64__)
bool crc32c_instruction_present() { return __builtin_cpu_supports("sse4.2"); }

[[gnu::target("sse4.2")]] uint32_t crc32c_instruction(uint32_t state, ConstBytes data) {
  const std::byte* at = data.data();
  size_t left = data.size();
  uint64_t wide = state;
  for (; left >= 8; at += 8, left -= 8) wide = _mm_crc32_u64(wide, load_le64(at));
  state = static_cast<uint32_t>(wide);
  for (; left > 0; at++, left--) state = _mm_crc32_u8(state, static_cast<uint8_t>(*at));
  return state;
}
#else
bool crc32c_instruction_present() { return false; }
uint32_t crc32c_instruction(uint32_t state, ConstBytes data) { return crc32c_table(state, data); }
#endif

uint32_t crc32c_update(uint32_t state, ConstBytes data) {
#ifdef NFSRDMA_HAVE_ISAL
  // An FPDU is at most 64 KiB: the int length of the library is wide enough.
  return crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data.data())),
                     static_cast<int>(data.size()), state);
#else
  static const bool instruction = crc32c_instruction_present();
  return instruction ? crc32c_instruction(state, data) : crc32c_table(state, data);
#endif
}

}  // namespace nfsrdma::rdma::iwarp
