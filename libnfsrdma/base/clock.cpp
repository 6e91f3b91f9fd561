// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <ctime>

namespace nfsrdma::base {
namespace {

uint64_t read_clock(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

class SystemClock final : public Clock {
 public:
  TimeNs now_ns() override { return read_clock(CLOCK_MONOTONIC); }
  uint64_t wall_ns() override { return read_clock(CLOCK_REALTIME); }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace nfsrdma::base
