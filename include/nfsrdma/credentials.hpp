// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nfsrdma/export.hpp"

namespace nfsrdma {

namespace client {
struct Identity;
}

// On whose behalf a call goes out. An immutable handle: copying is cheap, and any thread may use it.
class NFSRDMA_API Credentials {
 public:
  // The process's effective user, group and supplementary groups.
  static Credentials process();
  // AUTH_SYS. At most 16 supplementary groups travel (RFC 5531): the first 16 are taken.
  static Credentials sys(uint32_t uid, uint32_t gid, std::span<const uint32_t> groups = {});

  uint32_t uid() const;
  uint32_t gid() const;
  std::span<const uint32_t> groups() const;
  bool operator==(const Credentials& other) const;

  const std::shared_ptr<const client::Identity>& identity() const { return identity_; }  // internal

 private:
  explicit Credentials(std::shared_ptr<const client::Identity> identity) : identity_(std::move(identity)) {}
  std::shared_ptr<const client::Identity> identity_;
};

}  // namespace nfsrdma
