// SPDX-License-Identifier: Apache-2.0
// The providers that need no RDMA device.
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/providers.hpp"
#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {
namespace {

// Containers often have no IPv6.
bool can_bind(const SocketAddress& address) {
  int fd = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool can = fd >= 0 && bind(fd, address.get(), address.length()) == 0;
  if (fd >= 0) close(fd);
  return can;
}

}  // namespace

std::vector<ContractProvider> contract_providers() {
  std::vector<ContractProvider> all;
  all.push_back({"loop", [] { return make_loop_provider(); }, loopback()});
  all.push_back({"iwarp", [] { return make_iwarp_provider({}); }, loopback()});
  all.push_back({"iwarp_crc",
                 [] {
                   IwarpOptions options;
                   options.crc = true;
                   return make_iwarp_provider(options);
                 },
                 loopback()});
  SocketAddress loopback6 = *SocketAddress::parse("::1", 0);
  if (can_bind(loopback6)) all.push_back({"iwarp_ipv6", [] { return make_iwarp_provider({}); }, loopback6});
  all.push_back({"loop_traced", [] { return make_trace_provider(make_loop_provider()); }, loopback()});
  all.push_back({"iwarp_faultless",
                 [] { return make_fault_provider(make_trace_provider(make_iwarp_provider({})), FaultPlan{}); },
                 loopback()});
  return all;
}

}  // namespace nfsrdma::rdma::contract
