// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <sys/random.h>

namespace nfsrdma::base {
namespace {

class SystemRandom final : public Random {
 public:
  uint64_t next() override {
    uint64_t v = 0;
    // 8 bytes never come short once the kernel's pool is ready; EINTR can only happen before that.
    while (getrandom(&v, sizeof v, 0) != sizeof v) {
    }
    return v;
  }
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

}  // namespace nfsrdma::base
