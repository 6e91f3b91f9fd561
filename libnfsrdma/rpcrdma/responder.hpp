// SPDX-License-Identifier: Apache-2.0
// The responder: listens for RPC-over-RDMA connections, spreads them over loops and hands their calls to a
// Service.
//
//   rpcrdma::CqDriver driver(loop, std::move(cq));                    // one per loop
//   rpcrdma::CqDriver* drivers[] = {&driver};
//   rpcrdma::AcceptorParams params;
//   params.address = *base::SocketAddress::parse("0.0.0.0", 20049);
//   auto acceptor = rpcrdma::Acceptor::listen(provider, params, drivers, service);
//   ...
//   co_await (*acceptor)->close();                                    // then it may be destroyed
//
// A connection stays on its loop. Service calls come on the loop of their connection, so a Service that
// serves several loops must be thread safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/intrusive_list.hpp"
#include "io/task.hpp"
#include "mem/buffer_pool.hpp"
#include "rpc/service.hpp"
#include "rpcrdma/cq_driver.hpp"

namespace nfsrdma::rpcrdma {

class ResponderFaults;
class ServerEndpoint;

struct ResponderParams {
  uint32_t credits = 64;              // calls that a client may have unanswered, per connection
  uint32_t reverse_credits = 8;       // callbacks that we have unanswered at most; the client may grant less
  uint32_t inline_bytes = 4096;       // announced for both directions, 1024..262144
  uint32_t receive_bytes = 4096;      // size of a posted Receive; at least inline_bytes is taken
  uint32_t ord = 16;                  // RDMA Reads issued at once
  uint32_t chunk_segments_max = 260;  // per chunk; the Linux client's page lists stay below
  uint32_t write_chunks_max = 16;
  uint32_t message_bytes_max = (1u << 20) + 4096;  // of a long call, and of the payload of one call
  bool reply_chunk_always = true;                  // use a reply chunk whenever one is offered, as knfsd does
  bool invalidate = true;                          // Send with Invalidate where the client allows it
};

struct AcceptorParams {
  base::SocketAddress address;  // port 0 = any
  ResponderParams responder;
  mem::PoolParams pool;  // one pool per device
  uint32_t connections_max = 1024;
};

class Acceptor final : private rdma::ListenHandler {
 public:
  // Listens on the first loop; call it there, or before that loop turns. provider, loops, service and faults
  // must outlive the acceptor. Errors as Provider::listen.
  static Result<std::unique_ptr<Acceptor>> listen(std::shared_ptr<rdma::Provider> provider,
                                                  const AcceptorParams& params,
                                                  std::span<CqDriver* const> loops, rpc::Service& service,
                                                  ResponderFaults* faults = nullptr);
  // After close(), or when no loop turns any more. ServerCalls that the service still holds must be gone.
  ~Acceptor() override;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  base::SocketAddress local() const { return local_; }
  // Any thread.
  uint32_t connections() const { return connections_.load(std::memory_order_relaxed); }
  mem::PoolStats pool_stats() const;
  // Stops listening and ends every connection; on_disconnect was called for each when it returns. Continues
  // on the first loop.
  io::Task<void> close();

 private:
  friend class ServerEndpoint;
  struct Shard {
    Shard();
    ~Shard();
    CqDriver* driver = nullptr;
    base::IntrusiveList<ServerEndpoint> endpoints;  // that loop's thread only
    std::atomic<uint32_t> count{0};
  };
  struct DeviceEntry {
    std::shared_ptr<rdma::Device> device;
    std::shared_ptr<rdma::ProtectionDomain> pd;
    std::shared_ptr<mem::BufferPool> pool;
  };

  Acceptor(const AcceptorParams& params, rpc::Service& service, ResponderFaults* faults)
      : params_(params), service_(service), faults_(faults) {}
  void on_request(std::unique_ptr<rdma::ConnectRequest> request) override;
  void admit(Shard& shard, std::unique_ptr<rdma::ConnectRequest> request);
  Result<DeviceEntry> device_entry(std::shared_ptr<rdma::Device> device);
  void end_all(Shard& shard);
  void gone(Shard& shard);

  const AcceptorParams params_;
  rpc::Service& service_;
  ResponderFaults* faults_;
  base::SocketAddress local_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<uint32_t> connections_{0};
  mutable std::mutex devices_mutex_;  // guards the next two
  std::vector<DeviceEntry> devices_;
  std::vector<std::unique_ptr<rdma::ConnectRequest>> swallowed_;  // by a fault
  std::shared_ptr<rdma::Provider> provider_;
  std::unique_ptr<rdma::Listener> listener_;
};

}  // namespace nfsrdma::rpcrdma
