// SPDX-License-Identifier: Apache-2.0
// Calls to the client on its own connection (RFC 8167): inline, with xids and credits of their own.
#include <cerrno>
#include <cstring>

#include "rpcrdma/server_endpoint.hpp"

namespace nfsrdma::rpcrdma {

uint32_t ServerEndpoint::reverse_bytes_max() const {
  return std::min(send_inline_bytes_, 4096u) - header_bytes_min;
}

Result<void> ServerEndpoint::call_back(base::ConstBytes message,
                                       Callback<void(Result<base::ConstBytes>)> done) {
  if (state_ != State::up)
    return Error(ENOTCONN, ErrorOrigin::connection, "the client's connection has ended");
  if (message.size() < 8 || message.size() > reverse_bytes_max())
    return Error(EMSGSIZE, ErrorOrigin::local, "a callback must fit inline");
  if (reverse_credits_.free() == 0 || sq_used_ >= sq_depth_)
    return Error(ENOBUFS, ErrorOrigin::connection, "the client takes no more callbacks now");
  const uint32_t xid = base::load_be<uint32_t>(message.data());
  ReverseCall* call = nullptr;
  for (ReverseCall& c : reverse_calls_) {
    if (c.waiting && c.xid == xid)
      return Error(EEXIST, ErrorOrigin::local, "a callback with this xid is unanswered");
    if (!c.waiting && !c.sending) call = &c;
  }
  if (!call) return Error(ENOBUFS, ErrorOrigin::local, "earlier callbacks are still being sent");
  HeaderWriter w({arena_->at(call->offset), header_bytes_min});
  w.fixed(xid, params_.reverse_credits, Procedure::msg);
  w.end_reads();
  w.end_write_list();
  w.no_reply_chunk();
  std::memcpy(arena_->at(call->offset) + header_bytes_min, message.data(), message.size());
  const rdma::Sge sge = arena_->sge(call->offset, header_bytes_min + static_cast<uint32_t>(message.size()));
  rdma::SendRequest request;
  request.id = call->id();
  request.sge = {&sge, 1};
  if (!post(request)) return Error(ENOTCONN, ErrorOrigin::connection, "the client's connection has ended");
  call->xid = xid;
  call->waiting = call->sending = true;
  call->done = std::move(done);
  reverse_credits_.take();
  flush_soon();
  return {};
}

void ServerEndpoint::on_reverse_reply(base::ConstBytes body, uint32_t credit) {
  const uint32_t xid = base::load_be<uint32_t>(body.data());
  for (ReverseCall& call : reverse_calls_) {
    if (!call.waiting || call.xid != xid) continue;
    call.waiting = false;
    reverse_credits_.grant(credit);
    reverse_credits_.give_back();
    std::exchange(call.done, {})(body);
    return;
  }
}

void ServerEndpoint::on_reverse_error(uint32_t xid) {
  for (ReverseCall& call : reverse_calls_) {
    if (!call.waiting || call.xid != xid) continue;
    call.waiting = false;
    reverse_credits_.give_back();
    std::exchange(call.done, {})(
        Error(EREMOTEIO, ErrorOrigin::server, "the client answered a callback with RDMA_ERROR"));
    return;
  }
}

void ServerEndpoint::end_reverse(const Error& why) {
  for (ReverseCall& call : reverse_calls_) {
    if (!call.waiting) continue;
    call.waiting = false;
    reverse_credits_.give_back();
    std::exchange(call.done, {})(why);
  }
}

}  // namespace nfsrdma::rpcrdma
