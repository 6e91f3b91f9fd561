// SPDX-License-Identifier: Apache-2.0
#include "fake_server.hpp"

#include <algorithm>

namespace nfsrdma::session::test {

using nfs4::Op;
using nfs4::Status;

namespace {

uint64_t fingerprint(const Sent& sent) {
  // The body without sa_highest_slotid, which may differ between transmissions.
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < sent.args.size(); i++)
    if (i < 40 || i >= 44) h = (h ^ static_cast<uint8_t>(sent.args[i])) * 0x100000001b3u;
  return h;
}

}  // namespace

size_t FakeServer::count(Op op) const { return calls_with(op).size(); }

std::vector<SentRef> FakeServer::calls_with(Op op) const {
  std::vector<SentRef> found;
  for (const SentRef& s : log)
    if (s->has(op)) found.push_back(s);
  return found;
}

void FakeServer::restart() {
  clients_.clear();
  sessions_.clear();
  bound_.clear();
}

Rule* FakeServer::matching(const Sent& sent) {
  for (Rule& r : rules_) {
    if (r.times == 0 || !(sent.has(r.op) || (r.op == Op::illegal && sent.procedure == rpc::procedure_null))) continue;
    if (r.skip > 0) {
      r.skip--;
      continue;
    }
    r.times--;
    return &r;
  }
  return nullptr;
}

void FakeServer::on_call(const SentRef& sent) {
  if (!sent->transport) return;
  log.push_back(sent);
  Rule* found = matching(*sent);
  Rule r = found ? *found : Rule{};
  switch (r.act) {
    case Act::lose_before: return sent->transport->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
    case Act::silence: return;
    case Act::hold: held_.push_back(sent); return;
    case Act::refuse: return sent->fail(rpc::CallOutcome::refused, "refused");
    case Act::chunk_error: return sent->fail(rpc::CallOutcome::chunk_error, "ERR_CHUNK");
    default: execute(sent, r.act, r.status, r.twist);
  }
}

void FakeServer::release() {
  std::vector<SentRef> now;
  now.swap(held_);
  for (const SentRef& sent : now)
    if (sent->transport)
      sent->transport->loop().post([this, sent] {
        if (sent->transport) execute(sent, Act::serve, Status::ok, {});
      });
}

void FakeServer::execute(const SentRef& sent, Act act, Status status,
                         const std::function<void(nfs4::SequenceResult&)>& twist) {
  if (sent->procedure == rpc::procedure_null) return sent->reply({});
  std::vector<std::byte> results = results_of(*sent, act, status, twist);
  switch (act) {
    case Act::lose_after: return sent->transport->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
    case Act::silence_after: return;
    case Act::chunk_error_after: return sent->fail(rpc::CallOutcome::chunk_error, "ERR_CHUNK");
    case Act::bad_reply: return sent->fail(rpc::CallOutcome::bad_reply, "lengths disagree");
    case Act::garbage: std::ranges::fill(results, std::byte{0xa5}); break;
    default: break;
  }
  sent->reply(results);
}

Status FakeServer::on_sequence(const Sent& sent, const nfs4::SequenceArgs& args, std::span<const std::byte>& replayed,
                               bool& uncached) {
  auto at = sessions_.find(args.session_id);
  if (at == sessions_.end()) return Status::badsession;
  if (strict_binding && !bound_.contains(sent.connection)) return Status::conn_not_bound_to_session;
  highest_slot_used = std::max(highest_slot_used, args.slotid);
  auto checked = at->second->check({args.slotid, args.sequenceid, args.highest_slotid, args.cache_this, fingerprint(sent)});
  replayed = checked.reply;
  uncached = checked.verdict == slots::Verdict::uncached;
  if (checked.verdict == slots::Verdict::false_retry) false_retries++;
  if (checked.verdict == slots::Verdict::misordered) misordered++;
  return slots::status_of(checked.verdict);
}

