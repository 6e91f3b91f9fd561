// SPDX-License-Identifier: Apache-2.0
// What arrives: checks of RFC 5040 and 5041, placement, delivery. Every value here is the peer's and hostile.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "rdma/iwarp/engine.hpp"

namespace nfsrdma::rdma::iwarp {

size_t Engine::plan_receive(iovec* iov) {
  if (failure_) return 0;
  return receiver_.plan(iov, keys_.bulk_expected() ? Receiver::peek_bytes_small : Receiver::peek_bytes_large);
}

bool Engine::received(size_t n) { return !failure_ && receiver_.advance(n); }

bool Engine::refuse(const TerminateCode& code, const char* what) {
  params_.may_send = true;  // an FPDU came, if a bad one: a responder may answer it
  Failure failure{
      Error(EPROTO, ErrorOrigin::protocol,
            base::text("iwarp peer: %s; connection ended with Terminate: %s", what, describe(code).c_str())),
      true,
      code,
      {}};
  // Layers above MPA quote the segment (RFC 5040 section 4.8.1); of an FPDU whose frame is bad nothing is
  // certain.
  if (code.layer < 2) {
    const std::byte* raw = receiver_.raw_header();
    failure.segment.ulpdu_bytes = base::load_be<uint16_t>(raw);
    failure.segment.ddp_header_bytes = static_cast<uint8_t>(
        (header_is_tagged(raw) ? tagged_header_bytes : untagged_header_bytes) - length_field_bytes);
    std::memcpy(failure.segment.ddp_header, raw + length_field_bytes, failure.segment.ddp_header_bytes);
  }
  failure_ = std::move(failure);
  return false;
}

void Engine::bad_crc() { refuse(terminate::crc_mismatch, "wrong CRC32C"); }
void Engine::bad_length() { refuse(terminate::length_mismatch, "FPDU shorter than its header"); }

bool Engine::begin_segment(const SegmentHeader& h, std::byte** at) {
  segment_opcode_ = h.opcode;
  if (h.ddp_version != 1)
    return refuse(h.tagged ? terminate::tagged_ddp_version : terminate::untagged_ddp_version,
                  "unknown DDP version");
  if (h.rdmap_version != 1) return refuse(terminate::rdmap_version, "unknown RDMAP version");
  if (h.opcode > RdmapOpcode::terminate) return refuse(terminate::unexpected_opcode, "unknown RDMAP opcode");
  const bool tagged = h.opcode == RdmapOpcode::write || h.opcode == RdmapOpcode::read_response;
  if (h.tagged != tagged) return refuse(terminate::unexpected_opcode, "opcode and DDP model do not fit");
  if (h.opcode == RdmapOpcode::write) return begin_write(h, at);
  if (h.opcode == RdmapOpcode::read_response) return begin_response(h, at);
  if (is_send(h.opcode)) return begin_send(h, at);
  return begin_control(h, at);
}

bool Engine::begin_send(const SegmentHeader& h, std::byte** at) {
  if (h.queue != send_queue) return refuse(terminate::invalid_queue, "Send on a wrong queue");
  if (h.msn != receive_msn_) return refuse(terminate::msn_out_of_range, "Send out of sequence");
  if (receives_.empty()) return refuse(terminate::no_buffer, "Send without a posted Receive");
  if (h.offset != receive_offset_) return refuse(terminate::invalid_offset, "Send segment at a wrong offset");
  if (message_open_ && (h.opcode != message_opcode_ || h.stag != message_stag_))
    return refuse(terminate::unexpected_opcode, "opcode changed within a message");
  const ReceiveRequest& receive = receives_.front();
  const HostRegion* region =
      static_cast<const HostRegion*>(receive.sge.region);  // nullptr: for empty messages
  if (h.payload_bytes() > receive.sge.length - receive_offset_) {
    front_receive_status_ = CompletionStatus::length_error;
    return refuse(terminate::message_too_long, "message longer than the posted Receive");
  }
  if (region && region->revoked()) {
    front_receive_status_ = CompletionStatus::protection_error;
    return refuse(terminate::local_catastrophic, "memory of a Receive was revoked");
  }
  message_open_ = true;
  message_opcode_ = h.opcode;
  message_stag_ = h.stag;
  if (region) *at = region->host() + receive.sge.offset + receive_offset_;
  return true;
}

bool Engine::begin_control(const SegmentHeader& h, std::byte** at) {
  control_bytes_ = h.payload_bytes();
  *at = control_;
  if (h.opcode == RdmapOpcode::terminate) {
    if (h.queue != terminate_queue) return refuse(terminate::invalid_queue, "Terminate on a wrong queue");
    // Whatever it says, it is the end; a body that no layout explains is not worth a buffer.
    return control_bytes_ <= sizeof control_ || end_terminate(h);
  }
  if (h.queue != read_request_queue) return refuse(terminate::invalid_queue, "Read Request on a wrong queue");
  if (h.msn != read_request_msn_) return refuse(terminate::msn_out_of_range, "Read Request out of sequence");
  if (h.offset != 0) return refuse(terminate::invalid_offset, "Read Request at a wrong offset");
  if (control_bytes_ > read_request_bytes)
    return refuse(terminate::message_too_long, "Read Request too long");
  if (control_bytes_ < read_request_bytes || !h.last)
    return refuse(terminate::unspecified, "Read Request not in one whole segment");
  if (responses_.size() >= params_.ird)
    return refuse(terminate::stream_catastrophic, "more Read Requests than the agreed IRD");
  return true;
}

bool Engine::begin_write(const SegmentHeader& h, std::byte** at) {
  if (tagged_open_ && tagged_opcode_ != h.opcode)
    return refuse(terminate::unexpected_opcode, "opcode changed within a message");
  tagged_open_ = !h.last;
  tagged_opcode_ = h.opcode;
  if (h.payload_bytes() == 0) return true;  // its STag and offset mean nothing (RFC 5040 section 5.1)
  KeyEntry* entry = nullptr;
  switch (keys_.find(h.stag, h.tagged_offset, h.payload_bytes(), Purpose::write_target, &entry)) {
    case KeyVerdict::ok:
      break;
    case KeyVerdict::unknown_key:
      return refuse(terminate::write_invalid_stag, "RDMA Write to an STag that is not valid");
    case KeyVerdict::foreign_key:
      return refuse(terminate::write_foreign_stag, "RDMA Write to an STag of another connection");
    case KeyVerdict::no_access:
      return refuse(terminate::write_invalid_stag, "RDMA Write to memory that is not writable");
    case KeyVerdict::wraps:
      return refuse(terminate::write_wraps, "RDMA Write over the end of the address space");
    case KeyVerdict::out_of_bounds:
      return refuse(terminate::write_bounds, "RDMA Write outside of the exposed range");
  }
  target_key_ = h.stag;
  *at = entry->at(h.tagged_offset);
  return true;
}

bool Engine::begin_response(const SegmentHeader& h, std::byte** at) {
  if (tagged_open_ && tagged_opcode_ != h.opcode)
    return refuse(terminate::unexpected_opcode, "opcode changed within a message");
  if (reads_.empty()) return refuse(terminate::unexpected_opcode, "Read Response without a Read Request");
  const PendingRead& read = reads_.front();
  const uint32_t n = h.payload_bytes();
  if (h.stag != read.key) return refuse(terminate::write_invalid_stag, "Read Response to a wrong STag");
  if (n > 0 && h.tagged_offset != read.next_offset)
    return refuse(terminate::write_bounds, "Read Response at a wrong offset");
  if (n > read.left) return refuse(terminate::write_bounds, "Read Response longer than requested");
  if (h.last != (n == read.left)) return refuse(terminate::unspecified, "Read Response of a wrong length");
  tagged_open_ = !h.last;
  tagged_opcode_ = h.opcode;
  if (n == 0) return true;
  KeyEntry* entry = nullptr;
  if (keys_.find(h.stag, h.tagged_offset, n, Purpose::local_read_sink, &entry) != KeyVerdict::ok) {
    front_work_status_ = CompletionStatus::protection_error;
    return refuse(terminate::local_catastrophic, "sink of a Read was revoked");
  }
  target_key_ = h.stag;
  *at = entry->at(h.tagged_offset);
  return true;
}

bool Engine::may_place() {
  if (is_send(segment_opcode_)) {
    if (!static_cast<const HostRegion*>(receives_.front().sge.region)->revoked()) return true;
    front_receive_status_ = CompletionStatus::protection_error;
    return refuse(terminate::local_catastrophic, "memory of a Receive was revoked");
  }
  if (segment_opcode_ != RdmapOpcode::write && segment_opcode_ != RdmapOpcode::read_response) return true;
  const KeyEntry* entry = keys_.lookup(target_key_);
  if (entry && entry->live && !entry->region->revoked()) return true;
  return refuse(terminate::write_invalid_stag, "exposure ended in the middle of a segment");
}

bool Engine::end_segment(const SegmentHeader& h) {
  heard_ = true;
  params_.may_send = true;
  switch (h.opcode) {
    case RdmapOpcode::write:
      return true;
    case RdmapOpcode::read_response:
      return end_response(h);
    case RdmapOpcode::read_request:
      return end_read_request();
    case RdmapOpcode::terminate:
      return end_terminate(h);
    default:
      return end_send(h);
  }
}

bool Engine::end_send(const SegmentHeader& h) {
  receive_offset_ += h.payload_bytes();
  if (!h.last) return true;
  Completion completion{
      receives_.front().id, Opcode::receive, CompletionStatus::success, false, receive_offset_, 0};
  if (invalidates(h.opcode)) {
    KeyEntry* entry = keys_.lookup(h.stag);
    // A key with answers under way is still in use by the same peer's own Read: not its turn to end it.
    if (!entry || !entry->live || entry->users > 0 || entry->purpose == Purpose::local_read_sink)
      return refuse(terminate::cannot_invalidate, "STag to invalidate is not valid");
    completion.invalidated = true;
    completion.invalidated_key = h.stag;
    keys_.release(*entry);
  }
  receives_.pop();
  message_open_ = false;
  receive_offset_ = 0;
  receive_msn_++;
  sink_.push(completion);
  return true;
}

bool Engine::refuse_read_request(KeyVerdict verdict) {
  switch (verdict) {
    case KeyVerdict::ok:
      return true;
    case KeyVerdict::unknown_key:
      refuse(terminate::read_invalid_stag, "Read of an STag that is not valid");
      break;
    case KeyVerdict::foreign_key:
      refuse(terminate::read_foreign_stag, "Read of another connection's STag");
      break;
    case KeyVerdict::no_access:
      refuse(terminate::read_access, "Read of memory that is not readable");
      break;
    case KeyVerdict::wraps:
      refuse(terminate::read_wraps, "Read over the end of the address space");
      break;
    case KeyVerdict::out_of_bounds:
      refuse(terminate::read_bounds, "Read outside of the exposed range");
      break;
  }
  std::memcpy(failure_->segment.read_request, control_, read_request_bytes);
  failure_->segment.has_read_request = true;
  return false;
}

bool Engine::end_read_request() {
  Response response{~uint64_t{0}, load_read_request(control_)};
  read_request_msn_++;
  if (response.request.bytes > 0) {
    KeyEntry* entry = nullptr;
    KeyVerdict verdict = keys_.find(response.request.source_stag, response.request.source_offset,
                                    response.request.bytes, Purpose::read_source, &entry);
    if (verdict != KeyVerdict::ok) return refuse_read_request(verdict);
    entry->users++;
  }
  responses_.push(response);
  return true;
}

bool Engine::end_response(const SegmentHeader& h) {
  PendingRead& read = reads_.front();
  read.next_offset += h.payload_bytes();
  read.left -= h.payload_bytes();
  if (!h.last) return true;
  if (KeyEntry* entry = keys_.lookup(read.key)) keys_.release(*entry);
  works_[read.work - first_work_].read_done = true;
  reads_.pop();
  retire_works();
  return true;
}

bool Engine::end_terminate(const SegmentHeader&) {
  TerminateCode code;
  size_t n = std::min<size_t>(control_bytes_, sizeof control_);
  std::string why = "without a reason";
  if (control_bytes_ <= sizeof control_ && decode_terminate({control_, n}, &code)) {
    why = base::text("%s, control word %08x", describe(code).c_str(), base::load_be<uint32_t>(control_));
    bool access = code.type == 1 && (code.layer == 0 || code.layer == 1);
    // Only a Read can still be unanswered when the peer refuses it; Writes and Sends completed when they were
    // sent.
    if (!reads_.empty() && works_.front().op == Opcode::read)
      front_work_status_ = access ? CompletionStatus::remote_access : CompletionStatus::remote_error;
  }
  failure_ = Failure{
      Error(ECONNRESET, ErrorOrigin::protocol, "the iwarp peer sent Terminate: " + why), false, {}, {}};
  return false;
}

}  // namespace nfsrdma::rdma::iwarp
