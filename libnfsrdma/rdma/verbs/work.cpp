// SPDX-License-Identifier: Apache-2.0
// Work requests, their completions, exposures and fences.
//
// The owner sees completions in the order of its requests. The hardware may not: siw completes a Send before the Read
// in front of it. So an entry of the send queue is marked when it is done and leaves when all before it have left.
// Entries of which the hardware tells nothing are done when a later one is; that is never a Read, and now and then
// the hardware is asked even where the owner wants no completion, so that the queue drains.
#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

// A reason should follow a flush within this time; otherwise the connection ends without one.
constexpr TimeNs flush_grace_ns = base::ms(50);
constexpr TimeNs nudge_first_ns = base::ms(100);
constexpr uint8_t nudges_max = 3;

Error bounds_error() {
  return Error(EINVAL, ErrorOrigin::local, "a request names bytes outside of its registered memory");
}
Error revoked_error() { return Error(EIO, ErrorOrigin::local, "a request names memory that was revoked"); }

CompletionStatus status_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return CompletionStatus::success;
    case IBV_WC_WR_FLUSH_ERR: return CompletionStatus::flushed;
    case IBV_WC_LOC_LEN_ERR: return CompletionStatus::length_error;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR: return CompletionStatus::protection_error;
    case IBV_WC_REM_ACCESS_ERR: return CompletionStatus::remote_access;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR: return CompletionStatus::remote_error;
    case IBV_WC_RETRY_EXC_ERR: return CompletionStatus::retry_exceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR: return CompletionStatus::rnr_exceeded;
    default: return CompletionStatus::transport_error;
  }
}

ibv_sge to_sge(const Sge& piece) {
  auto* region = static_cast<VerbsRegion*>(piece.region);
  return {region->address() + piece.offset, piece.length, region->lkey()};
}

// Over siw the kernel's client answered each Send with Invalidate of ours by a Terminate, "cannot be invalidated"; why is
// not known. A replier need not invalidate (RFC 8797 only allows it): there it is a plain Send.
ibv_wr_opcode opcode_of(Opcode op, const DeviceTraits& traits) {
  switch (op) {
    case Opcode::write: return IBV_WR_RDMA_WRITE;
    case Opcode::read: return IBV_WR_RDMA_READ;
    case Opcode::send_invalidate: return traits.siw ? IBV_WR_SEND : IBV_WR_SEND_WITH_INV;
    default: return IBV_WR_SEND;
  }
}

}  // namespace

Result<void> VerbsQueuePair::check_pieces(std::span<const Sge> pieces, uint32_t pieces_max) const {
  if (pieces.size() > pieces_max)
    return Error(EINVAL, ErrorOrigin::usage,
                 base::text("a request of %zu pieces: %s takes %u", pieces.size(), device_.traits().name.c_str(),
                            pieces_max));
  for (const Sge& piece : pieces) {
    if (piece.length == 0) continue;
    auto* region = static_cast<VerbsRegion*>(piece.region);
    if (!region || !region->contains(piece.offset, piece.length)) return bounds_error();
    if (region->revoked()) return revoked_error();
  }
  return {};
}

Result<void> VerbsQueuePair::check_request(const SendRequest& request) const {
  if (request.op == Opcode::receive || request.op == Opcode::fence)
    return Error(EINVAL, ErrorOrigin::usage, "not an operation of the send queue");
  bool read = request.op == Opcode::read;
  // The hardware would hold the Read back for ever.
  if (read && ord_ == 0) return Error(EINVAL, ErrorOrigin::usage, "the peer takes no RDMA Reads on this connection");
  return check_pieces(request.sge, read ? device_.caps().read_sge_max : device_.caps().send_sge_max);
}

