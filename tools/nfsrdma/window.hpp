// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

#include "interrupt.hpp"
#include "nfsrdma/mount.hpp"

namespace cli {

constexpr size_t window_bytes = 8u << 20;
constexpr size_t window_requests_min = 2, window_requests_max = 32;

inline size_t window_requests(uint32_t request_bytes) {
  size_t n = window_bytes / request_bytes;
  return n < window_requests_min ? window_requests_min : n > window_requests_max ? window_requests_max : n;
}

// Counts requests that are under way. Begun by the main thread, ended on the mount's loops. Its destructor
// waits for the last one, so what the requests use only has to be declared before it.
class InFlight {
 public:
  ~InFlight() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }
  void begin() {
    std::lock_guard lock(mutex_);
    ++count_;
  }
  // Notified under the lock: the waiter may be gone right after it.
  void end() {
    end_with([] {});
  }
  // set runs under the lock that conditions are tested with.
  template <class Set>
  void end_with(Set set) {
    std::lock_guard lock(mutex_);
    set();
    --count_;
    changed_.notify_one();
  }
  void end(const nfsrdma::Error& error) {
    std::lock_guard lock(mutex_);
    --count_;
    if (!error_) error_ = error;
    changed_.notify_one();
  }
  // Returns when the condition holds, or after an interrupt.
  template <class Condition>
  void wait_until(Condition condition) {
    constexpr std::chrono::milliseconds look_around{100};  // a signal wakes no condition variable
    std::unique_lock lock(mutex_);
    while (!condition(count_) && !is_interrupted()) changed_.wait_for(lock, look_around);
  }
  size_t count() {
    std::lock_guard lock(mutex_);
    return count_;
  }
  std::optional<nfsrdma::Error> error() {
    std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t count_ = 0;
  std::optional<nfsrdma::Error> error_;
};

}  // namespace cli
