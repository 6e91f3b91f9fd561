// SPDX-License-Identifier: Apache-2.0
#include "nfsrdma/credentials.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "client/identity.hpp"

namespace nfsrdma {
namespace {

// One name for the whole process: a replay must carry identical bytes.
const std::string& machine_name() {
  static const std::string name = [] {
    std::array<char, 256> n{};
    if (gethostname(n.data(), n.size() - 1) != 0) return std::string("localhost");
    return std::string(n.data());
  }();
  return name;
}

}  // namespace

Credentials Credentials::sys(uint32_t uid, uint32_t gid, std::span<const uint32_t> groups) {
  auto identity = std::make_shared<client::Identity>();
  identity->uid = uid;
  identity->gid = gid;
  identity->group_count = static_cast<uint32_t>(std::min<size_t>(groups.size(), rpc::auth_sys_groups_max));
  std::copy_n(groups.begin(), identity->group_count, identity->groups.begin());
  rpc::AuthSys auth;
  auth.machine = machine_name();
  auth.uid = uid;
  auth.gid = gid;
  auth.group_count = identity->group_count;
  auth.groups = identity->groups;
  identity->wire = rpc::Credential::sys(auth);
  return Credentials(std::move(identity));
}

Credentials Credentials::process() {
  int n = getgroups(0, nullptr);
  std::vector<gid_t> groups(n > 0 ? static_cast<size_t>(n) : 0);
  if (n > 0) n = getgroups(n, groups.data());
  groups.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return sys(geteuid(), getegid(), groups);
}

uint32_t Credentials::uid() const { return identity_->uid; }
uint32_t Credentials::gid() const { return identity_->gid; }
std::span<const uint32_t> Credentials::groups() const { return {identity_->groups.data(), identity_->group_count}; }

bool Credentials::operator==(const Credentials& other) const {
  return identity_ == other.identity_ || identity_->wire == other.identity_->wire;
}

}  // namespace nfsrdma
