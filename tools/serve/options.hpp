// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/address.hpp"
#include "server/faults.hpp"
#include "server/state.hpp"

namespace nfsrdma::serve {

struct Options {
  std::string directory;
  std::string listen = "127.0.0.1:20049";
  std::string provider = "iwarp";
  std::string state_dir;
  std::string delegations = "read";
  std::string fault;
  bool read_only = false;
  bool root_squash = true;
  bool async = false;
  bool crc = false;
  uint32_t lease_s = 90;
  uint32_t grace_s = 0;         // 0 = the lease
  uint32_t threads = 0;         // 0 = by the number of cores
  uint32_t workers = 0;
  uint32_t spin_us = 0;
  uint32_t memory_mib = 256;
  uint32_t clients_max = 1024;
  uint32_t sessions_max = 2048;
  uint32_t connections_max = 1024;
  uint32_t slots = 64;
  uint32_t verbosity = 0;
};

enum class Parsed : uint8_t { run, done, usage };
// done: --help or --version was answered on stdout. usage: said on stderr what is wrong.
Parsed parse_options(int argc, char** argv, Options& options);

}  // namespace nfsrdma::serve
