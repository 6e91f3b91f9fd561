// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/factory.hpp"

#include <algorithm>
#include <cerrno>

#include "rpcrdma/endpoint.hpp"

namespace nfsrdma::rpcrdma {

namespace {
constexpr uint32_t completions_per_loop = 4096;
}

Result<std::unique_ptr<Fabric>> Fabric::open(std::shared_ptr<rdma::Provider> provider,
                                             const FabricParams& params) {
  std::unique_ptr<Fabric> fabric(new Fabric);
  fabric->params_ = params;
  fabric->provider_ = std::move(provider);
  rdma::ResolveParams resolve;
  resolve.remote = params.remote;
  resolve.local = params.local;
  resolve.device_name = params.device_name;
  resolve.timeout_ns = params.timeout_ns;
  auto device = fabric->provider_->resolve(resolve);
  if (!device) return device.error();
  fabric->device_ = std::move(*device);
  auto pd = fabric->device_->create_protection_domain();
  if (!pd) return pd.error();
  fabric->pd_ = std::move(*pd);
  fabric->pool_ = std::make_unique<mem::BufferPool>(fabric->pd_, params.pool);
  // A memory limit shows now, with its cure, and not at the first large read.
  auto warm = fabric->pool_->warm(params.pool.large_bytes);
  if (!warm) return warm.error();
  return fabric;
}

Fabric::~Fabric() = default;

CqDriver* Fabric::driver_of(io::IoLoop& loop) const {
  std::lock_guard lock(mutex_);
  for (auto& driver : drivers_)
    if (&driver->loop() == &loop) return driver.get();
  return nullptr;
}

Result<void> Fabric::attach(io::IoLoop& loop) {
  auto cq = provider_->create_completion_queue(completions_per_loop);
  if (!cq) return cq.error();
  auto driver = std::make_unique<CqDriver>(loop, std::move(*cq));
  std::lock_guard lock(mutex_);
  drivers_.push_back(std::move(driver));
  return {};
}

void Fabric::detach(io::IoLoop& loop) {
  std::unique_ptr<CqDriver> gone;
  std::lock_guard lock(mutex_);
  auto at = std::ranges::find_if(drivers_, [&](auto& driver) { return &driver->loop() == &loop; });
  if (at == drivers_.end()) return;
  gone = std::move(*at);
  drivers_.erase(at);
}

rdma::ProviderCounters Fabric::counters(io::IoLoop& loop) const {
  CqDriver* driver = driver_of(loop);
  return driver ? driver->cq().counters() : rdma::ProviderCounters{};
}

io::Task<Result<std::unique_ptr<rpc::Transport>>> Fabric::connect(io::IoLoop& loop,
                                                                  rpc::TransportObserver& observer,
                                                                  rpc::ReverseHandler& reverse) {
  CqDriver* driver = driver_of(loop);
  if (!driver) co_return Error(EINVAL, ErrorOrigin::local, "this loop has no completion queue");
  EndpointParams p;
  p.remote = params_.remote;
  p.local = params_.local;
  p.credits = params_.credits;
  p.inline_bytes = params_.inline_bytes;
  p.reply_chunk_bytes_max = params_.reply_chunk_bytes_max;
  p.timeout_ns = params_.timeout_ns;
  auto endpoint = co_await rpcrdma::connect(*driver, pd_, *pool_, p, observer, &reverse);
  if (!endpoint) co_return endpoint.error();
  co_return std::unique_ptr<rpc::Transport>(std::move(*endpoint));
}

}  // namespace nfsrdma::rpcrdma
