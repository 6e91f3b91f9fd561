// SPDX-License-Identifier: Apache-2.0
#include "nfs4/compound.hpp"

#include "nfs4/compound_server.hpp"

namespace nfsrdma::nfs4 {

CompoundBuilder CompoundBuilder::tagged(std::span<std::byte> out, uint32_t minor_version,
                                        std::string_view tag, xdr::Form call) {
  CompoundBuilder builder(out, call, xdr::Form::whole);
  builder.header(tag, minor_version, nullptr);
  return builder;
}

CompoundBuilder CompoundBuilder::callback(std::span<std::byte> out, uint32_t minor_version, uint32_t ident,
                                          std::string_view tag) {
  CompoundBuilder builder(out, xdr::Form::whole, xdr::Form::whole);
  builder.header(tag, minor_version, &ident);
  return builder;
}

void CompoundBuilder::header(std::string_view tag, uint32_t minor_version, const uint32_t* ident) {
  encoder_(xdr::bounded(tag, tag_bytes_max), minor_version);
  if (ident) encoder_(*ident);
  count_offset_ = encoder_.size();
  encoder_(uint32_t{0});
  reply_bytes_max_ = compound_reply_header_bytes + xdr::padded_bytes(tag.size());
}

void CompoundReader::check_header(std::span<const std::byte> in, uint32_t tag_length) {
  if (tag_length != 0 && decoder_.ok()) {
    // What was read as an empty tag's header is not one: read it in full, and skip what is missing.
    xdr::Decoder header(in);
    header(status_, xdr::bounded(tag_, tag_bytes_max), result_count_);
    if (header.ok()) {
      decoder_.take(header.offset() - decoder_.offset());
    } else {
      decoder_.fail(header.fault());
    }
  }
  op_status_ = status_;
  if (!decoder_.ok()) return;
  if (result_count_ > ops_sent_) {
    refuse("more results than operations");
  } else if (status_ == Status::ok && result_count_ < ops_sent_) {
    refuse("success with results missing");
  }
  straight_ = status_ == Status::ok && !malformed_;
}

bool CompoundReader::refuse(const char* complaint) {
  malformed_ = true;
  if (!complaint_) complaint_ = complaint;
  return false;
}

const char* CompoundReader::complaint() const {
  return complaint_ ? complaint_ : xdr::to_string(decoder_.fault());
}

bool CompoundReader::begin_slowly(uint32_t expected_op) {
  straight_ = false;
  if (malformed() || stopped_) return false;
  if (read_ == result_count_) {
    // Results end early only behind a failed one, except that a compound may fail before its first operation.
    stopped_ = true;
    if (read_ != 0) return refuse("results end behind a success");
    return false;
  }
  uint32_t op = 0;
  decoder_(op, op_status_);
  if (!decoder_.ok()) return false;
  ++read_;
  if (op != expected_op) {
    illegal_ = op == static_cast<uint32_t>(Op::illegal) && op_status_ == Status::op_illegal;
    if (!illegal_) return refuse("result of another operation");
  }
  const bool last = read_ == result_count_;
  if (op_status_ != Status::ok && !last) return refuse("results behind a failure");
  if (last && op_status_ != status_) return refuse("the compound's status is not its last result's");
  return true;
}

bool CompoundReader::end_failed() {
  if (!decoder_.ok()) return false;
  stopped_ = true;
  if (!decoder_.at_end()) refuse("bytes left over");
  return false;
}

bool CompoundReader::finish_slowly() {
  if (malformed()) return false;
  if (!stopped_ && result_count_ != 0 && read_ != result_count_) return refuse("results left unread");
  if (!decoder_.at_end()) return refuse("bytes left over");
  return false;
}

// ---- the responder's halves ----

CompoundCallReader::CompoundCallReader(std::span<const std::byte> in,
                                       std::optional<xdr::OutOfBand> out_of_band)
    : decoder_(in, out_of_band) {
  decoder_(xdr::bounded(tag_, tag_bytes_max), minor_version_, op_count_);
  check_count();
}

CompoundCallReader::CompoundCallReader(std::span<const std::byte> in, uint32_t& callback_ident)
    : decoder_(in) {
  decoder_(xdr::bounded(tag_, tag_bytes_max), minor_version_, callback_ident, op_count_);
  check_count();
}

void CompoundCallReader::check_count() {
  // Each operation has at least its number: a count that the bytes cannot hold is not worth looping over.
  if (op_count_ > compound_ops_max) return decoder_.fail(xdr::Fault::limit);
  if (op_count_ > decoder_.remaining() / 4) decoder_.fail(xdr::Fault::truncated);
}

bool CompoundCallReader::next_op(uint32_t& op) {
  if (read_ == op_count_ || !decoder_.ok()) return false;
  decoder_(op);
  if (!decoder_.ok()) return false;
  ++read_;
  return true;
}

CompoundReplyBuilder::CompoundReplyBuilder(std::span<std::byte> out, std::string_view tag, xdr::Form form)
    : encoder_(out, form) {
  encoder_(Status::ok, xdr::bounded(tag, tag_bytes_max));
  count_offset_ = encoder_.size();
  encoder_(uint32_t{0});
}

bool CompoundReplyBuilder::end_append(const xdr::Encoder::Mark& before, uint32_t reserve_bytes,
                                      Status status) {
  if (encoder_.ok() && encoder_.room_bytes() >= reserve_bytes) {
    ++result_count_;
    last_status_ = status;
    return true;
  }
  encoder_.rollback(before);
  return false;
}

bool CompoundReplyBuilder::append_status(uint32_t op, Status status) {
  const xdr::Encoder::Mark before = encoder_.mark();
  encoder_(op, status);
  return end_append(before, 0, status);
}

void CompoundReplyBuilder::rollback(const Mark& mark) {
  encoder_.rollback(mark.encoder);
  result_count_ = mark.result_count;
  last_status_ = mark.last_status;
}

std::span<const std::byte> CompoundReplyBuilder::finish(Status status) {
  if (!encoder_.ok()) return {};
  encoder_.patch_u32(0, static_cast<uint32_t>(status));
  encoder_.patch_u32(count_offset_, result_count_);
  return encoder_.written();
}

}  // namespace nfsrdma::nfs4
