// SPDX-License-Identifier: Apache-2.0
// How a compound gets its answer: slot, channel, transmission, judgement. server_start.cpp has the session's life.
#include "session/server.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "session/errors.hpp"

namespace nfsrdma::session {

using base::LogLevel;
using nfs4::Status;
using rpc::CallOutcome;

namespace {

constexpr base::TimeNs delay_first_ns = base::ms(100), delay_max_ns = base::seconds(5);
constexpr base::TimeNs same_request_wait_ns = base::ms(500);

Error fate_unknown(const Compound& c) {
  return Error(EIO, ErrorOrigin::server,
               base::text("%s: the session was lost while the call was under way, and it is unknown whether the server "
                          "executed it; look before repeating it",
                          nfs4::to_string(c.main_op())));
}

Error malformed_reply(const Compound& c, const char* complaint) {
  return Error(EIO, ErrorOrigin::protocol,
               base::text("%s: malformed reply (%s); the connection is replaced", nfs4::to_string(c.main_op()),
                          complaint ? complaint : "does not decode"));
}

}  // namespace

// co_await WaitChannel{server}: until a connection is up, or there is no hope of one.
struct Server::WaitChannel : Waiter {
  Server& server;
  explicit WaitChannel(Server& s) : server(s) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> h) {
    std::lock_guard lock(server.mutex_);
    if (server.choose_channel() || !server.may_wait_for_channel()) return false;
    park(h);
    server.channel_waiters_.push_back(*this);
    return true;
  }
  void await_resume() const noexcept {}
};

// co_await WaitRecovery{server, generation}: until the session after `generation` stands, or we are shutting down.
struct Server::WaitRecovery : Waiter {
  Server& server;
  uint64_t generation;
  WaitRecovery(Server& s, uint64_t g) : server(s), generation(g) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> h) {
    server.lose_session(generation);
    std::lock_guard lock(server.mutex_);
    if (!server.recovering_) return false;
    park(h);
    server.recovery_waiters_.push_back(*this);
    return true;
  }
  void await_resume() const noexcept {}
};

Channel* Server::choose_channel() {
  io::IoLoop* here = io::IoLoop::current();
  Channel* best = nullptr;
  auto better = [here](Channel* a, Channel* b) {
    bool a_here = &a->loop() == here, b_here = &b->loop() == here;
    if (a_here != b_here) return a_here;
    return a->load() < b->load();
  };
  for (auto& channel : channels_)
    if (channel->up() && (!best || better(channel.get(), best))) best = channel.get();
  return best;
}

bool Server::may_wait_for_channel() const {
  return started_.load(std::memory_order_acquire) && !stopping_.load(std::memory_order_acquire);
}

// False: no connection, and none will come.
io::Task<bool> Server::transmit(Compound& c) {
  Channel* channel = choose_channel();
  while (!channel) {
    if (!may_wait_for_channel()) {
      c.error = Error(ENOTCONN, ErrorOrigin::connection, "the connection to the server was lost");
      co_return false;
    }
    co_await WaitChannel(*this);
    channel = choose_channel();
  }
  io::IoLoop* from = io::IoLoop::current();
  if (&channel->loop() != from) co_await channel->loop().enter();
  c.sent_at_ns = channel->loop().now_ns();
  c.transmissions++;
  c.carried_by = channel;
  co_await channel->exchange(c);
  if (&channel->loop() != from) {
    if (c.outcome == CallOutcome::replied) c.keep_results();
    co_await from->enter();
  }
  if (c.outcome == CallOutcome::bad_reply) replace_connection_of(c, c.error);
  co_return true;
}

