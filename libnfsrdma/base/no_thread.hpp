// SPDX-License-Identifier: Apache-2.0
// std::thread throws where this user or container may have no more threads; nothing of ours lets that out.
#pragma once

#include <cstring>
#include <string>
#include <system_error>

#include "nfsrdma/error.hpp"

namespace nfsrdma::base {

inline Error no_thread(const std::system_error& failed) {
  return Error(failed.code().value(), ErrorOrigin::local,
               std::string("cannot start a thread: ") + std::strerror(failed.code().value()) +
                   "; raise the limit of processes (ulimit -u, or pids.max of the container)");
}

}  // namespace nfsrdma::base
