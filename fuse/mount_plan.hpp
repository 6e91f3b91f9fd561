// SPDX-License-Identifier: Apache-2.0
// What will be mounted where, decided before anything is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nfsrdma/error.hpp"
#include "nfsrdma/options.hpp"

namespace nfsrdma::fuse {

struct MountPlan {
  std::string source;          // shown in the mount table: host:/path
  std::string directory;       // absolute, without symbolic links
  int passed_fd = -1;          // "/dev/fd/N": somebody else has mounted, nothing is left to do
  bool replaces_dead = false;  // what a dead daemon has left there goes first
  unsigned long flags = 0;     // MS_*
  std::string kernel_data;     // for mount(2), without the descriptor
  std::string helper_options;  // for fusermount3
};

// One line of /proc/self/mountinfo.
struct MountEntry {
  std::string device;  // "0:45", names the bdi
  std::string directory, type, source;
};
// The topmost mount at this place.
std::optional<MountEntry> find_mount(const std::string& directory);
// Parses one line; nothing when it is not one.
std::optional<MountEntry> parse_mount_line(const std::string& line);

// Usage errors: the directory is missing, no directory, or busy; an option that the VFS does not have.
Result<MountPlan> plan_mount(const Options& options, const std::string& directory);

}  // namespace nfsrdma::fuse
