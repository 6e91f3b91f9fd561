// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/engine.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>

namespace nfsrdma::rdma::iwarp {

const Caps& iwarp_caps() {
  static const Caps caps = [] {
    Caps c;
    c.ird_max = 128;
    c.ord_max = 128;
    c.remote_invalidate = true;
    c.keys_per_exposure = true;
    return c;
  }();
  return caps;
}

Engine::Engine(const QueuePairParams& params, CompletionSink& sink, std::shared_ptr<MemoryUsers> users,
               const KeyTable::Secret& secret)
    : sink_(sink),
      users_(std::move(users)),
      limits_(params),
      keys_(secret),
      receiver_(*this),
      receives_(params.receive_depth),
      reads_(iwarp_caps().ord_max),
      works_(params.send_depth + 8),
      responses_(iwarp_caps().ird_max),
      revocations_seen_(users_->revocations()) {}

void Engine::start(const StreamParams& params) {
  params_ = params;
  receiver_.use_crc(params.crc);
}

Result<void> Engine::post_send(std::span<const SendRequest> requests) {
  if (consumer_works_ + requests.size() > limits_.send_depth)
    return Error(ENOBUFS, ErrorOrigin::local, "more requests than send_depth");
  const Caps& caps = iwarp_caps();
  for (const SendRequest& request : requests) {
    size_t pieces_max = request.op == Opcode::read ? caps.read_sge_max : caps.send_sge_max;
    uint64_t length = 0;
    for (const Sge& piece : request.sge) length += piece.length;
    if (request.sge.size() > pieces_max || length > caps.segment_bytes_max || request.op > Opcode::read)
      return Error(EINVAL, ErrorOrigin::local,
                   "a request has too many pieces, too many bytes or no operation");
    if (auto ok = check_pieces(request.sge); !ok) return ok;
  }
  for (const SendRequest& request : requests) {
    Work work;
    work.id = request.id;
    work.op = request.op;
    work.remote = request.remote;
    work.invalidate_key = request.invalidate_key;
    work.signaled = request.signaled;
    for (const Sge& piece : request.sge) {
      if (piece.length == 0) continue;
      work.pieces[work.piece_count++] = piece;
      work.length += piece.length;
    }
    works_.push(work);
    consumer_works_++;
  }
  return {};
}

void Engine::post_empty_write() {
  Work work;
  work.op = Opcode::write;
  work.signaled = false;
  work.silent = true;
  works_.push(work);
}

Result<void> Engine::post_receive(std::span<const ReceiveRequest> requests) {
  if (receives_.size() + requests.size() > limits_.receive_depth)
    return Error(ENOBUFS, ErrorOrigin::local, "more Receives than receive_depth");
  for (const ReceiveRequest& request : requests)
    if (auto ok = check_pieces({&request.sge, 1}); !ok) return ok;
  for (const ReceiveRequest& request : requests) receives_.push(request);
  return {};
}

Result<Exposure> Engine::expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) {
  if (purpose != Purpose::read_source && purpose != Purpose::write_target)
    return Error(EINVAL, ErrorOrigin::local, "only read sources and write targets can be exposed");
  if (length > iwarp_caps().segment_bytes_max) return Error(EINVAL, ErrorOrigin::local, "exposure too long");
  return keys_.add(static_cast<HostRegion&>(region), offset, length, purpose);
}

bool Engine::fence(const Exposure& exposure, uint64_t id) {
  KeyEntry* entry = keys_.lookup(exposure.key);
  if (!entry) return true;
  if (entry->users == 0) {
    keys_.release(*entry);
    return true;
  }
  // Answers to the peer's Reads still take bytes from the memory. They end with the last one's hand-over to
  // TCP, or with the stream.
  keys_.disable(*entry);
  entry->fence_wanted = true;
  entry->fence_id = id;
  return false;
}

void Engine::unpin(uint32_t key) {
  KeyEntry* entry = keys_.lookup(key);
  if (!entry || --entry->users > 0 || !entry->fence_wanted) return;
  sink_.push({entry->fence_id, Opcode::fence, CompletionStatus::success, false, 0, 0});
  keys_.release(*entry);
}

void Engine::complete(const Work& work, CompletionStatus status) {
  if (work.silent) return;
  consumer_works_--;
  if (status == CompletionStatus::success && !work.signaled) return;
  sink_.push({work.id, work.op, status, false, work.length, 0});
}

std::vector<std::byte> Engine::finish() {
  std::vector<std::byte> tail;
  auto end = std::upper_bound(fpdu_ends_.begin(), fpdu_ends_.end(), stream_sent_);
  uint64_t boundary = end == fpdu_ends_.begin() ? batch_begin_ : *(end - 1);
  uint64_t left = stream_sent_ > boundary && end != fpdu_ends_.end() ? *end - stream_sent_ : 0;
  // What is left of a frame is copied, which must not be done to memory that may vanish.
  bool intact = left == 0 || (!batch_in_place_ && batch_memory_intact());
  for (size_t i = batch_at_; intact && left > 0; i++) {
    size_t n = std::min<uint64_t>(left, batch_[i].iov_len);
    const std::byte* from = static_cast<const std::byte*>(batch_[i].iov_base);
    tail.insert(tail.end(), from, from + n);
    left -= n;
  }
  if (intact && failure_ && failure_->tell_peer && params_.may_send) {
    std::vector<std::byte> terminate = encode_terminate(failure_->code, failure_->segment, params_.crc);
    tail.insert(tail.end(), terminate.begin(), terminate.end());
  }
  batch_.clear();
  batch_at_ = 0;
  fpdu_ends_.clear();
  stream_built_ = stream_sent_;
  cursor_ = Cursor{};
  for (; !works_.empty(); works_.pop())
    complete(works_.front(), std::exchange(front_work_status_, CompletionStatus::flushed));
  for (; !receives_.empty(); receives_.pop())
    sink_.push({receives_.front().id, Opcode::receive,
                std::exchange(front_receive_status_, CompletionStatus::flushed), false, 0, 0});
  works_built_ = responses_built_ = 0;
  responses_.clear();
  reads_.clear();
  keys_.for_each([&](KeyEntry& entry) {
    if (entry.fence_wanted)
      sink_.push({entry.fence_id, Opcode::fence, CompletionStatus::success, false, 0, 0});
    keys_.release(entry);
  });
  return tail;
}

}  // namespace nfsrdma::rdma::iwarp
