// SPDX-License-Identifier: Apache-2.0
// An iWARP queue pair: a TCP socket, the MPA start-up on it, and the Engine once it is up.
#pragma once

#include "rdma/iwarp/completion_queue.hpp"
#include "rdma/iwarp/engine.hpp"
#include "rdma/iwarp/mpa.hpp"
#include "rdma/iwarp/socket.hpp"
#include "rdma/providers.hpp"

namespace nfsrdma::rdma::iwarp {

// A connection whose Request was read and waits for the consumer's answer.
struct IncomingConnection {
  Socket socket;
  MpaFrame request;
  SocketAddress local;
  SocketAddress remote;
};

class IwarpQueuePair final : public QueuePair, public MemoryUser, private Source, private CompletionSink {
 public:
  IwarpQueuePair(const IwarpOptions& options, std::shared_ptr<MemoryUsers> users, IwarpCompletionQueue& cq,
                 const QueuePairParams& params, ConnectionHandler& handler);
  ~IwarpQueuePair() override;
  void adopt(IncomingConnection incoming) { incoming_.emplace(std::move(incoming)); }

  Result<void> connect(const ConnectParams& params) override;
  Result<void> accept(ConstBytes private_data) override;
  void disconnect() override;
  Result<void> post_send(std::span<const SendRequest> requests) override;
  Result<void> post_receive(std::span<const ReceiveRequest> requests) override;
  void flush() override;
  Result<Exposure> expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) override;
  bool fence(const Exposure& exposure, uint64_t id) override;
  void quiesce() override;

 private:
  // idle -> connecting -> requested -> established -> closing -> ended   (initiator)
  // idle -> established -> closing -> ended                              (responder, by accept())
  enum class Phase : uint8_t { idle, connecting, requested, established, closing, ended };

  Error ended() const;

  // Source
  void on_socket(uint32_t events) override;
  bool progress(TimeNs now_ns) override;
  void on_deadline(TimeNs now_ns) override;
  void deliver() override;
  // CompletionSink
  void push(const Completion& completion) override { cq_.push(this, completion); }

  // connecting.cpp
  Result<void> open_socket();
  void build_request(uint8_t revision);
  void start_request();
  void read_reply();
  void judge(const MpaFrame& reply);
  void retry_with_revision_1();
  void establish(const Depths& depths, bool crc, bool peer_ours, bool initiator);
  void fail(Error why);
  void time_out();
  void send_terminate_and_fail(const TerminateCode& code, Error why);

  // queue_pair.cpp
  bool receive();
  bool transmit();
  void end_stream(Error why, bool linger);
  bool progress_closing();
  void close_now();
  void peer_closed();
  void nudge();

  IwarpOptions options_;
  std::shared_ptr<MemoryUsers> users_;
  ConnectionHandler& handler_;
  QueuePairParams params_;
  Engine engine_;
  Socket socket_;
  Phase phase_ = Phase::idle;
  bool readable_ = false;
  bool writable_ = false;
  bool eof_near_ = false;  // epoll saw the end: short reads must go on until it is read
  bool initiator_ = false;
  bool gate_open_ = true;  // false: waiting a moment before the first FPDU
  bool shut_ = false;
  uint8_t nudges_ = 0;
  uint64_t direct_counted_ = 0;
  uint64_t copied_counted_ = 0;

  SocketAddress local_;
  SocketAddress remote_;
  std::optional<IncomingConnection> incoming_;
  std::vector<std::byte> request_;
  std::vector<std::byte> private_data_;  // ours, for the Request
  SocketAddress source_;
  uint8_t revision_ = 2;
  std::optional<MpaReader> reader_;
  TimeNs timeout_ns_ = 0;
  Depths depths_;
  std::vector<std::byte> peer_private_;
  std::string path_;
  std::vector<std::byte> tail_;  // what may still be sent while closing
  size_t tail_sent_ = 0;

  // For deliver().
  bool tell_established_ = false;
  std::optional<Error> tell_failed_;
  std::optional<Error> tell_disconnected_;
  std::optional<Error> end_reason_;
};

}  // namespace nfsrdma::rdma::iwarp
