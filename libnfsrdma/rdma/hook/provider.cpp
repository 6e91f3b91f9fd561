// SPDX-License-Identifier: Apache-2.0
// The control objects of a hooked provider: they only pass on, and keep wrapped objects together with wrapped
// ones.
#include "rdma/hook/hooked.hpp"

namespace nfsrdma::rdma::hook {
namespace {

HookedCompletionQueue& hooked(CompletionQueue& cq) { return static_cast<HookedCompletionQueue&>(cq); }

class HookedDomain final : public ProtectionDomain {
 public:
  explicit HookedDomain(std::shared_ptr<ProtectionDomain> inner) : inner_(std::move(inner)) {}
  const Caps& caps() const override { return inner_->caps(); }
  Result<std::unique_ptr<Region>> register_memory(const MemoryRange& range) override {
    return inner_->register_memory(range);
  }
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& cq, const QueuePairParams& params,
                                                       ConnectionHandler& handler) override {
    auto pair = std::make_unique<HookedQueuePair>(hooked(cq), params, handler);
    auto inner = inner_->create_queue_pair(hooked(cq).inner(), params, pair->inner_handler());
    if (!inner) return std::move(inner).error();
    pair->adopt(std::move(*inner));
    return std::unique_ptr<QueuePair>(std::move(pair));
  }
  ProtectionDomain& inner() { return *inner_; }

 private:
  std::shared_ptr<ProtectionDomain> inner_;
};

class HookedDevice final : public Device {
 public:
  explicit HookedDevice(std::shared_ptr<Device> inner) : inner_(std::move(inner)) {}
  std::string describe() const override { return inner_->describe(); }
  const Caps& caps() const override { return inner_->caps(); }
  Result<std::shared_ptr<ProtectionDomain>> create_protection_domain() override {
    auto inner = inner_->create_protection_domain();
    if (!inner) return std::move(inner).error();
    return std::shared_ptr<ProtectionDomain>(std::make_shared<HookedDomain>(std::move(*inner)));
  }
  const Device* inner() const { return inner_.get(); }

 private:
  std::shared_ptr<Device> inner_;
};

// One wrapper per device, so that devices can still be compared.
class Devices {
 public:
  std::shared_ptr<Device> wrap(std::shared_ptr<Device> inner) {
    std::lock_guard lock(mutex_);
    for (auto& device : devices_)
      if (device->inner() == inner.get()) return device;
    devices_.push_back(std::make_shared<HookedDevice>(std::move(inner)));
    return devices_.back();
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<HookedDevice>> devices_;
};

class HookedRequest final : public ConnectRequest {
 public:
  HookedRequest(std::unique_ptr<ConnectRequest> inner, std::shared_ptr<Devices> devices)
      : inner_(std::move(inner)), devices_(std::move(devices)) {}
  std::shared_ptr<Device> device() override { return devices_->wrap(inner_->device()); }
  ConstBytes private_data() const override { return inner_->private_data(); }
  SocketAddress remote() const override { return inner_->remote(); }
  uint32_t ird_offered() const override { return inner_->ird_offered(); }
  Result<std::unique_ptr<QueuePair>> create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                       const QueuePairParams& params,
                                                       ConnectionHandler& handler) override {
    auto pair = std::make_unique<HookedQueuePair>(hooked(cq), params, handler);
    auto inner = inner_->create_queue_pair(static_cast<HookedDomain&>(pd).inner(), hooked(cq).inner(), params,
                                           pair->inner_handler());
    if (!inner) return std::move(inner).error();
    pair->adopt(std::move(*inner));
    return std::unique_ptr<QueuePair>(std::move(pair));
  }
  void reject(ConstBytes private_data) override { inner_->reject(private_data); }

 private:
  std::unique_ptr<ConnectRequest> inner_;
  std::shared_ptr<Devices> devices_;
};

class HookedListener final : public Listener, private ListenHandler {
 public:
  HookedListener(ListenHandler& handler, std::shared_ptr<Devices> devices)
      : handler_(handler), devices_(std::move(devices)) {}
  SocketAddress local() const override { return inner_->local(); }
  void adopt(std::unique_ptr<Listener> inner) { inner_ = std::move(inner); }
  ListenHandler& inner_handler() { return *this; }

 private:
  void on_request(std::unique_ptr<ConnectRequest> request) override {
    handler_.on_request(std::make_unique<HookedRequest>(std::move(request), devices_));
  }

  ListenHandler& handler_;
  std::shared_ptr<Devices> devices_;
  std::unique_ptr<Listener> inner_;
};

class HookedProvider final : public Provider {
 public:
  HookedProvider(std::shared_ptr<Provider> inner, HookMaker make_hook)
      : inner_(std::move(inner)), make_hook_(std::move(make_hook)) {}
  const char* name() const override { return inner_->name(); }
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(uint32_t entries) override {
    // Unsignaled requests of the consumer complete below: room for them too.
    auto inner = inner_->create_completion_queue(entries * 2);
    if (!inner) return std::move(inner).error();
    std::lock_guard lock(mutex_);
    return std::unique_ptr<CompletionQueue>(
        std::make_unique<HookedCompletionQueue>(std::move(*inner), make_hook_()));
  }
  Result<std::shared_ptr<Device>> resolve(const ResolveParams& params) override {
    auto inner = inner_->resolve(params);
    if (!inner) return std::move(inner).error();
    return devices_->wrap(std::move(*inner));
  }
  Result<std::unique_ptr<Listener>> listen(const SocketAddress& address, CompletionQueue& cq,
                                           ListenHandler& handler) override {
    auto listener = std::make_unique<HookedListener>(handler, devices_);
    auto inner = inner_->listen(address, hooked(cq).inner(), listener->inner_handler());
    if (!inner) return std::move(inner).error();
    listener->adopt(std::move(*inner));
    return std::unique_ptr<Listener>(std::move(listener));
  }

 private:
  std::shared_ptr<Provider> inner_;
  HookMaker make_hook_;
  std::mutex mutex_;
  std::shared_ptr<Devices> devices_ = std::make_shared<Devices>();
};

}  // namespace

std::shared_ptr<Provider> make_hooked_provider(std::shared_ptr<Provider> inner, HookMaker make_hook) {
  return std::make_shared<HookedProvider>(std::move(inner), std::move(make_hook));
}

}  // namespace nfsrdma::rdma::hook
