// SPDX-License-Identifier: Apache-2.0
#include "server/answer.hpp"

#include <cerrno>

namespace nfsrdma::server {

Status status_of_errno(int errno_value) {
  switch (errno_value) {
    case 0: return Status::ok;
    case EPERM: return Status::perm;
    case ENOENT: return Status::noent;
    case ENXIO:
    case ENODEV: return Status::nxio;
    case EACCES: return Status::access;
    case EEXIST: return Status::exist;
    case EXDEV: return Status::xdev;
    case ENOTDIR: return Status::notdir;
    case EISDIR: return Status::isdir;
    case EINVAL: return Status::inval;
    case EFBIG: return Status::fbig;
    case ENOSPC: return Status::nospc;
    case EROFS: return Status::rofs;
    case EMLINK: return Status::mlink;
    case ENAMETOOLONG: return Status::nametoolong;
    case ENOTEMPTY: return Status::notempty;
    case EDQUOT: return Status::dquot;
    case ESTALE: return Status::stale;
    case ELOOP: return Status::symlink;
    case EOPNOTSUPP:
    case ENOSYS: return Status::notsupp;
    case EBUSY:
    case ETXTBSY: return Status::access;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EINTR: return Status::delay;
    default: return Status::io;
  }
}

}  // namespace nfsrdma::server
