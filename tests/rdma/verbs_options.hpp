// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/address.hpp"

namespace nfsrdma::rdma::contract {

// From the command line of rdma_verbs_contract.
struct VerbsTestOptions {
  base::SocketAddress address;
  std::string device;
  bool windows = true;
  bool exact_bounds = false;
};
VerbsTestOptions& verbs_test_options();

}  // namespace nfsrdma::rdma::contract
