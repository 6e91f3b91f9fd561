// SPDX-License-Identifier: Apache-2.0
// What is sent: requests and answers are cut into FPDUs, many at a time, whose framing lies in one arena
// while their payload is taken from where it is. A batch is replaced when TCP has taken all of it.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "rdma/iwarp/crc32c.hpp"
#include "rdma/iwarp/engine.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

constexpr size_t iovecs_max = 1024;        // IOV_MAX
constexpr size_t iovecs_per_fpdu_max = 6;  // framing, up to 4 pieces, framing
constexpr uint64_t batch_payload_max = 1
                                       << 20;  // and one FPDU more, so that a reply goes with its MiB of data
constexpr size_t arena_bytes = 64 << 10;
// Below this a copy beside the header costs less than an iovec of its own.
constexpr uint32_t inline_bytes_max = 512;
constexpr size_t fpdu_arena_bytes_max = header_bytes_max + inline_bytes_max + trailer_bytes_max;

}  // namespace

bool Engine::has_output() const {
  if (failure_) return false;
  if (batch_at_ < batch_.size()) return true;
  if (!params_.may_send) return false;
  if (cursor_.kind != Cursor::Kind::none || responses_built_ < responses_.size()) return true;
  if (works_built_ >= works_.size()) return false;
  return works_[works_built_].op != Opcode::read || params_.ord == 0 || reads_.size() < params_.ord;
}

bool Engine::room() const {
  return batch_.size() + iovecs_per_fpdu_max <= iovecs_max &&
         arena_used_ + fpdu_arena_bytes_max <= arena_.size() && batch_payload_ <= batch_payload_max;
}

std::span<iovec> Engine::plan_send() {
  if (failure_ || (users_->revocations() != revocations_seen_ && !batch_memory_intact())) return {};
  if (batch_at_ == batch_.size()) {
    if (!params_.may_send) return {};
    if (arena_.empty()) {
      arena_.resize(arena_bytes);
      batch_.reserve(iovecs_max);
      fpdu_ends_.reserve(iovecs_max);
    }
    batch_.clear();
    fpdu_ends_.clear();
    batch_at_ = 0;
    batch_begin_ = stream_sent_;
    arena_used_ = 0;
    batch_in_place_ = false;
    batch_payload_ = 0;
    while (room() && (cursor_.kind != Cursor::Kind::none || choose_message())) append_segment();
    if (failure_) return {};
  }
  return std::span(batch_).subspan(batch_at_);
}

bool Engine::local_failure(const char* what) {
  failure_ = Failure{Error(EIO, ErrorOrigin::local, what), true, terminate::local_catastrophic, {}};
  return false;
}

// A batch names memory; after a revocation somewhere in the domain it is looked through once.
bool Engine::batch_memory_intact() {
  revocations_seen_ = users_->revocations();
  size_t works = std::min(works_built_ + (cursor_.kind == Cursor::Kind::work ? 1 : 0), works_.size());
  for (size_t i = 0; i < works; i++) {
    const Work& work = works_[i];
    if (work.op == Opcode::read) continue;
    if (check_pieces({work.pieces.data(), work.piece_count})) continue;
    if (i == 0) front_work_status_ = CompletionStatus::protection_error;
    local_failure("memory of a request was revoked");
    failure_->tell_peer = false;  // the FPDU under way cannot be finished without it
    return false;
  }
  size_t responses =
      std::min(responses_built_ + (cursor_.kind == Cursor::Kind::response ? 1 : 0), responses_.size());
  for (size_t i = 0; i < responses; i++) {
    if (responses_[i].request.bytes == 0) continue;
    const KeyEntry* entry = keys_.lookup(responses_[i].request.source_stag);
    if (entry && !entry->region->revoked()) continue;
    local_failure("memory that the peer was reading was revoked");
    failure_->tell_peer = false;
    return false;
  }
  return true;
}

