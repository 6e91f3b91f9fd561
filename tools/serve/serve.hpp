// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nfsrdma/error.hpp"
#include "options.hpp"

namespace nfsrdma::serve {

// Serves until SIGTERM or SIGINT. Both must be blocked in the calling thread, before any other thread exists.
// Errors: what kept it from starting, in one line.
Result<void> serve(const Options& options);

}  // namespace nfsrdma::serve