Result<void> VerbsQueuePair::post_send(std::span<const SendRequest> requests) {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::established || torn_) return ended_error();
  if (requests_ + requests.size() > params_.send_depth || !room(requests.size()))
    return Error(ENOBUFS, ErrorOrigin::local, "more requests than send_depth");
  for (const SendRequest& request : requests)
    if (auto ok = check_request(request); !ok) return ok;
  for (const SendRequest& request : requests) queue_request(request);
  if (device_.traits().siw && !accepting_side_ && !heard_ && nudges_ == 0 && nudge_ns_ == base::never_ns) {
    nudge_ns_ = now_ns() + nudge_first_ns;
    cq_.call_at(nudge_ns_);
  }
  return {};
}

void VerbsQueuePair::queue_request(const SendRequest& request) {
  SendEntry entry;
  entry.id = request.id;
  entry.op = request.op;
  entry.signaled_by_owner = request.signaled;
  requests_++;
  for (size_t i = 0; i < request.sge.size(); i++) entry.regions[i] = static_cast<VerbsRegion*>(request.sge[i].region);
  ibv_send_wr& wr = queue_work(entry, request.signaled);
  wr.opcode = opcode_of(request.op, device_.traits());
  for (const Sge& piece : request.sge)
    if (piece.length > 0) wr.sg_list[wr.num_sge++] = to_sge(piece);
  if (wr.opcode == IBV_WR_SEND_WITH_INV) wr.invalidate_rkey = request.invalidate_key;
  if (request.op == Opcode::write || request.op == Opcode::read) {
    wr.wr.rdma.remote_addr = request.remote.base;
    wr.wr.rdma.rkey = request.remote.key;
  }
}

ibv_send_wr& VerbsQueuePair::queue_work(const SendEntry& entry, bool signaled) {
  if (batch_size_ == batch_max) push_batch();
  if (++unsignaled_ >= std::max(1u, params_.send_depth / 4)) signaled = true;
  if (entry.op == Opcode::read) signaled = true;
  if (signaled) unsignaled_ = 0;
  ibv_send_wr& wr = batch_[batch_size_];
  std::memset(&wr, 0, sizeof wr);
  wr.wr_id = WorkId(seat_->slot, seat_->generation, false, send_sequence_++).value();
  wr.sg_list = batch_sge_[batch_size_].data();
  wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
  sends_.push(entry).signaled = signaled;
  batch_size_++;
  return wr;
}

void VerbsQueuePair::push_batch() {
  uint32_t n = std::exchange(batch_size_, 0);
  if (n == 0 || !qp_ || torn_ || phase_ != Phase::established) return;
  for (uint32_t i = 0; i + 1 < n; i++) batch_[i].next = &batch_[i + 1];
  batch_[n - 1].next = nullptr;
  ibv_send_wr* refused = nullptr;
  if (int error = ibv_post_send(qp_, batch_.data(), &refused))
    end(call_error(attempt(), "posting to the send queue", error));
}

void VerbsQueuePair::flush() {
  std::lock_guard lock(mutex_);
  push_batch();
}

Result<void> VerbsQueuePair::post_receive(std::span<const ReceiveRequest> requests) {
  std::lock_guard lock(mutex_);
  if (phase_ == Phase::ending || phase_ == Phase::ended || torn_) return ended_error();
  if (receives_.size() + early_receives_.size() + requests.size() > params_.receive_depth)
    return Error(ENOBUFS, ErrorOrigin::local, "more Receives than receive_depth");
  for (const ReceiveRequest& request : requests)
    if (auto ok = check_pieces({&request.sge, 1}, 1); !ok) return ok;
  if (qp_) return push_receives(requests);
  early_receives_.insert(early_receives_.end(), requests.begin(), requests.end());
  return {};
}