bool Engine::choose_message() {
  const bool response = responses_built_ < responses_.size();
  bool work = works_built_ < works_.size();
  if (work && works_[works_built_].op == Opcode::read && params_.ord > 0 && reads_.size() >= params_.ord)
    work = false;
  if (!response && !work) return false;
  const bool take_response = response && (!work || !response_last_);
  response_last_ = take_response;
  cursor_ = Cursor{take_response ? Cursor::Kind::response : Cursor::Kind::work, 0, 0, 0};
  if (take_response) {
    const ReadRequest& request = responses_[responses_built_].request;
    const KeyEntry* entry = request.bytes ? keys_.lookup(request.source_stag) : nullptr;
    if (request.bytes && (!entry || entry->region->revoked()))
      return local_failure("memory that the peer was reading was revoked");
    return true;
  }
  Work& chosen = works_[works_built_];
  if (!check_pieces({chosen.pieces.data(), chosen.piece_count})) {
    if (works_built_ == 0) front_work_status_ = CompletionStatus::protection_error;
    return local_failure("memory of a request was revoked");
  }
  return chosen.op != Opcode::read || start_read(chosen);
}

bool Engine::start_read(Work& work) {
  if (params_.ord == 0) {
    if (works_built_ == 0) front_work_status_ = CompletionStatus::remote_error;
    return local_failure("RDMA Read posted, but the peer takes none (its IRD is 0)");
  }
  PendingRead read;
  read.work = first_work_ + works_built_;
  read.left = work.length;
  if (work.length > 0) {
    const Sge& sink = work.pieces[0];
    auto exposure =
        keys_.add(static_cast<HostRegion&>(*sink.region), sink.offset, sink.length, Purpose::local_read_sink);
    if (!exposure) return local_failure("no key left for the sink of an RDMA Read");
    read.key = exposure->key;
    read.base_offset = read.next_offset = exposure->base;
  }
  reads_.push(read);
  return true;
}

uint32_t Engine::payload_max(size_t header_bytes) const {
  size_t bytes = std::min<size_t>(params_.fpdu_bytes, length_field_bytes + ulpdu_bytes_max + crc_bytes);
  // A multiple of 4 with both header sizes makes FPDUs without pad (and siw loses fewer of those, see
  // README).
  return static_cast<uint32_t>((bytes - header_bytes - crc_bytes) & ~size_t{3});
}

void Engine::append_segment() {
  SegmentHeader h;
  if (cursor_.kind == Cursor::Kind::response) {
    const ReadRequest& request = responses_[responses_built_].request;
    h.tagged = true;
    h.opcode = RdmapOpcode::read_response;
    h.stag = request.sink_stag;
    h.tagged_offset = request.sink_offset + cursor_.done;
    Sge piece;
    if (const KeyEntry* entry = request.bytes ? keys_.lookup(request.source_stag) : nullptr)
      piece = {entry->region, entry->offset + (request.source_offset - entry->base), request.bytes};
    append_message_segment(h, &piece, request.bytes);
    return;
  }
  Work& work = works_[works_built_];
  switch (work.op) {
    case Opcode::read:
      return append_read_request(work, h);
    case Opcode::write:
      h.tagged = true;
      h.opcode = RdmapOpcode::write;
      h.stag = work.remote.key;
      h.tagged_offset = work.remote.base + cursor_.done;
      break;
    default:
      h.opcode = work.op == Opcode::send_invalidate ? RdmapOpcode::send_invalidate : RdmapOpcode::send;
      h.stag = work.op == Opcode::send_invalidate ? work.invalidate_key : 0;
      h.queue = send_queue;
      h.msn = send_msn_;
      h.offset = cursor_.done;
  }
  append_message_segment(h, work.pieces.data(), work.length);
}

void Engine::append_message_segment(SegmentHeader& h, const Sge* pieces, uint32_t total) {
  const uint32_t n = std::min(total - cursor_.done, payload_max(h.header_bytes()));
  h.ulpdu_bytes = static_cast<uint16_t>(h.header_bytes() - length_field_bytes + n);
  h.last = cursor_.done + n == total;
  std::byte* at = framing(h.header_bytes());
  store_header(at, h);
  uint32_t crc = params_.crc ? crc32c_update(crc32c_start, {at, h.header_bytes()}) : 0;
  append_payload(pieces, n, &crc);
  close_fpdu(h.ulpdu_bytes, crc);
  cursor_.done += n;
  batch_payload_ += n;
  if (h.last) end_message(h);
}

