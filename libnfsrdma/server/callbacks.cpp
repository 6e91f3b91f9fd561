// SPDX-License-Identifier: Apache-2.0
#include "server/callbacks.hpp"

#include "base/log.hpp"
#include "nfs4/callback_ops.hpp"
#include "nfs4/compound.hpp"

namespace nfsrdma::server {
namespace {

// A lock owner may be 1024 bytes long, a credential 400.
constexpr uint32_t message_bytes_max = 2048;

void add_call(nfs4::CompoundBuilder& builder, const CallbackRequest& request, ClientId clientid) {
  nfs4::CbRecallArgs recall;
  nfs4::CbRecallAnyArgs any;
  nfs4::CbRecallSlotArgs slot;
  nfs4::CbNotifyLockArgs lock;
  nfs4::CbGetattrArgs getattr;
  switch (request.kind) {
    case CallbackKind::recall:
      recall.stateid = request.stateid;
      recall.fh = request.handle;
      builder.add(recall);
      break;
    case CallbackKind::recall_any:
      any.type_mask = {nfs4::recall_any_bit::read_delegation, nfs4::recall_any_bit::write_delegation};
      builder.add(any);
      break;
    case CallbackKind::recall_slot:
      slot.target_highest_slotid = request.target;
      builder.add(slot);
      break;
    case CallbackKind::notify_lock:
      lock.fh = request.handle;
      lock.lock_owner = {clientid, base::bytes_of(request.lock_owner)};
      builder.add(lock);
      break;
    case CallbackKind::getattr:
      getattr.fh = request.handle;
      getattr.mask = {nfs4::attr::change, nfs4::attr::size};
      builder.add(getattr);
      break;
    case CallbackKind::null: break;
  }
}

// The whole RPC call; returns its size.
size_t encode(base::Bytes space, uint32_t xid, const Session& session, const State::CallbackTurn& turn) {
  bool null = turn.request.kind == CallbackKind::null;
  uint32_t header = rpc::encode_call_header(space, xid, turn.program, rpc::callback_version,
                                            null ? rpc::procedure_null : rpc::procedure_compound, turn.credential);
  if (null) return header;
  auto builder = nfs4::CompoundBuilder::callback(space.subspan(header), 1);
  nfs4::CbSequenceArgs sequence;
  sequence.session_id = session.id;
  sequence.sequenceid = turn.sequence;
  builder.add(sequence);
  add_call(builder, turn.request, session.client->id);
  return header + builder.finish().size();
}

}  // namespace

// One call under way. Lives until its outcome is known and the transport has let go of it.
struct Callbacks::Exchange {
  Exchange(Callbacks& o, SessionRef s, const State::CallbackTurn& turn)
      : owner(o), session(std::move(s)), connection(turn.connection), request(turn.request) {}
  Callbacks& owner;
  const SessionRef session;
  const ConnectionRef connection;
  const CallbackRequest request;
  uint32_t xid = 0;
  bool decided = false;
  io::Timer timer{};
  std::array<std::byte, message_bytes_max> message{};

  void decide(std::optional<Status> status) {
    if (std::exchange(decided, true)) return;
    if (timer.armed()) connection->loop.cancel(timer);
    owner.state_.callback_done(session, request, status);
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
  size_t bytes = encode(space, exchange->xid, *session, turn);
  exchange->timer.set([exchange_raw = exchange.get()] { exchange_raw->decide(std::nullopt); });
  auto sent = turn.connection->rpc->call_back(space.first(bytes), [exchange](Result<base::ConstBytes> reply) {
    exchange->decide(outcome_of(reply, exchange->xid, exchange->request.kind));
  });
  if (!sent) {
    base::log(base::LogLevel::info, "server", "cannot call back: %s", sent.error().text().c_str());
    return exchange->decide(std::nullopt);
  }
  io::IoLoop& loop = turn.connection->loop;
  if (!exchange->decided) loop.arm(exchange->timer, loop.now_ns() + answer_ns_);
}

std::optional<Status> Callbacks::outcome_of(const Result<base::ConstBytes>& reply, uint32_t xid, CallbackKind kind) {
  if (!reply) return std::nullopt;
  uint32_t results_at = 0;
  if (!rpc::decode_reply_header(*reply, xid, results_at)) return std::nullopt;
  if (kind == CallbackKind::null) return Status::ok;
  nfs4::CompoundReader reader(reply->subspan(results_at), 2);
  if (!reader.next<nfs4::CbSequenceResult>()) return std::nullopt;
  switch (kind) {
    case CallbackKind::recall: reader.next<nfs4::CbRecallResult>(); break;
    case CallbackKind::recall_any: reader.next<nfs4::CbRecallAnyResult>(); break;
    case CallbackKind::recall_slot: reader.next<nfs4::CbRecallSlotResult>(); break;
    case CallbackKind::notify_lock: reader.next<nfs4::CbNotifyLockResult>(); break;
    case CallbackKind::getattr: reader.next<nfs4::CbGetattrResult>(); break;
    case CallbackKind::null: break;
  }
  if (reader.malformed()) return std::nullopt;
  return reader.op_status();
}

}  // namespace nfsrdma::server
