// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cli {

// A line on stderr that tells how far a copy is. Only on a terminal, and only once the copy takes a second.
class Progress {
 public:
  // total_bytes 0: not known.
  Progress(std::string name, uint64_t total_bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  std::string name_;
  uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;
  Clock::time_point start_, next_;
  bool enabled_, shown_ = false;
};

}  // namespace cli
