// SPDX-License-Identifier: Apache-2.0
// The life of one mount, from the first check to the last answer.
#pragma once

#include "arguments.hpp"
#include "mount_plan.hpp"

namespace nfsrdma::fuse {

// Runs in the process that will serve. status_fd: where to say how the start went ("CODE\nLINE"), -1 in the
// foreground. Returns the exit code; what went wrong at the start is then in `refusal` (foreground) or was sent.
int run_daemon(const Config& config, const MountPlan& plan, int status_fd);

// Forks run_daemon into the background and waits until the mount can be used or its reason is known.
int run_in_background(const Config& config, const MountPlan& plan);

}  // namespace nfsrdma::fuse
