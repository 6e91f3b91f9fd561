// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/random.hpp"
#include "rpcrdma/header.hpp"

namespace nfsrdma::rpcrdma::testing {

inline Segment random_segment(base::Random& random) {
  return {static_cast<uint32_t>(random.next()), static_cast<uint32_t>(random.next()), random.next()};
}

inline void add_random_chunk(base::Random& random, Header& h, uint32_t segments_max, ChunkRange& chunk) {
  chunk = {h.result_segments.size(), static_cast<uint32_t>(random.below(segments_max + 1))};
  for (uint32_t i = 0; i < chunk.count; i++) h.result_segments.push_back(random_segment(random));
}

// Any header that the XDR description allows, within segments_max per list.
inline void make_random_header(base::Random& random, uint32_t segments_max, Header& h) {
  h.clear();
  h.xid = static_cast<uint32_t>(random.next());
  h.credit = static_cast<uint32_t>(random.next());
  const Procedure procedures[] = {Procedure::msg, Procedure::nomsg, Procedure::error};
  h.procedure = procedures[random.below(3)];
  if (h.procedure == Procedure::error) {
    h.error = random.below(2) ? ErrorCode::version : ErrorCode::chunk;
    if (h.error == ErrorCode::version) {
      h.version_low = static_cast<uint32_t>(random.next());
      h.version_high = static_cast<uint32_t>(random.next());
    }
    return;
  }
  for (uint64_t i = random.below(segments_max + 1); i > 0; i--)
    h.reads.push_back({static_cast<uint32_t>(random.next()), random_segment(random)});
  for (uint64_t i = random.below(4); i > 0; i--) {
    ChunkRange chunk;
    add_random_chunk(random, h, segments_max, chunk);
    h.write_chunks.push_back(chunk);
  }
  h.has_reply_chunk = random.below(2) == 1;
  if (h.has_reply_chunk) add_random_chunk(random, h, segments_max, h.reply_chunk);
}

}  // namespace nfsrdma::rpcrdma::testing
