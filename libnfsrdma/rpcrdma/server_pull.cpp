// SPDX-License-Identifier: Apache-2.0
// Fetching read chunks. Everything that a call sends by chunk is here before the service sees the call.
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "rpcrdma/server_endpoint.hpp"

namespace nfsrdma::rpcrdma {

// Posts what the send queue has room for. False: more to post, the slot waits for room.
bool ServerEndpoint::advance(Slot& slot) {
  if (slot.stage == Stage::replying) return push_reply(slot);
  if (slot.stage != Stage::pulling) return true;
  if (!pull(slot)) return false;
  if (slot.transfers == 0) pulled(slot);
  return true;
}

bool ServerEndpoint::pull(Slot& slot) {
  const auto reads = slot.header.reads.span();
  while (slot.pull_segment < reads.size() && state_ == State::up) {
    const ReadSegment& r = reads[slot.pull_segment];
    if (slot.pull_done == r.target.length) {
      slot.pull_segment++;
      slot.pull_done = 0;
      continue;
    }
    if (sq_used_ >= sq_depth_) return false;
    rdma::Sge sink = sink_of(slot, slot.pull_segment);
    sink.offset += slot.pull_done;
    sink.length = std::min(r.target.length - slot.pull_done, pd_->caps().segment_bytes_max);
    rdma::SendRequest request;
    request.id = slot.transfer_done.id();
    request.op = rdma::Opcode::read;
    request.sge = {&sink, 1};
    request.remote = {r.target.handle, r.target.offset + slot.pull_done};
    if (!post(request)) return true;
    slot.transfers++;
    slot.pull_done += sink.length;
  }
  return true;
}

// Where the bytes of a read segment belong: behind those of the earlier segments of its chunk.
rdma::Sge ServerEndpoint::sink_of(Slot& slot, uint32_t segment) {
  const auto reads = slot.header.reads.span();
  const uint32_t position = reads[segment].position;
  uint32_t before = slot.assembled ? position : 0;
  for (uint32_t i = 0; i < segment; i++)
    if (reads[i].position == position) before += reads[i].target.length;
  const bool to_message = position == 0 || slot.assembled;
  return (to_message ? slot.message_buffer : slot.data_buffer).sge(before, reads[segment].target.length);
}

// Several data chunks: the inline bytes go around the places that the Reads will fill.
void ServerEndpoint::assemble(Slot& slot) {
  std::byte* out = slot.message_buffer.data();
  uint32_t at = 0, taken = 0;
  for (const DataChunk& chunk : slot.data_chunks) {
    const uint32_t gap = chunk.position - at;
    std::memcpy(out + at, slot.body.data() + taken, gap);
    taken += gap;
    at = chunk.position + chunk.length;
    const uint32_t pad = base::pad4(chunk.length);
    std::memset(out + at, 0, pad);
    at += pad;
  }
  std::memcpy(out + at, slot.body.data() + taken, slot.body.size() - taken);
}

void ServerEndpoint::on_transfer(Slot& slot, const rdma::Completion& c) {
  sq_used_--;
  slot.transfers--;
  if (c.status != rdma::CompletionStatus::success) {
    if (c.status != rdma::CompletionStatus::flushed)
      end_later(Error(ECONNRESET, ErrorOrigin::connection,
                      base::text("RDMA %s of a chunk failed: %s",
                                 c.op == rdma::Opcode::read ? "Read" : "Write", rdma::to_string(c.status))));
    return;
  }
  if (state_ != State::up) return;
  flush_soon();
  if (slot.stage == Stage::pulling && slot.transfers == 0 && slot.pull_segment == slot.header.reads.size())
    pulled(slot);
  else if (slot.stage == Stage::replying)
    finish_reply_if_done(slot);
}

void ServerEndpoint::pulled(Slot& slot) {
  slot.unlink();
  deliver(slot);
}

}  // namespace nfsrdma::rpcrdma