Result<void> VerbsQueuePair::push_receives(std::span<const ReceiveRequest> requests) {
  constexpr size_t chain_max = 32;
  std::array<ibv_recv_wr, chain_max> chain;
  std::array<ibv_sge, chain_max> pieces;
  while (!requests.empty()) {
    size_t n = std::min(requests.size(), chain_max);
    for (size_t i = 0; i < n; i++) {
      const ReceiveRequest& request = requests[i];
      std::memset(&chain[i], 0, sizeof chain[i]);
      chain[i].wr_id = WorkId(seat_->slot, seat_->generation, true, receive_sequence_++).value();
      chain[i].next = i + 1 < n ? &chain[i + 1] : nullptr;
      chain[i].sg_list = &pieces[i];
      if (request.sge.length > 0) pieces[i] = to_sge(request.sge), chain[i].num_sge = 1;
      receives_.push({request.id, static_cast<VerbsRegion*>(request.sge.region)});
    }
    requests = requests.subspan(n);
    // After a failure the rest is only queued: all are flushed at the end, which is near.
    ibv_recv_wr* refused = nullptr;
    if (phase_ == Phase::ending) continue;
    if (int error = ibv_post_recv(qp_, chain.data(), &refused))
      end(call_error(attempt(), "posting a Receive", error));
  }
  return {};
}

Result<Exposure> VerbsQueuePair::expose(Region& memory, uint64_t offset, uint32_t length, Purpose purpose) {
  std::lock_guard lock(mutex_);
  auto& region = static_cast<VerbsRegion&>(memory);
  if (phase_ != Phase::established || torn_) return ended_error();
  if (purpose != Purpose::read_source && purpose != Purpose::write_target)
    return Error(EINVAL, ErrorOrigin::usage, "only a read source or a write target can be exposed");
  if (length == 0 || length > device_.caps().segment_bytes_max || !region.contains(offset, length))
    return Error(EINVAL, ErrorOrigin::usage, "an exposure outside of its registered memory");
  if (region.revoked()) return revoked_error();
  if (exposures_.windows() && !room(2)) return Error(ENOBUFS, ErrorOrigin::local, "the send queue is full");
  auto index = exposures_.take(region);
  if (!index) return std::move(index).error();
  Exposures::Entry& exposure = exposures_.at(*index);
  uint64_t base = region.address() + offset;
  if (exposures_.windows()) {
    SendEntry entry;
    entry.kind = SendEntry::Kind::bind;
    entry.regions[0] = &region;
    entry.exposure = *index;
    ibv_send_wr& wr = queue_work(entry, false);
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = exposure.window;
    wr.bind_mw.rkey = exposure.key;
    wr.bind_mw.bind_info.mr = region.mr();
    wr.bind_mw.bind_info.addr = base;
    wr.bind_mw.bind_info.length = length;
    wr.bind_mw.bind_info.mw_access_flags =
        purpose == Purpose::read_source ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  }
  return Exposure{exposure.key, base, length, *index};
}

bool VerbsQueuePair::fence(const Exposure& exposure, uint64_t id) {
  std::lock_guard lock(mutex_);
  Exposures::Entry* live = exposures_.find(exposure);
  if (!live) return true;
  if (!exposures_.windows() || !qp_) {
    exposures_.release(exposure.token);
    return true;
  }
  SendEntry entry;
  entry.kind = SendEntry::Kind::fence;
  entry.id = id;
  entry.op = Opcode::fence;
  entry.regions[0] = live->region;
  entry.exposure = exposure.token;
  ibv_send_wr& wr = queue_work(entry, true);
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.invalidate_rkey = exposure.key;
  exposures_.start_fence(exposure.token);
  cq_.call_soon(*this);  // the owner waits for the completion and need not flush() for it
  return false;
}

void VerbsQueuePair::translate(const ibv_wc& raw) {
  std::lock_guard lock(mutex_);
  bool receive = WorkId(raw.wr_id).receive();
  ibv_wc wc = raw;
  // rxe has this status for a message that does not fit.
  if (receive && device_.traits().rxe && wc.status == IBV_WC_LOC_QP_OP_ERR) wc.status = IBV_WC_LOC_LEN_ERR;
  if (receive)
    translate_receive(wc);
  else
    translate_send(wc);
  if (wc.status != IBV_WC_SUCCESS) note_status(wc);
}

// Before the connection manager has said that the pair is connected its owner expects nothing of it.
void VerbsQueuePair::deliver(const Completion& completion) {
  bool connecting = phase_ == Phase::connecting || phase_ == Phase::accepting || phase_ == Phase::idle;
  if (connecting)
    held_.push_back(completion);
  else
    cq_.push(*this, completion);
}

