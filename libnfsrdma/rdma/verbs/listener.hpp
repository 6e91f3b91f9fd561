// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rdma/verbs/completion_queue.hpp"

namespace nfsrdma::rdma::verbs {

class VerbsListener final : public Listener, public CmUser {
 public:
  static Result<std::unique_ptr<Listener>> create(std::shared_ptr<DeviceTable> devices, const SocketAddress& address,
                                                  VerbsCompletionQueue& cq, ListenHandler& handler);
  SocketAddress local() const override { return local_; }
  void on_cm_event(const CmEvent& event) override;

 private:
  VerbsListener(std::shared_ptr<DeviceTable> devices, std::shared_ptr<CmChannel> channel, ListenHandler& handler)
      : devices_(std::move(devices)), channel_(std::move(channel)), handler_(handler) {}
  Result<void> start(const SocketAddress& address);

  std::shared_ptr<DeviceTable> devices_;
  std::shared_ptr<CmChannel> channel_;
  ListenHandler& handler_;
  CmId id_;
  SocketAddress local_;
};

}  // namespace nfsrdma::rdma::verbs
