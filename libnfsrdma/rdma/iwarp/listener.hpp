// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rdma/iwarp/queue_pair.hpp"

namespace nfsrdma::rdma::iwarp {

class IwarpListener;

// An accepted TCP connection whose MPA Request is being read. Owned by its listener.
class Handshake final : public Source {
 public:
  Handshake(IwarpCompletionQueue& cq, IwarpListener& listener, Socket socket);
  ~Handshake() override;
  Result<void> start();
  void on_socket(uint32_t) override {}
  bool progress(TimeNs now_ns) override;
  void on_deadline(TimeNs now_ns) override;
  void deliver() override;

 private:
  void give_up(const std::string& why);

  IwarpListener& listener_;
  Socket socket_;
  SocketAddress remote_;
  MpaReader reader_{false};
  bool good_ = false;
  bool done_ = false;
};

class IwarpListener final : public Listener, private Source {
 public:
  IwarpListener(const IwarpOptions& options, std::shared_ptr<Device> device, IwarpCompletionQueue& cq,
                ListenHandler& handler, Socket socket);
  ~IwarpListener() override;
  Result<void> start();
  SocketAddress local() const override { return address_; }

  const IwarpOptions& options() const { return options_; }
  // The handshake is over; it is destroyed. incoming: nullptr when it came to nothing.
  void finish(Handshake& handshake, std::unique_ptr<IncomingConnection> incoming);

 private:
  void on_socket(uint32_t) override {}
  bool progress(TimeNs now_ns) override;
  void on_deadline(TimeNs now_ns) override;
  void deliver() override {}

  IwarpOptions options_;
  std::shared_ptr<Device> device_;
  ListenHandler& handler_;
  Socket socket_;
  SocketAddress address_;
  std::vector<std::unique_ptr<Handshake>> handshakes_;
};

class IwarpRequest final : public ConnectRequest {
 public:
  IwarpRequest(const IwarpOptions& options, std::shared_ptr<Device> device, IncomingConnection incoming)
      : options_(options), device_(std::move(device)), incoming_(std::move(incoming)) {}
  ~IwarpRequest() override;
  std::shared_ptr<Device> device() override { return device_; }
  ConstBytes private_data() const override { return incoming_.request.private_data; }
  SocketAddress remote() const override { return incoming_.remote; }
  uint32_t ird_offered() const override;
  Result<std::unique_ptr<QueuePair>> create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                       const QueuePairParams& params,
                                                       ConnectionHandler& handler) override;
  void reject(ConstBytes private_data) override;

 private:
  IwarpOptions options_;
  std::shared_ptr<Device> device_;
  IncomingConnection incoming_;
};

// Answers a Request with a Reply that rejects it.
void send_rejection(int fd, const MpaFrame& request, base::ConstBytes private_data);

class IwarpDomain final : public ProtectionDomain {
 public:
  explicit IwarpDomain(const IwarpOptions& options) : options_(options) {}
  const Caps& caps() const override { return iwarp_caps(); }
  Result<std::unique_ptr<Region>> register_memory(const MemoryRange& range) override;
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& cq, const QueuePairParams& params,
                                                       ConnectionHandler& handler) override;
  const std::shared_ptr<MemoryUsers>& users() const { return users_; }

 private:
  IwarpOptions options_;
  std::shared_ptr<MemoryUsers> users_ = std::make_shared<MemoryUsers>();
};

}  // namespace nfsrdma::rdma::iwarp