void Engine::append_read_request(Work& work, SegmentHeader& h) {
  const PendingRead& read = reads_[reads_.size() - 1];
  h.opcode = RdmapOpcode::read_request;
  h.queue = read_request_queue;
  h.msn = read_msn_++;
  h.last = true;
  h.ulpdu_bytes = static_cast<uint16_t>(untagged_header_bytes - length_field_bytes + read_request_bytes);
  std::byte* at = framing(untagged_header_bytes + read_request_bytes);
  store_header(at, h);
  store_read_request(at + untagged_header_bytes,
                     {read.key, read.base_offset, work.length, work.remote.key, work.remote.base});
  close_fpdu(h.ulpdu_bytes,
             params_.crc ? crc32c_update(crc32c_start, {at, untagged_header_bytes + read_request_bytes}) : 0);
  end_message(h);
}

void Engine::end_message(SegmentHeader& h) {
  if (cursor_.kind == Cursor::Kind::response) {
    responses_[responses_built_++].end_offset = stream_built_;
  } else {
    works_[works_built_++].end_offset = stream_built_;
    if (is_send(h.opcode)) send_msn_++;
  }
  cursor_ = Cursor{};
}

// Bytes in the arena; neighbours share an iovec, so that a trailer and the next header count as one.
std::byte* Engine::framing(size_t n) {
  std::byte* at = arena_.data() + arena_used_;
  arena_used_ += n;
  stream_built_ += n;
  iovec* last = batch_.empty() ? nullptr : &batch_.back();
  if (last && static_cast<std::byte*>(last->iov_base) + last->iov_len == at)
    last->iov_len += n;
  else
    batch_.push_back({at, n});
  return at;
}

// Do the next n bytes of the message lie in memory that may vanish?
bool Engine::names_file_memory(const Sge* pieces, uint32_t n) const {
  for (uint32_t i = cursor_.piece, seen = 0; seen < n; i++) {
    if (pieces[i].region->kind() != MemoryKind::host) return true;
    seen += pieces[i].length - (i == cursor_.piece ? cursor_.piece_done : 0);
  }
  return false;
}

void Engine::append_payload(const Sge* pieces, uint32_t n, uint32_t* crc) {
  // Memory of a file is left to the kernel: others may truncate it, and a fault there is ours to survive.
  const bool in_place = names_file_memory(pieces, n);
  const bool copy = n <= inline_bytes_max && !in_place;
  batch_in_place_ |= in_place;
  std::byte* to = copy && n > 0 ? framing(n) : nullptr;
  while (n > 0) {
    const Sge& piece = pieces[cursor_.piece];
    const uint32_t step = std::min(n, piece.length - cursor_.piece_done);
    std::byte* from = piece.region->host() + piece.offset + cursor_.piece_done;
    if (copy) {
      std::memcpy(to, from, step);
      to += step;
    } else {
      batch_.push_back({from, step});
      stream_built_ += step;
    }
    if (params_.crc) *crc = crc32c_update(*crc, {from, step});
    n -= step;
    cursor_.piece_done += step;
    if (cursor_.piece_done == piece.length) {
      cursor_.piece++;
      cursor_.piece_done = 0;
    }
  }
}

void Engine::close_fpdu(uint32_t ulpdu_bytes, uint32_t crc) {
  const uint32_t pad = pad_bytes(ulpdu_bytes);
  std::byte* trailer = framing(pad + crc_bytes);
  std::memset(trailer, 0, pad + crc_bytes);
  if (params_.crc) store_crc(trailer + pad, crc32c_update(crc, {trailer, pad}));
  fpdu_ends_.push_back(stream_built_);
}

void Engine::sent(size_t n) {
  stream_sent_ += n;
  while (n > 0) {
    iovec& front = batch_[batch_at_];
    size_t step = std::min(n, front.iov_len);
    front.iov_base = static_cast<std::byte*>(front.iov_base) + step;
    front.iov_len -= step;
    n -= step;
    if (front.iov_len == 0) batch_at_++;
  }
  retire_responses();
  retire_works();
}

void Engine::retire_works() {
  while (works_built_ > 0) {
    const Work& work = works_.front();
    if (work.end_offset > stream_sent_ || (work.op == Opcode::read && !work.read_done)) return;
    complete(work, CompletionStatus::success);
    works_.pop();
    first_work_++;
    works_built_--;
  }
}

void Engine::retire_responses() {
  while (responses_built_ > 0 && responses_.front().end_offset <= stream_sent_) {
    const ReadRequest request = responses_.front().request;
    responses_.pop();
    responses_built_--;
    if (request.bytes) unpin(request.source_stag);
  }
}

}  // namespace nfsrdma::rdma::iwarp
