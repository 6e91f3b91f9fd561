// SPDX-License-Identifier: Apache-2.0
// What rpcgen made of the nfs41_*.x files, through libtirpc.
#pragma once

#include <rpc/rpc.h>

#include "nfs41_compound.h"
#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {

// Decodes bytes with libtirpc and encodes them again; empty when it refuses them or leaves bytes over.
template <class Theirs>
Buffer through_oracle(const Buffer& bytes, bool_t (*proc)(XDR*, Theirs*)) {
  Theirs value{};
  XDR in;
  Buffer copy = bytes;
  xdrmem_create(&in, reinterpret_cast<char*>(copy.data()), static_cast<u_int>(copy.size()), XDR_DECODE);
  const bool decoded = proc(&in, &value) && xdr_getpos(&in) == bytes.size();
  Buffer out(bytes.size() + 64);
  XDR encoder;
  xdrmem_create(&encoder, reinterpret_cast<char*>(out.data()), static_cast<u_int>(out.size()), XDR_ENCODE);
  const bool encoded = decoded && proc(&encoder, &value);
  out.resize(encoded ? xdr_getpos(&encoder) : 0);
  xdr_free(reinterpret_cast<xdrproc_t>(proc), reinterpret_cast<char*>(&value));
  return out;
}

}  // namespace nfsrdma::nfs4::test
