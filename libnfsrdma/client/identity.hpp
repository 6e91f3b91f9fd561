// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "rpc/message.hpp"

namespace nfsrdma::client {

// What a Credentials handle points to: who the caller is, and the same as it goes over the wire.
struct Identity {
  uint32_t uid = 65534, gid = 65534;
  uint32_t group_count = 0;
  std::array<uint32_t, rpc::auth_sys_groups_max> groups{};
  rpc::Credential wire;
};

}  // namespace nfsrdma::client
