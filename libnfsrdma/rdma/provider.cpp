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

std::string describe_private_data(ConstBytes data) {
  if (data.empty()) return {};
  bool printable = true;
  for (std::byte b : data) printable &= b >= std::byte{0x20} && b < std::byte{0x7f};
  if (printable) return " (private data \"" + std::string(base::text_of(data)) + "\")";
  std::string hex;
  for (std::byte b : data) {
    hex += "0123456789abcdef"[static_cast<unsigned>(b) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned>(b) & 15];
  }
  return " (private data " + hex + ")";
}

}  // namespace nfsrdma::rdma
