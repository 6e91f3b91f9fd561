// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cli {

// From now on SIGINT and SIGTERM end the transfer under way with EINTR, so that its traces can be removed.
// Where that takes longer than some seconds, since no server answers, or at a second signal, the process ends
// with code 130. SIGPIPE becomes an error of write(2).
void catch_interrupts();
bool is_interrupted();

}  // namespace cli