io::Task<Result<void>> Server::run(Compound& c) {
  base::TimeNs delay_ns = delay_first_ns;
  bool maybe_executed = false;
  for (;;) {
    SlotLease lease = co_await slots_.acquire(c.urgent, c.privileged);
    Judgement j = co_await run_on_slot(c, lease);
    if (j.verdict == Verdict::done) {
      count(c, c.reader().status() != Status::ok);
      co_return Result<void>{};
    }
    maybe_executed |= j.maybe_executed;
    if (j.verdict == Verdict::failed) {
      count(c, true);
      co_return std::move(j.error);
    }
    if (stopping_.load(std::memory_order_acquire))
      co_return Error(ECANCELED, ErrorOrigin::connection, "the mount is shutting down");
    io::IoLoop& here = *io::IoLoop::current();
    if (here.now_ns() > c.give_up_at_ns)
      co_return Error(ETIMEDOUT, ErrorOrigin::connection, "the server did not serve the request in time");
    if (j.verdict == Verdict::session_lost) {
      co_await WaitRecovery(*this, lease.generation);
      if (maybe_executed && c.repeat() == Repeat::exactly_once) co_return fate_unknown(c);
      continue;
    }
    if (j.wait_ns) {
      co_await here.sleep_for(delay_ns);
      delay_ns = std::min(delay_ns * 2, delay_max_ns);
    }
  }
}

io::Task<Server::Judgement> Server::run_on_slot(Compound& c, SlotLease lease) {
  bool maybe_executed = false;
  base::TimeNs first_ns = io::IoLoop::current()->now_ns();
  for (;;) {
    Judgement j;
    j.verdict = Verdict::session_lost;
    if (!slots_.stamp(c, lease)) {  // another session by now
      j.maybe_executed = maybe_executed;
      co_return j;
    }
    bool sent = co_await transmit(c);
    if (!sent) {
      slots_.abandon(lease);
      j.verdict = Verdict::failed;
      j.error = c.error;
      co_return j;
    }
    if (c.outcome == CallOutcome::not_sent) continue;
    if (c.outcome == CallOutcome::lost) {
      maybe_executed = true;
      replays_.fetch_add(1, std::memory_order_relaxed);
      slots_.lost(lease);
      base::TimeNs patience = params_.channel.answer_timeout_ns * (params_.retrans + 1);
      if (params_.soft && io::IoLoop::current()->now_ns() - first_ns >= patience) {
        slots_.abandon(lease);
        j.verdict = Verdict::failed;
        j.error = Error(params_.soft_errno, ErrorOrigin::connection, "no answer from the server (soft mount)");
        co_return j;
      }
      continue;
    }
    j = c.outcome == CallOutcome::replied ? judge(c, lease) : judge_unanswered(c, lease);
    j.maybe_executed |= maybe_executed;
    if (j.verdict != Verdict::resend_same) co_return j;
    co_await io::IoLoop::current()->sleep_for(same_request_wait_ns);
  }
}

Server::Judgement Server::judge_unanswered(Compound& c, const SlotLease& lease) {
  Judgement j;
  j.verdict = Verdict::failed;
  j.error = c.error;
  // A refusal at RPC level never reached the session; in the other cases the server had the request.
  slots_.release(lease, c.outcome != CallOutcome::refused);
  if (c.outcome == CallOutcome::chunk_error)
    j.error = Error(EMSGSIZE, ErrorOrigin::server,
                    base::text("%s: the server could not use the memory offered for its reply (ERR_CHUNK)",
                               nfs4::to_string(c.main_op())));
  return j;
}

