// SPDX-License-Identifier: Apache-2.0
// From a Call to a posted Send: plan, borrow, expose, encode, post.
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "rpcrdma/endpoint.hpp"
#include "rpcrdma/pieces.hpp"

namespace nfsrdma::rpcrdma {
namespace {

const rpc::Credential no_credential;

const rpc::Credential& credential_of(const rpc::Call& call) {
  return call.credential ? *call.credential : no_credential;
}

Segment segment_of(const rdma::Exposure& e) { return {e.key, e.length, e.base}; }

}  // namespace

// What a submitter got wrong; nullptr when nothing.
const char* Endpoint::check(const rpc::Call& call) {
  if (call.args.size() % 4 != 0 || call.args.size() > 1u << 30) return "arguments are not whole XDR words";
  if (call.out.length > 0) {
    if (call.out.position % 4 != 0 || call.out.position > call.args.size()) return "payload position";
    if (total_bytes(call.out.pieces) != call.out.length) return "payload length is not that of its pieces";
  }
  if (total_bytes(call.in.pieces) < call.in.length_max)
    return "the pieces are shorter than the result's payload";
  return nullptr;
}

CallPlan Endpoint::plan(const rpc::Call& call) const {
  const uint32_t segment_max = pd_->caps().segment_bytes_max;
  PlanLimits limits;
  limits.send_inline_bytes = send_inline_bytes_;
  limits.receive_inline_bytes = receive_inline_bytes_;
  limits.segments_max = chunk_segments_typical;
  limits.read_chunk_bytes_min = params_.read_chunk_bytes_min;
  limits.reply_chunk_bytes_max = reply_chunk_bytes_max_;
  limits.buffer_bytes_max = pool_.largest_bytes();
  PlanInput in;
  in.call_header_bytes = rpc::call_header_bytes(credential_of(call));
  in.args_bytes = static_cast<uint32_t>(call.args.size());
  in.results_bytes_max = call.results_bytes_max;
  if (call.out.length > 0) {
    in.out_bytes = call.out.length;
    in.out_segments = count_segments(call.out.pieces, segment_max);
  }
  if (call.in.length_max > 0) {
    in.in_bytes = call.in.length_max;
    in.in_segments = count_segments(call.in.pieces, segment_max);
  }
  return plan_call(limits, in);
}

bool Endpoint::borrow_buffers(CallSlot& slot) {
  if (slot.plan.long_call) {
    slot.call_buffer = pool_.try_borrow(slot.plan.long_call_bytes);
    if (!slot.call_buffer) return false;
  }
  if (slot.plan.reply_chunk_bytes > 0) {
    slot.reply_buffer = pool_.try_borrow(slot.plan.reply_chunk_bytes);
    if (!slot.reply_buffer) return false;
  }
  return true;
}

Endpoint::Marshal Endpoint::marshal(CallSlot& slot) {
  rpc::Call& call = *slot.call;
  if (const char* what = check(call)) {
    call.error = Error(EINVAL, ErrorOrigin::local, base::text("RPC call cannot be sent: %s", what));
    return Marshal::failed;
  }
  slot.plan = plan(call);
  if (!slot.plan.possible) {
    call.error = Error(
        EMSGSIZE, ErrorOrigin::local,
        base::text("RPC call of %zu bytes with %u bytes of payload fits no message form of this connection",
                   call.args.size(), call.out.length));
    return Marshal::failed;
  }
  if (!borrow_buffers(slot)) return Marshal::wait;
  if (auto ok = expose_all(slot); !ok) {
    // Keys come back as other calls end; until then this one waits, unless a fence of its own is still under
    // way.
    const bool keys_short = ok.error().errno_value() == ENOBUFS && credits_.used() > 1;
    call.error = ok.error();
    if (!keys_short) return Marshal::failed;
    fence_all(slot);
    return slot.fences_pending == 0 ? Marshal::wait : Marshal::failed;
  }
  if (slot.plan.long_call) {
    if (auto ok = fill_long_call(slot); !ok) {
      call.error = ok.error();
      return Marshal::failed;
    }
  }
  write_header(slot);
  if (auto ok = post(slot); !ok) {
    call.error = ok.error();
    if (ok.error().errno_value() == ENOTCONN || ok.error().errno_value() == ENOBUFS) fail_softly(ok.error());
    return Marshal::failed;
  }
  return Marshal::ready;
}

Result<void> Endpoint::expose_one(CallSlot& slot, const rdma::Sge& piece, rdma::Purpose purpose) {
  auto exposure = qp_->expose(*piece.region, piece.offset, piece.length, purpose);
  if (!exposure) return exposure.error();
  slot.exposures[slot.exposure_count++] = *exposure;
  return {};
}

Result<void> Endpoint::expose_pieces(CallSlot& slot, std::span<const rdma::Sge> pieces,
                                     rdma::Purpose purpose) {
  Result<void> result;
  for_each_segment(pieces, pd_->caps().segment_bytes_max, [&](const rdma::Sge& segment) {
    if (result) result = expose_one(slot, segment, purpose);
  });
  return result;
}

// In wire order: position-zero chunk, data chunk, write chunk, reply chunk.
Result<void> Endpoint::expose_all(CallSlot& slot) {
  const rpc::Call& call = *slot.call;
  if (slot.plan.long_call) {
    rdma::Sge whole = slot.call_buffer.sge(0, slot.plan.long_call_bytes);
    if (auto ok = expose_one(slot, whole, rdma::Purpose::read_source); !ok) return ok;
  }
  if (slot.plan.data_chunk) {
    if (auto ok = expose_pieces(slot, call.out.pieces, rdma::Purpose::read_source); !ok) return ok;
  }
  slot.write_first = slot.exposure_count;
  if (slot.plan.write_chunk) {
    if (auto ok = expose_pieces(slot, call.in.pieces, rdma::Purpose::write_target); !ok) return ok;
    slot.write_count = slot.exposure_count - slot.write_first;
  }
  if (slot.plan.reply_chunk_bytes > 0) {
    slot.reply_exposure = slot.exposure_count;
    rdma::Sge whole = slot.reply_buffer.sge(0, slot.plan.reply_chunk_bytes);
    if (auto ok = expose_one(slot, whole, rdma::Purpose::write_target); !ok) return ok;
    slot.reply_chunk_bytes = slot.plan.reply_chunk_bytes;
  }
  return {};
}

void Endpoint::write_header(const CallSlot& slot) {
  const rpc::Call& call = *slot.call;
  HeaderWriter w({arena_->at(slot.offset), slot.plan.header_bytes});
  w.fixed(slot.xid, params_.credits, slot.plan.long_call ? Procedure::nomsg : Procedure::msg);
  uint32_t i = 0;
  if (slot.plan.long_call) w.read_segment(0, segment_of(slot.exposures[i++]));
  const uint32_t position = rpc::call_header_bytes(credential_of(call)) + call.out.position;
  for (; i < slot.write_first; i++) {
    w.read_segment(position, segment_of(slot.exposures[i]));
    stats_.read_segments++;
  }
  w.end_reads();
  if (slot.write_count > 0) {
    w.begin_write_chunk(slot.write_count);
    for (; i < slot.write_first + slot.write_count; i++) w.segment(segment_of(slot.exposures[i]));
    stats_.write_segments += slot.write_count;
  }
  w.end_write_list();
  if (slot.reply_chunk_bytes > 0) {
    Segment segment = segment_of(slot.exposures[slot.reply_exposure]);
    w.reply_chunk({&segment, 1});
    stats_.reply_segments++;
  } else {
    w.no_reply_chunk();
  }
  if (slot.plan.data_chunk) stats_.total_rdma_request_bytes += call.out.length;
}

// The message goes to the pool buffer, with its payload unless that has a chunk of its own.
Result<void> Endpoint::fill_long_call(CallSlot& slot) {
  const rpc::Call& call = *slot.call;
  std::byte* at = slot.call_buffer.data();
  at += rpc::encode_call_header(slot.call_buffer.bytes(), slot.xid, call.program, call.version,
                                call.procedure, credential_of(call));
  const bool payload_here = call.out.length > 0 && !slot.plan.data_chunk;
  const size_t head = payload_here ? call.out.position : call.args.size();
  if (head > 0) std::memcpy(at, call.args.data(), head);
  at += head;
  if (payload_here) {
    if (auto ok = gather(call.out.pieces, at); !ok) return ok;
    at += call.out.length;
    const uint32_t pad = base::pad4(call.out.length);
    std::memset(at, 0, pad);
    at += pad;
    std::memcpy(at, call.args.data() + head, call.args.size() - head);
    stats_.pullup_bytes += call.out.length;
  }
  stats_.nomsg_calls++;
  stats_.total_rdma_request_bytes += slot.plan.long_call_bytes;
  return {};
}

// Inline payload is gathered from its region by further pieces of the Send where the provider takes that
// many, and copied between head and tail of the message otherwise.
Result<void> Endpoint::post(CallSlot& slot) {
  const rpc::Call& call = *slot.call;
  const uint32_t header = slot.plan.header_bytes;
  std::byte* at = arena_->at(slot.offset) + header;
  std::array<rdma::Sge, chunk_segments_typical + 2> sge;
  uint32_t pieces = 0;
  if (slot.plan.long_call) {
    sge[pieces++] = arena_->sge(slot.offset, header);
  } else {
    at += rpc::encode_call_header({at, send_inline_bytes_ - header}, slot.xid, call.program, call.version,
                                  call.procedure, credential_of(call));
    const bool inline_payload = call.out.length > 0 && !slot.plan.data_chunk;
    const size_t head = inline_payload ? call.out.position : call.args.size();
    if (head > 0) std::memcpy(at, call.args.data(), head);
    at += head;
    if (inline_payload) {
      const size_t sge_max = std::min<size_t>(pd_->caps().send_sge_max, sge.size());
      const uint32_t pad = base::pad4(call.out.length);
      const bool gathered = call.out.pieces.size() + 2 <= sge_max;
      if (gathered) {
        sge[pieces++] = arena_->sge(slot.offset, static_cast<uint32_t>(at - arena_->at(slot.offset)));
        for (const rdma::Sge& piece : call.out.pieces)
          if (piece.length > 0) sge[pieces++] = piece;
      } else {
        if (auto ok = gather(call.out.pieces, at); !ok) return ok;
        at += call.out.length;
        stats_.pullup_bytes += call.out.length;
      }
      std::byte* tail = at;
      std::memset(at, 0, pad);
      at += pad;
      if (call.args.size() > head) std::memcpy(at, call.args.data() + head, call.args.size() - head);
      at += call.args.size() - head;
      const uint64_t tail_at = slot.offset + static_cast<uint64_t>(tail - arena_->at(slot.offset));
      if (gathered && at != tail) sge[pieces++] = arena_->sge(tail_at, static_cast<uint32_t>(at - tail));
    }
    if (pieces == 0)
      sge[pieces++] = arena_->sge(slot.offset, static_cast<uint32_t>(at - arena_->at(slot.offset)));
  }
  rdma::SendRequest request;
  request.id = slot.id();
  request.sge = {sge.data(), pieces};
  if (auto ok = qp_->post_send({&request, 1}); !ok) return ok;
  slot.transmitted = slot.send_pending = true;
  return {};
}

}  // namespace nfsrdma::rpcrdma
