// SPDX-License-Identifier: Apache-2.0
// Tells the kernel to drop what it caches. Dropping pages waits for page locks that only the answer to a READ
// releases, and dropping a name takes the directory's lock: so a thread that serves no requests does it, and no loop
// ever waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "nfsrdma/callback.hpp"
#include "nfsrdma/loop.hpp"

struct fuse_session;

namespace nfsrdma::fuse {

class Notifier {
 public:
  Notifier() = default;
  ~Notifier() { stop(); }
  Result<void> start(fuse_session* session);
  // What is still queued is dropped: the mount is gone then.
  void stop();

  // Any thread. Pages [offset, offset + length) and the attributes of an inode; length 0 is up to the end. done runs
  // on the loop afterwards, whatever came of it.
  void drop_pages(uint64_t inode, uint64_t offset, uint64_t length, Loop* loop = nullptr, Callback<void()> done = {});

 private:
  struct Job {
    uint64_t inode = 0, offset = 0, length = 0;
    Loop* loop = nullptr;
    Callback<void()> done;
  };
  void run();

  fuse_session* session_ = nullptr;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

// Attributes only: takes no lock that a request could hold, so a loop may call it itself.
void drop_attributes(fuse_session* session, uint64_t inode);

}  // namespace nfsrdma::fuse
