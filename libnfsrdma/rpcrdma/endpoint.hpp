// SPDX-License-Identifier: Apache-2.0
// The requester: one RPC-over-RDMA connection behind rpc::Transport. Everything belongs to the loop's thread.
//
//   rpcrdma::CqDriver driver(loop, std::move(cq));            // one per loop
//   mem::BufferPool pool(pd, {});                             // of the same protection domain
//   rpcrdma::EndpointParams params;
//   params.remote = *base::SocketAddress::parse("10.0.0.1", 20049);
//   auto endpoint = co_await rpcrdma::connect(driver, pd, pool, params, observer, &callbacks);
//   if (!endpoint) return endpoint.error();
//   (*endpoint)->submit(call); ...; (*endpoint)->flush();
//
// The connection grants one call until the first reply came: send a NULL or the first session call alone.
//
// Life of a call: queued -> transmitted (exposures made, header written, Send posted) -> answered (reply
// verified, outcome decided) -> complete, once the Send has completed and every exposure is fenced. When the
// connection ends, the queue pair is destroyed first and calls complete afterwards, so that no peer can reach
// their memory any more.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "io/sync.hpp"
#include "io/task.hpp"
#include "mem/buffer_pool.hpp"
#include "rpc/transport.hpp"
#include "rpcrdma/arena.hpp"
#include "rpcrdma/call_plan.hpp"
#include "rpcrdma/cm_private_data.hpp"
#include "rpcrdma/cq_driver.hpp"
#include "rpcrdma/credits.hpp"
#include "rpcrdma/header.hpp"

namespace nfsrdma::rpcrdma {

struct EndpointParams {
  base::SocketAddress remote;
  base::SocketAddress local;      // optional source address
  uint32_t credits = 128;         // most calls in flight; Receives are posted for all of them
  uint32_t reverse_credits = 8;   // callbacks that the peer may have unanswered
  uint32_t inline_bytes = 4096;   // announced for both directions, 1024..262144
  uint32_t receive_bytes = 8192;  // size of a posted Receive; at least twice inline_bytes is taken. knfsd
                                  // sends inline replies without looking at what the client announced
  uint32_t read_chunk_bytes_min =
      4096;  // payload from this size on goes by read chunk, even if it fits inline
  uint32_t reply_chunk_bytes_max = 1u << 20;    // larger ones have made servers abort
  uint32_t ird = 64;                            // RDMA Reads that the server may have outstanding
  base::TimeNs timeout_ns = base::seconds(10);  // of connecting
  bool announce = true;                         // send RFC 8797 private data
};

class Endpoint;

// Connects and returns when established, on the driver's loop. Nothing has been sent yet. `pool` must be of
// `pd`; driver, pool, observer and reverse must outlive the endpoint. reverse = nullptr: callbacks are
// answered with PROG_UNAVAIL. Destroying the task gives the attempt up.
io::Task<Result<std::unique_ptr<Endpoint>>> connect(CqDriver& driver,
                                                    std::shared_ptr<rdma::ProtectionDomain> pd,
                                                    mem::BufferPool& pool, EndpointParams params,
                                                    rpc::TransportObserver& observer,
                                                    rpc::ReverseHandler* reverse);

class Endpoint final : public rpc::Transport, private rdma::ConnectionHandler, private BatchEnd {
 public:
  ~Endpoint() override;
  void submit(rpc::Call& call) override;
  void flush() override;
  bool up() const override { return state_ == State::up; }
  void drop(const Error& why) override;
  uint32_t credits_free() const override;
  uint32_t credits_granted() const override { return credits_.granted(); }
  uint32_t in_flight() const override { return credits_.used() + queued_; }
  const rpc::TransportStats& stats() const override;
  std::string describe() const override;
  bool is_rdma() const override { return true; }
  uint32_t reverse_bytes_max() const override;

  // Never offer a reply chunk above this (the session's largest response). Applies to calls sent from now on.
  void set_reply_chunk_max(uint32_t bytes) {
    reply_chunk_bytes_max_ = std::min(params_.reply_chunk_bytes_max, bytes);
  }
  uint32_t send_inline_bytes() const { return send_inline_bytes_; }
  uint32_t receive_inline_bytes() const { return receive_inline_bytes_; }

 private:
  friend io::Task<Result<std::unique_ptr<Endpoint>>> connect(CqDriver&,
                                                             std::shared_ptr<rdma::ProtectionDomain>,
                                                             mem::BufferPool&, EndpointParams,
                                                             rpc::TransportObserver&, rpc::ReverseHandler*);
  static constexpr uint32_t exposures_max = 2 * chunk_segments_typical + 2;
  enum class State : uint8_t { connecting, up, ending, down };
  enum class Marshal : uint8_t { ready, wait, failed };

