// SPDX-License-Identifier: Apache-2.0
#include "session/callback_service.hpp"

#include <algorithm>

#include "nfs4/compound_server.hpp"

namespace nfsrdma::session {

using nfs4::CbOp;
using nfs4::Status;

namespace {

constexpr uint32_t minor_version_max = 2;

// FNV-1a over the call's arguments: tells a replay from a new call that reuses the sequence id.
uint64_t hash_of(rpc::ConstBytes bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (std::byte b : bytes) h = (h ^ static_cast<uint8_t>(b)) * 0x100000001b3u;
  return h;
}

}  // namespace

void CallbackService::reset(const nfs4::SessionId& session) {
  std::lock_guard lock(mutex_);
  session_ = session;
  for (Slot& slot : slots_) slot = Slot{};
}

uint32_t CallbackService::on_reverse_call(rpc::ConstBytes message, rpc::Bytes reply) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  uint32_t args_at = 0;
  auto header = rpc::decode_call_header(message, args_at);
  if (!header || reply.size() < 64) return 0;
  auto refuse = [&](rpc::AcceptStatus status, uint32_t low = 0, uint32_t high = 0) {
    return rpc::encode_reply_header(reply, header->xid, status, low, high);
  };
  if (header->program != rpc::callback_program) return refuse(rpc::AcceptStatus::program_unavailable);
  if (header->version != rpc::callback_version) return refuse(rpc::AcceptStatus::program_mismatch, 1, 1);
  if (header->procedure == nfs4::procedure_cb_null) return refuse(rpc::AcceptStatus::success);
  if (header->procedure != nfs4::procedure_cb_compound) return refuse(rpc::AcceptStatus::procedure_unavailable);
  uint32_t written = compound(message.subspan(args_at), reply.subspan(rpc::reply_header_bytes));
  if (written == 0) return refuse(rpc::AcceptStatus::garbage_args);
  return refuse(rpc::AcceptStatus::success) + written;
}

// Slot rules of RFC 8881 section 2.10.6 with the server as requester. Linux repeats a sequence id with other content
// after a callback timed out, so a replay is recognised by what it says as well as by its numbers.
Status CallbackService::check_sequence(const nfs4::CbSequenceArgs& args, uint64_t content, bool& replay) {
  replay = false;
  if (args.session_id != session_) return Status::badsession;
  if (args.slotid >= slots_.size()) return Status::badslot;
  if (args.cache_this) return Status::rep_too_big_to_cache;
  Slot& slot = slots_[args.slotid];
  if (args.sequenceid == slot.sequence && slot.sequence != 0) {
    replay = slot.content == content && !slot.reply.empty();
    if (!replay) slot.content = content;
    return Status::ok;
  }
  if (args.sequenceid != slot.sequence + 1) return Status::seq_misordered;
  slot.sequence = args.sequenceid;
  slot.content = content;
  slot.reply.clear();
  return Status::ok;
}

namespace {

// One operation after CB_SEQUENCE; returns whether to go on.
template <class Args>
bool answer_known(CallbackService& service, const Args& args, nfs4::CompoundReplyBuilder& out) {
  using Result = typename Args::Result;
  if constexpr (Args::op == CbOp::recall) {
    Status status = service.on_recall ? service.on_recall(args) : Status::bad_stateid;
    if (status != Status::ok) {
      out.append_failure<Result>(status);
      return false;
    }
    return out.append(Result{});
  } else if constexpr (Args::op == CbOp::getattr) {
    // Asked of holders of write delegations only; we hold none for this handle.
    out.append_failure<Result>(Status::badhandle);
    return false;
  } else if constexpr (Args::op == CbOp::recall_slot) {
    if (service.on_recall_slot) service.on_recall_slot(args.target_highest_slotid);
    return out.append(Result{});
  } else if constexpr (Args::op == CbOp::sequence) {
    out.append_failure<Result>(Status::sequence_pos);
    return false;
  } else if constexpr (Args::op == CbOp::illegal) {
    out.append_status(CbOp::illegal, Status::op_illegal);
    return false;
  } else {
    return out.append(Result{});  // CB_RECALL_ANY, CB_NOTIFY_LOCK: hints
  }
}

}  // namespace

uint32_t CallbackService::compound(rpc::ConstBytes args, rpc::Bytes results) {
  uint32_t ident = 0;
  nfs4::CompoundCallReader call(args, ident);
  if (!call.ok()) return 0;
  nfs4::CompoundReplyBuilder out(results, call.tag());
  if (call.minor_version() == 0 || call.minor_version() > minor_version_max)
    return static_cast<uint32_t>(out.finish(Status::minor_vers_mismatch).size());
  uint64_t content = hash_of(args);
  std::lock_guard lock(mutex_);
  Slot* slot = nullptr;
  for (uint32_t op = 0; call.next_op(op);) {
    if (!slot) {
      nfs4::CbSequenceArgs sequence;
      if (static_cast<CbOp>(op) != CbOp::sequence) {
        out.append_status(op, Status::op_not_in_session);
        break;
      }
      if (!call.args(sequence)) {
        out.append_status(op, Status::badxdr);
        break;
      }
      bool replay = false;
      Status status = call.op_count() > callback_operations_max ? Status::too_many_ops
                                                                : check_sequence(sequence, content, replay);
      if (status != Status::ok) {
        out.append_failure<nfs4::CbSequenceResult>(status);
        break;
      }
      slot = &slots_[sequence.slotid];
      if (replay && slot->reply.size() <= results.size()) {
        std::ranges::copy(slot->reply, results.begin());
        return static_cast<uint32_t>(slot->reply.size());
      }
      nfs4::CbSequenceResult r{session_, sequence.sequenceid, sequence.slotid, callback_slots - 1, callback_slots - 1};
      out.append(r);
      continue;
    }
    bool go_on = false;
    bool known = nfs4::visit_op(static_cast<CbOp>(op), [&]<class Args>() {
      Args a;
      if (call.args(a))
        go_on = answer_known(*this, a, out);
      else
        out.append_status(op, Status::badxdr);
    });
    if (!known) {
      bool in_range = op >= 3 && op <= 15;
      out.append_status(in_range ? op : static_cast<uint32_t>(CbOp::illegal),
                        in_range ? Status::notsupp : Status::op_illegal);
    }
    if (!go_on) break;
  }
  auto body = out.finish();
  if (slot) slot->reply.assign(body.begin(), body.end());
  return static_cast<uint32_t>(body.size());
}

}  // namespace nfsrdma::session
