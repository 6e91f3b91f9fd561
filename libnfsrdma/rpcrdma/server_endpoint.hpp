// SPDX-License-Identifier: Apache-2.0
// One connection of the responder. Private to this room; its public face is responder.hpp and
// rpc/service.hpp.
//
// Life of a call (a Slot): parsed -> admitted (buffers borrowed; it waits here while the pool is used up) ->
// pulling (RDMA Reads of its read chunks) -> serving (the Service has it) -> replying (RDMA Writes, then the
// Send) -> free. The Receive goes back when the answer is decided, before the Send that gives the client its
// credit back.
//
// The endpoint owns itself: it goes when the connection has ended and the last ServerCall was destroyed.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "io/frame_pool.hpp"
#include "rpcrdma/arena.hpp"
#include "rpcrdma/cm_private_data.hpp"
#include "rpcrdma/credits.hpp"
#include "rpcrdma/header.hpp"
#include "rpcrdma/responder.hpp"
#include "rpcrdma/responder_faults.hpp"
#include "rpcrdma/transfer.hpp"

namespace nfsrdma::rpcrdma {

class IncomingCall;

class ServerEndpoint final : public rpc::ServerConnection,
                             private rdma::ConnectionHandler,
                             private BatchEnd,
                             public base::ListNode<> {
 public:
  ServerEndpoint(Acceptor& acceptor, Acceptor::Shard& shard, const ResponderParams& params,
                 std::shared_ptr<rdma::ProtectionDomain> pd, std::shared_ptr<mem::BufferPool> pool);
  Result<void> accept(std::unique_ptr<rdma::ConnectRequest> request, bool private_data);
  void end_now(const Error& why);  // may delete this
  void end_later(const Error& why);

  uint64_t id() const override { return id_; }
  std::string remote() const override { return remote_.text(); }
  bool is_rdma() const override { return true; }
  mem::BufferPool& pool() override { return *pool_; }
  bool sends_files_in_place() const override { return source_untouched_; }
  void drop(const Error& why) override { end_later(why); }
  Result<void> call_back(base::ConstBytes message, Callback<void(Result<base::ConstBytes>)> done) override;
  uint32_t reverse_bytes_max() const override;

 private:
  friend class IncomingCall;
  enum class State : uint8_t { accepting, up, ending, down };
  enum class Stage : uint8_t { free, waiting, pulling, serving, delayed, replying };

  struct Receive : rdma::Work, base::ListNode<> {  // linked while it waits for a slot
    ServerEndpoint* endpoint = nullptr;
    uint64_t offset = 0;
    uint32_t length = 0;
  };
  struct Slot;
  struct TransferDone : rdma::Work {
    Slot* slot = nullptr;
  };
  struct DataChunk {
    uint32_t position = 0;
    uint32_t length = 0;
  };
  struct Slot : rdma::Work,
                base::ListNode<> {  // as a Work: completion of the Send; linked: waiting or blocked
    ServerEndpoint* endpoint = nullptr;
    TransferDone transfer_done;
    Stage stage = Stage::free;
    uint64_t offset = 0;  // of its send buffer in the arena
    Header header;
    Receive* receive = nullptr;
    base::ConstBytes body;            // of the received message, after the transport header
    uint32_t reply_header_bytes = 0;  // of an inline answer
    uint64_t reply_chunk_bytes = 0;   // offered; 0 = none
    uint32_t header_room_bytes = 0;   // of any answer: the results are encoded behind it
    IncomingCall* call = nullptr;     // while the service has it
    // admission and pulling
    uint32_t message_bytes = 0;            // position-zero chunk, or the assembled message
    bool assembled = false;                // several data chunks: put back where they were cut out
    InlineList<DataChunk, 4> data_chunks;  // ascending positions
    mem::Buffer message_buffer, data_buffer, results_buffer;
    std::array<rdma::Sge, 1> data_piece;
    uint32_t pull_segment = 0, pull_done = 0;
    uint32_t transfers = 0;  // posted Reads and Writes
    // answer
    std::byte* results = nullptr;  // results_space()
    uint64_t results_offset = 0;   // the same within results_region
    rdma::Region* results_region = nullptr;
    uint32_t results_room = 0;
    rpc::AcceptStatus status = rpc::AcceptStatus::success;
    uint32_t results_bytes = 0;
    rpc::CallHeader fault_header;  // for the fault hooks: the call's numbers
    ReplyFault fault;
    InlineList<rdma::Sge, 8> payload;
    uint32_t payload_bytes = 0, payload_position = 0;
    Callback<void()> release;
    Transfer payload_transfer, message_transfer;
    InlineList<rdma::Sge, 12> message;  // the RPC message as pieces
    InlineList<rdma::Sge, 12> send;     // the Send
    rdma::Opcode send_op = rdma::Opcode::send;
    uint32_t invalidate_key = 0;
    uint32_t sends_left = 1, sends_pending = 0;
    io::Timer delay;
  };
  struct ReverseCall : rdma::Work {
    ServerEndpoint* endpoint = nullptr;
    uint64_t offset = 0;
    uint32_t xid = 0;
    bool waiting = false;
    bool sending = false;
    Callback<void(Result<base::ConstBytes>)> done;
  };

  ~ServerEndpoint() override;

  // server_endpoint.cpp
  Result<void> make_buffers();
  void on_established(const rdma::ConnectionInfo& info) override;
  void on_failed(const Error& why) override { end_later(why); }
  void on_disconnected(const Error& why) override { end_later(why); }
  void on_batch_end() override;
  void finish();
  void call_gone();
  Slot* take_slot();
  void free_slot(Slot& slot);
  void repost(Receive& receive);
  bool post(const rdma::SendRequest& request);
  void flush_if_much();
  void flush_soon() { driver_.at_batch_end(*this); }

  // server_receive.cpp
  void on_receive(Receive& receive, const rdma::Completion& c);
  void begin(Receive& receive);
  void take_backlog();
  bool sort_read_list(Slot& slot);
  bool place_results(Slot& slot);
  void admit(Slot& slot);
  bool borrow(Slot& slot);
  void retry_waiting();
  void deliver(Slot& slot);
  void refuse_rpc(Slot& slot);

  // server_pull.cpp
  void on_transfer(Slot& slot, const rdma::Completion& c);
  bool advance(Slot& slot);
  bool pull(Slot& slot);
  rdma::Sge sink_of(Slot& slot, uint32_t segment);
  void assemble(Slot& slot);
  void pulled(Slot& slot);

  // server_reply.cpp
  void reply(Slot& slot, rpc::AcceptStatus status, uint32_t results_bytes, rpc::OutboundData& data);
  void abandon(Slot& slot);
  void answer(Slot& slot);
  void start_reply(Slot& slot);
  bool flatten(Slot& slot, uint32_t message_bytes);
  bool write_rpc_message(Slot& slot, bool with_payload, uint32_t& message_bytes);
  bool plan_payload(Slot& slot, const ChunkRange*& chunk) const;
  uint32_t write_header(Slot& slot, const ChunkRange* filled, bool nomsg, uint32_t message_bytes);
  void choose_invalidate(Slot& slot);
  void send_error(Slot& slot, ErrorCode code);
  void start_send(Slot& slot);
  bool push_reply(Slot& slot);
  bool push_writes(Slot& slot, Transfer& transfer);
  void on_send_done(Slot& slot, const rdma::Completion& c);
  void finish_reply_if_done(Slot& slot);

  // server_faults.cpp
  bool apply_early_fault(Slot& slot);
  uint32_t apply_header_fault(Slot& slot, uint32_t header_bytes);
  void apply_send_fault(Slot& slot);

  // server_reverse.cpp
  void on_reverse_reply(base::ConstBytes body, uint32_t credit);
  void on_reverse_error(uint32_t xid);
  void end_reverse(const Error& why);

  Acceptor& acceptor_;
  Acceptor::Shard& shard_;
  CqDriver& driver_;
  io::IoLoop& loop_;
  const ResponderParams params_;
  ResponderFaults* const faults_;
  std::shared_ptr<rdma::ProtectionDomain> pd_;
  std::shared_ptr<mem::BufferPool> pool_;
  const uint64_t id_;
  base::SocketAddress remote_;

  State state_ = State::accepting;
  bool announced_ = false;  // the service knows it
  bool client_invalidation_ = false;
  bool source_untouched_ = false;
  uint32_t send_inline_bytes_ = 0;
  uint32_t receive_bytes_ = 0;
  uint64_t unflushed_bytes_ = 0;  // posted since the last doorbell
  uint32_t sq_used_ = 0, sq_depth_ = 0;
  uint64_t zeros_at_ = 0;
  size_t handles_ = 0;  // ServerCalls that the service holds
  Error why_{0, ErrorOrigin::local};

  std::unique_ptr<Arena> arena_;
  std::vector<Receive> receives_;
  std::vector<Slot> slots_;
  std::vector<Slot*> free_slots_;
  std::vector<ReverseCall> reverse_calls_;
  Credits reverse_credits_;
  base::IntrusiveList<Receive> backlog_;
  base::IntrusiveList<Slot> waiting_;  // for pool buffers
  base::IntrusiveList<Slot> blocked_;  // for room in the send queue
  io::Timer down_timer_;
  io::Timer retry_timer_;
  std::unique_ptr<rdma::QueuePair> qp_;
};

// A call in the service's hands. Memory comes from a per-thread list, not from the heap.
class IncomingCall final : public rpc::ServerCall {
 public:
  IncomingCall(ServerEndpoint& endpoint, ServerEndpoint::Slot& slot) : endpoint_(endpoint), slot_(&slot) {
    endpoint_.handles_++;
  }
  ~IncomingCall() override {
    if (slot_) endpoint_.abandon(*slot_);
    endpoint_.call_gone();
  }
  rpc::ServerConnection& connection() override { return endpoint_; }
  base::Bytes results_space() override;
  void reply(rpc::AcceptStatus status, uint32_t results_bytes, rpc::OutboundData data) override;

  static void* operator new(size_t bytes) { return io::frame_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { io::frame_free(p, bytes); }

 private:
  friend class ServerEndpoint;
  ServerEndpoint& endpoint_;
  ServerEndpoint::Slot* slot_;
};

}  // namespace nfsrdma::rpcrdma
