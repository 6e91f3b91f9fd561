// SPDX-License-Identifier: Apache-2.0
// The RPC-over-RDMA version 1 transport header (RFC 8166 section 4), for both roles.
//
// A message is parsed once into typed lists; everything later works on the lists. parse() accepts what the
// XDR description allows within the given limits and nothing more; which lists make sense in which direction
// is the caller's to judge.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "rpcrdma/inline_list.hpp"

namespace nfsrdma::rpcrdma {

using base::Bytes;
using base::ConstBytes;

constexpr uint32_t protocol_version = 1;
constexpr uint32_t header_bytes_min = 28;  // RDMA_MSG or RDMA_NOMSG with three empty lists
constexpr uint32_t fixed_bytes = 16;       // xid, version, credit, procedure
constexpr uint32_t segment_bytes = 16;
constexpr uint32_t read_entry_bytes = 24;        // discriminator, position, segment
constexpr uint32_t chunk_segments_typical = 16;  // what every NFS server must take (RFC 8267 section 5.1)

enum class Procedure : uint32_t { msg = 0, nomsg = 1, msgp = 2, done = 3, error = 4 };
enum class ErrorCode : uint32_t { version = 1, chunk = 2 };

struct Segment {
  uint32_t handle = 0;
  uint32_t length = 0;
  uint64_t offset = 0;
  bool operator==(const Segment&) const = default;
};

struct ReadSegment {
  uint32_t position = 0;  // bytes from the first byte of the whole, unreduced RPC message
  Segment target;
  bool operator==(const ReadSegment&) const = default;
};

// A run of segments within Header::result_segments.
struct ChunkRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Header {
  uint32_t xid = 0;
  uint32_t version = protocol_version;
  uint32_t credit = 0;
  Procedure procedure = Procedure::msg;
  InlineList<ReadSegment, chunk_segments_typical> reads;
  InlineList<ChunkRange, 4> write_chunks;
  bool has_reply_chunk = false;
  ChunkRange reply_chunk;
  InlineList<Segment, 2 * chunk_segments_typical>
      result_segments;  // of the write chunks, then of the reply chunk
  // RDMA_ERROR
  ErrorCode error = ErrorCode::chunk;
  uint32_t version_low = 0, version_high = 0;

  void clear();
  bool lists_empty() const { return reads.empty() && write_chunks.empty() && !has_reply_chunk; }
  std::span<const Segment> segments(const ChunkRange& chunk) const {
    return result_segments.span().subspan(chunk.first, chunk.count);
  }
};

struct ParseLimits {
  uint32_t read_segments_max = 2 * chunk_segments_typical;
  uint32_t write_chunks_max = 4;
  uint32_t chunk_segments_max = chunk_segments_typical;
};

enum class ParseStatus : uint8_t {
  ok,
  too_short,      // not even the four fixed words
  bad_version,    // xid, version and credit are set
  bad_procedure,  // fixed words are set
  malformed,   // fixed words are set: lists cut short, a discriminator neither 0 nor 1, an unknown error code
  over_limit,  // fixed words are set: well-formed so far, but larger than the limits
};

// Fills `out`; body_at is where the RPC message starts (RDMA_MSG). Allocates only past 16 read or 32 result
// segments.
ParseStatus parse(ConstBytes message, const ParseLimits& limits, Header& out, uint32_t& body_at);

// Writes a header piece by piece in wire order. The caller knows the size beforehand; running over `out` only
// sets overflow().
class HeaderWriter {
 public:
  explicit HeaderWriter(Bytes out) : out_(out) {}
  void fixed(uint32_t xid, uint32_t credit, Procedure procedure);
  void read_segment(uint32_t position, const Segment& target);
  void end_reads() { u32(0); }
  void write_chunk(std::span<const Segment> segments);
  void begin_write_chunk(uint32_t segments);  // then segment() that many times
  void segment(const Segment& s);
  void end_write_list() { u32(0); }
  void begin_reply_chunk(uint32_t segments);  // then segment() that many times
  void reply_chunk(std::span<const Segment> segments);
  void no_reply_chunk() { u32(0); }
  uint32_t size() const { return at_; }
  bool overflow() const { return overflow_; }

 private:
  void u32(uint32_t v);
  Bytes out_;
  uint32_t at_ = 0;
  bool overflow_ = false;
};

// The whole header from its parsed form; 0 when it does not fit.
uint32_t encode(const Header& header, Bytes out);
uint32_t encoded_bytes(const Header& header);

// RDMA_ERROR messages. Return the bytes written (out holds at least 28).
uint32_t encode_error_version(Bytes out, uint32_t xid, uint32_t credit, uint32_t low = protocol_version,
                              uint32_t high = protocol_version);
uint32_t encode_error_chunk(Bytes out, uint32_t xid, uint32_t credit);

}  // namespace nfsrdma::rpcrdma
