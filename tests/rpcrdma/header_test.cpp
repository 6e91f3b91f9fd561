// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/header.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "rpcrdma/call_plan.hpp"
#include "rpcrdma/cm_private_data.hpp"
#include "rpcrdma/credits.hpp"
#include "tests/rpcrdma/random_header.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

std::vector<std::byte> words(std::initializer_list<uint32_t> list) {
  std::vector<std::byte> out(list.size() * 4);
  size_t at = 0;
  for (uint32_t w : list) {
    base::store_be(out.data() + at, w);
    at += 4;
  }
  return out;
}

ParseStatus parse_words(std::initializer_list<uint32_t> list, Header& h, uint32_t& body_at,
                        ParseLimits limits = {}) {
  auto bytes = words(list);
  return parse(bytes, limits, h, body_at);
}

std::vector<std::byte> encoded(const Header& h) {
  std::vector<std::byte> out(encoded_bytes(h));
  EXPECT_EQ(encode(h, out), out.size());
  return out;
}

void expect_same(const Header& a, const Header& b) {
  EXPECT_EQ(a.xid, b.xid);
  EXPECT_EQ(a.credit, b.credit);
  EXPECT_EQ(a.procedure, b.procedure);
  EXPECT_TRUE(std::ranges::equal(a.reads, b.reads));
  EXPECT_TRUE(std::ranges::equal(a.result_segments, b.result_segments));
  ASSERT_EQ(a.write_chunks.size(), b.write_chunks.size());
  for (uint32_t i = 0; i < a.write_chunks.size(); i++)
    EXPECT_EQ(a.write_chunks[i].count, b.write_chunks[i].count);
  ASSERT_EQ(a.has_reply_chunk, b.has_reply_chunk);
  if (a.has_reply_chunk) {
    EXPECT_EQ(a.reply_chunk.count, b.reply_chunk.count);
  }
  if (a.procedure != Procedure::error) return;
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.version_low, b.version_low);
  EXPECT_EQ(a.version_high, b.version_high);
}

TEST(Header, SizesOfTheSpecification) {
  Header h;
  EXPECT_EQ(encoded(h).size(), 28u);
  h.reads.push_back({});
  EXPECT_EQ(encoded(h).size(), 52u);
  h.clear();
  for (uint32_t n = 1; n <= 16; n++) {
    h.clear();
    for (uint32_t i = 0; i < n; i++) h.result_segments.push_back({});
    h.write_chunks.push_back({0, n});
    EXPECT_EQ(encoded(h).size(), 36u + 16 * n);
    h.write_chunks.clear();
    h.has_reply_chunk = true;
    h.reply_chunk = {0, n};
    EXPECT_EQ(encoded(h).size(), 32u + 16 * n);
  }
  h.clear();
  h.procedure = Procedure::error;
  EXPECT_EQ(encoded(h).size(), 20u);
  h.error = ErrorCode::version;
  EXPECT_EQ(encoded(h).size(), 28u);
}

TEST(Header, EveryListParses) {
  Header h;
  uint32_t body_at = 0;
  ASSERT_EQ(parse_words({7,   1,  9,  0,   1,   168, 11, 12, 0x1, 0x2, 0,  1,  2,   21,  22,    0x3,
                         0x4, 23, 24, 0x5, 0x6, 1,   0,  0,  1,   1,   31, 32, 0x7, 0x8, 0xaaaa},
                        h, body_at),
            ParseStatus::ok);
  EXPECT_EQ(body_at, 30u * 4);
  EXPECT_EQ(h.xid, 7u);
  EXPECT_EQ(h.credit, 9u);
  ASSERT_EQ(h.reads.size(), 1u);
  EXPECT_EQ(h.reads[0], (ReadSegment{168, {11, 12, 0x100000002}}));
  ASSERT_EQ(h.write_chunks.size(), 2u);
  EXPECT_EQ(h.segments(h.write_chunks[0])[1], (Segment{23, 24, 0x500000006}));
  EXPECT_EQ(h.write_chunks[1].count, 0u);
  ASSERT_TRUE(h.has_reply_chunk);
  EXPECT_EQ(h.segments(h.reply_chunk)[0], (Segment{31, 32, 0x700000008}));
}

