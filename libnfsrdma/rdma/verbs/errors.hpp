// SPDX-License-Identifier: Apache-2.0
// What went wrong on the way to a peer, in one line: the layer that failed, device, addresses, and what to do.
#pragma once

#include <string>

#include "rdma/verbs/cm.hpp"
#include "rdma/verbs/device.hpp"

namespace nfsrdma::rdma::verbs {

enum class Stage : uint8_t { address, route, tcp, request, reply };

struct Attempt {
  SocketAddress remote;
  SocketAddress local;                   // invalid() while the route decides
  const DeviceTraits* device = nullptr;  // nullptr until the address is resolved
};

// The address could not be resolved to a device: errno as librdmacm gave it.
Error address_error(const Attempt& attempt, int error);
// A connection manager event that ends the attempt.
Error event_error(const Attempt& attempt, Stage stage, const CmEvent& event);
// A call into librdmacm or libibverbs failed at once.
Error call_error(const Attempt& attempt, const char* what, int error);
// The TCP connection below iWARP failed.
Error tcp_error(const Attempt& attempt, int error);
Error timeout_error(const Attempt& attempt, Stage stage, TimeNs after_ns);
// The route leads to another device than the one that memory was registered on; nullptr: to none.
Error other_device_error(const Attempt& attempt, ibv_context* other);
Error ended_error();
// An established connection's end.
Error disconnect_error(const Attempt& attempt, const CmEvent& event);
// A work completion that ends the connection.
Error completion_error(const Attempt& attempt, const ibv_wc& wc);

// "rxe0, mlx5_0", or "none".
std::string device_names();

}  // namespace nfsrdma::rdma::verbs
