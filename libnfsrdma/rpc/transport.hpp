// SPDX-License-Identifier: Apache-2.0
// The requester's side of RPC: a Call, and the Transport that carries it. One Transport is one connection from its
// establishment to its end; whoever owns it makes a new one afterwards and submits the unanswered calls there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/intrusive_list.hpp"
#include "mem/buffer_pool.hpp"
#include "nfsrdma/error.hpp"
#include "rpc/message.hpp"

namespace nfsrdma::rpc {

// Payload of the call (WRITE): travels as a read chunk, as gathered inline pieces, or in the record stream.
struct DataOut {
  std::span<const rdma::Sge> pieces;
  uint32_t length = 0;           // sum of pieces; 0 = none
  uint32_t position = 0;         // offset within Call::args, 4-byte aligned, where the bytes (and their pad) were left out
};

// Where the payload of the results (READ) shall be placed.
struct DataIn {
  std::span<const rdma::Sge> pieces;
  uint32_t length_max = 0;       // sum of pieces; 0 = none
};

enum class CallOutcome : uint8_t {
  replied,     // an accepted, successful RPC reply: results are set
  refused,     // the server refused at RPC level: error says why
  not_sent,    // the connection ended before the call was transmitted
  lost,        // the connection ended after transmission: the server may or may not have executed it
  chunk_error, // RDMA_ERROR ERR_CHUNK: executed or not, unknown; the connection lives on
  bad_reply,   // the reply broke the rules: executed or not, unknown; the connection is being replaced
};

// Owned by the submitter, who keeps it and all that it names in place until `complete` was called. The memory of
// pieces is fenced by then (or its queue pair is gone).
struct Call : base::ListNode<> {
  // request
  uint32_t program = nfs_program, version = nfs_version, procedure = procedure_compound;
  const Credential* credential = nullptr;  // nullptr = AUTH_NONE
  ConstBytes args;                         // encoded arguments; reduced when out.length > 0
  DataOut out;
  DataIn in;
  uint32_t results_bytes_max = 0;          // upper bound of the encoded results, not counting payload placed by `in`
  bool urgent = false;                     // lease renewal and recovery: next free credit
  // answer
  CallOutcome outcome = CallOutcome::not_sent;
  ConstBytes results;                      // valid until complete() returns
  bool data_placed = false;                // the payload went to `in`: results are in reduced form
  uint32_t data_length = 0;                // bytes placed
  Error error{0, ErrorOrigin::local};      // for every outcome but replied
  void (*complete)(Call& self) = nullptr;  // on the transport's loop thread; may submit again or free the call
};

// An incoming call of the reverse direction (the callback channel). The span lives during the call only.
class ReverseHandler {
 public:
  virtual ~ReverseHandler() = default;
  // message: the whole RPC call. Returns the bytes of the whole RPC reply written to `reply`, 0 = do not answer.
  virtual uint32_t on_reverse_call(ConstBytes message, Bytes reply) = 0;
};

class TransportObserver {
 public:
  virtual ~TransportObserver() = default;
  // Once; every submitted call has completed before. The transport may be destroyed after this returns, not inside.
  virtual void on_down(const Error& why) = 0;
};

// Counters as the fields of an `xprt: rdma` line of mountstats; see docs of statistics.
struct TransportStats {
  uint64_t bind_count = 0, connect_count = 0, connect_time_ms = 0, idle_time_s = 0;
  uint64_t sends = 0, receives = 0, bad_xids = 0, in_flight_sum = 0, backlog_sum = 0, queue_peak = 0;
  uint64_t read_segments = 0, write_segments = 0, reply_segments = 0;
  uint64_t total_rdma_request_bytes = 0, total_rdma_reply_bytes = 0;
  uint64_t pullup_bytes = 0, fixup_bytes = 0, hardway_register = 0, failed_marshal = 0, bad_replies = 0;
  uint64_t nomsg_calls = 0, reverse_calls = 0, remote_invalidations = 0, local_fences = 0, credit_stalls = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;  // ends the connection; remaining calls complete as lost or not_sent first
  // Loop thread. Never fails directly: the outcome comes through call.complete, possibly before this returns when the
  // transport is down already.
  virtual void submit(Call& call) = 0;
  // Pushes out what was submitted since the last flush; the owner calls it once per group of submits.
  virtual void flush() = 0;
  virtual bool up() const = 0;
  // Ends the connection (time-out, protocol error found above). on_down follows.
  virtual void drop(const Error& why) = 0;
  virtual uint32_t credits_free() const = 0;    // calls that would go out at once
  virtual uint32_t credits_granted() const = 0;
  virtual uint32_t in_flight() const = 0;       // sent and queued
  virtual const TransportStats& stats() const = 0;
  virtual std::string describe() const = 0;     // "rdma iwarp 10.0.0.1:20049 inline 4096/4096 credits 64 ..."
  virtual bool is_rdma() const = 0;
  // Largest callback message and reply that this connection carries (RFC 8167: inline only).
  virtual uint32_t reverse_bytes_max() const = 0;
};

}  // namespace nfsrdma::rpc
