// SPDX-License-Identifier: Apache-2.0
#include "xdr/encoder.hpp"

namespace nfsrdma::xdr {

const char* to_string(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::overflow:
      return "buffer full";
    case Fault::truncated:
      return "truncated";
    case Fault::limit:
      return "item above its limit";
    case Fault::value:
      return "illegal value";
    case Fault::mismatch:
      return "length disagrees with the data that went by RDMA";
  }
  return "unknown fault";
}

void Encoder::ddp(const char*, DdpItem& v, uint32_t max) {
  if (form_ == Form::whole || record_) {
    if (v.inline_bytes.size() != v.length) return fail(Fault::mismatch);
    return variable(v.inline_bytes.data(), v.length, max);
  }
  if (v.length > max) return fail(Fault::limit);
  word(v.length);
  if (ok()) record_ = DdpRecord{size(), v.length};
}

void Encoder::fixed(const std::byte* bytes, size_t n) {
  if (!room(padded_bytes(n))) return;
  RawEncoder(at_).fixed(bytes, n);
  at_ += padded_bytes(n);
}

void Encoder::variable(const std::byte* bytes, size_t n, uint32_t max) {
  if (n > max) return fail(Fault::limit);
  const size_t total = 4 + padded_bytes(n);
  if (!room(total)) return;
  store_u32(at_, static_cast<uint32_t>(n));
  if (n != 0) {
    // The last word first: its tail is the padding, which must be zero.
    std::memset(at_ + total - 4, 0, 4);
    std::memcpy(at_ + 4, bytes, n);
  }
  at_ += total;
}

void Encoder::raw(std::span<const std::byte> bytes) {
  if (!room(bytes.size())) return;
  if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
  at_ += bytes.size();
}

}  // namespace nfsrdma::xdr
