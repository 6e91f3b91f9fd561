// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"

namespace nfsrdma::base {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t next() = 0;
  // Uniform in [0, bound); bound 0 gives 0.
  uint64_t below(uint64_t bound) { return bound ? next() % bound : 0; }
  void fill(Bytes out) {
    for (size_t at = 0; at < out.size(); at += 8) {
      uint64_t v = next();
      std::memcpy(out.data() + at, &v, out.size() - at < 8 ? out.size() - at : 8);
    }
  }
};

// getrandom(2): for client ids, verifiers and keys. Thread safe.
Random& system_random();

// splitmix64: the same numbers for the same seed on every machine. One thread.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() override {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace nfsrdma::base
