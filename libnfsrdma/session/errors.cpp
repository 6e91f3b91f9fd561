// SPDX-License-Identifier: Apache-2.0
#include "session/errors.hpp"

#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::session {

using nfs4::Status;

Reaction reaction_to(Status status) {
  switch (status) {
    case Status::delay:
    case Status::grace:
    case Status::layouttrylater:
    case Status::recallconflict:
    case Status::returnconflict: return Reaction::delay;
    case Status::badsession:
    case Status::deadsession:
    case Status::bad_high_slot: return Reaction::session_lost;
    case Status::stale_clientid:
    case Status::stale_stateid: return Reaction::client_lost;
    case Status::conn_not_bound_to_session: return Reaction::not_bound;
    default: return Reaction::fail;
  }
}

int errno_of(Status status) {
  switch (status) {
    case Status::ok: return 0;
    case Status::perm: return EPERM;
    case Status::noent: return ENOENT;
    case Status::io: return EIO;
    case Status::nxio: return ENXIO;
    case Status::access: return EACCES;
    case Status::exist: return EEXIST;
    case Status::xdev: return EXDEV;
    case Status::notdir: return ENOTDIR;
    case Status::isdir: return EISDIR;
    case Status::inval:
    case Status::badtype:
    case Status::badowner:
    case Status::badchar:
    case Status::badname:
    case Status::bad_range:
    case Status::attrnotsupp:
    case Status::wrong_type:
    case Status::wrong_lfs:
    case Status::badlabel: return EINVAL;
    case Status::fbig: return EFBIG;
    case Status::nospc: return ENOSPC;
    case Status::rofs: return EROFS;
    case Status::mlink: return EMLINK;
    case Status::nametoolong: return ENAMETOOLONG;
    case Status::notempty: return ENOTEMPTY;
    case Status::dquot: return EDQUOT;
    case Status::stale:
    case Status::badhandle:
    case Status::fhexpired: return ESTALE;
    case Status::notsupp:
    case Status::op_illegal:
    case Status::union_notsupp:
    case Status::partner_notsupp: return EOPNOTSUPP;
    case Status::denied: return EAGAIN;
    case Status::locked: return EAGAIN;
    case Status::share_denied: return EACCES;
    case Status::wrongsec:
    case Status::wrong_cred:
    case Status::clid_inuse: return EPERM;
    case Status::moved: return EREMOTE;
    case Status::minor_vers_mismatch: return EPROTONOSUPPORT;
    case Status::lock_range:
    case Status::lock_notsupp: return ENOLCK;
    case Status::symlink: return ELOOP;
    case Status::locks_held:
    case Status::file_open:
    case Status::clientid_busy: return EBUSY;
    case Status::openmode: return EBADF;
    case Status::deadlock: return EDEADLK;
    case Status::noxattr: return ENODATA;
    case Status::xattr2big: return E2BIG;
    case Status::bad_cookie:
    case Status::not_same: return ESTALE;
    case Status::delay:
    case Status::grace: return EAGAIN;
    default: return EIO;
  }
}

Error nfs_error(Status status, const char* what) {
  int code = errno_of(status);
  return Error(code, ErrorOrigin::server,
               base::text("%s: the server answered NFS4ERR_%s (%s)", what, nfs4::to_string(status), std::strerror(code)),
               static_cast<uint32_t>(status));
}

}  // namespace nfsrdma::session
