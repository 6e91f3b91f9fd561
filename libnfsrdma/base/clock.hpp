// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace nfsrdma::base {

// Monotonic nanoseconds since an arbitrary start. Everything that waits takes its time from a Clock, so that a
// simulation can turn the hands itself.
using TimeNs = uint64_t;

constexpr TimeNs never_ns = ~TimeNs{0};
constexpr TimeNs us(uint64_t n) { return n * 1000; }
constexpr TimeNs ms(uint64_t n) { return n * 1000 * 1000; }
constexpr TimeNs seconds(uint64_t n) { return n * 1000 * 1000 * 1000; }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeNs now_ns() = 0;
  // Wall clock, nanoseconds since 1970, for time stamps shown to people and for boot verifiers.
  virtual uint64_t wall_ns() = 0;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME. Thread safe.
Clock& system_clock();

// A clock that stands still until it is moved. For tests and simulation; one thread.
class ManualClock final : public Clock {
 public:
  TimeNs now_ns() override { return now_; }
  uint64_t wall_ns() override { return wall_start_ns + now_; }
  void advance(TimeNs by) { now_ += by; }

 private:
  static constexpr uint64_t wall_start_ns = 1'700'000'000'000'000'000;
  TimeNs now_ = seconds(1);
};

}  // namespace nfsrdma::base
