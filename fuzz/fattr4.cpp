// SPDX-License-Identifier: Apache-2.0
// fattr4: mask and values. What decodes whole can be encoded, and decodes again to the same attributes.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "nfs4/attributes.hpp"

using namespace nfsrdma;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xdr::Decoder decoder(std::span<const std::byte>(reinterpret_cast<const std::byte*>(data), size));
  nfs4::Fattr fattr;
  decoder(fattr);
  if (!decoder.ok()) return 0;
  nfs4::Attributes first;
  if (nfs4::decode_fattr(fattr, first) != nfs4::FattrRead::complete) return 0;
  std::vector<std::byte> scratch(fattr.values.size() + 64);
  nfs4::Fattr again;
  if (!nfs4::encode_fattr(fattr.mask, first, scratch, again)) std::abort();
  if (again.values.size() != fattr.values.size()) std::abort();
  nfs4::Attributes second;
  if (nfs4::decode_fattr(again, second) != nfs4::FattrRead::complete) std::abort();
  if (!(second.present == first.present) || second.size != first.size || second.fileid != first.fileid ||
      second.owner != first.owner || !(second.filehandle == first.filehandle))
    std::abort();
  return 0;
}
