// SPDX-License-Identifier: Apache-2.0
// Memory for coroutine frames: free lists per thread and size class, so that a READ or WRITE in steady state
// allocates nothing. A frame may be freed on another thread than it came from; it then joins that thread's list.
#pragma once

#include <cstddef>

namespace nfsrdma::io {

void* frame_allocate(size_t bytes);
void frame_free(void* frame, size_t bytes) noexcept;

}  // namespace nfsrdma::io
