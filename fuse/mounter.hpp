// SPDX-License-Identifier: Apache-2.0
// A small process, forked before RDMA devices are opened and threads are started, that opens /dev/fuse, mounts and
// in the end unmounts. It alone keeps the right to do so, it may run fusermount3 without a fork of the process that
// has devices, and no descriptor of a device ever reaches it.
#pragma once

#include <sys/types.h>

#include "mount_plan.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::fuse {

class Mounter {
 public:
  Mounter() = default;
  ~Mounter();
  Mounter(const Mounter&) = delete;
  Mounter& operator=(const Mounter&) = delete;

  // Forks. The child keeps no descriptor but its end of a socket.
  Result<void> start(const MountPlan& plan);
  // Whether this machine and user can have FUSE at all; cheap, for before the server is asked.
  Result<void> check();
  // Mounts, and gives the connection's descriptor.
  Result<int> mount();
  // Lazily: what is open stays usable until it is closed.
  Result<void> unmount();

 private:
  Result<int> ask(char command);
  int socket_ = -1;
  pid_t child_ = -1;
};

}  // namespace nfsrdma::fuse
