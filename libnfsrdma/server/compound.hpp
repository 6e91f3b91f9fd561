// SPDX-License-Identifier: Apache-2.0
// One COMPOUND while it is executed.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "nfs4/compound_server.hpp"
#include "rpc/service.hpp"
#include "server/state.hpp"
#include "server/store.hpp"

namespace nfsrdma::server {

class Recovery;
class ServerFaults;

// What all compounds share; outlives them.
struct ServerContext {
  State& state;
  Store& store;
  base::Clock& clock;
  Recovery* recovery = nullptr;      // nullptr: no state directory
  ServerFaults* faults = nullptr;
  uint32_t lease_s = 90;
  uint32_t data_bytes_max = 1u << 20;  // largest READ and WRITE
  bool root_squash = true;
};

// Everything is used by one thread at a time. That is the connection's loop at the beginning and at the end, and any
// thread of the store in between; what belongs to the loop (the call, the connection) is touched only at the ends.
class Compound {
 public:
  Compound(ServerContext& context, std::unique_ptr<rpc::ServerCall> call, ConnectionRef connection);

  ServerContext& context;
  State& state;
  Store& store;
  Caller caller;
  Principal principal;

  // Set by SEQUENCE.
  SessionRef session;
  ClientRef client;
  uint32_t slot = 0;
  bool cache_this = false;
  slots::Verdict verdict = slots::Verdict::fresh;
  uint32_t replayed_bytes = 0;

  ObjectRef current;
  ObjectRef saved;
  Stateid current_stateid;  // invalid until an operation makes one
  Stateid saved_stateid;

  // "current stateid" {1, 0} becomes what the last operation left.
  Stateid resolve(const Stateid& stateid) const {
    return stateid == nfs4::current_stateid ? current_stateid : stateid;
  }
  void set_current(ObjectRef object) {
    current = std::move(object);
    current_stateid = nfs4::invalid_stateid;
  }

  // Appends a result; rep_too_big or rep_too_big_to_cache when there is no room.
  template <class R>
  Status answer(const R& result) {
    const auto mark = reply.mark();
    if (reply.append(result) && within_limits(0)) return Status::ok;
    reply.rollback(mark);
    return too_big();
  }
  // Appends a failure with its body (DENIED locks).
  template <class R>
  Status answer_failure(Status status, const R& body) {
    const auto mark = reply.mark();
    if (reply.append_failure(status, body) && within_limits(0)) {
      failure_appended = true;
      return status;
    }
    reply.rollback(mark);
    return too_big();
  }
  // Room for a result of this many bytes besides its number and status? To be asked before anything is changed.
  Status need_room(uint32_t result_bytes) const { return within_limits(8 + result_bytes) ? Status::ok : too_big(); }
  // Room for one more payload in the reply, and whether it goes out of band.
  uint32_t payload_room(uint32_t overhead_bytes) const;
  // Room for a result's variable part in the stream.
  uint32_t stream_room(uint32_t overhead_bytes) const;
  Status too_big() const {
    return cache_this ? Status::rep_too_big_to_cache : Status::rep_too_big;
  }

  // The payload of an argument (WRITE data, a link's text): out of band or in the stream.
  std::span<const ByteView> pieces_of(const xdr::DdpItem& item);
  // Takes over the data of the reply's first payload.
  void set_payload(ReadData data);
  bool has_payload() const { return payload.length > 0 || payload_placed; }

  // For the executor (compound.cpp).
  std::unique_ptr<rpc::ServerCall> call;
  ConnectionRef connection;
  mem::BufferPool& pool;
  const bool in_place;               // payload may be sent out of mapped files
  base::Bytes space;
  nfs4::CompoundCallReader args;
  nfs4::CompoundReplyBuilder reply;
  uint32_t limit_bytes;              // of the whole results, by session and cache
  uint32_t request_bytes;
  bool failure_appended = false;
  bool payload_placed = false;
  ReadData payload;
  uint32_t payload_position = 0;

 private:
  bool within_limits(uint64_t more_bytes) const;
  static constexpr size_t pieces_max = 16;
  std::array<ByteView, pieces_max> pieces_;
};

// Executes a call and answers it. Starts on the connection's loop and ends there.
io::Task<void> run_compound(ServerContext& context, std::unique_ptr<rpc::ServerCall> call, ConnectionRef connection);

}  // namespace nfsrdma::server
