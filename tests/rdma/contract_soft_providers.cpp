// SPDX-License-Identifier: Apache-2.0
// The providers that need no RDMA device.
#include "rdma/providers.hpp"
#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {

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
  all.push_back({"iwarp_ipv6", [] { return make_iwarp_provider({}); }, *SocketAddress::parse("::1", 0)});
  return all;
}

}  // namespace nfsrdma::rdma::contract
