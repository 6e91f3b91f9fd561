// SPDX-License-Identifier: Apache-2.0
#include "rdma/provider.hpp"

namespace nfsrdma::rdma {

const char* to_string(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::success: return "success";
    case CompletionStatus::flushed: return "flushed";
    case CompletionStatus::length_error: return "length error";
    case CompletionStatus::protection_error: return "local protection error";
    case CompletionStatus::remote_access: return "remote access error";
    case CompletionStatus::remote_error: return "remote operation error";
    case CompletionStatus::retry_exceeded: return "transport retries exceeded";
    case CompletionStatus::rnr_exceeded: return "receiver not ready retries exceeded";
    case CompletionStatus::transport_error: return "transport error";
  }
  return "unknown";
}

}  // namespace nfsrdma::rdma
