// SPDX-License-Identifier: Apache-2.0
#include "notifier.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "libfuse.hpp"
#include "log.hpp"

namespace nfsrdma::fuse {

Result<void> Notifier::start(fuse_session* session) try {
  session_ = session;
  thread_ = std::thread([this] { run(); });
  return {};
} catch (const std::system_error& failed) {
  return Error(failed.code().value(), ErrorOrigin::local,
               std::string("cannot start a thread: ") + strerror(failed.code().value()) +
                   "; raise the limit of processes (ulimit -u, or pids.max of the container)");
}

void Notifier::stop() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  filled_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Notifier::drop_pages(uint64_t inode, uint64_t offset, uint64_t length, Loop* loop, Callback<void()> done) {
  {
    std::scoped_lock lock(mutex_);
    jobs_.push_back({inode, offset, length, loop, std::move(done)});
  }
  filled_.notify_one();
}

void Notifier::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    filled_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    bool gone = stopping_;
    lock.unlock();
    if (!gone) {
      int failed = fuse_lowlevel_notify_inval_inode(session_, job.inode, static_cast<off_t>(job.offset),
                                                    static_cast<off_t>(job.length));
      // ENOENT: the kernel has forgotten the inode, and its pages with it.
      if (failed && failed != -ENOENT) log(LogLevel::debug, "dropping pages: %s", strerror(-failed));
    }
    if (job.done) job.loop->post(std::move(job.done));
    lock.lock();
  }
}

void drop_attributes(fuse_session* session, uint64_t inode) {
  fuse_lowlevel_notify_inval_inode(session, inode, -1, 0);
}

}  // namespace nfsrdma::fuse