void VerbsQueuePair::translate_send(const ibv_wc& wc) {
  uint32_t at = (WorkId(wc.wr_id).sequence() - send_head_) & WorkId::sequence_mask;
  if (at >= sends_.size()) return;  // not ours: the device said the same thing twice
  for (uint32_t i = 0; i < at; i++)
    if (!sends_[i].signaled) sends_[i].done = true;
  sends_[at].done = true;
  sends_[at].status = status_of(wc.status);
  while (!sends_.empty() && sends_.front().done) {
    retire(sends_.front());
    sends_.pop();
    send_head_++;
  }
}

// The entry leaves the send queue.
void VerbsQueuePair::retire(const SendEntry& entry) {
  switch (entry.kind) {
    case SendEntry::Kind::request:
      requests_--;
      if (entry.signaled_by_owner || entry.status != CompletionStatus::success)
        deliver({entry.id, entry.op, entry.status, false, 0, 0});
      break;
    case SendEntry::Kind::fence:
      // Also when it was flushed: the end of the queue pair ends its windows.
      exposures_.release(entry.exposure);
      deliver({entry.id, Opcode::fence, CompletionStatus::success, false, 0, 0});
      break;
    case SendEntry::Kind::bind:
    case SendEntry::Kind::nudge: break;
  }
}

void VerbsQueuePair::translate_receive(const ibv_wc& wc) {
  if (receives_.empty() || WorkId(wc.wr_id).sequence() != (receive_head_ & WorkId::sequence_mask)) return;
  Completion completion{receives_.front().id, Opcode::receive, status_of(wc.status), false, 0, 0};
  receives_.pop();
  receive_head_++;
  if (wc.status == IBV_WC_SUCCESS) {
    completion.length = wc.byte_len;
    heard_ = true;
    nudge_ns_ = base::never_ns;
    // rxe reports an invalidation with the kernel's value of the flag, which means another thing in user space.
    unsigned invalidation = IBV_WC_WITH_INV | (device_.traits().rxe ? IBV_WC_IP_CSUM_OK : 0);
    if (wc.wc_flags & invalidation) {
      exposures_.invalidated(wc.invalidated_rkey);
      completion.invalidated = true;
      completion.invalidated_key = wc.invalidated_rkey;
    }
  }
  deliver(completion);
}

// Every failed completion means that the connection is over. A flush only says so; the connection manager, or the
// completion of another request, knows why.
void VerbsQueuePair::note_status(const ibv_wc& wc) {
  if (torn_) return;
  // The accepting side may get a message, and fail over it, before it hears that the connection stands. No completion
  // after that one need come. A flush is the weakest reason.
  bool connecting = phase_ == Phase::accepting || phase_ == Phase::connecting;
  if (connecting && (!broken_ || broken_->errno_value() == ECONNRESET)) broken_ = completion_error(attempt(), wc);
  if (phase_ != Phase::established) return;
  if (wc.status != IBV_WC_WR_FLUSH_ERR) return end(completion_error(attempt(), wc));
  cq_.look_for_events();
  if (flush_deadline_ns_ != base::never_ns) return;
  flush_deadline_ns_ = now_ns() + flush_grace_ns;
  cq_.call_at(flush_deadline_ns_);
}

// A responding siw may miss the message that arrives while it turns from handshake to data; the next bytes wake it
// up. An RDMA Write of no bytes is a message without effect: neither key nor address of it is looked at.
void VerbsQueuePair::nudge() {
  std::lock_guard lock(mutex_);
  nudge_ns_ = base::never_ns;
  if (phase_ != Phase::established || torn_ || heard_ || !room(1)) return;
  SendEntry entry;
  entry.kind = SendEntry::Kind::nudge;
  queue_work(entry, false).opcode = IBV_WR_RDMA_WRITE;
  push_batch();
  if (++nudges_ < nudges_max) nudge_ns_ = now_ns() + (nudge_first_ns << nudges_);
}

}  // namespace nfsrdma::rdma::verbs
