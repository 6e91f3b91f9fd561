// SPDX-License-Identifier: Apache-2.0
// The embedded NFSv4.1 server: a Service over a Store. Serves any number of loops.
//
//   auto store = PosixStore::open(posix_params);
//   NfsServer server(base::system_clock(), base::system_random(), **store, params);
//   auto acceptor = rpcrdma::Acceptor::listen(provider, acceptor_params, drivers, server, server.faults());
//   server.start_housekeeping(loop);
//   ...
//   co_await (*acceptor)->close();
//   co_await server.close();     // everything that was under way has ended
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "server/callbacks.hpp"
#include "server/compound.hpp"
#include "server/faults.hpp"
#include "server/recovery.hpp"

namespace nfsrdma::server {

struct ServerParams {
  StateParams state;
  uint32_t data_bytes_max = 1u << 20;
  bool root_squash = true;
  FaultPlan faults;
};

class NfsServer final : public rpc::Service {
 public:
  // recovery may be nullptr; it and the store outlive the server.
  NfsServer(base::Clock& clock, base::Random& random, Store& store, Recovery* recovery, const ServerParams& params);
  ~NfsServer() override;

  void on_connect(rpc::ServerConnection& connection) override;
  void on_call(std::unique_ptr<rpc::ServerCall> call) override;
  void on_disconnect(rpc::ServerConnection& connection) override;

  // Leases, grace, idle objects: once a second on this loop, until close().
  void start_housekeeping(io::IoLoop& loop);
  // On the housekeeping loop, once no connection is left. Calls under way end first.
  io::Task<void> close();

  ServerFaults* faults() { return faults_.get(); }
  State& state() { return state_; }
  uint64_t compounds() const { return compounds_.load(std::memory_order_relaxed); }

 private:
  ConnectionRef connection_of(rpc::ServerConnection& connection);
  void misbehave();
  io::Task<void> serve(std::unique_ptr<rpc::ServerCall> call, ConnectionRef connection);
  void tick();

  Store& store_;
  Recovery* recovery_;
  std::unique_ptr<ServerFaults> faults_;
  std::unique_ptr<ChangeSource> changes_;
  State state_;
  Callbacks callbacks_;
  ServerContext context_;
  std::atomic<uint64_t> compounds_{0};
  std::atomic<uint32_t> under_way_{0};
  std::mutex connections_mutex_;
  std::unordered_map<uint64_t, ConnectionRef> connections_;  // guarded by connections_mutex_
  io::IoLoop* loop_ = nullptr;
  io::Timer timer_;
};

}  // namespace nfsrdma::server
