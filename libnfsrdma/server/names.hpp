// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "nfs4/constants.hpp"

namespace nfsrdma::server {

inline constexpr size_t name_bytes_max = 255;

// A component that a client names. Any bytes but '/' and NUL are taken, as Linux file systems do: what is no UTF-8 is
// the client's business.
inline nfs4::Status check_name(std::string_view name) {
  using nfs4::Status;
  if (name.empty()) return Status::inval;
  if (name.size() > name_bytes_max) return Status::nametoolong;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return Status::badchar;
  if (name == "." || name == "..") return Status::badname;
  return Status::ok;
}

}  // namespace nfsrdma::server
