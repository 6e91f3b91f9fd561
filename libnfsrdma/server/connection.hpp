// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "io/loop.hpp"
#include "rpc/service.hpp"

namespace nfsrdma::server {

// A client's connection as the state tables hold it: they may outlive it.
struct Connection {
  Connection(rpc::ServerConnection& connection, io::IoLoop& l) : id(connection.id()), loop(l), rpc(&connection) {}
  const uint64_t id;
  io::IoLoop& loop;
  rpc::ServerConnection* rpc;  // loop thread only; nullptr once it is gone
};
using ConnectionRef = std::shared_ptr<Connection>;

}  // namespace nfsrdma::server
