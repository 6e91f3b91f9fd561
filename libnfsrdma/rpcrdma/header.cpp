// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/header.hpp"

namespace nfsrdma::rpcrdma {
namespace {

struct Cursor {
  ConstBytes in;
  size_t at = 0;
  ParseStatus status = ParseStatus::ok;

  bool ok() const { return status == ParseStatus::ok; }
  size_t left() const { return in.size() - at; }
  void fail(ParseStatus why) {
    if (ok()) status = why;
  }
  uint32_t u32() {
    if (left() < 4) {
      fail(ParseStatus::malformed);
      return 0;
    }
    uint32_t v = base::load_be<uint32_t>(in.data() + at);
    at += 4;
    return v;
  }
  bool more() {
    uint32_t v = u32();
    if (v > 1) fail(ParseStatus::malformed);
    return ok() && v == 1;
  }
  Segment segment() {
    if (left() < segment_bytes) {
      fail(ParseStatus::malformed);
      return {};
    }
    const std::byte* p = in.data() + at;
    at += segment_bytes;
    return {base::load_be<uint32_t>(p), base::load_be<uint32_t>(p + 4), base::load_be<uint64_t>(p + 8)};
  }
};

void parse_reads(Cursor& c, const ParseLimits& limits, Header& out) {
  while (c.more()) {
    ReadSegment r;
    r.position = c.u32();
    r.target = c.segment();
    if (!c.ok()) return;
    if (out.reads.size() >= limits.read_segments_max) return c.fail(ParseStatus::over_limit);
    out.reads.push_back(r);
  }
}

ChunkRange parse_chunk(Cursor& c, const ParseLimits& limits, Header& out) {
  uint32_t count = c.u32();
  ChunkRange chunk{out.result_segments.size(), count};
  // The count is believed only as far as bytes stand behind it.
  if (c.ok() && count > c.left() / segment_bytes) c.fail(ParseStatus::malformed);
  if (c.ok() && count > limits.chunk_segments_max) c.fail(ParseStatus::over_limit);
  if (!c.ok()) return {};
  for (uint32_t i = 0; i < count; i++) out.result_segments.push_back(c.segment());
  return chunk;
}

void parse_lists(Cursor& c, const ParseLimits& limits, Header& out) {
  parse_reads(c, limits, out);
  while (c.ok() && c.more()) {
    ChunkRange chunk = parse_chunk(c, limits, out);
    if (!c.ok()) return;
    if (out.write_chunks.size() >= limits.write_chunks_max) return c.fail(ParseStatus::over_limit);
    out.write_chunks.push_back(chunk);
  }
  if (!c.ok() || !c.more()) return;
  out.reply_chunk = parse_chunk(c, limits, out);
  out.has_reply_chunk = c.ok();
}

void parse_error(Cursor& c, Header& out) {
  uint32_t code = c.u32();
  if (!c.ok()) return;
  out.error = static_cast<ErrorCode>(code);
  if (out.error == ErrorCode::version) {
    out.version_low = c.u32();
    out.version_high = c.u32();
  } else if (out.error != ErrorCode::chunk) {
    c.fail(ParseStatus::malformed);
  }
}

}  // namespace

void Header::clear() {
  xid = credit = version_low = version_high = 0;
  version = protocol_version;
  procedure = Procedure::msg;
  reads.clear();
  write_chunks.clear();
  result_segments.clear();
  has_reply_chunk = false;
  reply_chunk = {};
  error = ErrorCode::chunk;
}

ParseStatus parse(ConstBytes message, const ParseLimits& limits, Header& out, uint32_t& body_at) {
  out.clear();
  body_at = 0;
  if (message.size() < fixed_bytes) return ParseStatus::too_short;
  Cursor c{message};
  out.xid = c.u32();
  out.version = c.u32();
  out.credit = c.u32();
  out.procedure = static_cast<Procedure>(c.u32());
  if (out.version != protocol_version) return ParseStatus::bad_version;
  switch (out.procedure) {
    case Procedure::msg:
    case Procedure::nomsg:
      parse_lists(c, limits, out);
      break;
    case Procedure::error:
      parse_error(c, out);
      break;
    default:
      return ParseStatus::bad_procedure;
  }
  body_at = static_cast<uint32_t>(c.at);
  return c.status;
}

void HeaderWriter::u32(uint32_t v) {
  if (out_.size() - at_ < 4) {
    overflow_ = true;
    return;
  }
  base::store_be(out_.data() + at_, v);
  at_ += 4;
}

void HeaderWriter::fixed(uint32_t xid, uint32_t credit, Procedure procedure) {
  u32(xid);
  u32(protocol_version);
  u32(credit);
  u32(static_cast<uint32_t>(procedure));
}

void HeaderWriter::segment(const Segment& s) {
  if (out_.size() - at_ < segment_bytes) {
    overflow_ = true;
    return;
  }
  std::byte* p = out_.data() + at_;
  base::store_be(p, s.handle);
  base::store_be(p + 4, s.length);
  base::store_be(p + 8, s.offset);
  at_ += segment_bytes;
}

void HeaderWriter::read_segment(uint32_t position, const Segment& target) {
  u32(1);
  u32(position);
  segment(target);
}

void HeaderWriter::begin_write_chunk(uint32_t segments) {
  u32(1);
  u32(segments);
}

void HeaderWriter::write_chunk(std::span<const Segment> segments) {
  begin_write_chunk(static_cast<uint32_t>(segments.size()));
  for (const Segment& s : segments) segment(s);
}

void HeaderWriter::begin_reply_chunk(uint32_t segments) {
  u32(1);
  u32(segments);
}

void HeaderWriter::reply_chunk(std::span<const Segment> segments) {
  begin_reply_chunk(static_cast<uint32_t>(segments.size()));
  for (const Segment& s : segments) segment(s);
}

uint32_t encoded_bytes(const Header& h) {
  if (h.procedure == Procedure::error) return fixed_bytes + (h.error == ErrorCode::version ? 12 : 4);
  return header_bytes_min + read_entry_bytes * h.reads.size() + 8 * h.write_chunks.size() +
         (h.has_reply_chunk ? 4 : 0) + segment_bytes * h.result_segments.size();
}

uint32_t encode(const Header& h, Bytes out) {
  if (out.size() < encoded_bytes(h)) return 0;
  if (h.procedure == Procedure::error)
    return h.error == ErrorCode::version
               ? encode_error_version(out, h.xid, h.credit, h.version_low, h.version_high)
               : encode_error_chunk(out, h.xid, h.credit);
  HeaderWriter w(out);
  w.fixed(h.xid, h.credit, h.procedure);
  for (const ReadSegment& r : h.reads) w.read_segment(r.position, r.target);
  w.end_reads();
  for (const ChunkRange& chunk : h.write_chunks) w.write_chunk(h.segments(chunk));
  w.end_write_list();
  if (h.has_reply_chunk)
    w.reply_chunk(h.segments(h.reply_chunk));
  else
    w.no_reply_chunk();
  return w.size();
}

uint32_t encode_error_version(Bytes out, uint32_t xid, uint32_t credit, uint32_t low, uint32_t high) {
  uint32_t at = 0;
  for (uint32_t v : {xid, protocol_version, credit, static_cast<uint32_t>(Procedure::error),
                     static_cast<uint32_t>(ErrorCode::version), low, high}) {
    base::store_be(out.data() + at, v);
    at += 4;
  }
  return at;
}

uint32_t encode_error_chunk(Bytes out, uint32_t xid, uint32_t credit) {
  uint32_t at = 0;
  for (uint32_t v : {xid, protocol_version, credit, static_cast<uint32_t>(Procedure::error),
                     static_cast<uint32_t>(ErrorCode::chunk)}) {
    base::store_be(out.data() + at, v);
    at += 4;
  }
  return at;
}

}  // namespace nfsrdma::rpcrdma
