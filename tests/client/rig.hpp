// SPDX-License-Identifier: Apache-2.0
// A mount and the server that it talks to, in one process: over `loop` (pairs in memory) or `iwarp` (a TCP socket on
// the loopback).
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "nfsrdma/mount.hpp"
#include "rdma/providers.hpp"
#include "server/host.hpp"

namespace nfsrdma::client::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string path(const std::string& name = {}) const { return name.empty() ? path_ : path_ + "/" + name; }
  void write(const std::string& name, std::span<const std::byte> bytes) const;
  std::vector<std::byte> read(const std::string& name) const;

 private:
  std::string path_;
};

std::vector<std::byte> random_bytes(size_t n, uint64_t seed);

// Waits for an asynchronous operation's callback.
template <class T>
class Waiting {
 public:
  Done<T> done() {
    return [this](Result<T> r) {
      std::lock_guard lock(mutex_);
      result_.emplace(std::move(r));
      loop_ = Loop::current();
      ready_.notify_all();
    };
  }
  Result<T> take() {
    std::unique_lock lock(mutex_);
    if (!ready_.wait_for(lock, std::chrono::seconds(20), [this] { return result_.has_value(); }))
      return Error(ETIME, ErrorOrigin::local, "the callback never came");
    return std::move(*result_);
  }
  Loop* loop() const { return loop_; }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::optional<Result<T>> result_;
  Loop* loop_ = nullptr;
};

// Runs f on the loop and waits for it.
template <class F>
void on_loop(Loop& loop, F f) {
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  loop.post([&] {
    f();
    std::lock_guard lock(mutex);
    done = true;
    ready.notify_one();
  });
  std::unique_lock lock(mutex);
  ready.wait(lock, [&] { return done; });
}

enum class Way { loop, iwarp };

struct RigParams {
  Way way = Way::loop;
  std::string faults;                // of the server, as --fault takes them
  uint32_t server_threads = 1;
  std::shared_ptr<rdma::Provider> client_provider;  // wraps or replaces the one that the server has
  bool connect = true;
};

class Rig {
 public:
  explicit Rig(const RigParams& params = {}, Options options = {});
  ~Rig();

  Mount& mount() { return *mount_; }
  server::Host& host() { return *host_; }
  const TempDir& dir() const { return dir_; }
  const std::shared_ptr<rdma::Provider>& provider() const { return provider_; }
  // Options that reach this server.
  Options options() const { return options_; }
  // One more mount of the same server.
  Result<std::unique_ptr<Mount>> connect(const Options& options);
  void unmount() { mount_.reset(); }
  void stop_server() { host_.reset(); }

  // Opens (creating if need be) a file of the root.
  File open(const std::string& name, uint32_t flags = open_read | open_write);
  const Credentials& who() const { return mount_->default_credentials(); }

 private:
  TempDir dir_;
  std::shared_ptr<rdma::Provider> provider_, client_provider_;
  Options options_;
  std::unique_ptr<server::Host> host_;
  std::unique_ptr<Mount> mount_;
};

// Over both providers: TEST_P(Suite, ...) with `class Suite : public BothWays`.
class BothWays : public ::testing::TestWithParam<Way> {
 protected:
  RigParams rig_params(std::string faults = {}) const {
    RigParams p;
    p.way = GetParam();
    p.faults = std::move(faults);
    return p;
  }
};
#define NFSRDMA_BOTH_WAYS(suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(Way::loop, Way::iwarp), [](auto& info) { \
    return info.param == Way::loop ? "loop" : "iwarp";                                       \
  })

}  // namespace nfsrdma::client::test
