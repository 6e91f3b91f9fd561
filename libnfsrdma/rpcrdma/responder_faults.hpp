// SPDX-License-Identifier: Apache-2.0
// Ways in which a responder can be made to misbehave, for tests of what clients make of it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "rpc/service.hpp"

namespace nfsrdma::rpcrdma {

enum class ReplyFaultKind : uint8_t {
  none,
  drop,             // executed, never answered
  drop_connection,  // executed, then the connection ends instead of the answer
  error_chunk,      // RDMA_ERROR ERR_CHUNK instead of the answer
  error_version,    // RDMA_ERROR ERR_VERS
  unknown_xid,      // the answer under an xid that nobody waits for
  wrong_handle,     // the first echoed segment names another handle
  long_segment,     // the first echoed segment is longer than offered
  short_segment,    // the first echoed segment is shorter than what was written, by `value` bytes (default 4)
  write_chunk_unused,  // payload inline although a write chunk was offered, the chunk echoed with length 0
  write_chunk_empty,   // the same, the chunk echoed without segments
  write_chunk_absent,  // the same, no write list
  extra_chunk,         // a write chunk that nobody offered
  many_segments,       // a segment count of `value` (default 100,000) with nothing behind it
  read_list,           // a read list in the answer
  truncated,           // the message cut to `value` bytes
  bad_version,         // transport version 2
  bad_procedure,       // transport procedure 7
  nomsg_empty,         // RDMA_NOMSG without a reply chunk
  oversized,           // a Send of `value` bytes (default 64 KiB)
  wrong_invalidate,  // Send with Invalidate of a key of another call that is being served, or of key `value`
  twice,             // the answer comes twice
};

struct ReplyFault {
  ReplyFaultKind kind = ReplyFaultKind::none;
  uint32_t value = 0;
  base::TimeNs delay_ns = 0;        // before anything else
  std::optional<uint32_t> credits;  // grant in this answer
};

struct ConnectFault {
  bool reject = false;
  bool swallow = false;  // neither accept nor reject
  bool private_data = true;
  uint32_t inline_bytes = 0;  // 0 = as configured
};

// Consulted once per connection request and once per reply; on the connection's loop thread.
class ResponderFaults {
 public:
  virtual ~ResponderFaults() = default;
  virtual ConnectFault on_connect() { return {}; }
  virtual ReplyFault on_reply(const rpc::ServerConnection& connection, const rpc::CallHeader& call) = 0;
};

}  // namespace nfsrdma::rpcrdma
