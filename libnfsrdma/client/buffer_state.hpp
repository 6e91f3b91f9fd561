// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <new>

#include "mem/buffer_pool.hpp"
#include "nfsrdma/buffer.hpp"

namespace nfsrdma::client {

struct RegionState {
  std::unique_ptr<rdma::Region> region;
};

// Lives in the public Buffer's storage.
struct BufferState {
  mem::Buffer buffer;

  static BufferState& of(Buffer& b) { return *std::launder(reinterpret_cast<BufferState*>(b.state_)); }
  static const BufferState& of(const Buffer& b) {
    return *std::launder(reinterpret_cast<const BufferState*>(b.state_));
  }
  static Buffer wrap(mem::Buffer from) {
    Buffer b;
    of(b).buffer = std::move(from);
    return b;
  }
};

}  // namespace nfsrdma::client
