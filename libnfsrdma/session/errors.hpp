// SPDX-License-Identifier: Apache-2.0
// From nfsstat4 to the errno that a Linux client's caller would see, and to what the session has to do about it.
#pragma once

#include "nfs4/constants.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::session {

enum class Reaction : uint8_t {
  fail,             // give the caller the errno
  delay,            // ask again later, as a new request
  session_lost,     // BADSESSION, DEADSESSION ...: recover the session
  client_lost,      // STALE_CLIENTID, STALE_STATEID: the server restarted or forgot us
  not_bound,        // bind the connection, then ask again
};

Reaction reaction_to(nfs4::Status status);
int errno_of(nfs4::Status status);
// "LOOKUP of "x": NFS4ERR_NOENT (no such file or directory)"; `what` names the operation.
Error nfs_error(nfs4::Status status, const char* what);

}  // namespace nfsrdma::session
