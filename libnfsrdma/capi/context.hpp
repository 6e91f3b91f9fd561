// SPDX-License-Identifier: Apache-2.0
// What the opaque types of nfsrdma.h are, and how a call ends: by callback, through the service queue, or by
// waking the thread that waits in the blocking form.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nfsrdma/mount.hpp"
#include "nfsrdma/nfsrdma.h"

namespace nfsrdma::capi {

// One blocked thread. The notifier holds the lock, since the waiter's stack frame is gone right after.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int64_t result = 0;
  std::optional<Error> error;
};

struct Pending {
  nfsrdma_callback callback;
  void* private_data;
  int64_t result;
  std::optional<Error> error;
};

}  // namespace nfsrdma::capi

struct nfsrdma_ctx {
  ~nfsrdma_ctx();

  std::unique_ptr<nfsrdma::Mount> mount;
  std::optional<nfsrdma::Credentials> who;  // set whenever mount is
  std::atomic<uint32_t> handles{0};
  std::thread connector;  // of connect_async and disconnect_async

  int event_fd = -1;  // where callbacks go by nfsrdma_service()
  std::mutex pending_mutex;
  std::vector<nfsrdma::capi::Pending> pending, in_service;
};

struct nfsrdma_file {
  nfsrdma_ctx* ctx;
  nfsrdma::File file;
};

struct nfsrdma_dir {
  nfsrdma_ctx* ctx;
  nfsrdma::Node node;
  nfsrdma::DirectoryPage page;
  size_t at = 0;
  uint64_t cookie = 0, verifier = 0;
  uint32_t empty_pages = 0;
};

struct nfsrdma_mem {
  nfsrdma_ctx* ctx;
  nfsrdma::Region region;
};

namespace nfsrdma::capi {

// Keeps the error for nfsrdma_strerror() on this thread and gives its negative errno.
int fail(const nfsrdma_ctx* ctx, const Error& error);
int fail(const nfsrdma_ctx* ctx, int errno_value, std::string text);

// How one call ends. Copyable; exactly one of done() and failed() is called, on any thread.
struct Finish {
  nfsrdma_ctx* ctx = nullptr;
  nfsrdma_callback callback = nullptr;
  void* private_data = nullptr;
  Waiter* waiter = nullptr;

  void done(int64_t result) const { end(result, std::nullopt); }
  void failed(const Error& error) const { end(-int64_t{error.errno_value()}, error); }
  template <class T>
  void status(const Result<T>& result) const {
    result ? done(0) : failed(result.error());
  }

 private:
  void end(int64_t result, std::optional<Error> error) const;
};

// Waits for a call that start(Finish) begins. start gives a negative errno when it did not begin.
template <class Start>
int64_t blocking(nfsrdma_ctx* ctx, Start start) {
  if (Loop::current()) return fail(ctx, EDEADLK, "a blocking call inside a callback would wait for itself");
  Waiter waiter;
  if (int rc = start(Finish{ctx, nullptr, nullptr, &waiter}); rc < 0) return rc;
  std::unique_lock lock(waiter.mutex);
  waiter.changed.wait(lock, [&] { return waiter.done; });
  if (waiter.error) fail(ctx, *waiter.error);
  return waiter.result;
}

// 0, or why no call can begin.
int check(nfsrdma_ctx* ctx);
int check_callback(nfsrdma_ctx* ctx, nfsrdma_callback callback);

void log_unfreed(uint32_t handles);

void fill(nfsrdma_stat_buf& out, const Attributes& attributes);

}  // namespace nfsrdma::capi
