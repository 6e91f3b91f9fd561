// SPDX-License-Identifier: Apache-2.0
// The replier's side of RPC: calls as they reach a server, and how they are answered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "mem/buffer_pool.hpp"
#include "nfsrdma/callback.hpp"
#include "rpc/message.hpp"

namespace nfsrdma::rpc {

// Payload of an argument (WRITE) that came out of band: it lies in `pieces`, and args is in reduced form.
struct InboundData {
  uint32_t position = 0;  // offset within args where the bytes were left out
  uint32_t length = 0;    // 0 = none; exact payload bytes when the sender did not pad, else rounded up to 4
  std::span<const rdma::Sge> pieces;
};

// Payload of a result (READ). The transport decides per connection whether it goes by write chunk or inline; the
// results are written in reduced form in both cases: length word present, bytes and pad left out.
struct OutboundData {
  uint32_t position = 0;  // offset within results, 4-byte aligned
  uint32_t length = 0;
  std::span<const rdma::Sge> pieces;
  Callback<void()> release;  // called on the loop thread once the memory is no longer named
};

class ServerConnection;

// One incoming call. Given to the service as unique_ptr; reply() or destruction ends it (destruction without reply
// leaves the caller without an answer). All of it on the connection's loop thread; work may go elsewhere meanwhile.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  CallHeader header;
  ConstBytes args;         // after the RPC header
  InboundData data;
  // Room that the caller gives the answer: results without placed payload, and payload by write chunk.
  uint32_t results_bytes_max = 0;
  uint32_t write_chunk_bytes = 0;  // 0 = no write chunk offered: payload counts against results_bytes_max

  virtual ServerConnection& connection() = 0;
  // Where to encode the results: at least results_bytes_max bytes (at most 1 MiB + 4 KiB), registered memory.
  virtual Bytes results_space() = 0;
  // Sends the answer. results_bytes = bytes written to results_space(). AcceptStatus other than success: no results.
  // What does not fit the offer is answered with RDMA_ERROR ERR_CHUNK, as RFC 8166 wants.
  virtual void reply(AcceptStatus status, uint32_t results_bytes, OutboundData data = {}) = 0;
};

// A client's connection as the service sees it.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;
  virtual uint64_t id() const = 0;             // unique in this process
  virtual std::string remote() const = 0;
  virtual bool is_rdma() const = 0;
  virtual mem::BufferPool& pool() = 0;         // buffers registered for this connection
  // Payload of answers may lie in registered mappings of files (MemoryKind::memfd): only the kernel reads them.
  virtual bool sends_files_in_place() const { return false; }
  virtual void drop(const Error& why) = 0;     // loop thread
  // Reverse direction: sends a whole RPC call message (its own xid space); the answer or the loss of the connection
  // reaches `done` on the loop thread. ENOBUFS when the peer's callback credits are used up, ENOTCONN.
  virtual Result<void> call_back(ConstBytes message, Callback<void(Result<ConstBytes>)> done) = 0;
  virtual uint32_t reverse_bytes_max() const = 0;
};

class Service {
 public:
  virtual ~Service() = default;
  // All on the connection's loop thread. The ServerConnection lives until on_disconnect returned.
  virtual void on_connect(ServerConnection& connection) = 0;
  virtual void on_call(std::unique_ptr<ServerCall> call) = 0;
  virtual void on_disconnect(ServerConnection& connection) = 0;  // its unanswered ServerCalls may still be destroyed later
};

}  // namespace nfsrdma::rpc
