// SPDX-License-Identifier: Apache-2.0
// Makers of the providers. Each is defined by its own folder; link the one that you call.
#pragma once

#include <memory>
#include <string>

#include "rdma/provider.hpp"

namespace nfsrdma::rdma {

struct IwarpOptions {
  bool crc = false;             // ask for CRC32C; it is used when either end asks
  bool fpdu_large = false;      // FPDUs up to 64 KiB whatever the MSS; else only where the peer is known to take them
  uint32_t spin_us = 0;         // informative: loops do the spinning
  TimeNs user_timeout_ns = base::seconds(60);  // TCP_USER_TIMEOUT and keep-alive: a dead peer is noticed within this
};
std::shared_ptr<Provider> make_iwarp_provider(const IwarpOptions& options);

struct VerbsOptions {
  std::string device_name;      // "" = by route
  bool memory_windows = true;   // type-2 windows where the device has them
};
// ENODEV-like errors come from resolve() and listen(), so that this never touches a device before the last fork.
std::shared_ptr<Provider> make_verbs_provider(const VerbsOptions& options);

// In-process pairs: listen and connect by port number within the same Provider object.
std::shared_ptr<Provider> make_loop_provider();

// Decorators. trace: one log line per request and completion (room "rdma", level trace).
std::shared_ptr<Provider> make_trace_provider(std::shared_ptr<Provider> inner);

struct FaultPlan {
  uint64_t seed = 1;
  // Chances per 1,000,000 events.
  uint32_t delay_completion = 0;
  uint32_t drop_connection = 0;      // disconnect at a post or completion
  uint32_t fail_completion = 0;      // success becomes transport_error and the pair ends
  uint32_t truncate_receive = 0;     // a received message is shorter than it was
  uint32_t corrupt_receive = 0;      // one byte of a received message differs
  TimeNs delay_max_ns = base::ms(5);
};
std::shared_ptr<Provider> make_fault_provider(std::shared_ptr<Provider> inner, const FaultPlan& plan);

}  // namespace nfsrdma::rdma
