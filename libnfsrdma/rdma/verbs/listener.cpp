// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/listener.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "rdma/verbs/errors.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

constexpr int backlog = 128;
constexpr size_t private_data_reject_max = 148;

class VerbsRequest final : public ConnectRequest {
 public:
  VerbsRequest(std::shared_ptr<CmChannel> channel, CmId id, std::shared_ptr<VerbsDevice> device, const CmEvent& event)
      : channel_(std::move(channel)),
        id_(std::move(id)),
        device_(std::move(device)),
        event_(event),
        remote_(address_of(rdma_get_peer_addr(id_.get()))) {}
  ~VerbsRequest() override {
    if (id_) rdma_reject(id_.get(), nullptr, 0);
  }
  std::shared_ptr<Device> device() override { return device_; }
  ConstBytes private_data() const override { return event_.data(); }
  SocketAddress remote() const override { return remote_; }
  uint32_t ird_offered() const override { return event_.initiator_depth; }
  Result<std::unique_ptr<QueuePair>> create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                       const QueuePairParams& params,
                                                       ConnectionHandler& handler) override {
    if (!id_) return Error(EINVAL, ErrorOrigin::usage, "the request was answered already");
    return VerbsQueuePair::adopt(static_cast<VerbsDomain&>(pd).self(), static_cast<VerbsCompletionQueue&>(cq), params,
                                 handler, std::move(id_), event_);
  }
  void reject(ConstBytes private_data) override {
    if (!id_) return;
    size_t length = std::min(private_data.size(), private_data_reject_max);
    rdma_reject(id_.get(), private_data.data(), static_cast<uint8_t>(length));
    id_.reset();
  }

 private:
  std::shared_ptr<CmChannel> channel_;  // the id lives on it until a queue pair takes it to its own loop
  CmId id_;
  std::shared_ptr<VerbsDevice> device_;
  CmEvent event_;
  SocketAddress remote_;
};

Error listen_error(const SocketAddress& address, const char* what, int error) {
  std::string text = base::text("verbs: cannot listen on %s: %s: %s", address.text().c_str(), what, strerror(error));
  if (error == EADDRINUSE)
    text += "; another RDMA listener has the port (the kernel's NFS server uses 20049), choose another one";
  if (error == EADDRNOTAVAIL || error == ENODEV)
    text += base::text("; the address must belong to an interface with an RDMA device (here: %s)",
                       device_names().c_str());
  return Error(error, ErrorOrigin::local, std::move(text));
}

}  // namespace

Result<std::unique_ptr<Listener>> VerbsListener::create(std::shared_ptr<DeviceTable> devices,
                                                        const SocketAddress& address, VerbsCompletionQueue& cq,
                                                        ListenHandler& handler) {
  auto channel = cq.channel();
  if (!channel) return std::move(channel).error();
  if (device_names() == "none")
    return Error(ENODEV, ErrorOrigin::local,
                 "verbs: cannot listen on " + address.text() +
                     ": this machine has no RDMA device (ibv_devices lists none); use the iwarp provider");
  std::unique_ptr<VerbsListener> listener(new VerbsListener(std::move(devices), *channel, handler));
  if (auto ok = listener->start(address); !ok) return std::move(ok).error();
  return std::unique_ptr<Listener>(std::move(listener));
}

Result<void> VerbsListener::start(const SocketAddress& address) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_->get(), &id, static_cast<CmUser*>(this), RDMA_PS_TCP) != 0)
    return listen_error(address, "rdma_create_id", errno);
  id_.reset(id);
  SocketAddress bound = address;
  if (rdma_bind_addr(id, bound.get()) != 0) return listen_error(address, "bind", errno);
  if (rdma_listen(id, backlog) != 0) return listen_error(address, "listen", errno);
  local_ = address;
  local_.set_port(be16toh(rdma_get_src_port(id)));
  return {};
}

void VerbsListener::on_cm_event(const CmEvent& event) {
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
    base::log(base::LogLevel::error, "rdma", "listener %s: %s, status %d: it may get no connections any more",
              local_.text().c_str(), rdma_event_str(event.type), event.status);
    return;
  }
  CmId id(event.id);
  auto device = devices_->find_of(id.get());
  if (!device) {
    base::log(base::LogLevel::error, "rdma", "listener %s: %s", local_.text().c_str(), device.error().text().c_str());
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  handler_.on_request(std::make_unique<VerbsRequest>(channel_, std::move(id), *device, event));
}

}  // namespace nfsrdma::rdma::verbs
