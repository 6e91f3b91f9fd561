// SPDX-License-Identifier: Apache-2.0
// The contract suite over real or emulated RDMA devices:
//   rdma_verbs_contract --address=ADDRESS [--device=NAME] [--no-windows] [--exact-bounds] [gtest options]
// --exact-bounds: the device checks the bounds of memory windows. rxe checks those of the region that they stand on,
// and plain registrations are all that siw has.
// ADDRESS belongs to the device; both ends of each pair use it. Run in the guest by tests/vm.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "rdma/providers.hpp"
#include "tests/rdma/contract_harness.hpp"
#include "tests/rdma/verbs_options.hpp"

namespace nfsrdma::rdma::contract {

VerbsTestOptions& verbs_test_options() {
  static VerbsTestOptions options;
  return options;
}

std::vector<ContractProvider> contract_providers() {
  const VerbsTestOptions& options = verbs_test_options();
  ContractProvider provider;
  provider.name = "verbs";
  provider.address = options.address;
  provider.private_data_max = 56;
  provider.exact_bounds = options.exact_bounds;
  provider.faithful_memory = false;  // a device cannot be told to spare one region only
  provider.make = [options] {
    VerbsOptions made;
    made.device_name = options.device;
    made.memory_windows = options.windows;
    return make_verbs_provider(made);
  };
  return {provider};
}

}  // namespace nfsrdma::rdma::contract

int main(int argc, char** argv) {
  auto& options = nfsrdma::rdma::contract::verbs_test_options();
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--device=", 9) == 0) options.device = argv[i] + 9;
    if (strcmp(argv[i], "--no-windows") == 0) options.windows = false;
    if (strcmp(argv[i], "--exact-bounds") == 0) options.exact_bounds = true;
    if (strncmp(argv[i], "--address=", 10) == 0) {
      auto address = nfsrdma::base::SocketAddress::parse(argv[i] + 10, 0);
      if (address) options.address = *address;
    }
  }
  if (!options.address.valid()) {
    fprintf(stderr, "usage: rdma_verbs_contract --address=ADDRESS [--device=NAME] [--no-windows] [--exact-bounds]\n");
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
