// SPDX-License-Identifier: Apache-2.0
#include "server/compound.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/log.hpp"
#include "server/faults.hpp"
#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t minor_version = 1;
// The session's sizes count whole RPC messages.
// A kept reply ends with where its payload was left out and how long that was; the payload stands before that.
constexpr uint32_t trailer_bytes = 8;

std::optional<xdr::OutOfBand> out_of_band(const rpc::InboundData& data) {
  if (data.length == 0) return std::nullopt;
  return xdr::OutOfBand{data.length, data.position};
}

uint32_t request_size(const rpc::ServerCall& call) {
  constexpr uint32_t fixed_header = 40;
  uint64_t bytes = fixed_header + call.header.credential.size() + call.args.size() + call.data.length;
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

Caller squash(const rpc::CallHeader& header, bool root_squash) {
  Caller caller;
  if (header.flavor != rpc::AuthFlavor::sys) return caller;
  const rpc::AuthSys& sys = header.sys;
  if (root_squash && sys.uid == 0) return caller;
  auto gid = [&](uint32_t g) { return root_squash && g == 0 ? nobody_id : g; };
  caller.uid = sys.uid;
  caller.gid = gid(sys.gid);
  caller.group_count = std::min<uint32_t>(sys.group_count, static_cast<uint32_t>(caller.groups.size()));
  for (uint32_t i = 0; i < caller.group_count; ++i) caller.groups[i] = gid(sys.groups[i]);
  return caller;
}

bool stands_alone(nfs4::Op op) {
  return op == nfs4::Op::exchange_id || op == nfs4::Op::create_session || op == nfs4::Op::bind_conn_to_session ||
         op == nfs4::Op::destroy_session || op == nfs4::Op::destroy_clientid;
}

// RFC 8881, 2.10.5: a compound begins with SEQUENCE, or is one of a few operations alone.
Status check_position(const Compound& c, nfs4::Op op) {
  bool first = c.args.ops_read() == 1;
  if (op == nfs4::Op::sequence) return first ? Status::ok : Status::sequence_pos;
  if (op == nfs4::Op::bind_conn_to_session && c.args.op_count() > 1) return Status::not_only_op;
  if (!first) return Status::ok;
  if (!stands_alone(op)) return Status::op_not_in_session;
  return c.args.op_count() == 1 ? Status::ok : Status::not_only_op;
}

// Operations that exist in this minor version but are not offered.
bool is_known(uint32_t op) { return op >= 3 && op <= 58; }

}  // namespace

Compound::Compound(ServerContext& ctx, std::unique_ptr<rpc::ServerCall> the_call, ConnectionRef the_connection)
    : context(ctx),
      state(ctx.state),
      store(ctx.store),
      caller(squash(the_call->header, ctx.root_squash)),
      principal{the_call->header.flavor, the_call->header.sys.uid, the_call->header.sys.gid},
      current_stateid(nfs4::invalid_stateid),
      saved_stateid(nfs4::invalid_stateid),
      call(std::move(the_call)),
      connection(std::move(the_connection)),
      pool(call->connection().pool()),
      in_place(call->connection().sends_files_in_place()),
      space(call->results_space().first(std::min<size_t>(call->results_space().size(), call->results_bytes_max))),
      args(call->args, out_of_band(call->data)),
      reply(space, args.tag(), xdr::Form::reduced),
      limit_bytes(UINT32_MAX),
      request_bytes(request_size(*call)) {}

bool Compound::within_limits(uint64_t more_bytes) const {
  uint64_t whole = reply.size() + more_bytes + (payload_placed ? xdr::padded_bytes(payload.length) : 0);
  if (whole > limit_bytes) return false;
  uint64_t in_stream = reply.size() + more_bytes;
  if (payload_placed && call->write_chunk_bytes == 0) in_stream += xdr::padded_bytes(payload.length);
  return in_stream <= space.size();
}

