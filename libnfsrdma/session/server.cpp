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

Error fate_unknown(const Compound& c, const char* why) {
  return Error(EIO, ErrorOrigin::server,
               base::text("%s: %s, and it is unknown whether the server executed the call; look before repeating it",
                          nfs4::to_string(c.main_op()), why));
}

Error shutting_down() { return Error(ECANCELED, ErrorOrigin::connection, "the mount is shutting down"); }

Error malformed_reply(const Compound& c, const char* complaint) {
  return Error(EIO, ErrorOrigin::protocol,
               base::text("%s: malformed reply (%s); the connection is replaced", nfs4::to_string(c.main_op()),
                          complaint ? complaint : "does not decode"));
}

}  // namespace

// co_await WaitChannel{server, deadline_ns}: until a connection is up, there is no hope of one, or it is too late.
struct Server::WaitChannel : Waiter {
  Server& server;
  base::TimeNs deadline_ns;
  WaitChannel(Server& s, base::TimeNs d) : server(s), deadline_ns(d) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> h) {
    std::lock_guard lock(server.mutex_);
    if (server.choose_channel() || !server.may_wait_for_channel()) return false;
    park(h, deadline_ns, server.mutex_);
    server.channel_waiters_.push_back(*this);
    return true;
  }
  void await_resume() const noexcept {}
};

