// SPDX-License-Identifier: Apache-2.0
// Devices as librdmacm hands them out: one ibv_context per device and process, opened by librdmacm at the first
// route or connection request that leads to it. Its asynchronous events stay unread: another part of the program may
// use the same context and wait for them.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "rdma/host_memory.hpp"
#include "rdma/provider.hpp"
#include "rdma/verbs/cm.hpp"

namespace nfsrdma::rdma::verbs {

constexpr uint32_t sge_max = 6;  // pieces of one request; siw has 6, others more

// What of a device the rest of this folder wants to know.
struct DeviceTraits {
  std::string name;               // "rxe0"
  uint8_t port = 1;
  bool iwarp = false;
  bool siw = false;               // the kernel's software iWARP: its connect blocks, and it loses a wake-up
  bool rxe = false;               // the kernel's software RoCE
  bool windows = false;           // type-2 memory windows
  uint32_t work_requests_max = 0; // per queue
  uint32_t completions_max = 0;   // per completion queue
  uint32_t private_data_max = 0;  // of a connect request
  std::string link;               // "RoCE", "InfiniBand", "iWARP"
  uint32_t mtu_bytes = 0;
  std::string label() const { return name + "/" + std::to_string(port); }
};

// An id that is bound to a device, on a channel that nobody reads any more. librdmacm closes the ibv_context of a device
// that was removed as soon as no id is bound to it, and does not count what else is open there.
struct DevicePin {
  std::shared_ptr<CmChannel> channel;
  CmId id;
};

class VerbsDevice final : public Device, public std::enable_shared_from_this<VerbsDevice> {
 public:
  static Result<std::shared_ptr<VerbsDevice>> probe(DevicePin pin, bool windows_wanted);
  std::string describe() const override;
  const Caps& caps() const override { return caps_; }
  Result<std::shared_ptr<ProtectionDomain>> create_protection_domain() override;

  ibv_context* context() const { return context_; }
  const DeviceTraits& traits() const { return traits_; }
  // Address from which connections leave by this device, where the route alone would take another one. Set once,
  // by resolve().
  void set_source(const SocketAddress& source);
  SocketAddress source() const;

 private:
  explicit VerbsDevice(DevicePin pin) : pin_(std::move(pin)), context_(pin_.id->verbs) {}

  DevicePin pin_;
  ibv_context* context_;  // owned by librdmacm, open as long as the pin is there
  DeviceTraits traits_;
  Caps caps_;
  mutable std::mutex mutex_;
  SocketAddress source_;
};

// The devices that one Provider has met. Thread safe.
class DeviceTable {
 public:
  explicit DeviceTable(bool windows_wanted) : windows_wanted_(windows_wanted) {}
  Result<std::shared_ptr<VerbsDevice>> find(DevicePin pin);
  // The device of an id that the caller keeps for itself.
  Result<std::shared_ptr<VerbsDevice>> find_of(rdma_cm_id* id);

 private:
  std::mutex mutex_;
  std::map<std::pair<ibv_context*, uint8_t>, std::shared_ptr<VerbsDevice>> devices_;
  bool windows_wanted_;
};

class VerbsDomain final : public ProtectionDomain {
 public:
  VerbsDomain(std::shared_ptr<VerbsDevice> device, ibv_pd* pd);
  ~VerbsDomain() override;
  const Caps& caps() const override { return device_->caps(); }
  Result<std::unique_ptr<Region>> register_memory(const MemoryRange& range) override;
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& cq, const QueuePairParams& params,
                                                       ConnectionHandler& handler) override;

  ibv_pd* pd() const { return pd_; }
  VerbsDevice& device() const { return *device_; }
  MemoryUsers& users() { return users_; }
  std::shared_ptr<VerbsDomain> self() { return std::static_pointer_cast<VerbsDomain>(shared_from_this()); }

 private:
  std::shared_ptr<VerbsDevice> device_;
  ibv_pd* pd_;
  MemoryUsers users_;
};

}  // namespace nfsrdma::rdma::verbs