  struct Receive : rdma::Work {
    Endpoint* endpoint = nullptr;
    uint64_t offset = 0;
  };
  struct ReverseReply : rdma::Work {  // its completion frees the buffer
    Endpoint* endpoint = nullptr;
    uint64_t offset = 0;
    bool busy = false;
  };
  struct CallSlot;
  struct FenceDone : rdma::Work {
    CallSlot* slot = nullptr;
  };
  struct CallSlot : rdma::Work {  // as a Work: completion of the Send
    Endpoint* endpoint = nullptr;
    FenceDone fence_done;
    rpc::Call* call = nullptr;  // nullptr = free
    uint64_t offset = 0;        // of its send buffer in the arena
    uint32_t index = 0;
    uint32_t generation = 0;
    uint32_t xid = 0;
    bool transmitted = false;
    bool send_pending = false;
    bool answered = false;
    uint32_t fences_pending = 0;
    uint64_t fenced = 0;  // a bit per exposure
    uint32_t exposure_count = 0;
    uint32_t write_first = 0, write_count = 0;  // exposures of the write chunk
    uint32_t reply_exposure = 0;
    uint32_t reply_chunk_bytes = 0;
    CallPlan plan;
    mem::Buffer call_buffer;
    mem::Buffer reply_buffer;
    Receive* held = nullptr;  // the reply's buffer while results are read from it
    std::array<rdma::Exposure, exposures_max> exposures;
  };

  Endpoint(CqDriver& driver, std::shared_ptr<rdma::ProtectionDomain> pd, mem::BufferPool& pool,
           const EndpointParams& params, rpc::TransportObserver& observer, rpc::ReverseHandler* reverse);

  // connect.cpp
  Result<void> start();
  Result<void> make_buffers();
  void on_established(const rdma::ConnectionInfo& info) override;
  void on_failed(const Error& why) override;
  void on_disconnected(const Error& why) override;
  void fail(const Error& why);
  void fail_softly(const Error& why);  // the provider's own reason, if it comes in time, says more
  void finish_down();
  void release_all();

  // endpoint.cpp
  void pump();
  bool transmit(rpc::Call& call);
  void on_batch_end() override { flush(); }
  void answered(CallSlot& slot, rpc::CallOutcome outcome);
  void finish_if_done(CallSlot& slot);
  void release(CallSlot& slot);
  void fence_all(CallSlot& slot);
  void repost(Receive& receive);

  // marshal.cpp
  Marshal marshal(CallSlot& slot);
  static const char* check(const rpc::Call& call);
  CallPlan plan(const rpc::Call& call) const;
  bool borrow_buffers(CallSlot& slot);
  Result<void> expose_all(CallSlot& slot);
  Result<void> expose_one(CallSlot& slot, const rdma::Sge& piece, rdma::Purpose purpose);
  Result<void> expose_pieces(CallSlot& slot, std::span<const rdma::Sge> pieces, rdma::Purpose purpose);
  void write_header(const CallSlot& slot);
  Result<void> fill_long_call(CallSlot& slot);
  Result<void> post(CallSlot& slot);

  // reply.cpp
  void on_send_done(CallSlot& slot, const rdma::Completion& c);
  void on_fenced(CallSlot& slot);
  void on_receive(Receive& receive, const rdma::Completion& c);
  void on_reply(Receive& receive, CallSlot& slot, base::ConstBytes body);
  bool accept_invalidation(CallSlot* slot, const rdma::Completion& c);
  const char* read_write_list(CallSlot& slot, uint32_t& placed) const;
  const char* read_reply_chunk(CallSlot& slot, uint32_t& length) const;
  void on_error_reply(CallSlot& slot);
  void accept_results(CallSlot& slot, base::ConstBytes message, uint32_t placed);
  void bad_reply(CallSlot* slot, const char* what);
  CallSlot* find(uint32_t xid);

  // reverse.cpp
  void on_reverse_call(base::ConstBytes message);

  CqDriver& driver_;
  io::IoLoop& loop_;
  std::shared_ptr<rdma::ProtectionDomain> pd_;
  mem::BufferPool& pool_;
  const EndpointParams params_;
  rpc::TransportObserver& observer_;
  rpc::ReverseHandler* const reverse_;

  State state_ = State::connecting;
  bool handed_over_ = false;
  bool why_is_soft_ = false;
  bool pumping_ = false;
  uint32_t send_inline_bytes_ = 0;
  uint32_t receive_inline_bytes_ = 0;
  uint32_t receive_bytes_ = 0;
  uint32_t reply_chunk_bytes_max_ = 0;
  uint32_t index_bits_ = 0;
  Credits credits_;
  std::string path_;
  Error why_{0, ErrorOrigin::local};

  std::unique_ptr<Arena> arena_;
  std::vector<Receive> receives_;
  std::vector<CallSlot> slots_;
  std::vector<ReverseReply> reverse_replies_;
  std::vector<uint32_t>
      free_slots_;  // ring; first free at free_at_. Oldest first, so that an xid stays unused longest
  size_t free_at_ = 0;
  size_t free_count_ = 0;
  base::IntrusiveList<rpc::Call> urgent_;
  base::IntrusiveList<rpc::Call> queue_;
  uint32_t queued_ = 0;
  Header header_;  // the reply at hand

  io::OneShot<Result<void>> connected_;
  io::Timer event_timer_;
  io::Timer down_timer_;
  io::Timer stall_timer_;
  base::TimeNs started_ns_ = 0;
  base::TimeNs active_ns_ = 0;
  mutable rpc::TransportStats stats_;
  std::unique_ptr<rdma::QueuePair> qp_;  // last: goes first, before what its requests name
};

}  // namespace nfsrdma::rpcrdma
