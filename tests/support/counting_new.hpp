// SPDX-License-Identifier: Apache-2.0
// Link counting_new.cpp, and every operator new of the program is counted.
#pragma once

#include <cstdint>

namespace nfsrdma::testing {

// Under ThreadSanitizer, which brings its own operator new, nothing is counted.
uint64_t heap_allocations();
// Those of threads that asked to be watched: where client and server share a process, one of them can be told apart.
uint64_t watched_heap_allocations();
void watch_this_thread();

}  // namespace nfsrdma::testing
