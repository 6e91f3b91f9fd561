// SPDX-License-Identifier: Apache-2.0
// A client made by hand: sends any bytes to a responder and keeps what comes back.
#pragma once

#include "tests/rpcrdma/pair.hpp"

namespace nfsrdma::rpcrdma::testing {

class RawPeer final : private rdma::ConnectionHandler {
 public:
  static constexpr uint32_t message_bytes = 65536;
  static constexpr uint32_t receives = 32;

  RawPeer(CqDriver& driver, std::shared_ptr<rdma::ProtectionDomain> pd, const base::SocketAddress& remote,
          ConstBytes private_data, uint32_t ird = 16)
      : pd_(std::move(pd)), memory_(*pd_, size_t{message_bytes} * (receives + 1)), works_(receives + 1) {
    rdma::QueuePairParams params;
    params.ird = ird;
    qp_ = std::move(*pd_->create_queue_pair(driver.cq(), params, *this));
    for (uint32_t i = 0; i <= receives; i++) {
      works_[i].peer = this;
      works_[i].offset = uint64_t{i} * message_bytes;
      works_[i].complete = [](rdma::Work& self, const rdma::Completion& c) {
        Receive& r = static_cast<Receive&>(self);
        r.peer->on_completion(r, c);
      };
      if (i < receives) post(works_[i]);
    }
    rdma::ConnectParams c;
    c.remote = remote;
    c.private_data = private_data;
    EXPECT_TRUE(qp_->connect(c));
  }
  void send(ConstBytes message) {
    Receive& work = works_[receives];
    std::ranges::copy(message, memory_.data + work.offset);
    const rdma::Sge sge = memory_.sge(work.offset, static_cast<uint32_t>(message.size()));
    rdma::SendRequest request;
    request.id = work.id();
    request.sge = {&sge, 1};
    sent_ = false;
    EXPECT_TRUE(qp_->post_send({&request, 1}));
    qp_->flush();
  }
  rdma::QueuePair& qp() { return *qp_; }
  rdma::ProtectionDomain& pd() { return *pd_; }
  bool connected() const { return connected_; }
  bool ended() const { return ended_; }
  bool sent() const { return sent_; }
  std::deque<std::vector<std::byte>> got;
  std::deque<uint32_t> invalidated;

 private:
  struct Receive : rdma::Work {
    RawPeer* peer = nullptr;
    uint64_t offset = 0;
  };
  void on_established(const rdma::ConnectionInfo&) override { connected_ = true; }
  void on_failed(const Error&) override { ended_ = true; }
  void on_disconnected(const Error&) override { ended_ = true; }
  void post(Receive& r) {
    rdma::ReceiveRequest request{r.id(), memory_.sge(r.offset, message_bytes)};
    (void)qp_->post_receive({&request, 1});
  }
  void on_completion(Receive& r, const rdma::Completion& c) {
    if (c.op != rdma::Opcode::receive) {
      sent_ = true;
      return;
    }
    if (c.status != rdma::CompletionStatus::success) return;
    got.emplace_back(memory_.data + r.offset, memory_.data + r.offset + c.length);
    invalidated.push_back(c.invalidated ? c.invalidated_key : 0);
    post(r);
  }

  std::shared_ptr<rdma::ProtectionDomain> pd_;
  Memory memory_;
  std::vector<Receive> works_;
  std::unique_ptr<rdma::QueuePair> qp_;
  bool connected_ = false, ended_ = false, sent_ = true;
};

}  // namespace nfsrdma::rpcrdma::testing
