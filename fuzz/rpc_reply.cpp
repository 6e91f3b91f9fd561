// SPDX-License-Identifier: Apache-2.0
// RPC reply and call headers. Whatever is decoded must lie within the message.
#include <cstddef>
#include <cstdint>

#include "rpc/message.hpp"

namespace {

using namespace nfsrdma;

void require(bool ok) {
  if (!ok) __builtin_trap();
}

bool within(base::ConstBytes part, base::ConstBytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const base::ConstBytes in(reinterpret_cast<const std::byte*>(data), size);
  const uint32_t xid = size >= 4 ? base::load_be<uint32_t>(in.data()) : 0;
  uint32_t at = 0;
  if (auto ok = rpc::decode_reply_header(in, xid, at)) {
    require(at <= size && at >= rpc::reply_header_bytes);
  } else {
    require(!ok.error().text().empty() && ok.error().errno_value() > 0);
  }
  require(!rpc::decode_reply_header(in, xid + 1, at));
  at = 0;
  if (auto call = rpc::decode_call_header(in, at)) {
    require(at <= size && at >= 40);
    require(within(call->credential, in) && within(base::bytes_of(call->sys.machine), in));
    require(call->sys.group_count <= rpc::auth_sys_groups_max);
    require(call->credential.size() <= rpc::auth_body_bytes_max && call->sys.machine.size() <= 255);
  }
  return 0;
}
