// SPDX-License-Identifier: Apache-2.0
// Cuts the byte stream into FPDUs. Payload goes from the socket straight to its destination; framing, and the
// payload that happens to be read along with it, passes through a small buffer. Knows nothing of sockets: the
// caller reads into what plan() names and reports with advance(), so that tests and the fuzzer feed any bytes
// in any pieces.
#pragma once

#include <sys/uio.h>

#include <vector>

#include "rdma/iwarp/wire.hpp"

namespace nfsrdma::rdma::iwarp {

// What a segment means: the layer above. Each call returns false after a protocol error, which ends the
// stream.
class SegmentConsumer {
 public:
  // The header is complete. at: where its payload_bytes() go; may stay nullptr when there are none.
  virtual bool begin_segment(const SegmentHeader& header, std::byte** at) = 0;
  // Asked again before each further read into it: the memory may have been fenced or revoked meanwhile.
  virtual bool may_place() = 0;
  // All payload is placed, and the CRC fits when the stream has one.
  virtual bool end_segment(const SegmentHeader& header) = 0;
  virtual void bad_crc() = 0;
  virtual void bad_length() = 0;  // an FPDU too short for its header

 protected:
  ~SegmentConsumer() = default;
};

class Receiver {
 public:
  static constexpr size_t peek_bytes_small = 256;       // while bulk payload is due
  static constexpr size_t peek_bytes_large = 64 << 10;  // for small messages: many in one read

  explicit Receiver(SegmentConsumer& consumer) : consumer_(consumer) {}
  void use_crc(bool on) { use_crc_ = on; }

  // Fills iov (2 entries) with the places for the next bytes and returns their number; 0 after a failure.
  size_t plan(iovec* iov, size_t peek_bytes);
  // n bytes were put there. False: the stream has failed.
  bool advance(size_t n);
  // Between FPDUs, with nothing left over: where a peer may close.
  bool at_boundary() const { return !in_segment_ && begin_ == end_; }
  // The header of the segment that is being received, as it came.
  const std::byte* raw_header() const { return raw_header_; }

  uint64_t direct_bytes() const { return direct_bytes_; }
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  bool parse();
  bool parse_header();
  void place_buffered();
  bool finish_segment();
  void count(uint64_t& counter, size_t n) {
    if (header_.tagged) counter += n;
  }

  SegmentConsumer& consumer_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(peek_bytes_large + 64);
  size_t begin_ = 0;
  size_t end_ = 0;
  SegmentHeader header_;
  std::byte raw_header_[header_bytes_max] = {};
  std::byte* payload_at_ = nullptr;
  size_t payload_left_ = 0;
  uint32_t crc_ = 0;
  bool use_crc_ = false;
  bool in_segment_ = false;
  bool failed_ = false;
  uint64_t direct_bytes_ = 0;
  uint64_t copied_bytes_ = 0;
};

}  // namespace nfsrdma::rdma::iwarp
