// SPDX-License-Identifier: Apache-2.0
// From a received message to an answered call. What arrives here is hostile until proved otherwise.
#include <cerrno>

#include "base/log.hpp"
#include "rpcrdma/endpoint.hpp"

namespace nfsrdma::rpcrdma {
namespace {

constexpr uint32_t message_type_call = 0;

// A reply holds at most what a call of ours can have offered.
constexpr ParseLimits reply_limits{
    .read_segments_max = 1, .write_chunks_max = 1, .chunk_segments_max = chunk_segments_typical};

const char* parse_text(ParseStatus status) {
  switch (status) {
    case ParseStatus::too_short:
      return "the message is shorter than a transport header";
    case ParseStatus::bad_version:
      return "the transport version is not 1";
    case ParseStatus::bad_procedure:
      return "the transport procedure is unknown";
    case ParseStatus::over_limit:
      return "the chunk lists are larger than anything that was offered";
    default:
      return "the chunk lists are malformed";
  }
}

// Segments are filled in order, so all before the last used one are full; handles and offsets come back as
// sent.
const char* check_segments(std::span<const Segment> got, std::span<const rdma::Exposure> offered,
                           uint32_t& total) {
  if (got.size() != offered.size()) return "a chunk came back with another number of segments";
  bool full = true;
  total = 0;
  for (size_t i = 0; i < got.size(); i++) {
    if (got[i].handle != offered[i].key || got[i].offset != offered[i].base)
      return "a segment came back with another handle or offset";
    if (got[i].length > offered[i].length) return "a segment came back longer than offered";
    if (!full && got[i].length > 0) return "a chunk came back with a hole";
    full = got[i].length == offered[i].length;
    total += got[i].length;
  }
  return nullptr;
}

Error completion_error(const rdma::Completion& c) {
  return Error(ECONNRESET, ErrorOrigin::connection,
               base::text("the connection broke: %s", rdma::to_string(c.status)));
}

}  // namespace

Endpoint::CallSlot* Endpoint::find(uint32_t xid) {
  const uint32_t index = xid & ((1u << index_bits_) - 1);
  if (index >= slots_.size()) return nullptr;
  CallSlot& slot = slots_[index];
  return slot.call && slot.transmitted && !slot.answered && slot.xid == xid ? &slot : nullptr;
}

void Endpoint::on_send_done(CallSlot& slot, const rdma::Completion& c) {
  slot.send_pending = false;
  if (c.status != rdma::CompletionStatus::success) {
    if (c.status != rdma::CompletionStatus::flushed) fail_softly(completion_error(c));
    slot.send_pending = true;  // answered at the end of the queue pair
    return;
  }
  finish_if_done(slot);
}

void Endpoint::on_receive(Receive& receive, const rdma::Completion& c) {
  if (c.status != rdma::CompletionStatus::success) {
    if (c.status == rdma::CompletionStatus::length_error)
      fail(Error(EMSGSIZE, ErrorOrigin::protocol,
                 base::text("%s sent a message larger than the %u bytes that were announced",
                            params_.remote.text().c_str(), params_.inline_bytes)));
    else if (c.status != rdma::CompletionStatus::flushed)
      fail_softly(completion_error(c));
    return;
  }
  if (state_ != State::up) return;
  stats_.receives++;
  const base::ConstBytes message(arena_->at(receive.offset), std::min(c.length, receive_bytes_));
  uint32_t body_at = 0;
  const ParseStatus status = parse(message, reply_limits, header_, body_at);
  CallSlot* slot = status == ParseStatus::too_short ? nullptr : find(header_.xid);
  if (status != ParseStatus::ok) return bad_reply(slot, parse_text(status));
  const base::ConstBytes body = message.subspan(body_at);
  // Only a message without chunks can be a call of the peer's; its xid has nothing to do with ours.
  if (header_.procedure == Procedure::msg && header_.lists_empty() && body.size() >= 8 &&
      base::load_be<uint32_t>(body.data() + 4) == message_type_call) {
    if (accept_invalidation(nullptr, c)) on_reverse_call(body);
    return repost(receive);
  }
  if (!accept_invalidation(slot, c)) return;
  if (!slot) {
    stats_.bad_xids++;
    return repost(receive);
  }
  credits_.grant(header_.credit);
  on_reply(receive, *slot, body);
  if (!slot->held) repost(receive);
  finish_if_done(*slot);
  pump();
  driver_.at_batch_end(*this);
}

bool Endpoint::accept_invalidation(CallSlot* slot, const rdma::Completion& c) {
  if (!c.invalidated) return true;
  for (uint32_t i = 0; slot && i < slot->exposure_count; i++) {
    if (slot->exposures[i].key != c.invalidated_key) continue;
    slot->fenced |= uint64_t{1} << i;
    stats_.remote_invalidations++;
    return true;
  }
  bad_reply(slot, "it invalidated memory that is not of its call");
  return false;
}

void Endpoint::on_reply(Receive& receive, CallSlot& slot, base::ConstBytes body) {
  if (header_.procedure == Procedure::error) return on_error_reply(slot);
  uint32_t placed = 0, in_reply_chunk = 0;
  const char* wrong = nullptr;
  if (!header_.reads.empty()) wrong = "a reply has no read list";
  if (!wrong) wrong = read_write_list(slot, placed);
  if (!wrong) wrong = read_reply_chunk(slot, in_reply_chunk);
  if (!wrong && header_.procedure == Procedure::nomsg && in_reply_chunk == 0)
    wrong = "RDMA_NOMSG without a message in the reply chunk";
  if (!wrong && header_.procedure == Procedure::msg && in_reply_chunk > 0)
    wrong = "RDMA_MSG with a message in the reply chunk";
  if (wrong) return bad_reply(&slot, wrong);
  if (header_.procedure == Procedure::nomsg) {
    stats_.total_rdma_reply_bytes += in_reply_chunk;
    body = {slot.reply_buffer.data(), in_reply_chunk};
  } else {
    slot.held = &receive;
  }
  stats_.total_rdma_reply_bytes += placed;
  accept_results(slot, body, placed);
}

// An offered write chunk comes back filled, empty (unused), with no segments or not at all.
const char* Endpoint::read_write_list(CallSlot& slot, uint32_t& placed) const {
  if (header_.write_chunks.empty()) return nullptr;
  if (slot.write_count == 0) return "a write chunk that was not offered";
  const ChunkRange& chunk = header_.write_chunks[0];
  if (chunk.count == 0) return nullptr;
  return check_segments(header_.segments(chunk), {slot.exposures.data() + slot.write_first, slot.write_count},
                        placed);
}

const char* Endpoint::read_reply_chunk(CallSlot& slot, uint32_t& length) const {
  if (!header_.has_reply_chunk) return nullptr;
  if (slot.reply_chunk_bytes == 0) return "a reply chunk that was not offered";
  if (header_.reply_chunk.count == 0) return nullptr;
  return check_segments(header_.segments(header_.reply_chunk), {&slot.exposures[slot.reply_exposure], 1},
                        length);
}

void Endpoint::on_error_reply(CallSlot& slot) {
  if (header_.error == ErrorCode::chunk) {
    slot.call->error =
        Error(EREMOTEIO, ErrorOrigin::server,
              "the server could not take the call's chunks, or its reply did not fit them (ERR_CHUNK)");
    fence_all(slot);
    return answered(slot, rpc::CallOutcome::chunk_error);
  }
  slot.call->error = Error(EPROTONOSUPPORT, ErrorOrigin::server,
                           base::text("the server speaks RPC-over-RDMA versions %u to %u, not 1",
                                      header_.version_low, header_.version_high));
  answered(slot, rpc::CallOutcome::refused);
  slot.fences_pending++;  // completes when the queue pair is gone
  fail(slot.call->error);
}

void Endpoint::accept_results(CallSlot& slot, base::ConstBytes message, uint32_t placed) {
  rpc::Call& call = *slot.call;
  uint32_t results_at = 0;
  auto verdict = rpc::decode_reply_header(message, slot.xid, results_at);
  if (!verdict && verdict.error().origin() == ErrorOrigin::protocol)
    return bad_reply(&slot, verdict.error().text().c_str());
  fence_all(slot);
  if (!verdict) {
    call.error = verdict.error();
    return answered(slot, rpc::CallOutcome::refused);
  }
  call.results = message.subspan(results_at);
  call.data_placed = placed > 0;
  call.data_length = placed;
  answered(slot, rpc::CallOutcome::replied);
}

// The call learns what happened when the queue pair is gone: until then the peer may still write to its
// memory.
void Endpoint::bad_reply(CallSlot* slot, const char* what) {
  stats_.bad_replies++;
  Error why(EIO, ErrorOrigin::protocol,
            base::text("%s sent a bad RPC-over-RDMA reply: %s", params_.remote.text().c_str(), what));
  if (slot) {
    slot->call->error = why;
    answered(*slot, rpc::CallOutcome::bad_reply);
    slot->fences_pending++;  // completes when the queue pair is gone
  }
  fail(why);
}

}  // namespace nfsrdma::rpcrdma
