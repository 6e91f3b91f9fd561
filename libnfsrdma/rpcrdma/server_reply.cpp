// SPDX-License-Identifier: Apache-2.0
// Answers: where the results and their payload go, and the posting of it.
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "rpcrdma/pieces.hpp"
#include "rpcrdma/server_endpoint.hpp"

namespace nfsrdma::rpcrdma {
namespace {

constexpr size_t sge_most = 16;

uint64_t sum_lengths(std::span<const Segment> segments) {
  uint64_t n = 0;
  for (const Segment& s : segments) n += s.length;
  return n;
}

// Echoes a chunk with the lengths that `bytes`, filled in order, make of it.
void echo(HeaderWriter& w, std::span<const Segment> segments, uint64_t bytes) {
  for (Segment s : segments) {
    s.length = static_cast<uint32_t>(std::min<uint64_t>(s.length, bytes));
    bytes -= s.length;
    w.segment(s);
  }
}

}  // namespace

base::Bytes IncomingCall::results_space() {
  return slot_ ? base::Bytes(slot_->results, slot_->results_room) : base::Bytes();
}

void IncomingCall::reply(rpc::AcceptStatus status, uint32_t results_bytes, rpc::OutboundData data) {
  ServerEndpoint::Slot* slot = std::exchange(slot_, nullptr);
  if (!slot) {
    if (data.release) data.release();
    return;
  }
  endpoint_.reply(*slot, status, results_bytes, data);
}

void ServerEndpoint::abandon(Slot& slot) {
  slot.call = nullptr;
  free_slot(slot);
  if (state_ == State::up) flush_soon();
}

void ServerEndpoint::reply(Slot& slot, rpc::AcceptStatus status, uint32_t results_bytes,
                           rpc::OutboundData& data) {
  slot.call = nullptr;
  slot.release = std::move(data.release);
  if (state_ != State::up) return free_slot(slot);
  slot.status = status;
  slot.results_bytes = status == rpc::AcceptStatus::success ? results_bytes : 0;
  if (status == rpc::AcceptStatus::success && data.length > 0) {
    slot.payload_bytes = data.length;
    slot.payload_position = data.position;
    for (const rdma::Sge& piece : data.pieces)
      if (piece.length > 0) slot.payload.push_back(piece);
  }
  if (faults_) slot.fault = faults_->on_reply(*this, slot.fault_header);
  slot.stage = Stage::delayed;
  if (slot.fault.delay_ns > 0)
    loop_.arm(slot.delay, loop_.now_ns() + slot.fault.delay_ns);
  else
    answer(slot);
}

void ServerEndpoint::answer(Slot& slot) {
  if (state_ != State::up) return free_slot(slot);
  if (slot.fault.kind != ReplyFaultKind::none && apply_early_fault(slot)) return;
  start_reply(slot);
}

// Decides the form. False: the payload fits nowhere. `chunk` is the write chunk that takes it, nullptr for
// none.
bool ServerEndpoint::plan_payload(Slot& slot, const ChunkRange*& chunk) const {
  chunk = nullptr;
  if (slot.payload_bytes == 0) return true;
  if (total_bytes(slot.payload.span()) != slot.payload_bytes || slot.payload_position % 4 != 0 ||
      slot.payload_position > slot.results_bytes)
    return false;
  const ReplyFaultKind fault = slot.fault.kind;
  if (fault == ReplyFaultKind::write_chunk_unused || fault == ReplyFaultKind::write_chunk_empty ||
      fault == ReplyFaultKind::write_chunk_absent)
    return true;
  for (const ChunkRange& w : slot.header.write_chunks) {
    const uint64_t room = sum_lengths(slot.header.segments(w));
    if (room == 0) continue;
    chunk = &w;
    return room >= slot.payload_bytes;
  }
  return true;
}

// Fills slot.message with the RPC message as pieces. False: it is larger than the room that was promised.
bool ServerEndpoint::write_rpc_message(Slot& slot, bool with_payload, uint32_t& message_bytes) {
  if (slot.results_bytes > slot.results_room) return false;
  const bool mismatch = slot.status == rpc::AcceptStatus::program_mismatch;
  if (mismatch && slot.results_room < 8) return false;
  std::byte* start = slot.results - rpc::reply_header_bytes;
  const uint32_t header =
      rpc::encode_reply_header({start, rpc::reply_header_bytes + (mismatch ? 8 : 0)}, slot.header.xid,
                               slot.status, rpc::nfs_version, rpc::nfs_version);
  const uint64_t at = slot.results_offset - rpc::reply_header_bytes;
  slot.message.clear();
  if (!with_payload) {
    message_bytes = header + slot.results_bytes;
    slot.message.push_back({slot.results_region, at, message_bytes});
    return true;
  }
  const uint32_t head = rpc::reply_header_bytes + slot.payload_position;
  slot.message.push_back({slot.results_region, at, head});
  for (const rdma::Sge& piece : slot.payload.span()) slot.message.push_back(piece);
  const uint32_t pad = base::pad4(slot.payload_bytes);
  if (pad > 0) slot.message.push_back(arena_->sge(zeros_at_, pad));
  const uint32_t tail = slot.results_bytes - slot.payload_position;
  if (tail > 0) slot.message.push_back({slot.results_region, at + head, tail});
  message_bytes = head + slot.payload_bytes + pad + tail;
  return true;
}

void ServerEndpoint::start_reply(Slot& slot) {
  const Header& h = slot.header;
  const ChunkRange* chunk = nullptr;
  uint32_t message_bytes = 0;
  bool fits = plan_payload(slot, chunk);
  const bool with_payload = slot.payload_bytes > 0 && !chunk;
  fits = fits && write_rpc_message(slot, with_payload, message_bytes);
  if (!fits) return send_error(slot, ErrorCode::chunk);
  const size_t sge_max = std::min<size_t>(pd_->caps().send_sge_max, sge_most);
  const bool inline_fits = slot.reply_header_bytes + message_bytes <= send_inline_bytes_;
  // Results right behind an inline header make one piece with it; a fault may change the header's length.
  const bool adjoining = !slot.results_buffer && slot.header_room_bytes == slot.reply_header_bytes &&
                         slot.fault.kind == ReplyFaultKind::none;
  const bool gathers = slot.message.size() + (adjoining ? 0 : 1) <= sge_max;
  const bool nomsg = slot.reply_chunk_bytes > 0 && (params_.reply_chunk_always || !inline_fits || !gathers);
  if (nomsg ? message_bytes > slot.reply_chunk_bytes : !inline_fits)
    return send_error(slot, ErrorCode::chunk);
  if (!nomsg && !gathers && !flatten(slot, message_bytes)) return send_error(slot, ErrorCode::chunk);
  if (chunk) slot.payload_transfer = Transfer(slot.payload.span(), h.segments(*chunk), slot.payload_bytes);
  if (nomsg) slot.message_transfer = Transfer(slot.message.span(), h.segments(h.reply_chunk), message_bytes);
  uint32_t header = write_header(slot, chunk, nomsg, message_bytes);
  if (slot.fault.kind != ReplyFaultKind::none) header = apply_header_fault(slot, header);
  slot.send.clear();
  slot.send.push_back(arena_->sge(slot.offset, header));
  if (!nomsg) {
    for (const rdma::Sge& piece : slot.message) {
      rdma::Sge& last = slot.send[slot.send.size() - 1];
      if (last.region == piece.region && last.offset + last.length == piece.offset)
        last.length += piece.length;
      else
        slot.send.push_back(piece);
    }
  }
  choose_invalidate(slot);
  if (slot.fault.kind != ReplyFaultKind::none) apply_send_fault(slot);
  start_send(slot);
}

// Payload in more pieces than one Send can gather: copied into place. Only small answers come here.
bool ServerEndpoint::flatten(Slot& slot, uint32_t message_bytes) {
  if (slot.results_buffer && message_bytes > slot.results_buffer.size()) return false;
  std::byte* payload_at = slot.results + slot.payload_position;
  const uint32_t tail = slot.results_bytes - slot.payload_position;
  const uint32_t padded = slot.payload_bytes + base::pad4(slot.payload_bytes);
  std::memmove(payload_at + padded, payload_at, tail);
  if (!gather(slot.payload.span(), payload_at)) return false;
  std::memset(payload_at + slot.payload_bytes, 0, padded - slot.payload_bytes);
  slot.message.clear();
  slot.message.push_back({slot.results_region, slot.results_offset - rpc::reply_header_bytes, message_bytes});
  return true;
}

uint32_t ServerEndpoint::write_header(Slot& slot, const ChunkRange* filled, bool nomsg,
                                      uint32_t message_bytes) {
  const Header& h = slot.header;
  HeaderWriter w({arena_->at(slot.offset), params_.inline_bytes});
  w.fixed(h.xid, slot.fault.credits.value_or(params_.credits), nomsg ? Procedure::nomsg : Procedure::msg);
  w.end_reads();
  for (const ChunkRange& chunk : h.write_chunks) {
    w.begin_write_chunk(chunk.count);
    echo(w, h.segments(chunk), &chunk == filled ? slot.payload_bytes : 0);
  }
  w.end_write_list();
  if (nomsg) {
    w.begin_reply_chunk(h.reply_chunk.count);
    echo(w, h.segments(h.reply_chunk), message_bytes);
  } else {
    w.no_reply_chunk();
  }
  return w.size();
}

// Version 1 cannot say which handle to invalidate: only a call that names a single one leaves no doubt.
void ServerEndpoint::choose_invalidate(Slot& slot) {
  slot.send_op = rdma::Opcode::send;
  if (!client_invalidation_) return;
  bool any = false, one = true;
  uint32_t handle = 0;
  auto see = [&](uint32_t h) {
    if (!any) handle = h;
    one = one && h == handle;
    any = true;
  };
  for (const ReadSegment& r : slot.header.reads) see(r.target.handle);
  for (const Segment& s : slot.header.result_segments) see(s.handle);
  if (!any || !one) return;
  slot.send_op = rdma::Opcode::send_invalidate;
  slot.invalidate_key = handle;
}

void ServerEndpoint::send_error(Slot& slot, ErrorCode code) {
  const base::Bytes out(arena_->at(slot.offset), header_bytes_min);
  const uint32_t credits = slot.fault.credits.value_or(params_.credits);
  const uint32_t n = code == ErrorCode::version ? encode_error_version(out, slot.header.xid, credits)
                                                : encode_error_chunk(out, slot.header.xid, credits);
  slot.payload_transfer = slot.message_transfer = Transfer();
  slot.send.clear();
  slot.send.push_back(arena_->sge(slot.offset, n));
  slot.send_op = rdma::Opcode::send;
  start_send(slot);
}

// The Receive goes back first: the Send below lets the client use its credit again.
void ServerEndpoint::start_send(Slot& slot) {
  slot.stage = Stage::replying;
  if (Receive* receive = std::exchange(slot.receive, nullptr)) repost(*receive);
  if (state_ == State::up && !advance(slot)) blocked_.push_back(slot);
  if (state_ == State::up) flush_if_much();
  flush_soon();
}

bool ServerEndpoint::push_reply(Slot& slot) {
  if (!push_writes(slot, slot.payload_transfer) || !push_writes(slot, slot.message_transfer)) return false;
  while (slot.sends_left > 0 && state_ == State::up) {
    if (sq_used_ >= sq_depth_) return false;
    rdma::SendRequest request;
    request.id = slot.id();
    request.op = slot.send_op;
    request.sge = slot.send.span();
    request.invalidate_key = slot.invalidate_key;
    if (!post(request)) return true;
    slot.sends_left--;
    slot.sends_pending++;
  }
  return true;
}

bool ServerEndpoint::push_writes(Slot& slot, Transfer& transfer) {
  std::array<rdma::Sge, sge_most> sge;
  const size_t sge_max = std::min<size_t>(pd_->caps().send_sge_max, sge.size());
  while (!transfer.done() && state_ == State::up) {
    if (sq_used_ >= sq_depth_) return false;
    rdma::SendRequest request;
    size_t count = 0;
    if (!transfer.next(pd_->caps().segment_bytes_max, {sge.data(), sge_max}, count, request.remote))
      return true;
    request.id = slot.transfer_done.id();
    request.op = rdma::Opcode::write;
    request.sge = {sge.data(), count};
    if (!post(request)) return true;
    slot.transfers++;
  }
  return true;
}

void ServerEndpoint::on_send_done(Slot& slot, const rdma::Completion& c) {
  sq_used_--;
  slot.sends_pending--;
  if (c.status != rdma::CompletionStatus::success) {
    if (c.status != rdma::CompletionStatus::flushed)
      end_later(Error(ECONNRESET, ErrorOrigin::connection,
                      base::text("sending an answer failed: %s", rdma::to_string(c.status))));
    return;
  }
  finish_reply_if_done(slot);
  flush_soon();
}

void ServerEndpoint::finish_reply_if_done(Slot& slot) {
  if (slot.transfers == 0 && slot.sends_left == 0 && slot.sends_pending == 0) free_slot(slot);
}

}  // namespace nfsrdma::rpcrdma