uint32_t Compound::stream_room(uint32_t overhead_bytes) const {
  uint64_t used = reply.size() + nfs4::result_header_bytes + overhead_bytes +
                  nfs4::CompoundReplyBuilder::failure_reserve_bytes;
  uint64_t payload_bytes = payload_placed ? xdr::padded_bytes(payload.length) : 0;
  uint64_t in_stream = used + (call->write_chunk_bytes == 0 ? payload_bytes : 0);
  uint64_t most = std::min<uint64_t>(limit_bytes > used + payload_bytes ? limit_bytes - used - payload_bytes : 0,
                                     space.size() > in_stream ? space.size() - in_stream : 0);
  return static_cast<uint32_t>(most & ~uint64_t{3});
}

uint32_t Compound::payload_room(uint32_t overhead_bytes) const {
  if (payload_placed || call->write_chunk_bytes == 0) return stream_room(overhead_bytes);
  uint64_t used = reply.size() + nfs4::result_header_bytes + overhead_bytes;
  uint64_t by_session = limit_bytes > used ? limit_bytes - used : 0;
  return static_cast<uint32_t>(std::min<uint64_t>(by_session, call->write_chunk_bytes));
}

std::span<const ByteView> Compound::pieces_of(const xdr::DdpItem& item) {
  if (!item.inline_bytes.empty() || item.length == 0) {
    pieces_[0] = item.inline_bytes;
    return {pieces_.data(), item.length == 0 ? 0u : 1u};
  }
  size_t n = 0;
  uint32_t left = item.length;
  for (const rdma::Sge& piece : call->data.pieces) {
    // The sender may have padded: what lies behind the length is not data.
    uint32_t take = std::min(piece.length, left);
    if (take == 0 || n == pieces_max || !piece.region->host()) break;
    pieces_[n++] = {piece.region->host() + piece.offset, take};
    left -= take;
  }
  return {pieces_.data(), left == 0 ? n : 0};
}

void Compound::set_payload(ReadData data) {
  payload = std::move(data);
  payload_placed = true;
}

