// SPDX-License-Identifier: Apache-2.0
// Whose rights a file call uses. Linux keeps file-system credentials per thread, so a server that runs as root can
// let each call act as its caller and leave every permission decision to the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace nfsrdma::server {

inline constexpr uint32_t nobody_id = 65534;

// A caller after squashing.
struct Caller {
  uint32_t uid = nobody_id;
  uint32_t gid = nobody_id;
  uint32_t group_count = 0;
  std::array<uint32_t, 16> groups{};

  std::span<const uint32_t> group_list() const { return {groups.data(), group_count}; }
  bool operator==(const Caller& other) const;
};

// True when this process may act as others: effective root, and the kernel really changes the credentials (a
// container may forbid it). Asked once per process.
bool can_assume_identity();

// While it lives, file calls of this thread act as `caller`; without can_assume_identity() as the process itself.
// Worker threads keep the last identity and change it only when the next one differs; other threads get their own
// back at the end. ok() false: the kernel refused, and the caller of this class must not touch a file.
class IdentityScope {
 public:
  explicit IdentityScope(const Caller& caller);
  ~IdentityScope();
  IdentityScope(const IdentityScope&) = delete;
  IdentityScope& operator=(const IdentityScope&) = delete;
  bool ok() const { return ok_; }

  // The same with the process's own rights.
  static void assume_own();
  // This thread runs nothing but store calls: its identity may stay between scopes. It also gets a umask of 0
  // without touching the process's.
  static void dedicate_thread();

 private:
  bool ok_;
};

}  // namespace nfsrdma::server
