// SPDX-License-Identifier: Apache-2.0
// How one call travels: what goes inline, what by which chunk. Pure arithmetic, decided before anything is
// exposed.
//
//   the call                                            | form
//   ----------------------------------------------------|--------------------------------------------------
//   fits inline with its payload, payload below the     | RDMA_MSG, all inline
//     read chunk threshold                              |
//   fits inline without its payload                     | RDMA_MSG, payload by read chunk
//   does not fit                                        | RDMA_NOMSG, message by position-zero read chunk
//                                                       |   (payload inside it where a buffer holds both)
//   the largest reply                                   |
//   fits inline with its payload                        | no result chunk
//   fits inline without its payload                     | write chunk
//   does not fit, payload placeable                     | write chunk and reply chunk
//   does not fit, or the payload is in too many pieces  | reply chunk
#pragma once

#include <cstdint>

namespace nfsrdma::rpcrdma {

struct PlanLimits {
  uint32_t send_inline_bytes = 0;     // effective: the largest message we may send
  uint32_t receive_inline_bytes = 0;  // effective: the largest message the peer may send
  uint32_t segments_max = 0;          // per chunk
  uint32_t read_chunk_bytes_min = 0;  // payload from this size on goes by read chunk even if it fits inline
  uint32_t reply_chunk_bytes_max = 0;
  uint32_t buffer_bytes_max = 0;  // largest buffer that the pool lends
};

struct PlanInput {
  uint32_t call_header_bytes = 0;  // RPC header
  uint32_t args_bytes = 0;         // reduced when out_bytes > 0
  uint32_t out_bytes = 0;          // payload of the call
  uint32_t out_segments = 0;
  uint32_t in_bytes = 0;  // placeable payload of the results
  uint32_t in_segments = 0;
  uint32_t results_bytes_max = 0;  // without that payload
};

struct CallPlan {
  bool possible = true;     // false: the call cannot be sent on this connection, whatever is done
  bool data_chunk = false;  // payload by read chunk
  bool long_call = false;   // RDMA_NOMSG with a position-zero read chunk of long_call_bytes
  bool write_chunk = false;
  uint32_t reply_chunk_bytes = 0;  // 0 = none
  uint32_t long_call_bytes = 0;
  uint32_t header_bytes = 0;  // of the transport header
};

// The largest reply is larger than reply_chunk_bytes_max only where the caller's bound is generous: the chunk
// is cut to the limit then, and a reply that needs more comes back as ERR_CHUNK.
CallPlan plan_call(const PlanLimits& limits, const PlanInput& in);

}  // namespace nfsrdma::rpcrdma
