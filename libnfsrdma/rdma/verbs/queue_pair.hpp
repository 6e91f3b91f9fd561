// SPDX-License-Identifier: Apache-2.0
// A reliable connection of a device.
//
// The order of an end is always the same, whoever began it: the hardware queue pair goes into the error state, what
// has completed is taken out of the completion queue, the hardware queue pair is destroyed (after which the device
// touches no memory of it), each request that is left completes as flushed, the handler hears of it. Nothing depends
// on how thoroughly a driver flushes.
//
// Everything runs on the loop thread but quiesce(), which a revocation calls from any thread; mutex_ guards what
// both look at.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <vector>

#include "rdma/ring.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/connect_job.hpp"
#include "rdma/verbs/device.hpp"
#include "rdma/verbs/errors.hpp"
#include "rdma/verbs/exposures.hpp"
#include "rdma/verbs/region.hpp"
#include "rdma/verbs/work_id.hpp"

namespace nfsrdma::rdma::verbs {

class VerbsQueuePair final : public QueuePair, public MemoryUser, public CmUser {
 public:
  static Result<std::unique_ptr<QueuePair>> create(std::shared_ptr<VerbsDomain> domain, VerbsCompletionQueue& cq,
                                                   const QueuePairParams& params, ConnectionHandler& handler);
  // For a request that a listener got; takes the id over.
  static Result<std::unique_ptr<QueuePair>> adopt(std::shared_ptr<VerbsDomain> domain, VerbsCompletionQueue& cq,
                                                  const QueuePairParams& params, ConnectionHandler& handler, CmId id,
                                                  const CmEvent& request);
  ~VerbsQueuePair() override;

  Result<void> connect(const ConnectParams& params) override;
  Result<void> accept(ConstBytes private_data) override;
  void disconnect() override;
  Result<void> post_send(std::span<const SendRequest> requests) override;
  Result<void> post_receive(std::span<const ReceiveRequest> requests) override;
  void flush() override;
  Result<Exposure> expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) override;
  bool fence(const Exposure& exposure, uint64_t id) override;

  // For tests and tracing; nullptr before the address is resolved and after the end.
  ibv_qp* hardware() const { return qp_; }

  void quiesce() override;
  void on_cm_event(const CmEvent& event) override;
  void on_timer(TimeNs now_ns);
  void step();
  // A completion of the hardware; what its owner shall hear goes into the completion queue's ready ring.
  void translate(const ibv_wc& raw);

 private:
  enum class Phase : uint8_t {
    idle,
    resolving_address,
    resolving_route,
    connecting,
    accepting,
    established,
    ending,      // end() waits for step()
    ended,
  };
  // One entry of the send queue, retired in order.
  struct SendEntry {
    uint64_t id = 0;
    std::array<const VerbsRegion*, sge_max> regions{};
    uint32_t exposure = 0;  // fence, bind: index of the exposure
    Opcode op = Opcode::send;
    bool signaled_by_owner = true;
    bool signaled = true;  // the hardware tells of it
    bool done = false;
    CompletionStatus status = CompletionStatus::success;
    enum class Kind : uint8_t { request, fence, bind, nudge } kind = Kind::request;
  };
  struct ReceiveEntry {
    uint64_t id = 0;
    const VerbsRegion* region = nullptr;
  };
  VerbsQueuePair(std::shared_ptr<VerbsDomain> domain, VerbsCompletionQueue& cq, const QueuePairParams& params,
                 ConnectionHandler& handler);

  // connection.cpp
  Result<void> create_hardware();
  Result<void> start_resolving(const ConnectParams& params);
  void on_address_resolved();
  void start_connecting();
  void look_at_job();
  void on_established(const CmEvent& event);
  void tune();
  std::string path_text() const;
  void end(Error why);
  void finish_end();
  void tear_hardware();
  void flush_everything();
  TimeNs now_ns() const { return base::system_clock().now_ns(); }
  Attempt attempt() const;

  // work.cpp: all but torn() with mutex_ held
  Result<void> check_pieces(std::span<const Sge> pieces, uint32_t pieces_max) const;
  Result<void> check_request(const SendRequest& request) const;
  void queue_request(const SendRequest& request);
  ibv_send_wr& queue_work(const SendEntry& entry, bool signaled);
  void push_batch();
  Result<void> push_receives(std::span<const ReceiveRequest> requests);
  bool room(size_t entries) const { return sends_.size() + entries + exposures_.bound() <= send_entries_max_; }
  void retire(const SendEntry& entry);
  void deliver(const Completion& completion);
  void translate_send(const ibv_wc& wc);
  void translate_receive(const ibv_wc& wc);
  void note_status(const ibv_wc& wc);
  void nudge();
  bool uses_revoked() const;
  bool torn();  // takes mutex_

  std::shared_ptr<VerbsDomain> domain_;
  VerbsDevice& device_;
  VerbsCompletionQueue& cq_;
  ConnectionHandler& handler_;
  QueuePairParams params_;
  uint32_t send_entries_max_;
  CmId id_;
  ibv_qp* qp_ = nullptr;
  std::optional<Seat> seat_;
  Phase phase_ = Phase::idle;
  bool was_established_ = false;
  bool accepting_side_ = false;
  bool heard_ = false;         // something of the peer arrived
  uint8_t nudges_ = 0;
  TimeNs connect_timeout_ns_ = 0;
  TimeNs connect_deadline_ns_ = base::never_ns;
  TimeNs flush_deadline_ns_ = base::never_ns;  // a flush was seen, the reason should follow
  TimeNs nudge_ns_ = base::never_ns;
  std::optional<Error> why_;
  std::optional<Error> broken_;          // a request failed before the connection manager's word
  SocketAddress local_;
  SocketAddress remote_;
  std::vector<std::byte> private_data_;  // ours while connecting, the peer's when accepting
  uint32_t peer_ird_ = 0;                // accepting side: what the request offered
  uint32_t peer_ord_ = 0;
  std::shared_ptr<ConnectJob> job_;      // siw only, while its connect may still be under way
  bool abandoned_ = false;               // to the job
  std::vector<Completion> held_;         // came before the connection manager's word; for after on_established()

  std::mutex mutex_;
  Ring<SendEntry> sends_;
  Ring<ReceiveEntry> receives_;
  std::vector<ReceiveRequest> early_receives_;  // before there is a hardware queue pair
  uint32_t send_sequence_ = 0;                  // of the next entry
  uint32_t send_head_ = 0;                      // of sends_.front()
  uint32_t receive_sequence_ = 0;
  uint32_t receive_head_ = 0;
  uint32_t requests_ = 0;                       // entries of the owner, fences not counted
  uint32_t unsignaled_ = 0;                     // entries since the last that the hardware tells of
  bool torn_ = false;                           // a revocation put the hardware into the error state
  uint32_t ord_ = 0;
  Exposures exposures_;

  static constexpr uint32_t batch_max = 32;
  uint32_t batch_size_ = 0;
  std::array<ibv_send_wr, batch_max> batch_;
  std::array<std::array<ibv_sge, sge_max>, batch_max> batch_sge_;
};

}  // namespace nfsrdma::rdma::verbs
