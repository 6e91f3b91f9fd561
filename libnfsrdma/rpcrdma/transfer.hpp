// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "rdma/provider.hpp"
#include "rpcrdma/header.hpp"

namespace nfsrdma::rpcrdma {

// Cuts a stream of local pieces along remote segments into single Write requests: each stays within one
// segment and has at most sge_max pieces. Both spans must stay in place until done().
class Transfer {
 public:
  Transfer() = default;
  Transfer(std::span<const rdma::Sge> from, std::span<const Segment> to, uint64_t bytes)
      : from_(from), to_(to), left_(bytes) {}
  bool done() const { return left_ == 0; }

  // The next request; false when nothing is left or the segments are used up. The state moves on at once.
  bool next(uint32_t bytes_max, std::span<rdma::Sge> sge, size_t& count, rdma::RemoteSegment& remote) {
    while (segment_ < to_.size() && segment_done_ == to_[segment_].length) {
      segment_++;
      segment_done_ = 0;
    }
    if (left_ == 0 || segment_ == to_.size()) return false;
    remote = {to_[segment_].handle, to_[segment_].offset + segment_done_};
    uint64_t room = std::min<uint64_t>({left_, bytes_max, to_[segment_].length - segment_done_});
    count = 0;
    while (room > 0 && count < sge.size() && piece_ < from_.size()) {
      const rdma::Sge& piece = from_[piece_];
      const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(room, piece.length - piece_done_));
      if (n > 0) sge[count++] = {piece.region, piece.offset + piece_done_, n};
      piece_done_ += n;
      segment_done_ += n;
      left_ -= n;
      room -= n;
      if (piece_done_ == piece.length) {
        piece_++;
        piece_done_ = 0;
      }
    }
    return count > 0;
  }

 private:
  std::span<const rdma::Sge> from_;
  std::span<const Segment> to_;
  size_t piece_ = 0;
  size_t segment_ = 0;
  uint32_t piece_done_ = 0;
  uint32_t segment_done_ = 0;
  uint64_t left_ = 0;
};

}  // namespace nfsrdma::rpcrdma
