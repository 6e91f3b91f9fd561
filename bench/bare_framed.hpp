// SPDX-License-Identifier: Apache-2.0
// The yardstick: READs as bare frames over loopback TCP, written for this one exchange. One client process,
// one server process, one thread each. A call of 200 bytes (framed as a Send) is answered by RDMA Write
// frames with data out of a mapped file in memory, and by a Send frame of 200 bytes. Nothing is decoded but
// what the exchange needs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nfsrdma::bench {

struct ReadLoad {
  size_t read_bytes = 1 << 20;
  size_t queue_depth = 8;
  uint32_t spin_us = 0;  // both sides poll that long before they sleep
  double seconds = 1;
};

struct ReadRate {
  double reads_per_s = 0;
  double seconds = 0;
  double p50_us = 0;
  double client_cpu_us = 0;  // per READ, user and system
  double server_cpu_us = 0;
  double gigabytes_per_s(const ReadLoad& load) const { return reads_per_s * double(load.read_bytes) / 1e9; }
};

constexpr size_t file_bytes = 256 << 20;

ReadRate run_bare_framed(const ReadLoad& load);

// Shared with the other runs, so that they read the same data: a memfd whose 64-bit word i is i.
int make_source_file();
// Ends the bench with a message when a system call failed.
void must(bool good, const char* what);
double seconds_now();
double cpu_seconds();     // of this process so far
double* shared_number();  // one that a forked child can set
// Sleeps until fd is readable, after polling with `ready` for spin_us.
template <class Ready>
void wait_for(uint32_t spin_us, Ready&& ready, void (*block)(int fd), int fd) {
  double stop = seconds_now() + spin_us / 1e6;
  do {
    if (ready()) return;
  } while (seconds_now() < stop);
  block(fd);
}

}  // namespace nfsrdma::bench