template <class Args>
bool FakeServer::answer(const Sent& sent, const Args& args, nfs4::CompoundReplyBuilder& out) {
  using R = typename Args::Result;
  if constexpr (Args::op == Op::exchange_id) {
    verifiers.push_back(args.client_owner.verifier);
    std::vector<std::byte> owner(args.client_owner.owner.begin(), args.client_owner.owner.end());
    R r;
    for (auto& [id, client] : clients_) {
      if (client.owner != owner || client.verifier != args.client_owner.verifier) continue;
      r.clientid = id;
      r.sequenceid = client.sequence;
      if (client.confirmed) r.flags = nfs4::exchange_flag::confirmed_r;
    }
    if (r.clientid == 0) {
      r.clientid = ++next_client_;
      clients_[r.clientid] = Client{args.client_owner.verifier, owner, false, 1};
      r.sequenceid = 1;
    }
    r.flags |= nfs4::exchange_flag::use_non_pnfs;
    return out.append(r);
  } else if constexpr (Args::op == Op::create_session) {
    auto client = clients_.find(args.clientid);
    if (client == clients_.end()) return out.append_failure<R>(Status::stale_clientid), false;
    if (args.sequenceid != client->second.sequence) return out.append_failure<R>(Status::seq_misordered), false;
    client->second.sequence++;
    client->second.confirmed = true;
    R r;
    r.session_id[0] = std::byte{0x5e};
    r.session_id[1] = std::byte{next_session_++};
    r.sequenceid = args.sequenceid;
    r.flags = back_channel ? nfs4::create_session_flag::conn_back_chan : 0;
    r.fore = args.fore;
    r.fore.requests_max = slots;
    r.back = args.back;
    sessions_[r.session_id] = std::make_unique<slots::ReplyCache>(slots, 1104);
    sessions_made++;
    bound_.insert(sent.connection);
    return out.append(r);
  } else if constexpr (Args::op == Op::bind_conn_to_session) {
    if (!sessions_.contains(args.session_id)) return out.append_failure<R>(Status::badsession), false;
    binds.push_back({sent.connection, args.direction});
    bound_.insert(sent.connection);
    return out.append(R{args.session_id, args.direction, false});
  } else if constexpr (Args::op == Op::destroy_session) {
    bool had = sessions_.erase(args.session_id) == 1;
    sessions_destroyed += had;
    return had ? out.append(R{}) : (out.append_failure<R>(Status::badsession), false);
  } else if constexpr (Args::op == Op::destroy_clientid) {
    clients_destroyed += clients_.erase(args.clientid) == 1;
    return out.append(R{});
  } else if constexpr (Args::op == Op::reclaim_complete) {
    reclaims_completed++;
    return out.append(R{});
  } else if constexpr (Args::op == Op::remove) {
    removed[std::string(args.name)]++;
    return out.append(R{});
  } else {
    return out.append(R{});
  }
}

std::vector<std::byte> FakeServer::results_of(const Sent& sent, Act act, Status status,
                                              const std::function<void(nfs4::SequenceResult&)>& twist) {
  std::vector<std::byte> space(8192);
  nfs4::CompoundCallReader call(sent.args);
  nfs4::CompoundReplyBuilder out(space);
  slots::ReplyCache* cache = nullptr;
  nfs4::SequenceArgs sequence;
  uint32_t number = 0;
  bool uncached = false;
  for (bool go_on = true; go_on && call.next_op(number);) {
    bool last = call.ops_read() == call.op_count();
    nfs4::visit_op(static_cast<Op>(number), [&]<class Args>() {
      using R = typename Args::Result;
      Args args;
      go_on = call.args(args);
      if constexpr (Args::op == Op::sequence) {
        std::span<const std::byte> replayed;
        Status checked = act == Act::fail_sequence ? status : on_sequence(sent, args, replayed, uncached);
        if (checked != Status::ok) {
          out.append_failure<R>(checked);
          go_on = false;
          return;
        }
        if (!replayed.empty()) {
          space.assign(replayed.begin(), replayed.end());
          cache = nullptr;
          go_on = false;
          sequence.slotid = UINT32_MAX;
          return;
        }
        sequence = args;
        cache = uncached ? nullptr : sessions_[args.session_id].get();
        slots::ReplyCache& c = *sessions_[args.session_id];
        R r{args.session_id, args.sequenceid, args.slotid, c.highest(), c.target_highest(), status_flags};
        if (twist) twist(r);
        out.append(r);
      } else if (uncached) {
        out.append_failure<R>(Status::retry_uncached_rep);
        go_on = false;
      } else if ((act == Act::fail_last && last) || act == Act::fail_first) {
        out.append_failure<R>(status);
        go_on = false;
      } else {
        go_on = answer(sent, args, out);
      }
    });
  }
  if (sequence.slotid == UINT32_MAX) return space;
  auto body = out.finish();
  space.resize(body.size());
  if (cache) cache->complete(sequence.slotid, space, sequence.cache_this);
  return space;
}

}  // namespace nfsrdma::session::test
