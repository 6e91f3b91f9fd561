// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein): a keyed hash that cannot be forged without the key; it signs file handles.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bytes.hpp"

namespace nfsrdma::server {

struct SipKey {
  uint64_t k0 = 0;
  uint64_t k1 = 0;
};

class SipState {
 public:
  explicit SipState(const SipKey& key)
      : v0_(key.k0 ^ 0x736f6d6570736575u),
        v1_(key.k1 ^ 0x646f72616e646f6du),
        v2_(key.k0 ^ 0x6c7967656e657261u),
        v3_(key.k1 ^ 0x7465646279746573u) {}
  void absorb(uint64_t word) {
    v3_ ^= word;
    rounds(2);
    v0_ ^= word;
  }
  uint64_t finish() {
    v2_ ^= 0xff;
    rounds(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void rounds(int n) {
    for (int i = 0; i < n; ++i) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }
  uint64_t v0_, v1_, v2_, v3_;
};

inline uint64_t siphash(const SipKey& key, base::ConstBytes bytes) {
  SipState state(key);
  size_t at = 0;
  uint64_t word = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::memcpy(&word, bytes.data() + at, 8);
    state.absorb(word);
  }
  word = 0;
  if (bytes.size() > at) std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  state.absorb(word | static_cast<uint64_t>(bytes.size()) << 56);
  return state.finish();
}

}  // namespace nfsrdma::server
