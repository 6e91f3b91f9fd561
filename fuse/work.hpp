// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace nfsrdma::fuse {

// Counts what is under way in the library, and wakes the main thread when something ended that it waits for: the
// Mount may go only when nothing is under way. Any thread.
class WorkCount {
 public:
  WorkCount() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~WorkCount() { close(wake_fd_); }
  WorkCount(const WorkCount&) = delete;
  WorkCount& operator=(const WorkCount&) = delete;

  void begin() { count_.fetch_add(1, std::memory_order_relaxed); }
  void end() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1 && watched_.load(std::memory_order_acquire)) wake();
  }
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

  // Main thread: from now on the last end() wakes.
  void watch() { watched_.store(true, std::memory_order_release); }
  void wake() { eventfd_write(wake_fd_, 1); }
  int wake_fd() const { return wake_fd_; }

  // One piece of work, for as long as it lives.
  class Piece {
   public:
    explicit Piece(WorkCount& work) : work_(work) { work_.begin(); }
    ~Piece() { work_.end(); }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    WorkCount& work_;
  };

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> watched_{false};
  int wake_fd_;
};

}  // namespace nfsrdma::fuse
