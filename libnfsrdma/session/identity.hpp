// SPDX-License-Identifier: Apache-2.0
// Who this client is to the server: co_ownerid and boot verifier of EXCHANGE_ID (RFC 8881 section 2.4).
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "nfs4/types.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::session {

struct IdentityParams {
  std::string client_id;  // given by the user, 1..1024 bytes, or ""
  std::string state_dir;  // where the id is kept over restarts, or ""
};

// Two living processes with one owner id destroy each other's state, so the default owner is host name + 128 random
// bits (cloned images share machine ids, sidecars share host names); a state directory is held under an exclusive lock
// for the life of this object. The verifier is new each time: a dead instance's locks fall at once.
class ClientIdentity {
 public:
  // EINVAL: client_id too long; EBUSY: another process holds state_dir; else the file system's errno.
  static Result<ClientIdentity> make(const IdentityParams& params, base::Random& random, base::Clock& clock);
  ClientIdentity(ClientIdentity&& other) noexcept;
  ClientIdentity& operator=(ClientIdentity&& other) noexcept;
  ~ClientIdentity();

  const std::string& owner() const { return owner_; }
  const nfs4::Verifier& verifier() const { return verifier_; }
  nfs4::ClientOwner client_owner() const { return {verifier_, base::bytes_of(owner_)}; }

 private:
  ClientIdentity() = default;
  std::string owner_;
  nfs4::Verifier verifier_{};
  int lock_fd_ = -1;
};

}  // namespace nfsrdma::session