TEST(Header, RandomHeadersRoundTrip) {
  base::SeededRandom random(1);
  const ParseLimits limits{.read_segments_max = 40, .write_chunks_max = 4, .chunk_segments_max = 40};
  Header h, back;
  for (int i = 0; i < 3000; i++) {
    make_random_header(random, i % 2 ? 40 : 3, h);
    auto bytes = encoded(h);
    uint32_t body_at = 0;
    ASSERT_EQ(parse(bytes, limits, back, body_at), ParseStatus::ok);
    EXPECT_EQ(body_at, bytes.size());
    expect_same(h, back);
    EXPECT_EQ(encoded(back), bytes);
  }
}

TEST(Header, CutAtEveryByteIsAnError) {
  base::SeededRandom random(2);
  const ParseLimits limits{.read_segments_max = 5, .write_chunks_max = 4, .chunk_segments_max = 5};
  Header h, back;
  for (int i = 0; i < 300; i++) {
    make_random_header(random, 5, h);
    auto bytes = encoded(h);
    for (size_t n = 0; n < bytes.size(); n++) {
      // A copy of exactly n bytes: a read past its end is seen by AddressSanitizer.
      std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
      uint32_t body_at = 0;
      const ParseStatus status = parse(cut, limits, back, body_at);
      EXPECT_EQ(status, n < 16 ? ParseStatus::too_short : ParseStatus::malformed);
      EXPECT_LE(body_at, n);
    }
    std::vector<std::byte> small(bytes.size() - 1);
    EXPECT_EQ(encode(h, small), 0u);
  }
}