Server::Judgement Server::judge(Compound& c, const SlotLease& lease) {
  c.open_reply();
  nfs4::CompoundReader& reader = c.reader();
  nfs4::SequenceResult sequence;
  Judgement j;
  if (!reader.next(sequence)) {
    if (!reader.malformed()) return judge_sequence_failure(reader.op_status(), c, lease);
    slots_.release(lease, true);
    j.verdict = Verdict::failed;
    j.error = malformed_reply(c, reader.complaint());
    replace_connection_of(c, j.error);
    return j;
  }
  if (slots_.on_sequence(lease, sequence) == slots::ReplyCheck::mismatch) {
    j.verdict = Verdict::session_lost;
    j.maybe_executed = true;
    return j;
  }
  slots_.release(lease, true);
  renewed_at_ns_.store(c.sent_at_ns, std::memory_order_relaxed);
  if (sequence.status_flags != flags_seen_.load(std::memory_order_relaxed)) on_sequence_flags(sequence.status_flags);
  Status status = reader.status();
  if (status == Status::ok) return j;
  uint32_t failed_at = reader.result_count() == 0 ? 0 : reader.result_count() - 1;
  bool nothing_done = !c.main_index() || failed_at <= *c.main_index();
  if (reaction_to(status) == Reaction::delay && nothing_done) {
    j.verdict = Verdict::resend_new;
    j.wait_ns = delay_first_ns;
  } else if (status == Status::retry_uncached_rep && c.repeat() == Repeat::freely) {
    j.verdict = Verdict::resend_new;
  }
  return j;
}

// SEQUENCE itself was refused (RFC 8881 section 18.46): the sequence id is still due unless said otherwise.
Server::Judgement Server::judge_sequence_failure(Status status, Compound& c, const SlotLease& lease) {
  Judgement j;
  switch (status) {
    case Status::delay:
      j.verdict = Verdict::resend_same;
      return j;
    case Status::badslot:
      if (slots_.bad_slot(lease)) {
        j.verdict = Verdict::resend_new;
        return j;
      }
      [[fallthrough]];
    case Status::badsession:
    case Status::deadsession:
    case Status::bad_high_slot:
    case Status::seq_misordered:
    case Status::stale_clientid:
      j.verdict = Verdict::session_lost;
      j.error = nfs_error(status, "SEQUENCE");
      return j;
    case Status::seq_false_retry:
      slots_.release(lease, true);
      j.verdict = c.repeat() == Repeat::freely ? Verdict::resend_new : Verdict::failed;
      j.error = fate_unknown(c);
      return j;
    case Status::conn_not_bound_to_session:
      slots_.release(lease, false);
      replace_connection_of(c, nfs_error(status, "SEQUENCE"));
      j.verdict = Verdict::resend_new;
      j.wait_ns = delay_first_ns;
      return j;
    case Status::retry_uncached_rep:
      slots_.release(lease, true);
      j.verdict = c.repeat() == Repeat::freely ? Verdict::resend_new : Verdict::failed;
      j.error = fate_unknown(c);
      return j;
    default:
      slots_.release(lease, false);
      j.verdict = Verdict::failed;
      j.error = nfs_error(status, nfs4::to_string(c.main_op()));
      return j;
  }
}

void Server::replace_connection_of(const Compound& c, const Error& why) {
  Channel* channel = c.carried_by;
  if (!channel) return;
  base::log(LogLevel::warn, "session", "connection %u is replaced: %s", channel->index(), why.text().c_str());
  struct Drop {
    Channel* channel;
    std::shared_ptr<Error> why;
  };
  channel->loop().post([d = Drop{channel, std::make_shared<Error>(why)}] { d.channel->drop(*d.why); });
}

void Server::count(const Compound& c, bool failed) {
  size_t op = static_cast<size_t>(c.main_op());
  if (op >= counted_ops) return;
  OpCounters& n = counters_[op];
  base::TimeNs now = io::IoLoop::current()->now_ns();
  n.calls.fetch_add(1, std::memory_order_relaxed);
  n.transmissions.fetch_add(c.transmissions, std::memory_order_relaxed);
  n.bytes_sent.fetch_add(c.whole_request_bytes(), std::memory_order_relaxed);
  n.bytes_received.fetch_add(c.results.size() + c.data_length, std::memory_order_relaxed);
  n.response_ns.fetch_add(now - c.sent_at_ns, std::memory_order_relaxed);
  if (failed) n.errors.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace nfsrdma::session
