// SPDX-License-Identifier: Apache-2.0
// From a received message to a call in the service's hands.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "rpcrdma/server_endpoint.hpp"

namespace nfsrdma::rpcrdma {
namespace {

constexpr uint32_t message_type_call = 0, message_type_reply = 1;
constexpr uint32_t rpc_mismatch = 0, auth_bad_credential = 1;

uint64_t sum_lengths(std::span<const Segment> segments) {
  uint64_t n = 0;
  for (const Segment& s : segments) n += s.length;
  return n;
}

}  // namespace

void ServerEndpoint::on_receive(Receive& receive, const rdma::Completion& c) {
  if (c.status != rdma::CompletionStatus::success) {
    if (c.status != rdma::CompletionStatus::flushed)
      end_later(Error(ECONNRESET, ErrorOrigin::connection,
                      base::text("the connection broke: %s", rdma::to_string(c.status))));
    return;
  }
  receive.length = std::min(c.length, receive_bytes_);
  // Kept in order: a message may overtake the news that the connection stands, or find all slots in use.
  backlog_.push_back(receive);
  if (state_ == State::up) take_backlog();
  flush_soon();
}

void ServerEndpoint::take_backlog() {
  while (state_ == State::up && !free_slots_.empty()) {
    Receive* receive = backlog_.pop_front();
    if (!receive) return;
    begin(*receive);
  }
}

void ServerEndpoint::begin(Receive& receive) {
  ParseLimits limits;
  limits.read_segments_max = limits.chunk_segments_max = params_.chunk_segments_max;
  limits.write_chunks_max = params_.write_chunks_max;
  Slot& slot = *take_slot();
  slot.stage = Stage::waiting;
  slot.receive = &receive;
  const base::ConstBytes message(arena_->at(receive.offset), receive.length);
  uint32_t body_at = 0;
  const ParseStatus status = parse(message, limits, slot.header, body_at);
  const Header& h = slot.header;
  if (status == ParseStatus::too_short) return free_slot(slot);
  if (status == ParseStatus::bad_version) return send_error(slot, ErrorCode::version);
  if (h.procedure == Procedure::error) on_reverse_error(h.xid);
  if (h.procedure == Procedure::error || h.procedure == Procedure::done) return free_slot(slot);
  if (status != ParseStatus::ok) return send_error(slot, ErrorCode::chunk);
  slot.body = message.subspan(body_at);
  if (h.procedure == Procedure::msg && h.lists_empty() && slot.body.size() >= 8 &&
      base::load_be<uint32_t>(slot.body.data() + 4) == message_type_reply) {
    on_reverse_reply(slot.body, h.credit);
    return free_slot(slot);
  }
  if (!sort_read_list(slot) || !place_results(slot)) return send_error(slot, ErrorCode::chunk);
  admit(slot);
}

// Gathers the read list by position. False: lists that make no sense or ask for more than the limits.
bool ServerEndpoint::sort_read_list(Slot& slot) {
  const bool nomsg = slot.header.procedure == Procedure::nomsg;
  uint64_t zero_bytes = 0;
  bool zero_seen = false;
  for (const ReadSegment& r : slot.header.reads) {
    if (r.position % 4 != 0) return false;
    if (r.position == 0) {
      zero_bytes += r.target.length;
      zero_seen = true;
      continue;
    }
    auto chunks = slot.data_chunks.span();
    auto at = std::ranges::find(chunks, r.position, &DataChunk::position);
    if (at == chunks.end()) {
      if (slot.data_chunks.size() >= chunk_segments_typical) return false;
      slot.data_chunks.push_back({r.position, 0});
      at = slot.data_chunks.span().end() - 1;
    }
    if (r.target.length > params_.message_bytes_max - at->length) return false;
    at->length += r.target.length;
  }
  // A position-zero chunk is the message of RDMA_NOMSG, and nothing else is.
  if (nomsg != zero_seen || zero_bytes > std::min(params_.message_bytes_max, pool_->largest_bytes()))
    return false;
  std::ranges::sort(slot.data_chunks.span(), {}, &DataChunk::position);
  slot.message_bytes = static_cast<uint32_t>(zero_bytes);
  slot.assembled = slot.data_chunks.size() > 1;
  if (slot.data_chunks.empty()) return true;
  if (!slot.assembled) return slot.data_chunks[0].length <= pool_->largest_bytes();
  // Several WRITEs in one call: their payload goes back into the stream. Together with a position-zero chunk
  // that is beyond what RFC 8267 asks of a server.
  if (nomsg) return false;
  uint64_t end = 0, inline_used = 0;
  for (const DataChunk& chunk : slot.data_chunks) {
    if (chunk.position < end) return false;
    inline_used += chunk.position - end;
    end = (uint64_t{chunk.position} + chunk.length + 3) / 4 * 4;
  }
  if (inline_used > slot.body.size()) return false;
  const uint64_t whole = end + slot.body.size() - inline_used;
  slot.message_bytes = static_cast<uint32_t>(whole);
  return whole <= pool_->largest_bytes();
}

// How much room the answer has, and where it will be encoded. False: not even a transport header fits.
bool ServerEndpoint::place_results(Slot& slot) {
  const Header& h = slot.header;
  uint32_t write_list = 0;
  for (const ChunkRange& chunk : h.write_chunks) write_list += 8 + segment_bytes * chunk.count;
  slot.reply_header_bytes = header_bytes_min + write_list;
  slot.reply_chunk_bytes = h.has_reply_chunk ? sum_lengths(h.segments(h.reply_chunk)) : 0;
  slot.header_room_bytes =
      slot.reply_header_bytes + (slot.reply_chunk_bytes > 0 ? 4 + segment_bytes * h.reply_chunk.count : 0);
  return slot.header_room_bytes + rpc::reply_header_bytes <= send_inline_bytes_;
}

void ServerEndpoint::admit(Slot& slot) {
  if (!borrow(slot)) {
    slot.stage = Stage::waiting;
    waiting_.push_back(slot);
    return;
  }
  slot.stage = Stage::pulling;
  if (slot.assembled) assemble(slot);
  if (!advance(slot) && !slot.linked()) blocked_.push_back(slot);
}

// All buffers or none, so that two calls never hold what the other needs.
bool ServerEndpoint::borrow(Slot& slot) {
  const uint32_t inline_room = send_inline_bytes_ - slot.header_room_bytes - rpc::reply_header_bytes;
  uint64_t chunk_room = std::min<uint64_t>(slot.reply_chunk_bytes, pool_->largest_bytes());
  chunk_room = chunk_room > rpc::reply_header_bytes ? chunk_room - rpc::reply_header_bytes : 0;
  const bool by_chunk =
      slot.reply_chunk_bytes > 0 && (params_.reply_chunk_always || chunk_room > inline_room);
  mem::Buffer message, data, results;
  bool ok = true;
  if (slot.message_bytes > 0) ok = static_cast<bool>(message = pool_->try_borrow(slot.message_bytes));
  if (ok && slot.data_chunks.size() == 1 && slot.data_chunks[0].length > 0)
    ok = static_cast<bool>(data = pool_->try_borrow(slot.data_chunks[0].length));
  // Small ones are built behind the header, in the slot's own buffer.
  if (ok && by_chunk && slot.header_room_bytes + rpc::reply_header_bytes + chunk_room > params_.inline_bytes)
    ok = static_cast<bool>(
        results = pool_->try_borrow(static_cast<uint32_t>(chunk_room) + rpc::reply_header_bytes));
  if (!ok) return false;
  slot.message_buffer = std::move(message);
  slot.data_buffer = std::move(data);
  slot.results_buffer = std::move(results);
  slot.results_room = by_chunk ? static_cast<uint32_t>(chunk_room) : inline_room;
  if (slot.results_buffer) {
    slot.results = slot.results_buffer.data() + rpc::reply_header_bytes;
    slot.results_region = slot.results_buffer.region();
    slot.results_offset = slot.results_buffer.offset() + rpc::reply_header_bytes;
  } else {
    const rdma::Sge at = arena_->sge(slot.offset + slot.header_room_bytes + rpc::reply_header_bytes, 0);
    slot.results = arena_->at(at.offset);
    slot.results_region = at.region;
    slot.results_offset = at.offset;
  }
  return true;
}

void ServerEndpoint::retry_waiting() {
  while (Slot* slot = waiting_.front()) {
    slot->unlink();
    if (!borrow(*slot)) {
      waiting_.push_front(*slot);
      return;
    }
    slot->stage = Stage::pulling;
    if (slot->assembled) assemble(*slot);
    if (!advance(*slot) && !slot->linked()) blocked_.push_back(*slot);
  }
}

// A message that is no call of RPC version 2 still has an xid to be answered under; what is not even that
// ends the connection.
void ServerEndpoint::refuse_rpc(Slot& slot) {
  const base::ConstBytes message = slot.body;
  if (message.size() < 24 || base::load_be<uint32_t>(message.data() + 4) != message_type_call) {
    end_later(Error(EBADMSG, ErrorOrigin::protocol, "the client sent a message that is no RPC call"));
    return;
  }
  const uint32_t version = base::load_be<uint32_t>(message.data() + 8);
  std::byte* out = slot.results - rpc::reply_header_bytes;
  uint32_t n = rpc::encode_auth_error({out, rpc::reply_header_bytes}, slot.header.xid, auth_bad_credential);
  if (version != 2) {
    const uint32_t words[] = {slot.header.xid, message_type_reply, 1, rpc_mismatch, 2, 2};
    for (n = 0; n < sizeof words; n += 4) base::store_be(out + n, words[n / 4]);
  }
  slot.message.clear();
  slot.message.push_back({slot.results_region, slot.results_offset - rpc::reply_header_bytes, n});
  const bool nomsg = slot.reply_chunk_bytes >= n;
  if (nomsg)
    slot.message_transfer = Transfer(slot.message.span(), slot.header.segments(slot.header.reply_chunk), n);
  const uint32_t header = write_header(slot, nullptr, nomsg, n);
  slot.send.clear();
  slot.send.push_back(arena_->sge(slot.offset, header));
  if (!nomsg) slot.send.push_back(slot.message[0]);
  slot.send_op = rdma::Opcode::send;
  start_send(slot);
}

void ServerEndpoint::deliver(Slot& slot) {
  const base::ConstBytes message =
      slot.message_buffer ? base::ConstBytes(slot.message_buffer.data(), slot.message_bytes) : slot.body;
  slot.body = message;
  uint32_t args_at = 0;
  auto header = rpc::decode_call_header(message, args_at);
  if (!header || header->xid != slot.header.xid) return refuse_rpc(slot);
  const bool data_apart = slot.data_chunks.size() == 1;
  const DataChunk chunk = data_apart ? slot.data_chunks[0] : DataChunk{};
  if (data_apart && (chunk.position < args_at || chunk.position > message.size()))
    return send_error(slot, ErrorCode::chunk);
  auto* call = new IncomingCall(*this, slot);
  slot.call = call;
  slot.stage = Stage::serving;
  slot.fault_header = *header;
  slot.fault_header.credential = {};  // its bytes go back with the Receive
  slot.fault_header.sys.machine = {};
  call->header = *header;
  call->args = message.subspan(args_at);
  if (data_apart && chunk.length > 0) {
    slot.data_piece[0] = slot.data_buffer.sge(0, chunk.length);
    call->data.position = chunk.position - args_at;
    call->data.length = chunk.length;
    call->data.pieces = slot.data_piece;
  }
  call->results_bytes_max = slot.results_room;
  for (const ChunkRange& w : slot.header.write_chunks) {
    const uint64_t room = sum_lengths(slot.header.segments(w));
    if (room == 0) continue;
    call->write_chunk_bytes = static_cast<uint32_t>(std::min<uint64_t>(room, UINT32_MAX));
    break;
  }
  acceptor_.service_.on_call(std::unique_ptr<rpc::ServerCall>(call));
}

}  // namespace nfsrdma::rpcrdma
