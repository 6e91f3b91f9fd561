// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli) as MPA wants it (RFC 5044 section 4.4): state starts as all ones, the value is its
// complement, and goes out least significant byte first.
#pragma once

#include "base/bytes.hpp"

namespace nfsrdma::rdma::iwarp {

constexpr uint32_t crc32c_start = 0xffffffff;

uint32_t crc32c_update(uint32_t state, base::ConstBytes data);
inline void store_crc(std::byte* at, uint32_t state) {
  uint32_t value = ~state;
  for (int i = 0; i < 4; i++) at[i] = static_cast<std::byte>(value >> (8 * i));
}

// The ways to compute it, for tests: the library chooses the best at its first use.
uint32_t crc32c_table(uint32_t state, base::ConstBytes data);
bool crc32c_instruction_present();
uint32_t crc32c_instruction(uint32_t state, base::ConstBytes data);

}  // namespace nfsrdma::rdma::iwarp
