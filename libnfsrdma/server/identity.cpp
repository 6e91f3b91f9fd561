// SPDX-License-Identifier: Apache-2.0
#include "server/identity.hpp"

#include <grp.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace nfsrdma::server {
namespace {

// The C library's wrappers would change every thread of the process.
bool set_groups(std::span<const uint32_t> groups) {
  return syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}
// setfsuid has no error: the second call, with an id that is never valid, tells what is set now.
bool set_fs_uid(uint32_t uid) {
  syscall(SYS_setfsuid, uid);
  return static_cast<uint32_t>(syscall(SYS_setfsuid, -1)) == uid;
}
bool set_fs_gid(uint32_t gid) {
  syscall(SYS_setfsgid, gid);
  return static_cast<uint32_t>(syscall(SYS_setfsgid, -1)) == gid;
}

struct OwnIdentity {
  uint32_t uid = geteuid();
  uint32_t gid = getegid();
  std::vector<uint32_t> groups;
  OwnIdentity() {
    int n = getgroups(0, nullptr);
    groups.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (n > 0) groups.resize(static_cast<size_t>(std::max(0, getgroups(n, groups.data()))));
  }
};
const OwnIdentity& own_identity() {
  static const OwnIdentity own;
  return own;
}

struct ThreadIdentity {
  bool own = true;         // nothing was changed yet
  bool dedicated = false;
  Caller caller;           // when !own
};
thread_local ThreadIdentity current;

bool restore() {
  if (current.own) return true;
  const OwnIdentity& own = own_identity();
  // Root first: only root may set groups.
  bool ok = set_fs_uid(own.uid);
  ok = set_fs_gid(own.gid) && ok;
  ok = set_groups(own.groups) && ok;
  current.own = ok;
  return ok;
}

bool become(const Caller& caller) {
  if (!current.own && current.caller == caller) return true;
  // Root's groups decide nothing, so root acting as root need not change.
  const OwnIdentity& own = own_identity();
  if (caller.uid == own.uid && caller.gid == own.gid) return restore();
  if (!restore()) return false;
  current.own = false;
  current.caller = caller;
  return set_groups(caller.group_list()) && set_fs_gid(caller.gid) && set_fs_uid(caller.uid);
}

bool probe() {
  if (own_identity().uid != 0) return false;
  Caller nobody;
  bool ok = become(nobody);
  return restore() && ok;
}

}  // namespace

bool Caller::operator==(const Caller& other) const {
  return uid == other.uid && gid == other.gid && std::ranges::equal(group_list(), other.group_list());
}

bool can_assume_identity() {
  static const bool can = probe();
  return can;
}

IdentityScope::IdentityScope(const Caller& caller) : ok_(!can_assume_identity() || become(caller)) {
  if (!ok_) restore();
}

IdentityScope::~IdentityScope() {
  if (!current.dedicated) restore();
}

void IdentityScope::assume_own() { restore(); }

void IdentityScope::dedicate_thread() {
  current.dedicated = true;
  if (unshare(CLONE_FS) == 0) umask(0);
}

}  // namespace nfsrdma::server
