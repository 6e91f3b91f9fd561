// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "rpcrdma/responder.hpp"
#include "rpcrdma/responder_faults.hpp"
#include "rpcrdma/server_endpoint.hpp"

namespace nfsrdma::rpcrdma {

Acceptor::Shard::Shard() = default;
Acceptor::Shard::~Shard() = default;

Result<std::unique_ptr<Acceptor>> Acceptor::listen(std::shared_ptr<rdma::Provider> provider,
                                                   const AcceptorParams& params,
                                                   std::span<CqDriver* const> loops, rpc::Service& service,
                                                   ResponderFaults* faults) {
  if (loops.empty()) return Error(EINVAL, ErrorOrigin::usage, "a responder needs a loop");
  std::unique_ptr<Acceptor> acceptor(new Acceptor(params, service, faults));
  for (CqDriver* driver : loops) {
    acceptor->shards_.push_back(std::make_unique<Shard>());
    acceptor->shards_.back()->driver = driver;
  }
  auto listener = provider->listen(params.address, loops[0]->cq(), *acceptor);
  if (!listener) return listener.error();
  acceptor->provider_ = std::move(provider);
  acceptor->listener_ = std::move(*listener);
  acceptor->local_ = acceptor->listener_->local();
  return acceptor;
}

Acceptor::~Acceptor() {
  listener_.reset();
  for (auto& shard : shards_) end_all(*shard);
}

io::Task<void> Acceptor::close() {
  io::IoLoop& first = shards_[0]->driver->loop();
  co_await first.enter();
  listener_.reset();
  // Requests posted to the other loops arrive before we do.
  for (auto& shard : shards_) {
    co_await shard->driver->loop().enter();
    end_all(*shard);
  }
  co_await first.enter();
}

void Acceptor::end_all(Shard& shard) {
  while (ServerEndpoint* endpoint = shard.endpoints.front())
    endpoint->end_now(Error(ESHUTDOWN, ErrorOrigin::local, "the server stops"));
}

void Acceptor::gone(Shard& shard) {
  shard.count.fetch_sub(1, std::memory_order_relaxed);
  connections_.fetch_sub(1, std::memory_order_relaxed);
}

mem::PoolStats Acceptor::pool_stats() const {
  std::lock_guard lock(devices_mutex_);
  mem::PoolStats sum;
  for (const DeviceEntry& entry : devices_) {
    mem::PoolStats s = entry.pool->stats();
    sum.bytes_max += s.bytes_max;
    sum.bytes_registered += s.bytes_registered;
    sum.bytes_used += s.bytes_used;
    sum.bytes_used_peak += s.bytes_used_peak;
    sum.refusals += s.refusals;
  }
  return sum;
}

void Acceptor::on_request(std::unique_ptr<rdma::ConnectRequest> request) {
  if (connections_.load(std::memory_order_relaxed) >= params_.connections_max) {
    base::log(base::LogLevel::warn, "rpcrdma", "%s: refused, %u connections are the limit",
              request->remote().text().c_str(), params_.connections_max);
    return request->reject({});
  }
  auto least = std::ranges::min_element(
      shards_, {}, [](const auto& shard) { return shard->count.load(std::memory_order_relaxed); });
  Shard& shard = **least;
  shard.count.fetch_add(1, std::memory_order_relaxed);
  connections_.fetch_add(1, std::memory_order_relaxed);
  if (shard.driver == shards_[0]->driver) return admit(shard, std::move(request));
  shard.driver->loop().post([this, &shard, r = std::move(request)]() mutable { admit(shard, std::move(r)); });
}

void Acceptor::admit(Shard& shard, std::unique_ptr<rdma::ConnectRequest> request) {
  ConnectFault fault = faults_ ? faults_->on_connect() : ConnectFault{};
  if (fault.swallow) {
    gone(shard);
    std::lock_guard lock(devices_mutex_);
    swallowed_.push_back(std::move(request));  // kept, so that its destruction does not reject it
    return;
  }
  std::string remote = request->remote().text();
  auto refuse = [&](const std::string& why) {
    base::log(base::LogLevel::warn, "rpcrdma", "%s: connection refused: %s", remote.c_str(), why.c_str());
    gone(shard);
  };
  if (fault.reject) return refuse("by a fault that was asked for");
  // Without Reads no payload of a WRITE can be fetched: better no connection than one that hangs later.
  if (request->ird_offered() == 0) return refuse("the client allows no RDMA Reads (its IRD is 0)");
  auto entry = device_entry(request->device());
  if (!entry) return refuse(entry.error().text());
  ResponderParams params = params_.responder;
  if (fault.inline_bytes > 0) params.inline_bytes = fault.inline_bytes;
  auto* endpoint = new ServerEndpoint(*this, shard, params, std::move(entry->pd), std::move(entry->pool));
  shard.endpoints.push_back(*endpoint);
  if (auto ok = endpoint->accept(std::move(request), fault.private_data); !ok) {
    base::log(base::LogLevel::warn, "rpcrdma", "%s: connection refused: %s", remote.c_str(),
              ok.error().text().c_str());
    endpoint->end_later(ok.error());
  }
}

Result<Acceptor::DeviceEntry> Acceptor::device_entry(std::shared_ptr<rdma::Device> device) {
  std::lock_guard lock(devices_mutex_);
  for (const DeviceEntry& entry : devices_)
    if (entry.device == device) return entry;
  auto pd = device->create_protection_domain();
  if (!pd) return pd.error();
  DeviceEntry entry{device, *pd, std::make_shared<mem::BufferPool>(*pd, params_.pool)};
  devices_.push_back(entry);
  return entry;
}

}  // namespace nfsrdma::rpcrdma
