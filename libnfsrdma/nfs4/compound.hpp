// SPDX-License-Identifier: Apache-2.0
// COMPOUND and CB_COMPOUND (RFC 8881, 16.2 and 20.2) as their requester sees them: the call is built
// operation by operation, the reply is read in the same order. compound_server.hpp has the responder's
// halves. Nothing here allocates. Objects are single threaded and refer to the caller's buffers.
#pragma once

#include "nfs4/reply_bounds.hpp"
#include "xdr/decoder.hpp"
#include "xdr/encoder.hpp"

namespace nfsrdma::nfs4 {

// Builds the arguments of one COMPOUND procedure in the caller's buffer.
class CompoundBuilder {
 public:
  // call: reduced when the first ddp item (WRITE's data) shall be left out of the stream. reply: reduced when
  // READ's data is expected by RDMA; it only affects reply_bytes_max().
  CompoundBuilder(std::span<std::byte> out, uint32_t minor_version, xdr::Form call = xdr::Form::whole,
                  xdr::Form reply = xdr::Form::whole)
      : CompoundBuilder(out, call, reply) {
    encoder_(uint32_t{0}, minor_version, uint32_t{0});
    count_offset_ = 8;
    reply_bytes_max_ = compound_reply_header_bytes;
  }
  // With a tag, which the reply repeats. Ours are empty; kernels and tests send others.
  static CompoundBuilder tagged(std::span<std::byte> out, uint32_t minor_version, std::string_view tag,
                                xdr::Form call = xdr::Form::whole);
  // CB_COMPOUND; ident is callback_ident, 0 from minor version 1 on.
  static CompoundBuilder callback(std::span<std::byte> out, uint32_t minor_version, uint32_t ident = 0,
                                  std::string_view tag = {});

  // Appends an operation and returns its index.
  template <class Args>
  uint32_t add(const Args& args) {
    encoder_(Args::op, args);
    reply_bytes_max_ += nfs4::reply_bytes_max(args, reply_form_);
    return op_count_++;
  }
  // Writes the operation count and returns the whole encoded body; empty when something did not fit or was
  // above its limit (fault() says which).
  std::span<const std::byte> finish() {
    if (!encoder_.ok()) return {};
    encoder_.patch_u32(count_offset_, op_count_);
    return encoder_.written();
  }

  bool ok() const { return encoder_.ok(); }
  xdr::Fault fault() const { return encoder_.fault(); }
  uint32_t op_count() const { return op_count_; }
  uint32_t size() const { return encoder_.size(); }
  // Size with the data that was left out: what counts against the session's largest request.
  uint32_t whole_size() const { return encoder_.whole_size(); }
  // The item left out of a reduced call; its position is relative to the body's first byte.
  const std::optional<xdr::DdpRecord>& ddp() const { return encoder_.reduced(); }
  // Bound of the reply's body: header and every result so far.
  uint64_t reply_bytes_max() const { return reply_bytes_max_; }

 private:
  CompoundBuilder(std::span<std::byte> out, xdr::Form call, xdr::Form reply)
      : encoder_(out, call), reply_form_(reply) {}
  void header(std::string_view tag, uint32_t minor_version, const uint32_t* ident);

  xdr::Encoder encoder_;
  uint64_t reply_bytes_max_ = 0;
  uint32_t count_offset_ = 0;
  uint32_t op_count_ = 0;
  xdr::Form reply_form_;
};

// Reads the results of one COMPOUND in the order in which the operations were added:
//
//   CompoundReader reader(results, builder.op_count());
//   if (reader.next(sequence) && reader.next<PutfhResult>() && reader.next(read) && reader.finish()) ...
//   else if (reader.malformed()) the reply breaks the protocol, else reader.op_status() at reader.index()
//   says why.
class CompoundReader {
 public:
  // out_of_band: set when READ's data was placed by RDMA; its length word must agree.
  CompoundReader(std::span<const std::byte> in, uint32_t ops_sent,
                 std::optional<xdr::OutOfBand> out_of_band = std::nullopt)
      : decoder_(in, out_of_band), ops_sent_(ops_sent) {
    uint32_t tag_length = 0;
    decoder_(status_, tag_length, result_count_);
    straight_ =
        (static_cast<uint32_t>(status_) | tag_length | (result_count_ ^ ops_sent)) == 0 && decoder_.ok();
    if (!straight_) [[unlikely]]
      check_header(in, tag_length);
  }

  // The next result. True: the operation succeeded and body is filled. False: it failed (body holds what
  // comes with that failure), was never reached, or the reply is malformed; every later call returns false
  // too.
  template <class R>
  bool next(R& body) {
    // A success in a compound that succeeded, number and status compared at once: the fast way.
    if (straight_ && decoder_.match(uint64_t{static_cast<uint32_t>(R::op)} << 32, body)) [[likely]] {
      ++read_;
      return true;
    }
    return next_slowly(body);
  }
  template <class R>
  bool next() {
    R body{};
    return next(body);
  }

  // To be called after the last result: true when every operation succeeded and no byte is left over.
  bool finish() {
    return (straight_ && read_ == result_count_ && decoder_.remaining() == 0) || finish_slowly();
  }

  bool malformed() const { return malformed_ || !decoder_.ok(); }
  // What is wrong with a malformed reply, one phrase.
  const char* complaint() const;
  Status status() const { return status_; }  // the compound's
  std::string_view tag() const { return tag_; }
  uint32_t result_count() const { return result_count_; }
  uint32_t index() const { return read_ == 0 ? 0 : read_ - 1; }  // of the last result read, the failed one
  // Status of the last result read; with a failed compound that has no results, the compound's.
  Status op_status() const { return op_status_; }
  // The operation was answered with OP_ILLEGAL under the number 10044: the server does not know it at all.
  bool illegal() const { return illegal_; }
  // READ's data as it came by RDMA, once that result was read.
  std::optional<xdr::DdpRecord> ddp() const { return decoder_.reduced(); }

 private:
  template <class R>
  [[gnu::noinline, gnu::cold]] bool next_slowly(R& body) {
    if (!begin_slowly(static_cast<uint32_t>(R::op))) return false;
    if (op_status_ == Status::ok) {
      decoder_(body);
      return decoder_.ok();
    }
    if (!illegal_) describe_failure(decoder_, op_status_, body);
    return end_failed();
  }
  bool begin_slowly(uint32_t expected_op);
  bool end_failed();
  bool finish_slowly();
  void check_header(std::span<const std::byte> in, uint32_t tag_length);
  bool refuse(const char* complaint);

  xdr::Decoder decoder_;
  std::string_view tag_;
  const char* complaint_ = nullptr;
  Status status_ = Status::ok;
  Status op_status_ = Status::ok;
  uint32_t ops_sent_;
  uint32_t result_count_ = 0;
  uint32_t read_ = 0;
  bool straight_ = false;  // the compound succeeded and has a result for each operation
  bool malformed_ = false;
  bool illegal_ = false;
  bool stopped_ = false;
};

}  // namespace nfsrdma::nfs4
