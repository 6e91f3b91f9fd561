// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/ops.hpp"
#include "server/recovery.hpp"
#include "server/siphash.hpp"

namespace nfsrdma::server {
namespace {

// What makes a repeated request the same one: its beginning, with SEQUENCE and what follows. The data of a WRITE may
// come back in another form.
constexpr size_t fingerprint_bytes = 120;

uint64_t fingerprint_of(const Compound& c) {
  base::ConstBytes bytes = c.call->args;
  SipState hash({0x6e66737264'6d61u, c.principal.uid});
  hash.absorb(c.args.op_count());
  size_t end = std::min(bytes.size(), fingerprint_bytes);
  for (size_t at = 0; at + 8 <= end; at += 8) hash.absorb(base::load_be<uint64_t>(bytes.data() + at));
  return hash.finish();
}

}  // namespace

Status op_exchange_id(Compound& c, const nfs4::ExchangeIdArgs& args) {
  nfs4::ExchangeIdResult result;
  if (Status s = c.state.exchange_id(args, c.principal, result); s != Status::ok) return s;
  return c.answer(result);
}

Status op_create_session(Compound& c, const nfs4::CreateSessionArgs& args) {
  constexpr uint32_t result_bytes = 16 + 8 + 2 * 32;
  if (Status s = c.need_room(result_bytes); s != Status::ok) return s;
  nfs4::CreateSessionResult result;
  if (Status s = c.state.create_session(args, c.principal, c.connection, result); s != Status::ok) return s;
  return c.answer(result);
}

Status op_destroy_session(Compound& c, const nfs4::DestroySessionArgs& args) {
  // Within the session's own compound it must come last (RFC 8881, 18.37.3).
  if (c.session && c.session->id == args.session_id && c.args.ops_read() != c.args.op_count()) return Status::not_only_op;
  if (Status s = c.state.destroy_session(args.session_id); s != Status::ok) return s;
  return c.answer(nfs4::DestroySessionResult{});
}

Status op_destroy_clientid(Compound& c, const nfs4::DestroyClientidArgs& args) {
  if (c.client && c.client->id == args.clientid) return Status::clientid_busy;
  if (Status s = c.state.destroy_clientid(args.clientid); s != Status::ok) return s;
  return c.answer(nfs4::DestroyClientidResult{});
}

Status op_bind_conn(Compound& c, const nfs4::BindConnToSessionArgs& args) {
  nfs4::BindConnToSessionResult result;
  if (Status s = c.state.bind_connection(args, c.connection, result); s != Status::ok) return s;
  return c.answer(result);
}

Status op_backchannel_ctl(Compound& c, const nfs4::BackchannelCtlArgs& args) {
  if (Status s = c.state.backchannel_ctl(c.session, args); s != Status::ok) return s;
  return c.answer(nfs4::BackchannelCtlResult{});
}

Status op_sequence(Compound& c, const nfs4::SequenceArgs& args) {
  SequenceStart start;
  Status status = c.state.begin_sequence(args, fingerprint_of(c), c.connection, c.args.op_count(), c.space, start);
  if (status != Status::ok) return status;
  c.session = std::move(start.session);
  c.client = c.session->client;
  c.slot = args.slotid;
  c.cache_this = args.cache_this;
  c.verdict = start.verdict;
  c.replayed_bytes = start.replayed_bytes;
  if (c.verdict == slots::Verdict::replay) return Status::ok;
  const nfs4::ChannelAttrs& fore = c.session->fore;
  if (c.request_bytes > fore.request_bytes_max) return Status::req_too_big;
  uint32_t most = args.cache_this ? fore.cached_response_bytes_max : fore.response_bytes_max;
  c.limit_bytes = most > rpc::reply_header_bytes ? most - rpc::reply_header_bytes : 0;
  return c.answer(start.result);
}

Task<Status> op_reclaim_complete(Compound& c, const nfs4::ReclaimCompleteArgs& args) {
  std::string owner;
  if (Status s = c.state.reclaim_complete(c.client, args.one_fs, owner); s != Status::ok) co_return s;
  if (!owner.empty()) {
    // Before this is answered the client gets no state that it could want back after a restart.
    if (c.context.recovery) co_await c.context.recovery->add(owner);
    c.state.recorded(owner);
  }
  co_return c.answer(nfs4::ReclaimCompleteResult{});
}

}  // namespace nfsrdma::server
