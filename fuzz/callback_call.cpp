// SPDX-License-Identifier: Apache-2.0
// Callback calls as the server sends them: RPC header and CB_COMPOUND. Each input is answered twice, since the second time
// it is a replay; an answer is a well-formed RPC reply to its xid that fits the space given.
#include <array>
#include <cstdint>
#include <cstdlib>

#include "session/callback_service.hpp"

using namespace nfsrdma;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  session::CallbackService service;
  nfs4::SessionId id{};
  service.reset(id);
  service.on_recall = [](const nfs4::CbRecallArgs& args) {
    return args.truncate ? nfs4::Status::bad_stateid : nfs4::Status::ok;
  };
  std::span<const std::byte> message(reinterpret_cast<const std::byte*>(data), size);
  for (int round = 0; round < 2; round++) {
    std::array<std::byte, 4068> reply;
    size_t room = round == 0 ? reply.size() : 128;
    uint32_t written = service.on_reverse_call(message, base::Bytes(reply.data(), room));
    if (written > room) std::abort();
    if (written == 0) continue;
    uint32_t at = 0;
    auto header = rpc::decode_reply_header(base::ConstBytes(reply.data(), written), base::load_be<uint32_t>(message.data()), at);
    if (!header && header.error().origin() == ErrorOrigin::protocol) std::abort();
  }
  return 0;
}
