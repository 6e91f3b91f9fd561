// SPDX-License-Identifier: Apache-2.0
// COMPOUND and CB_COMPOUND as their responder sees them: operations are taken from the call one by one,
// results appended to the reply. Nothing here allocates. Objects are single threaded and refer to the
// caller's buffers.
#pragma once

#include "nfs4/reply_bounds.hpp"
#include "xdr/decoder.hpp"
#include "xdr/encoder.hpp"

namespace nfsrdma::nfs4 {

// Reads a call:
//
//   CompoundCallReader call(args, out_of_band);
//   if (!call.ok()) answer GARBAGE_ARGS
//   for (uint32_t op; call.next_op(op);)
//     number with types:  if (!call.args(read_args)) answer Status::badxdr for this operation and stop
//     other numbers:      answer Op::illegal with Status::op_illegal (or notsupp) and stop
class CompoundCallReader {
 public:
  // out_of_band: position and length of the data that came by read chunk, the position relative to `in`.
  explicit CompoundCallReader(std::span<const std::byte> in,
                              std::optional<xdr::OutOfBand> out_of_band = std::nullopt);
  // CB_COMPOUND; stores callback_ident.
  CompoundCallReader(std::span<const std::byte> in, uint32_t& callback_ident);

  // False when the header, or an operation since, did not decode.
  bool ok() const { return decoder_.ok(); }
  xdr::Fault fault() const { return decoder_.fault(); }
  std::string_view tag() const { return tag_; }
  uint32_t minor_version() const { return minor_version_; }
  uint32_t op_count() const { return op_count_; }
  uint32_t ops_read() const { return read_; }

  // Number of the next operation; false behind the last one and after a failure. Its arguments must be read
  // before the next call.
  bool next_op(uint32_t& op);
  // Arguments of the operation that next_op() named.
  template <class Args>
  bool args(Args& args) {
    decoder_(args);
    return decoder_.ok();
  }
  // True when all operations were read and no byte is left over.
  bool at_end() const { return read_ == op_count_ && decoder_.at_end(); }
  // The data item that came by read chunk, once its operation was read.
  std::optional<xdr::DdpRecord> ddp() const { return decoder_.reduced(); }

 private:
  void check_count();

  xdr::Decoder decoder_;
  std::string_view tag_;
  uint32_t minor_version_ = 0;
  uint32_t op_count_ = 0;
  uint32_t read_ = 0;
};

// Writes a reply. An append that does not fit leaves the reply as it was and returns false; room for one
// failure status (with SETATTR's empty bitmap) is always kept back, so that the caller can then answer
// rep_too_big.
class CompoundReplyBuilder {
 public:
  // form reduced: the first ddp item (READ's data) is left out, for the requester's write chunk.
  explicit CompoundReplyBuilder(std::span<std::byte> out, std::string_view tag = {},
                                xdr::Form form = xdr::Form::whole);

  // A success with its body.
  template <class R>
  bool append(const R& body) {
    const xdr::Encoder::Mark before = encoder_.mark();
    encoder_(R::op, Status::ok, body);
    return end_append(before, failure_reserve_bytes, Status::ok);
  }
  // A failure with what belongs to it (SETATTR's bitmap, LOCK's conflict); R names the operation.
  template <class R>
  bool append_failure(Status status, const R& body = R{}) {
    const xdr::Encoder::Mark before = encoder_.mark();
    encoder_(R::op, status);
    describe_failure(encoder_, status, const_cast<R&>(body));
    return end_append(before, 0, status);
  }
  template <class R>
  bool append(const Outcome<R>& outcome) {
    return outcome.status == Status::ok ? append(outcome.body) : append_failure(outcome.status, outcome.body);
  }
  // A status alone, for operations without types (op_illegal) and failures that carry nothing.
  bool append_status(uint32_t op, Status status);
  template <class OpNumber>
  bool append_status(OpNumber op, Status status) {
    return append_status(static_cast<uint32_t>(op), status);
  }

  struct Mark {
    xdr::Encoder::Mark encoder;
    uint32_t result_count;
    Status last_status;
  };
  Mark mark() const { return Mark{encoder_.mark(), result_count_, last_status_}; }
  void rollback(const Mark& mark);

  // Writes status and count, and returns the whole encoded body; empty when not even the header fitted.
  std::span<const std::byte> finish() { return finish(last_status_); }
  std::span<const std::byte> finish(Status status);

  bool ok() const { return encoder_.ok(); }
  uint32_t result_count() const { return result_count_; }
  Status last_status() const { return last_status_; }
  uint32_t size() const { return encoder_.size(); }
  uint32_t whole_size() const { return encoder_.whole_size(); }
  uint32_t room_bytes() const { return encoder_.room_bytes(); }
  // The item left out of a reduced reply; its position is relative to the body's first byte.
  const std::optional<xdr::DdpRecord>& ddp() const { return encoder_.reduced(); }

  static constexpr uint32_t failure_reserve_bytes = 12;

 private:
  bool end_append(const xdr::Encoder::Mark& before, uint32_t reserve_bytes, Status status);

  xdr::Encoder encoder_;
  uint32_t count_offset_ = 0;
  uint32_t result_count_ = 0;
  Status last_status_ = Status::ok;
};

}  // namespace nfsrdma::nfs4