TEST(Header, WrongNumbersAreTold) {
  Header h;
  uint32_t at = 0;
  EXPECT_EQ(parse_words({1, 2, 3, 0, 0, 0, 0}, h, at), ParseStatus::bad_version);
  EXPECT_EQ(h.xid, 1u);
  for (uint32_t procedure : {2u, 3u, 5u, 0x80000000u})
    EXPECT_EQ(parse_words({1, 1, 3, procedure, 0, 0, 0}, h, at), ParseStatus::bad_procedure);
  EXPECT_EQ(parse_words({1, 1, 3, 0, 2, 0, 0}, h, at), ParseStatus::malformed);
  EXPECT_EQ(parse_words({1, 1, 3, 0, 0, 7, 0}, h, at), ParseStatus::malformed);
  EXPECT_EQ(parse_words({1, 1, 3, 0, 0, 0, 0xffffffff}, h, at), ParseStatus::malformed);
  EXPECT_EQ(parse_words({1, 1, 3, 4, 3, 0, 0}, h, at), ParseStatus::malformed);
  // Counts with nothing behind them; 0x10000000 segments would be 2^32 bytes.
  for (uint32_t n : {1u, 100'000u, 0x10000000u, 0xffffffffu}) {
    EXPECT_EQ(parse_words({1, 1, 3, 0, 0, 1, n, 0, 0}, h, at), ParseStatus::malformed);
    EXPECT_EQ(parse_words({1, 1, 3, 0, 0, 0, 1, n, 0}, h, at), ParseStatus::malformed);
  }
}

TEST(Header, LimitsHold) {
  const ParseLimits limits{.read_segments_max = 1, .write_chunks_max = 1, .chunk_segments_max = 2};
  Header h, back;
  uint32_t at = 0;
  auto status = [&] { return parse(encoded(h), limits, back, at); };
  h.reads.push_back({});
  EXPECT_EQ(status(), ParseStatus::ok);
  h.reads.push_back({});
  EXPECT_EQ(status(), ParseStatus::over_limit);
  h.clear();
  for (uint32_t i = 0; i < 3; i++) h.result_segments.push_back({});
  h.write_chunks.push_back({0, 2});
  h.write_chunks.push_back({2, 1});
  EXPECT_EQ(status(), ParseStatus::over_limit);
  h.clear();
  for (uint32_t i = 0; i < 3; i++) h.result_segments.push_back({});
  h.has_reply_chunk = true;
  h.reply_chunk = {0, 3};
  EXPECT_EQ(status(), ParseStatus::over_limit);
}

TEST(Header, ErrorsAreEncodedAsSent) {
  std::array<std::byte, 28> out{};
  Header h;
  uint32_t at = 0;
  ASSERT_EQ(encode_error_version(out, 5, 6), 28u);
  ASSERT_EQ(parse(out, {}, h, at), ParseStatus::ok);
  EXPECT_EQ(h.procedure, Procedure::error);
  EXPECT_EQ(h.error, ErrorCode::version);
  EXPECT_EQ(h.version_low, 1u);
  EXPECT_EQ(h.version_high, 1u);
  ASSERT_EQ(encode_error_chunk(out, 5, 6), 20u);
  ASSERT_EQ(parse({out.data(), 20}, {}, h, at), ParseStatus::ok);
  EXPECT_EQ(h.error, ErrorCode::chunk);
  EXPECT_EQ(h.credit, 6u);
}

TEST(CmPrivateData, RoundTripAndSizes) {
  for (auto [size, code] :
       {std::pair{1024u, 0}, {2048u, 1}, {4096u, 3}, {8192u, 7}, {65536u, 63}, {262144u, 255}}) {
    CmPrivateData d;
    d.send_bytes = d.receive_bytes = size;
    d.remote_invalidation = true;
    auto bytes = d.encode();
    EXPECT_EQ(base::load_be<uint32_t>(bytes.data()), 0xf6ab0e18u);
    EXPECT_EQ(bytes[4], std::byte{1});
    EXPECT_EQ(bytes[5], std::byte{1});
    EXPECT_EQ(std::to_integer<int>(bytes[6]), code);
    CmPrivateData back = CmPrivateData::decode(bytes);
    EXPECT_TRUE(back.known);
    EXPECT_TRUE(back.remote_invalidation);
    EXPECT_EQ(back.send_bytes, size);
    EXPECT_EQ(back.receive_bytes, size);
  }
}

TEST(CmPrivateData, StrangersGetTheDefaults) {
  CmPrivateData d;
  d.send_bytes = d.receive_bytes = 65536;
  auto good = d.encode();
  auto defaults = [](base::ConstBytes in) {
    CmPrivateData got = CmPrivateData::decode(in);
    return !got.known && !got.remote_invalidation && got.send_bytes == 1024 && got.receive_bytes == 1024;
  };
  for (size_t n = 0; n < good.size(); n++) EXPECT_TRUE(defaults({good.data(), n}));
  for (size_t i = 0; i < 5; i++) {
    auto bad = good;
    bad[i] ^= std::byte{0x40};
    EXPECT_TRUE(defaults(bad));
  }
  std::array<std::byte, 20> longer{};
  std::ranges::copy(good, longer.begin());
  EXPECT_EQ(CmPrivateData::decode(longer).send_bytes, 65536u);
}

TEST(Credits, TheLatestGrantCounts) {
  Credits c(32);
  EXPECT_EQ(c.free(), 1u);
  c.take();
  EXPECT_EQ(c.free(), 0u);
  c.grant(8);
  EXPECT_EQ(c.free(), 7u);
  for (int i = 0; i < 7; i++) c.take();
  c.grant(3);
  EXPECT_EQ(c.free(), 0u);
  for (int i = 0; i < 6; i++) c.give_back();
  EXPECT_EQ(c.free(), 1u);
  c.grant(0);
  EXPECT_EQ(c.granted(), 1u);
  EXPECT_EQ(c.free(), 0u);
  c.grant(4'000'000'000u);
  EXPECT_EQ(c.granted(), 32u);
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
