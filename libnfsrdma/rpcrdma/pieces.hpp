// SPDX-License-Identifier: Apache-2.0
// Pieces of registered memory as the segments of a chunk, and as a stream of bytes.
#pragma once

#include <algorithm>
#include <span>

#include "rdma/provider.hpp"

namespace nfsrdma::rpcrdma {

// Calls f(Sge) for each segment that the pieces make: neighbours joined, long ones split at
// segment_bytes_max, empty ones left out (knfsd stops at a segment of length 0).
template <class F>
void for_each_segment(std::span<const rdma::Sge> pieces, uint32_t segment_bytes_max, F&& f) {
  for (size_t i = 0; i < pieces.size();) {
    rdma::Sge run = pieces[i];
    uint64_t length = run.length;
    for (i++; i < pieces.size() && pieces[i].region == run.region && pieces[i].offset == run.offset + length;
         i++)
      length += pieces[i].length;
    for (uint64_t done = 0; done < length;) {
      uint32_t step = static_cast<uint32_t>(std::min<uint64_t>(length - done, segment_bytes_max));
      f(rdma::Sge{run.region, run.offset + done, step});
      done += step;
    }
  }
}

inline uint32_t count_segments(std::span<const rdma::Sge> pieces, uint32_t segment_bytes_max) {
  uint32_t n = 0;
  for_each_segment(pieces, segment_bytes_max, [&](const rdma::Sge&) { n++; });
  return n;
}

inline uint64_t total_bytes(std::span<const rdma::Sge> pieces) {
  uint64_t n = 0;
  for (const rdma::Sge& piece : pieces) n += piece.length;
  return n;
}

// Copies the pieces one after the other into `out`, which holds all of them.
inline Result<void> gather(std::span<const rdma::Sge> pieces, std::byte* out) {
  for (const rdma::Sge& piece : pieces) {
    if (piece.length == 0) continue;
    if (auto ok = piece.region->copy_out(piece.offset, {out, piece.length}); !ok) return ok;
    out += piece.length;
  }
  return {};
}

}  // namespace nfsrdma::rpcrdma
