// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace nfsrdma::fuse {

// Gives up every capability but those that the mount's work can need: locking memory for RDMA, a privileged source
// port, and reading /proc of processes that hidepid hides. Before threads are started: it is a thread's own.
void drop_privileges();

}  // namespace nfsrdma::fuse