// co_await WaitRecovery{server, generation, deadline_ns}: until the session after `generation` stands, we are shutting
// down, or it is too late.
struct Server::WaitRecovery : Waiter {
  Server& server;
  uint64_t generation;
  base::TimeNs deadline_ns;
  WaitRecovery(Server& s, uint64_t g, base::TimeNs d) : server(s), generation(g), deadline_ns(d) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> h) {
    server.lose_session(generation);
    std::lock_guard lock(server.mutex_);
    if (!server.recovering_) return false;
    park(h, deadline_ns, server.mutex_);
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

// False: no connection, and none will come, or not in time.
io::Task<bool> Server::transmit(Compound& c, base::TimeNs deadline_ns) {
  Channel* channel = choose_channel();
  while (!channel) {
    bool late = deadline_ns <= io::IoLoop::current()->now_ns();
    if (late || !may_wait_for_channel()) {
      c.error = late ? given_up(c) : Error(ENOTCONN, ErrorOrigin::connection, "the connection to the server was lost");
      co_return false;
    }
    co_await WaitChannel(*this, deadline_ns);
    channel = choose_channel();
  }
  io::IoLoop* from = io::IoLoop::current();
  if (&channel->loop() != from) co_await channel->loop().enter();
  c.sent_at_ns = channel->loop().now_ns();
  if (c.transmissions++ == 0) c.first_sent_at_ns = c.sent_at_ns;
  c.carried_by = channel;
  c.connection = channel->connects();
  co_await channel->exchange(c);
  if (&channel->loop() != from) {
    if (c.outcome == CallOutcome::replied) c.keep_results();
    co_await from->enter();
  }
  if (c.outcome == CallOutcome::bad_reply) replace_connection_of(c, c.error);
  co_return true;
}

io::Task<Result<void>> Server::run(Compound& c) {
  base::TimeNs begin_ns = io::IoLoop::current()->now_ns();
  auto ran = co_await run_to_end(c);
  count(c, begin_ns, !ran || c.reader().status() != Status::ok);
  co_return ran;
}

// How long the server's silence is borne from now on.
base::TimeNs Server::deadline_of(const Compound& c, base::TimeNs now_ns) const {
  if (!params_.soft || c.privileged) return c.give_up_at_ns;
  return std::min(c.give_up_at_ns, now_ns + params_.channel.answer_timeout_ns * (params_.retrans + 1));
}

Error Server::given_up(const Compound& c) const {
  if (params_.soft)
    return Error(params_.soft_errno, ErrorOrigin::connection,
                 base::text("%s: no answer from the server in time (soft mount)", nfs4::to_string(c.main_op())));
  return Error(ETIMEDOUT, ErrorOrigin::connection,
               base::text("%s: the server did not serve the request in time", nfs4::to_string(c.main_op())));
}

io::Task<Result<void>> Server::run_to_end(Compound& c) {
  base::TimeNs delay_ns = delay_first_ns;
  bool maybe_executed = false;
  for (;;) {
    io::IoLoop& here = *io::IoLoop::current();
    base::TimeNs deadline_ns = deadline_of(c, here.now_ns());
    std::optional<SlotLease> lease = co_await slots_.acquire(c.urgent, c.privileged, deadline_ns);
    if (!lease) {
      if (stopping_.load(std::memory_order_acquire)) co_return shutting_down();
      co_return given_up(c);
    }
    Judgement j = co_await run_on_slot(c, *lease, deadline_ns);
    if (j.verdict == Verdict::done) co_return Result<void>{};
    if (j.verdict == Verdict::failed) co_return std::move(j.error);
    if (stopping_.load(std::memory_order_acquire)) co_return shutting_down();
    maybe_executed |= j.maybe_executed;
    if (j.verdict == Verdict::session_lost) {
      // Recovery must not wait for itself: it starts over.
      if (c.privileged) co_return std::move(j.error);
      co_await WaitRecovery(*this, lease->generation, deadline_ns);
    }
    if (maybe_executed && c.repeat() == Repeat::exactly_once)
      co_return fate_unknown(c, "the session was lost while the call was under way");
    if (here.now_ns() > c.give_up_at_ns) co_return given_up(c);
    if (j.wait_ns) {
      co_await here.sleep_for(delay_ns);
      delay_ns = std::min(delay_ns * 2, delay_max_ns);
    }
  }
}

// One request, sent until it is answered: every transmission has the same slot and sequence id, so that the server
// executes it once.
io::Task<Server::Judgement> Server::run_on_slot(Compound& c, SlotLease lease, base::TimeNs deadline_ns) {
  bool maybe_executed = false;
  for (;;) {
    Judgement j;
    c.state_epoch = state_epoch();
    if (!slots_.stamp(c, lease)) {  // another session by now
      j.verdict = Verdict::session_lost;
      j.maybe_executed = maybe_executed;
      j.error = Error(EIO, ErrorOrigin::server, "the session was replaced");
      co_return j;
    }
    bool sent = co_await transmit(c, deadline_ns);
    if (sent && c.outcome == CallOutcome::not_sent && !c.unsendable) continue;
    if (sent && c.outcome == CallOutcome::lost) {
      maybe_executed = true;
      replays_.fetch_add(1, std::memory_order_relaxed);
      if (c.error.errno_value() == ETIMEDOUT) count_timeout(c);
      slots_.lost(lease);
      if (io::IoLoop::current()->now_ns() < deadline_ns) continue;
      c.error = given_up(c);
    }
    if (!sent || c.outcome == CallOutcome::lost || c.unsendable) {
      leave_slot(lease, maybe_executed);
      j.verdict = Verdict::failed;
      j.error = c.error;
      co_return j;
    }
    j = c.outcome == CallOutcome::replied ? judge(c, lease, maybe_executed) : judge_unanswered(c, lease, maybe_executed);
    j.maybe_executed |= maybe_executed && !j.answered;
    if (j.verdict != Verdict::resend_same) co_return j;
    co_await io::IoLoop::current()->sleep_for(same_request_wait_ns);
  }
}

// Nobody waits any more for the request that holds the slot.
void Server::leave_slot(const SlotLease& lease, bool maybe_executed) {
  if (!maybe_executed) return slots_.release(lease, false);
  slots_.abandon(lease);
  if (!stopping_.load(std::memory_order_acquire)) io::spawn(settle_slot(lease));
}

// Whether the server has taken the sequence id of a request that was given up is unknown. A lone SEQUENCE with the same
// numbers settles it: either it is the first to bring them, or the server calls it a repetition.
io::Task<void> Server::settle_slot(SlotLease lease) {
  Background mark(*this);
  SmallCompound c(nfs4::Op::sequence, Repeat::freely, params_.credential, params_.minor_version);
  c.urgent = true;
  c.add_sequence();
  if (!c.seal()) co_return;
  while (slots_.stamp(c, lease)) {
    if (!co_await transmit(c, base::never_ns)) co_return;
    if (c.outcome == CallOutcome::not_sent || c.outcome == CallOutcome::lost) continue;
    if (c.outcome != CallOutcome::replied) co_return lose_session(lease.generation);
    c.open_reply();
    nfs4::SequenceResult ours;
    // More results than ours are those of the request that was given up: it was executed.
    bool taken = c.reader().next(ours) || c.reader().malformed();
    switch (taken ? Status::ok : c.reader().op_status()) {
      case Status::ok:
      case Status::seq_false_retry:
      case Status::retry_uncached_rep: co_return slots_.release(lease, true);
      case Status::delay: break;
      default: co_return lose_session(lease.generation);
    }
    co_await io::IoLoop::current()->sleep_for(same_request_wait_ns);
  }
}

Server::Judgement Server::judge_unanswered(Compound& c, const SlotLease& lease, bool maybe_executed) {
  Judgement j;
  j.verdict = Verdict::failed;
  j.error = c.error;
  // A refusal at RPC level never reached the session; in the other cases the server may have had the request.
  leave_slot(lease, maybe_executed || c.outcome != CallOutcome::refused);
  if (c.outcome == CallOutcome::chunk_error)
    j.error = Error(EMSGSIZE, ErrorOrigin::server,
                    base::text("%s: the server could not use the memory offered for its reply (ERR_CHUNK)",
                               nfs4::to_string(c.main_op())));
  return j;
}

Server::Judgement Server::judge(Compound& c, const SlotLease& lease, bool maybe_executed) {
  c.open_reply();
  nfs4::CompoundReader& reader = c.reader();
  nfs4::SequenceResult sequence;
  Judgement j;
  if (!reader.next(sequence)) {
    if (!reader.malformed()) return judge_sequence_failure(reader.op_status(), c, lease, maybe_executed);
    leave_slot(lease, true);
    j.verdict = Verdict::failed;
    j.error = malformed_reply(c, reader.complaint());
    replace_connection_of(c, j.error);
    return j;
  }
  if (slots_.on_sequence(lease, sequence) == slots::ReplyCheck::mismatch) {
    j.verdict = Verdict::session_lost;
    j.maybe_executed = true;
    j.error = Error(EIO, ErrorOrigin::protocol, "the server answered SEQUENCE with the numbers of another request");
    return j;
  }
  j.answered = true;
  slots_.release(lease, true);
  renewed(c.sent_at_ns);
  if (sequence.status_flags != flags_seen_.load(std::memory_order_relaxed)) on_sequence_flags(sequence.status_flags);
  Status status = reader.status();
  if (status == Status::ok) return j;
  uint32_t failed_at = reader.result_count() == 0 ? 0 : reader.result_count() - 1;
  bool nothing_done = !c.main_index() || failed_at <= *c.main_index();
  if (reaction_to(status) == Reaction::delay && nothing_done) {
    j.verdict = Verdict::resend_new;
    j.wait_ns = delay_first_ns;
  } else if (status == Status::retry_uncached_rep) {
    j.verdict = c.repeat() == Repeat::freely ? Verdict::resend_new : Verdict::failed;
    j.error = fate_unknown(c, "the server did not keep its reply");
  }
  return j;
}

// SEQUENCE itself was refused (RFC 8881 section 18.46): the sequence id is still due unless said otherwise.
Server::Judgement Server::judge_sequence_failure(Status status, Compound& c, const SlotLease& lease,
                                                 bool maybe_executed) {
  Judgement j;
  switch (status) {
    case Status::delay:
      j.verdict = Verdict::resend_same;
      return j;
    case Status::conn_not_bound_to_session:
      // The connection is bound when it is made: make another. The request stays what it is.
      replace_connection_of(c, nfs_error(status, "SEQUENCE"));
      j.verdict = Verdict::resend_same;
      return j;
    case Status::badslot:
    case Status::seq_misordered:
      if (status == Status::badslot ? slots_.bad_slot(lease) : slots_.misordered(lease)) {
        j.verdict = Verdict::resend_new;
        return j;
      }
      [[fallthrough]];
    case Status::badsession:
    case Status::deadsession:
    case Status::bad_high_slot:
    case Status::stale_clientid:
      j.verdict = Verdict::session_lost;
      j.error = nfs_error(status, "SEQUENCE");
      return j;
    case Status::seq_false_retry:
    case Status::retry_uncached_rep:
      slots_.release(lease, true);
      j.verdict = c.repeat() == Repeat::freely ? Verdict::resend_new : Verdict::failed;
      j.error = fate_unknown(c, "the server has another request under its sequence id, or did not keep the reply");
      return j;
    default:
      leave_slot(lease, maybe_executed);
      j.verdict = Verdict::failed;
      j.error = nfs_error(status, nfs4::to_string(c.main_op()));
      return j;
  }
}

void Server::renewed(base::TimeNs sent_at_ns) {
  base::TimeNs before = renewed_at_ns_.load(std::memory_order_relaxed);
  while (before < sent_at_ns && !renewed_at_ns_.compare_exchange_weak(before, sent_at_ns, std::memory_order_relaxed)) {
  }
}

void Server::replace_connection_of(const Compound& c, const Error& why) {
  Channel* channel = c.carried_by;
  if (!channel) return;
  base::log(LogLevel::warn, "session", "connection %u is replaced: %s", channel->index(), why.text().c_str());
  channel->loop().post([channel, connection = c.connection, shared = std::make_shared<Error>(why)] {
    channel->replace(connection, *shared);
  });
}

void Server::count_timeout(const Compound& c) {
  size_t op = static_cast<size_t>(c.main_op());
  if (op < counted_ops) counters_[op].timeouts.fetch_add(1, std::memory_order_relaxed);
}

void Server::count(const Compound& c, base::TimeNs begin_ns, bool failed) {
  size_t op = static_cast<size_t>(c.main_op());
  if (op >= counted_ops) return;
  OpCounters& n = counters_[op];
  base::TimeNs now = io::IoLoop::current()->now_ns();
  base::TimeNs first_ns = c.transmissions ? c.first_sent_at_ns : now;
  n.calls.fetch_add(1, std::memory_order_relaxed);
  n.transmissions.fetch_add(c.transmissions, std::memory_order_relaxed);
  n.bytes_sent.fetch_add(uint64_t{c.whole_request_bytes()} * c.transmissions, std::memory_order_relaxed);
  n.bytes_received.fetch_add(c.results.size() + c.data_length, std::memory_order_relaxed);
  n.queue_ns.fetch_add(first_ns - begin_ns, std::memory_order_relaxed);
  if (c.transmissions) n.response_ns.fetch_add(now - c.sent_at_ns, std::memory_order_relaxed);
  n.execute_ns.fetch_add(now - begin_ns, std::memory_order_relaxed);
  if (failed) n.errors.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace nfsrdma::session
