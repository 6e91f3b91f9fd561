// SPDX-License-Identifier: Apache-2.0
// The reverse direction (RFC 8167): calls that the peer sends on this connection. Inline only, in both
// directions.
#include "rpcrdma/endpoint.hpp"

namespace nfsrdma::rpcrdma {

void Endpoint::on_reverse_call(base::ConstBytes message) {
  stats_.reverse_calls++;
  ReverseReply* reply = nullptr;
  for (ReverseReply& r : reverse_replies_)
    if (!r.busy) {
      reply = &r;
      break;
    }
  if (!reply) return bad_reply(nullptr, "more callbacks than it was granted");
  const uint32_t xid = base::load_be<uint32_t>(message.data());
  HeaderWriter w({arena_->at(reply->offset), header_bytes_min});
  w.fixed(xid, params_.reverse_credits, Procedure::msg);
  w.end_reads();
  w.end_write_list();
  w.no_reply_chunk();
  const base::Bytes space(arena_->at(reply->offset) + header_bytes_min, reverse_bytes_max());
  uint32_t n = reverse_ ? reverse_->on_reverse_call(message, space)
                        : rpc::encode_reply_header(space, xid, rpc::AcceptStatus::program_unavailable);
  if (n == 0 || n > space.size() || state_ != State::up) return;
  const rdma::Sge sge = arena_->sge(reply->offset, header_bytes_min + n);
  rdma::SendRequest request;
  request.id = reply->id();
  request.sge = {&sge, 1};
  if (auto ok = qp_->post_send({&request, 1}); !ok) return fail(ok.error());
  reply->busy = true;
  driver_.at_batch_end(*this);
}

}  // namespace nfsrdma::rpcrdma
