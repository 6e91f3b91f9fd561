// SPDX-License-Identifier: Apache-2.0
// The command line, in its two dialects: nfsrdma-fuse, and the helper that mount(8) calls by the name mount.nfsrdma
// or mount.fuse.nfsrdma.
#pragma once

#include <string>

#include "log.hpp"
#include "nfsrdma/options.hpp"

namespace nfsrdma::fuse {

// Exit codes of mount(8).
enum ExitCode : int {
  exit_done = 0,
  exit_usage = 1,        // usage, or not allowed
  exit_system = 2,       // memory, /dev/fuse, RDMA device
  exit_interrupted = 8,  // by a signal, before the mount was ready
  exit_mount = 32,       // everything else that kept the mount from being made
};

struct Config {
  std::string program = "nfsrdma-fuse";  // how it was called, for error lines
  bool helper = false;
  Options options;
  std::string source, directory;
  bool foreground = false;
  bool fake = false;          // check everything that needs no server, mount nothing
  bool verbose = false;
  bool core_dumps = false;    // allow them: they hold users' data
  bool help = false, version = false;
  std::string mount_namespace;  // "-N": PID or path
  LogTarget log;
  bool log_target_given = false;
};

struct Refusal {
  int exit_code = exit_done;  // exit_done: no refusal
  std::string line;
};

Refusal parse_arguments(int argc, char** argv, Config& config);
// The exit code that an error has for mount(8).
int exit_code_of(const Error& error);
std::string help_text();

}  // namespace nfsrdma::fuse
