// SPDX-License-Identifier: Apache-2.0
// All that the RDMA connections to one server share: device, protection domain, buffer pool, a completion
// queue per loop. What a client needs to make rpc::Transports, and the only header of this room that it
// includes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/task.hpp"
#include "mem/buffer_pool.hpp"
#include "rdma/provider.hpp"
#include "rpc/transport.hpp"

namespace nfsrdma::io {
class IoLoop;
}

namespace nfsrdma::rpcrdma {

struct FabricParams {
  base::SocketAddress remote;
  base::SocketAddress local;  // optional source address
  std::string device_name;
  uint32_t credits = 128;
  uint32_t inline_bytes = 4096;
  uint32_t reply_chunk_bytes_max = 1u << 20;
  base::TimeNs timeout_ns = base::seconds(10);
  mem::PoolParams pool;
};

class CqDriver;

class Fabric {
 public:
  // Finds the device that routes to the server and registers the first buffers. Blocks up to
  // params.timeout_ns; control threads only, after the last fork.
  static Result<std::unique_ptr<Fabric>> open(std::shared_ptr<rdma::Provider> provider,
                                              const FabricParams& params);
  ~Fabric();

  // Makes a completion queue for the loop; once, on its thread, before connect() there.
  Result<void> attach(io::IoLoop& loop);
  // On the loop's thread, when it has no connections any more.
  void detach(io::IoLoop& loop);
  // On an attached loop's thread.
  io::Task<Result<std::unique_ptr<rpc::Transport>>> connect(io::IoLoop& loop,
                                                            rpc::TransportObserver& observer,
                                                            rpc::ReverseHandler& reverse);

  mem::BufferPool& pool() { return *pool_; }
  rdma::ProtectionDomain& protection_domain() { return *pd_; }
  std::string describe() const { return device_->describe(); }
  // Loop thread.
  rdma::ProviderCounters counters(io::IoLoop& loop) const;

 private:
  Fabric() = default;
  CqDriver* driver_of(io::IoLoop& loop) const;

  FabricParams params_;
  std::shared_ptr<rdma::Provider> provider_;
  std::shared_ptr<rdma::Device> device_;
  std::shared_ptr<rdma::ProtectionDomain> pd_;
  std::unique_ptr<mem::BufferPool> pool_;
  mutable std::mutex mutex_;  // of drivers_: loops attach at the same time
  std::vector<std::unique_ptr<CqDriver>> drivers_;
};

}  // namespace nfsrdma::rpcrdma
