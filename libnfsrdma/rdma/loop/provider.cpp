// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/log.hpp"
#include "rdma/loop/loop.hpp"
#include "rdma/providers.hpp"

namespace nfsrdma::rdma {
namespace loop {
namespace {

class LoopDevice final : public Device {
 public:
  explicit LoopDevice(std::weak_ptr<Fabric> fabric) : fabric_(std::move(fabric)) {}
  std::string describe() const override { return "loop"; }
  const Caps& caps() const override { return domain_caps_.caps(); }
  Result<std::shared_ptr<ProtectionDomain>> create_protection_domain() override {
    return std::shared_ptr<ProtectionDomain>(std::make_shared<LoopDomain>(fabric_.lock()));
  }

 private:
  std::weak_ptr<Fabric> fabric_;  // the fabric owns the device
  LoopDomain domain_caps_{nullptr};
};

class LoopProvider final : public Provider {
 public:
  LoopProvider() { fabric_->device = std::make_shared<LoopDevice>(fabric_); }
  const char* name() const override { return "loop"; }
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(uint32_t entries) override {
    return std::unique_ptr<CompletionQueue>(std::make_unique<LoopCompletionQueue>(fabric_, entries));
  }
  Result<std::shared_ptr<Device>> resolve(const ResolveParams&) override { return fabric_->device; }
  Result<std::unique_ptr<Listener>> listen(const SocketAddress& address, CompletionQueue& cq,
                                           ListenHandler& handler) override {
    std::lock_guard lock(fabric_->mutex);
    SocketAddress local = address;
    if (local.port() == 0) {
      while (fabric_->listeners.contains(fabric_->next_port)) fabric_->next_port++;
      local.set_port(fabric_->next_port++);
    }
    if (fabric_->listeners.contains(local.port()))
      return Error(EADDRINUSE, ErrorOrigin::local,
                   base::text("loop port %u already has a listener", local.port()));
    auto listener =
        std::make_unique<LoopListener>(fabric_, local, static_cast<LoopCompletionQueue&>(cq), handler);
    fabric_->listeners[local.port()] = listener.get();
    return std::unique_ptr<Listener>(std::move(listener));
  }

 private:
  std::shared_ptr<Fabric> fabric_ = std::make_shared<Fabric>();
};

}  // namespace

LoopListener::~LoopListener() {
  std::lock_guard lock(fabric_->mutex);
  fabric_->listeners.erase(address_.port());
  cq_.forget(this);
}

LoopRequest::~LoopRequest() {
  if (!answered_) reject({});
}

Result<std::unique_ptr<QueuePair>> LoopRequest::create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                                  const QueuePairParams& params,
                                                                  ConnectionHandler& handler) {
  if (answered_) return Error(EINVAL, ErrorOrigin::usage, "the request was answered already");
  auto pair = std::make_unique<LoopQueuePair>(fabric_, static_cast<LoopDomain&>(pd).users(),
                                              static_cast<LoopCompletionQueue&>(cq), params, handler);
  answered_ = true;
  std::lock_guard lock(fabric_->mutex);
  pair->adopt(handshake_);
  return std::unique_ptr<QueuePair>(std::move(pair));
}

void LoopRequest::reject(ConstBytes private_data) {
  std::lock_guard lock(fabric_->mutex);
  answered_ = true;
  LoopQueuePair* client = std::exchange(handshake_->client, nullptr);
  if (!client) return;
  client->cq_.unwatch(*client);
  client->fail(Error(ECONNREFUSED, ErrorOrigin::connection,
                     "the listener rejected the connection" + describe_private_data(private_data)));
}

}  // namespace loop

std::shared_ptr<Provider> make_loop_provider() { return std::make_shared<loop::LoopProvider>(); }

}  // namespace nfsrdma::rdma
