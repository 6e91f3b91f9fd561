// SPDX-License-Identifier: Apache-2.0
// Sessions and their connections: RFC 8881, 18.34 to 18.37 and 18.46.
#include <algorithm>
#include <cstring>

#include "server/state.hpp"

namespace nfsrdma::server {
namespace {

// What a channel must offer to be of any use: SEQUENCE and one operation each way, RPC headers included.
constexpr uint32_t message_bytes_min = 512;
// CB_SEQUENCE and CB_RECALL with the largest AUTH_SYS credential.
constexpr uint32_t callback_request_bytes_min = 640;
constexpr uint32_t callback_response_bytes_min = 128;

rpc::Credential credential_of(const nfs4::CallbackSecParms& parms) {
  if (parms.flavor != nfs4::AuthFlavor::sys) return rpc::Credential::none();
  rpc::AuthSys auth;
  auth.stamp = parms.sys.stamp;
  auth.machine = parms.sys.machine_name;
  auth.uid = parms.sys.uid;
  auth.gid = parms.sys.gid;
  auth.group_count = std::min<uint32_t>(parms.sys.gid_count, rpc::auth_sys_groups_max);
  std::copy_n(parms.sys.gids.begin(), auth.group_count, auth.groups.begin());
  return rpc::Credential::sys(auth);
}

// The first flavour of the list that we can send; an empty list means AUTH_NONE, as it does to other servers.
Status choose_credential(const xdr::Array<nfs4::CallbackSecParms>& list, rpc::Credential& credential) {
  credential = rpc::Credential::none();
  if (list.empty()) return Status::ok;
  for (const nfs4::CallbackSecParms& parms : list) {
    if (parms.flavor == nfs4::AuthFlavor::gss) continue;
    credential = credential_of(parms);
    return Status::ok;
  }
  return Status::encr_alg_unsupp;
}

}  // namespace

size_t State::SessionIdHash::operator()(const SessionId& id) const {
  uint64_t words[2];
  std::memcpy(words, id.data(), sizeof words);
  return words[0] * 0x9e3779b97f4a7c15u ^ words[1];
}

SessionRef State::session_of(const SessionId& id) {
  auto it = sessions_.find(id);
  return it == sessions_.end() ? SessionRef() : it->second;
}

Status State::check_channels(const nfs4::CreateSessionArgs& args) const {
  const nfs4::ChannelAttrs& fore = args.fore;
  if (fore.request_bytes_max < message_bytes_min || fore.response_bytes_max < message_bytes_min ||
      fore.operations_max == 0 || fore.requests_max == 0) {
    return Status::toosmall;
  }
  if (!(args.flags & nfs4::create_session_flag::conn_back_chan)) return Status::ok;
  const nfs4::ChannelAttrs& back = args.back;
  if (back.request_bytes_max < callback_request_bytes_min || back.response_bytes_max < callback_response_bytes_min ||
      back.operations_max < 2 || back.requests_max == 0) {
    return Status::toosmall;
  }
  return Status::ok;
}

nfs4::ChannelAttrs State::fore_attributes(const nfs4::ChannelAttrs& wanted) const {
  const StateLimits& limits = params_.limits;
  nfs4::ChannelAttrs a;
  a.request_bytes_max = std::min(wanted.request_bytes_max, limits.request_bytes_max);
  a.response_bytes_max = std::min(wanted.response_bytes_max, limits.response_bytes_max);
  a.cached_response_bytes_max = std::min({wanted.cached_response_bytes_max, limits.cached_bytes_max,
                                          a.response_bytes_max});
  a.operations_max = std::min(wanted.operations_max, limits.operations_max);
  a.requests_max = std::min(wanted.requests_max, limits.slots_max);
  return a;
}

nfs4::ChannelAttrs State::back_attributes(const nfs4::ChannelAttrs& wanted) const {
  nfs4::ChannelAttrs a = wanted;
  a.header_pad_bytes = 0;
  a.cached_response_bytes_max = 0;
  a.rdma_ird.reset();
  return a;
}

Status State::create_session(const nfs4::CreateSessionArgs& args, const Principal& principal,
                             const ConnectionRef& connection, nfs4::CreateSessionResult& result) {
  Lock lock(mutex_);
  ClientRef client = client_of(args.clientid);
  if (!client) return Status::stale_clientid;
  if (args.sequenceid == client->session_sequence && client->session_sequence != 0) {
    result = client->last_session;
    return Status::ok;
  }
  if (args.sequenceid != client->session_sequence + 1) return Status::seq_misordered;
  if (!(client->principal == principal)) return Status::clid_inuse;
  constexpr uint32_t flags_known = nfs4::create_session_flag::persist | nfs4::create_session_flag::conn_back_chan |
                                   nfs4::create_session_flag::conn_rdma;
  if (args.flags & ~flags_known) return Status::inval;
  if (Status s = check_channels(args); s != Status::ok) return s;
  rpc::Credential credential;
  if (Status s = choose_credential(args.sec_parms, credential); s != Status::ok) return s;
  if (client->sessions.size() >= params_.limits.sessions_per_client) return Status::nospc;
  if (sessions_.size() >= params_.limits.sessions_max) {
    say_limit("sessions", params_.limits.sessions_max);
    return Status::nospc;
  }
  if (!client->confirmed) {
    // Another life of the same client: what it held is void now (RFC 8881, 18.35.4, case 5).
    if (ClientRef old = find_owner(client->owner, true)) drop_client(old);
    client->confirmed = true;
  }
  auto session = std::make_shared<Session>(client, std::min(args.fore.requests_max, params_.limits.slots_max),
                                           params_.limits.cached_bytes_max);
  base::store_be(session->id.data(), client->id);
  base::store_be(session->id.data() + 8, ++session_counter_);
  base::store_be(session->id.data() + 12, static_cast<uint32_t>(random_.next()));
  session->fore = fore_attributes(args.fore);
  session->back = back_attributes(args.back);
  session->callback_program = args.callback_program;
  session->callback_credential = credential;
  bool back = (args.flags & nfs4::create_session_flag::conn_back_chan) != 0;
  bind(*session, connection, back);
  sessions_.emplace(session->id, session);
  client->sessions.push_back(session);
  client->renewed_ns = clock_.now_ns();
  client->session_sequence = args.sequenceid;
  result.session_id = session->id;
  result.sequenceid = args.sequenceid;
  result.flags = back ? nfs4::create_session_flag::conn_back_chan : 0;
  result.fore = session->fore;
  result.back = session->back;
  client->last_session = result;
  return Status::ok;
}

Status State::destroy_session(const SessionId& id) {
  Lock lock(mutex_);
  SessionRef session = session_of(id);
  if (!session) return Status::badsession;
  drop_session(session);
  return Status::ok;
}

bool State::bind(Session& session, const ConnectionRef& connection, bool back) {
  for (Session::Binding& binding : session.connections) {
    if (binding.connection != connection) continue;
    binding.back = binding.back || back;
    if (back) std::swap(binding, session.connections.back());
    return true;
  }
  if (session.connections.size() >= params_.limits.connections_per_session) return false;
  session.connections.push_back({connection, back});
  return true;
}

Status State::bind_connection(const nfs4::BindConnToSessionArgs& args, const ConnectionRef& connection,
                              nfs4::BindConnToSessionResult& result) {
  using nfs4::ChannelDirection;
  bool back = args.direction != ChannelDirection::fore;
  if (args.direction != ChannelDirection::fore && args.direction != ChannelDirection::back &&
      args.direction != ChannelDirection::fore_or_both && args.direction != ChannelDirection::back_or_both) {
    return Status::inval;
  }
  Lock lock(mutex_);
  SessionRef session = session_of(args.session_id);
  if (!session) return Status::badsession;
  if (!bind(*session, connection, back)) return Status::nospc;
  if (back) {
    session->client->callback_fault = false;
    if (callback_sender_ && !session->callbacks.empty()) {
      callback_sender_->callbacks_waiting(session, connection->loop);
    }
  }
  result.session_id = session->id;
  result.use_rdma_mode = false;
  result.direction = args.direction == ChannelDirection::fore   ? ChannelDirection::fore
                     : args.direction == ChannelDirection::back ? ChannelDirection::back
                                                                : nfs4::channel_both;
  return Status::ok;
}

Status State::backchannel_ctl(const SessionRef& session, const nfs4::BackchannelCtlArgs& args) {
  rpc::Credential credential;
  if (Status s = choose_credential(args.sec_parms, credential); s != Status::ok) return s;
  Lock lock(mutex_);
  session->callback_program = args.callback_program;
  session->callback_credential = credential;
  return Status::ok;
}

void State::connection_gone(const Connection& connection) {
  Lock lock(mutex_);
  for (auto& [id, session] : sessions_) {
    std::erase_if(session->connections, [&](const Session::Binding& b) { return b.connection.get() == &connection; });
    if (!callback_sender_ || session->callbacks.empty()) continue;
    for (const Session::Binding& b : session->connections) {
      if (b.back) callback_sender_->callbacks_waiting(session, b.connection->loop);
    }
  }
}

uint32_t State::status_flags(const Client& client) const {
  uint32_t flags = 0;
  bool back = std::ranges::any_of(client.sessions, [](const SessionRef& session) {
    return std::ranges::any_of(session->connections, [](const Session::Binding& b) { return b.back; });
  });
  if (!back) flags |= nfs4::sequence_flag::cb_path_down;
  if (client.callback_fault) flags |= nfs4::sequence_flag::backchannel_fault;
  if (client.revoked > 0) flags |= nfs4::sequence_flag::recallable_state_revoked;
  return flags;
}

Status State::begin_sequence(const nfs4::SequenceArgs& args, uint64_t fingerprint, const ConnectionRef& connection,
                             uint32_t op_count, base::Bytes replay_space, SequenceStart& start) {
  Lock lock(mutex_);
  start.session = session_of(args.session_id);
  if (!start.session) return Status::badsession;
  Session& session = *start.session;
  if (op_count > session.fore.operations_max) return Status::too_many_ops;
  if (!bind(session, connection, false)) return Status::conn_not_bound_to_session;
  slots::ReplyCache::Answer answer = session.replies.check(
      {args.slotid, args.sequenceid, args.highest_slotid, args.cache_this, fingerprint});
  start.verdict = answer.verdict;
  if (Status s = slots::status_of(answer.verdict); s != Status::ok) return s;
  session.client->renewed_ns = clock_.now_ns();
  if (answer.verdict == slots::Verdict::replay) {
    if (answer.reply.size() > replay_space.size()) {
      start.verdict = slots::Verdict::uncached;
    } else {
      std::memcpy(replay_space.data(), answer.reply.data(), answer.reply.size());
      start.replayed_bytes = static_cast<uint32_t>(answer.reply.size());
    }
  }
  start.result.session_id = args.session_id;
  start.result.sequenceid = args.sequenceid;
  start.result.slotid = args.slotid;
  start.result.highest_slotid = session.replies.highest();
  start.result.target_highest_slotid = session.replies.target_highest();
  start.result.status_flags = status_flags(*session.client);
  return Status::ok;
}

void State::finish_sequence(const SessionRef& session, uint32_t slot, base::ConstBytes reply, bool keep) {
  Lock lock(mutex_);
  session->replies.complete(slot, reply, keep);
}

}  // namespace nfsrdma::server
