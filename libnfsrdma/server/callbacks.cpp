// SPDX-License-Identifier: Apache-2.0
#include "server/callbacks.hpp"

#include "base/log.hpp"
#include "nfs4/callback_ops.hpp"
#include "nfs4/compound.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t message_bytes_max = 1024;

}  // namespace

// One call under way. Lives until its outcome is known and the transport has let go of it.
struct Callbacks::Exchange {
  Exchange(Callbacks& o, SessionRef s, const State::CallbackTurn& turn)
      : owner(o), session(std::move(s)), connection(turn.connection), serial(turn.request.serial) {}
  Callbacks& owner;
  const SessionRef session;
  const ConnectionRef connection;
  const uint64_t serial;
  uint32_t xid = 0;
  bool decided = false;
  io::Timer timer{};
  std::array<std::byte, message_bytes_max> message{};

  void decide(std::optional<Status> status) {
    if (std::exchange(decided, true)) return;
    if (timer.armed()) connection->loop.cancel(timer);
    owner.state_.callback_done(session, serial, status);
    // Unanswered ones go again when a connection is bound, not at once over the one that failed.
    if (status) owner.send_next(session);
  }
};

void Callbacks::callbacks_waiting(const SessionRef& session, io::IoLoop& loop) {
  loop.post([this, session] { send_next(session); });
}

void Callbacks::send_next(const SessionRef& session) {
  std::optional<State::CallbackTurn> turn = state_.next_callback(session);
  if (!turn) return;
  io::IoLoop& loop = turn->connection->loop;
  if (loop.is_current()) return start(session, std::move(*turn));
  auto moved = std::make_shared<State::CallbackTurn>(std::move(*turn));
  loop.post([this, session, moved] { start(session, std::move(*moved)); });
}

void Callbacks::start(const SessionRef& session, State::CallbackTurn turn) {
  auto exchange = std::make_shared<Exchange>(*this, session, turn);
  if (!turn.connection->rpc) return exchange->decide(std::nullopt);
  exchange->xid = next_xid_.fetch_add(1, std::memory_order_relaxed);
  base::Bytes space = exchange->message;
  uint32_t header = rpc::encode_call_header(space, exchange->xid, turn.program, rpc::callback_version,
                                            rpc::procedure_compound, turn.credential);
  auto builder = nfs4::CompoundBuilder::callback(space.subspan(header), 1);
  nfs4::CbSequenceArgs sequence;
  sequence.session_id = session->id;
  sequence.sequenceid = turn.sequence;
  nfs4::CbRecallArgs recall;
  recall.stateid = turn.request.stateid;
  recall.fh = turn.request.handle;
  builder.add(sequence);
  builder.add(recall);
  size_t bytes = header + builder.finish().size();
  exchange->timer.set([exchange_raw = exchange.get()] { exchange_raw->decide(std::nullopt); });
  auto sent = turn.connection->rpc->call_back(space.first(bytes), [exchange](Result<base::ConstBytes> reply) {
    exchange->decide(outcome_of(reply, exchange->xid));
  });
  if (!sent) {
    base::log(base::LogLevel::info, "server", "cannot call back: %s", sent.error().text().c_str());
    return exchange->decide(std::nullopt);
  }
  io::IoLoop& loop = turn.connection->loop;
  if (!exchange->decided) loop.arm(exchange->timer, loop.now_ns() + answer_ns_);
}

std::optional<Status> Callbacks::outcome_of(const Result<base::ConstBytes>& reply, uint32_t xid) {
  if (!reply) return std::nullopt;
  uint32_t results_at = 0;
  if (!rpc::decode_reply_header(*reply, xid, results_at)) return std::nullopt;
  nfs4::CompoundReader reader(reply->subspan(results_at), 2);
  if (!reader.next<nfs4::CbSequenceResult>()) return std::nullopt;
  reader.next<nfs4::CbRecallResult>();
  if (reader.malformed()) return std::nullopt;
  return reader.op_status();
}

}  // namespace nfsrdma::server
