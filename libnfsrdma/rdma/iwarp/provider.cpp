// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "rdma/iwarp/listener.hpp"

namespace nfsrdma::rdma {
namespace iwarp {

Result<std::unique_ptr<Region>> IwarpDomain::register_memory(const MemoryRange& range) {
  return register_host_memory(users_, range);
}

Result<std::unique_ptr<QueuePair>> IwarpDomain::create_queue_pair(CompletionQueue& cq,
                                                                  const QueuePairParams& params,
                                                                  ConnectionHandler& handler) {
  return std::unique_ptr<QueuePair>(std::make_unique<IwarpQueuePair>(
      options_, users_, static_cast<IwarpCompletionQueue&>(cq), params, handler));
}

namespace {

class IwarpDevice final : public Device {
 public:
  explicit IwarpDevice(const IwarpOptions& options) : options_(options) {}
  std::string describe() const override { return "iwarp (TCP sockets of this host)"; }
  const Caps& caps() const override { return iwarp_caps(); }
  Result<std::shared_ptr<ProtectionDomain>> create_protection_domain() override {
    return std::shared_ptr<ProtectionDomain>(std::make_shared<IwarpDomain>(options_));
  }

 private:
  IwarpOptions options_;
};

class IwarpProvider final : public Provider {
 public:
  explicit IwarpProvider(const IwarpOptions& options)
      : options_(options), device_(std::make_shared<IwarpDevice>(options)) {}
  const char* name() const override { return "iwarp"; }
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(uint32_t entries) override {
    auto cq = IwarpCompletionQueue::create(entries);
    if (!cq) return std::move(cq).error();
    return std::unique_ptr<CompletionQueue>(std::move(*cq));
  }
  Result<std::shared_ptr<Device>> resolve(const ResolveParams& params) override {
    if (!params.device_name.empty())
      return Error(ENODEV, ErrorOrigin::usage,
                   "provider=iwarp uses the host's TCP and no RDMA device: leave the device name out (" +
                       params.device_name + ") or use provider=verbs");
    return device_;
  }
  Result<std::unique_ptr<Listener>> listen(const SocketAddress& address, CompletionQueue& cq,
                                           ListenHandler& handler) override {
    auto socket = open_listening(address);
    if (!socket) return std::move(socket).error();
    auto listener = std::make_unique<IwarpListener>(options_, device_, static_cast<IwarpCompletionQueue&>(cq),
                                                    handler, std::move(*socket));
    if (auto ok = listener->start(); !ok) return std::move(ok).error();
    return std::unique_ptr<Listener>(std::move(listener));
  }

 private:
  IwarpOptions options_;
  std::shared_ptr<Device> device_;
};

}  // namespace
}  // namespace iwarp

std::shared_ptr<Provider> make_iwarp_provider(const IwarpOptions& options) {
  return std::make_shared<iwarp::IwarpProvider>(options);
}

}  // namespace nfsrdma::rdma
