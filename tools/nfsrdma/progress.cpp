// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "report.hpp"
#include "show.hpp"

namespace cli {

using namespace std::chrono_literals;

Progress::Progress(std::string name, uint64_t total_bytes)
    : name_(printable(name)),
      total_bytes_(total_bytes),
      start_(Clock::now()),
      next_(start_ + 1s),
      enabled_(isatty(STDERR_FILENO) == 1) {
  if (name_.size() > 40) name_ = "..." + name_.substr(name_.size() - 37);
}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::add(uint64_t bytes) {
  done_bytes_ += bytes;
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + 200ms;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto rate = static_cast<uint64_t>(static_cast<double>(done_bytes_) / seconds);
  std::string percent;
  if (total_bytes_)
    percent = " " + std::to_string(std::min<uint64_t>(100, done_bytes_ * 100 / total_bytes_)) + "%";
  std::fprintf(stderr, "\r%s%s %s %s/s\033[K", name_.c_str(), percent.c_str(), size_text(done_bytes_).c_str(),
               size_text(rate).c_str());
}

}  // namespace cli