namespace {

Status on_illegal(Compound& c, uint32_t op) {
  if (is_known(op)) return Status::notsupp;
  c.reply.append_status(nfs4::Op::illegal, Status::op_illegal);
  c.failure_appended = true;
  return Status::op_illegal;
}

// Decodes the arguments and calls the operation; f(args) gives a Status or a Task of one.
template <class Args, class F>
Task<Status> with_args(Compound& c, F f) {
  Args args{};
  if (!c.args.args(args)) co_return Status::badxdr;
  if constexpr (std::is_same_v<std::invoke_result_t<F, Compound&, const Args&>, Status>) {
    co_return f(c, args);
  } else {
    co_return co_await f(c, args);
  }
}

Task<Status> run_state_op(Compound& c, nfs4::Op op) {
  using nfs4::Op;
  switch (op) {
    case Op::open: return with_args<nfs4::OpenArgs>(c, op_open);
    case Op::open_downgrade: return with_args<nfs4::OpenDowngradeArgs>(c, op_open_downgrade);
    case Op::close: return with_args<nfs4::CloseArgs>(c, op_close);
    case Op::lock: return with_args<nfs4::LockArgs>(c, op_lock);
    case Op::lockt: return with_args<nfs4::LocktArgs>(c, op_lockt);
    case Op::locku: return with_args<nfs4::LockuArgs>(c, op_locku);
    case Op::delegreturn: return with_args<nfs4::DelegreturnArgs>(c, op_delegreturn);
    case Op::test_stateid: return with_args<nfs4::TestStateidArgs>(c, op_test_stateid);
    case Op::free_stateid: return with_args<nfs4::FreeStateidArgs>(c, op_free_stateid);
    case Op::exchange_id: return with_args<nfs4::ExchangeIdArgs>(c, op_exchange_id);
    case Op::create_session: return with_args<nfs4::CreateSessionArgs>(c, op_create_session);
    case Op::destroy_session: return with_args<nfs4::DestroySessionArgs>(c, op_destroy_session);
    case Op::destroy_clientid: return with_args<nfs4::DestroyClientidArgs>(c, op_destroy_clientid);
    case Op::bind_conn_to_session: return with_args<nfs4::BindConnToSessionArgs>(c, op_bind_conn);
    case Op::backchannel_ctl: return with_args<nfs4::BackchannelCtlArgs>(c, op_backchannel_ctl);
    case Op::reclaim_complete: return with_args<nfs4::ReclaimCompleteArgs>(c, op_reclaim_complete);
    default: return [](Compound& cc, uint32_t number) -> Task<Status> { co_return on_illegal(cc, number); }(
                        c, static_cast<uint32_t>(op));
  }
}

Task<Status> run_file_op(Compound& c, nfs4::Op op) {
  using nfs4::Op;
  switch (op) {
    case Op::access: return with_args<nfs4::AccessArgs>(c, op_access);
    case Op::commit: return with_args<nfs4::CommitArgs>(c, op_commit);
    case Op::create: return with_args<nfs4::CreateArgs>(c, op_create);
    case Op::link: return with_args<nfs4::LinkArgs>(c, op_link);
    case Op::lookup: return with_args<nfs4::LookupArgs>(c, op_lookup);
    case Op::lookupp: return op_lookupp(c);
    case Op::verify:
      return with_args<nfs4::VerifyArgs>(c, [](Compound& cc, const nfs4::VerifyArgs& a) {
        return op_verify(cc, a.attributes, true);
      });
    case Op::nverify:
      return with_args<nfs4::NverifyArgs>(c, [](Compound& cc, const nfs4::NverifyArgs& a) {
        return op_verify(cc, a.attributes, false);
      });
    case Op::readdir: return with_args<nfs4::ReaddirArgs>(c, op_readdir);
    case Op::readlink: return op_readlink(c);
    case Op::remove: return with_args<nfs4::RemoveArgs>(c, op_remove);
    case Op::rename: return with_args<nfs4::RenameArgs>(c, op_rename);
    case Op::secinfo: return with_args<nfs4::SecinfoArgs>(c, op_secinfo);
    case Op::secinfo_no_name: return with_args<nfs4::SecinfoNoNameArgs>(c, op_secinfo_no_name);
    case Op::setattr: return with_args<nfs4::SetattrArgs>(c, op_setattr);
    default: return run_state_op(c, op);
  }
}

// The operations of the data plane are awaited here, with one frame less.
Task<Status> run_op(Compound& c, nfs4::Op op) {
  using nfs4::Op;
  switch (op) {
    case Op::sequence: {
      nfs4::SequenceArgs args;
      co_return c.args.args(args) ? op_sequence(c, args) : Status::badxdr;
    }
    case Op::putfh: {
      nfs4::PutfhArgs args;
      if (!c.args.args(args)) co_return Status::badxdr;
      if (ObjectRef known = c.store.find(args.fh)) {
        c.set_current(std::move(known));
        co_return c.answer(nfs4::PutfhResult{});
      }
      co_return co_await op_putfh(c, args);
    }
    case Op::putrootfh: co_return op_putrootfh(c);
    case Op::putpubfh: co_return op_putpubfh(c);
    case Op::getfh: co_return op_getfh(c);
    case Op::savefh: co_return op_savefh(c);
    case Op::restorefh: co_return op_restorefh(c);
    case Op::read: {
      nfs4::ReadArgs args;
      if (!c.args.args(args)) co_return Status::badxdr;
      co_return co_await op_read(c, args);
    }
    case Op::write: {
      nfs4::WriteArgs args;
      if (!c.args.args(args)) co_return Status::badxdr;
      co_return co_await op_write(c, args);
    }
    case Op::getattr: {
      nfs4::GetattrArgs args;
      if (!c.args.args(args)) co_return Status::badxdr;
      co_return co_await op_getattr(c, args);
    }
    default: co_return co_await run_file_op(c, op);
  }
}

void append_failure(Compound& c, uint32_t op, Status status) {
  if (c.failure_appended) return;
  bool appended = op == static_cast<uint32_t>(nfs4::Op::setattr) ? c.reply.append_failure<nfs4::SetattrResult>(status)
                                                                  : c.reply.append_status(op, status);
  if (!appended) base::log(base::LogLevel::debug, "server", "no room for the status of a failure");
}

Task<void> run_ops(Compound& c) {
  uint32_t number = 0;
  while (c.args.next_op(number)) {
    auto op = static_cast<nfs4::Op>(number);
    Status status = check_position(c, op);
    if (status == Status::ok && c.context.faults) status = c.context.faults->on_op(number);
    if (status == Status::ok && c.verdict == slots::Verdict::uncached) status = Status::retry_uncached_rep;
    if (status == Status::ok) status = co_await run_op(c, op);
    if (c.replayed_bytes > 0) co_return;
    if (status != Status::ok) {
      append_failure(c, number, status);
      co_return;
    }
  }
  if (!c.args.ok()) append_failure(c, number, Status::badxdr);
}

// The reply as it is kept: results, payload, trailer. Empty when it is too large to be kept.
base::ConstBytes kept_reply(const Compound& c, base::ConstBytes results, std::vector<std::byte>& scratch) {
  uint32_t payload = c.payload_placed ? c.payload.length : 0;
  size_t bytes = results.size() + payload + trailer_bytes;
  if (bytes > c.session->replies.cached_bytes_max()) return {};
  scratch.resize(bytes);
  std::memcpy(scratch.data(), results.data(), results.size());
  if (payload > 0) {
    std::memcpy(scratch.data() + results.size(), c.payload.piece.region->host() + c.payload.piece.offset, payload);
  }
  base::store_be(scratch.data() + bytes - 8, c.payload_position);
  base::store_be(scratch.data() + bytes - 4, payload);
  return scratch;
}

void finish_slot(Compound& c, base::ConstBytes results) {
  bool fresh = c.session && c.verdict == slots::Verdict::fresh;
  if (!fresh) return;
  if (!c.cache_this && c.args.op_count() > 1) return c.state.finish_sequence(c.session, c.slot, {}, false);
  thread_local std::vector<std::byte> scratch;
  base::ConstBytes kept = kept_reply(c, results, scratch);
  c.state.finish_sequence(c.session, c.slot, kept, !kept.empty());
}

// A kept reply lies in the results' space: gives it its old form.
base::ConstBytes unpack_replay(Compound& c) {
  uint32_t bytes = c.replayed_bytes;
  if (bytes < trailer_bytes) return {};
  c.payload_position = base::load_be<uint32_t>(c.space.data() + bytes - 8);
  uint32_t payload = base::load_be<uint32_t>(c.space.data() + bytes - 4);
  uint32_t results = bytes - trailer_bytes - payload;
  if (payload > 0) {
    ReadData data;
    data.buffer = c.pool.try_borrow(payload);
    if (!data.buffer) return {};
    std::memcpy(data.buffer.data(), c.space.data() + results, payload);
    data.length = payload;
    data.piece = data.buffer.sge(0, payload);
    c.set_payload(std::move(data));
  }
  return c.space.first(results);
}

void send_reply(Compound& c, base::ConstBytes results) {
  rpc::OutboundData out;
  if (c.payload_placed && c.payload.length > 0) {
    out.position = c.payload_position;
    out.length = c.payload.length;
    out.pieces = {&c.payload.piece, 1};
    out.release = [buffer = std::move(c.payload.buffer), hold = std::move(c.payload.hold)] {};
  }
  c.call->reply(rpc::AcceptStatus::success, static_cast<uint32_t>(results.size()), std::move(out));
}

}  // namespace

Task<void> run_compound(ServerContext& context, std::unique_ptr<rpc::ServerCall> call, ConnectionRef connection) {
  Compound c(context, std::move(call), std::move(connection));
  io::IoLoop& loop = c.connection->loop;
  if (!c.args.ok()) {
    c.call->reply(rpc::AcceptStatus::garbage_args, 0);
    co_return;
  }
  base::ConstBytes results;
  if (c.args.minor_version() != minor_version) {
    results = c.reply.finish(Status::minor_vers_mismatch);
  } else {
    co_await run_ops(c);
    if (c.replayed_bytes == 0) {
      results = c.reply.finish();
      if (c.reply.ddp()) c.payload_position = c.reply.ddp()->position;
      finish_slot(c, results);
    }
  }
  co_await loop.enter();
  if (c.replayed_bytes > 0) results = unpack_replay(c);
  // No room for any reply, or for a replay's payload now: without an answer the client tries again.
  if (results.empty()) co_return;
  if (context.faults && context.faults->drops_reply()) co_return;
  send_reply(c, results);
}

}  // namespace nfsrdma::server
