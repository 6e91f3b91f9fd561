// SPDX-License-Identifier: Apache-2.0
// Between fattr4 and the public Attributes.
#pragma once

#include "nfs4/attributes.hpp"
#include "nfsrdma/node.hpp"

namespace nfsrdma::client {

// Owner strings: decimal, or name@domain (65534 when it is not one we know).
Attributes to_public(const nfs4::Attributes& in);
// False when the reply lacks what a file must have (type, fileid, fsid).
bool decode_stat(const nfs4::Fattr& in, nfs4::Attributes& raw, Attributes& out);

// The fattr4 for a change; scratch (at least 256 bytes) holds its values and the owner strings.
struct ChangeScratch {
  std::array<std::byte, 256> values;
  std::array<char, 16> owner, group;
};
bool encode_change(const AttributeChange& change, ChangeScratch& scratch, nfs4::Fattr& out);

}  // namespace nfsrdma::client
