// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "io/task.hpp"
#include "rpc/transport.hpp"

namespace nfsrdma::io {
class IoLoop;
}

namespace nfsrdma::session {

// Makes connections to one server. The client room implements it: the session does not know which transport it is.
class Connector {
 public:
  virtual ~Connector() = default;
  // On `loop`. The observer and handler must outlive the transport.
  virtual io::Task<Result<std::unique_ptr<rpc::Transport>>> connect(io::IoLoop& loop, rpc::TransportObserver& observer,
                                                                    rpc::ReverseHandler& reverse) = 0;
};

}  // namespace nfsrdma::session
