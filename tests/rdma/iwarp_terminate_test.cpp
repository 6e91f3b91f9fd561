// SPDX-License-Identifier: Apache-2.0
// One row per protocol error: the Terminate that RFC 5040, 5041 and 5044 want, what it quotes, and that
// nothing was delivered or written.
#include <functional>

#include "tests/rdma/iwarp_frames.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

struct Stage {  // what the engine under test offers: all in its first half of memory
  EngineBench& bench;
  Exposure target;   // 100 bytes at 1000, writable
  Exposure source;   // 100 bytes at 2000, readable
  Exposure foreign;  // of another connection
};

struct Row {
  const char* name;
  TerminateCode code;
  std::function<Octets(const Stage&)> bad;  // DDP segment; the stream before it is good
  uint32_t receives = 1;
  bool quotes_read_request = false;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row rows[] = {
    {"write_invalid_stag",
     {1, 1, 0},
     [](const Stage& s) { return tagged(0xc140, s.target.key ^ 1, s.target.base, ramp(8)); }},
    {"write_stag_0", {1, 1, 0}, [](const Stage& s) { return tagged(0xc140, 0, s.target.base, ramp(8)); }},
    {"write_to_read_source",
     {1, 1, 0},
     [](const Stage& s) { return tagged(0xc140, s.source.key, s.source.base, ramp(8)); }},
    {"write_past_end",
     {1, 1, 1},
     [](const Stage& s) { return tagged(0xc140, s.target.key, s.target.base + 93, ramp(8)); }},
    {"write_before_start",
     {1, 1, 1},
     [](const Stage& s) { return tagged(0xc140, s.target.key, s.target.base - 1, ramp(8)); }},
    {"write_foreign",
     {1, 1, 2},
     [](const Stage& s) { return tagged(0xc140, s.foreign.key, s.foreign.base, ramp(8)); }},
    {"write_wraps",
     {1, 1, 3},
     [](const Stage& s) { return tagged(0xc140, s.target.key, ~uint64_t{0} - 3, ramp(8)); }},
    {"tagged_ddp_version_0",
     {1, 1, 4},
     [](const Stage& s) { return tagged(0xc040, s.target.key, s.target.base, ramp(8)); }},
    {"tagged_ddp_version_2",
     {1, 1, 4},
     [](const Stage& s) { return tagged(0xc240, s.target.key, s.target.base, ramp(8)); }},
    {"send_on_queue_1", {1, 2, 1}, [](const Stage&) { return untagged(0x4143, 0, 1, 2, 0, ramp(8)); }},
    {"send_on_queue_7", {1, 2, 1}, [](const Stage&) { return untagged(0x4143, 0, 7, 2, 0, ramp(8)); }},
    {"read_request_on_queue_0",
     {1, 2, 1},
     [](const Stage&) { return untagged(0x4141, 0, 0, 1, 0, ramp(28)); }},
    {"terminate_on_queue_0", {1, 2, 1}, [](const Stage&) { return untagged(0x4147, 0, 0, 1, 0, ramp(4)); }},
    {"no_receive", {1, 2, 2}, [](const Stage&) { return send_segment(2, ramp(8)); }, 0},
    {"send_msn_repeated", {1, 2, 3}, [](const Stage&) { return send_segment(1, ramp(8)); }},
    {"send_msn_skipped", {1, 2, 3}, [](const Stage&) { return send_segment(3, ramp(8)); }},
    {"read_request_msn",
     {1, 2, 3},
     [](const Stage& s) { return read_request(2, 1, 0, 8, s.source.key, s.source.base); }},
    {"send_offset", {1, 2, 4}, [](const Stage&) { return send_segment(2, ramp(8), 4); }},
    {"read_request_offset",
     {1, 2, 4},
     [](const Stage& s) {
       Octets o = read_request(1, 1, 0, 8, s.source.key, s.source.base);
       o[17] = 4;
       return o;
     }},
    {"send_too_long", {1, 2, 5}, [](const Stage&) { return send_segment(2, ramp(101)); }},
    {"read_request_too_long",
     {1, 2, 5},
     [](const Stage& s) { return read_request(1, 1, 0, 8, s.source.key, s.source.base) + Octets{0}; }},
    {"untagged_ddp_version_0", {1, 2, 6}, [](const Stage&) { return untagged(0x4043, 0, 0, 2, 0, ramp(8)); }},
    {"untagged_ddp_version_3", {1, 2, 6}, [](const Stage&) { return untagged(0x4343, 0, 0, 2, 0, ramp(8)); }},
    {"rdmap_version_0", {0, 2, 5}, [](const Stage&) { return untagged(0x4103, 0, 0, 2, 0, ramp(8)); }},
    {"rdmap_version_2",
     {0, 2, 5},
     [](const Stage& s) { return tagged(0xc180, s.target.key, s.target.base, ramp(8)); }},
    {"opcode_8", {0, 2, 6}, [](const Stage&) { return untagged(0x4148, 0, 0, 2, 0, ramp(8)); }},
    {"opcode_15", {0, 2, 6}, [](const Stage&) { return untagged(0x414f, 0, 0, 2, 0, ramp(8)); }},
    {"tagged_opcode_15",
     {0, 2, 6},
     [](const Stage& s) { return tagged(0xc14f, s.target.key, s.target.base, ramp(8)); }},
    {"tagged_send",
     {0, 2, 6},
     [](const Stage& s) { return tagged(0xc143, s.target.key, s.target.base, ramp(8)); }},
    {"untagged_write", {0, 2, 6}, [](const Stage&) { return untagged(0x4140, 0, 0, 2, 0, ramp(8)); }},
    {"unasked_read_response",
     {0, 2, 6},
     [](const Stage& s) { return tagged(0xc142, s.target.key, s.target.base, ramp(8)); }},
    {"read_request_in_two_segments",
     {0, 2, 255},
     [](const Stage& s) {
       Octets o = read_request(1, 1, 0, 8, s.source.key, s.source.base);
       o[0] = 0x01;
       return o;
     }},
    {"read_request_too_short",
     {0, 2, 255},
     [](const Stage&) { return untagged(0x4141, 0, 1, 1, 0, ramp(27)); }},
    {"read_invalid_stag",
     {0, 1, 0},
     [](const Stage& s) { return read_request(1, 1, 0, 8, s.source.key ^ 1, s.source.base); },
     1,
     true},
    {"read_past_end",
     {0, 1, 1},
     [](const Stage& s) { return read_request(1, 1, 0, 101, s.source.key, s.source.base); },
     1,
     true},
    {"read_of_4_gib",
     {0, 1, 1},
     [](const Stage& s) { return read_request(1, 1, 0, 0xffffffff, s.source.key, s.source.base); },
     1,
     true},
    {"read_of_write_target",
     {0, 1, 2},
     [](const Stage& s) { return read_request(1, 1, 0, 8, s.target.key, s.target.base); },
     1,
     true},
    {"read_foreign",
     {0, 1, 3},
     [](const Stage& s) { return read_request(1, 1, 0, 8, s.foreign.key, s.foreign.base); },
     1,
     true},
    {"read_wraps",
     {0, 1, 4},
     [](const Stage& s) { return read_request(1, 1, 0, 8, s.source.key, ~uint64_t{0} - 3); },
     1,
     true},
    {"invalidate_unknown",
     {0, 1, 9},
     [](const Stage&) { return untagged(0x4144, 0x12345678, 0, 2, 0, ramp(8)); }},
    {"invalidate_foreign",
     {0, 1, 9},
     [](const Stage& s) { return untagged(0x4146, s.foreign.key, 0, 2, 0, ramp(8)); }},
};

class TerminateRow : public testing::TestWithParam<Row> {};

TEST_P(TerminateRow, IsSent) {
  for (bool crc : {false, true}) {
    StreamParams params = EngineBench::responder();
    params.crc = crc;
    EngineBench bench(params), other(params);
    Stage stage{bench, bench.expose(1000, 100, Purpose::write_target),
                bench.expose(2000, 100, Purpose::read_source), other.expose(0, 100, Purpose::write_target)};
    bench.post_receive(1, 0, 100);
    bench.feed(fpdu(send_segment(1, ramp(8)), crc));
    ASSERT_EQ(bench.seen.size(), 1u);
    if (GetParam().receives) bench.post_receive(2, 3000, 100);
    const Octets segment = GetParam().bad(stage);
    bench.feed(fpdu(segment, crc) + fpdu(send_segment(2, ramp(8)), crc));
    ASSERT_TRUE(bench.engine.failure());
    EXPECT_EQ(bench.engine.failure()->code, GetParam().code) << describe(bench.engine.failure()->code);
    Octets tail;
    for (std::byte b : bench.engine.finish()) tail.push_back(static_cast<uint8_t>(b));

    const TerminateCode& code = GetParam().code;
    size_t header = (segment[0] & 0x80) ? 14 : 18;
    Octets body{static_cast<uint8_t>(code.layer << 4 | code.type), code.code,
                static_cast<uint8_t>(GetParam().quotes_read_request ? 0xe0 : 0xc0), 0};
    put(body, segment.size(), 2);
    body.insert(body.end(), segment.begin(), segment.begin() + static_cast<ptrdiff_t>(header));
    if (GetParam().quotes_read_request) body.insert(body.end(), segment.begin() + 18, segment.begin() + 46);
    EXPECT_EQ(tail, fpdu(untagged(0x4147, 0, 2, 1, 0, body), crc));

    // The Receive that was still posted ends once, without data; exposed memory is as it was.
    ASSERT_EQ(bench.seen.size(), 1u + GetParam().receives);
    EXPECT_NE(bench.seen.back().status == CompletionStatus::success, GetParam().receives > 0);
    EXPECT_TRUE(bench.untouched(1000, 1100));
  }
}

INSTANTIATE_TEST_SUITE_P(Iwarp, TerminateRow, testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TerminateMore, TooManyReadRequests) {
  EngineBench bench;
  Exposure source = bench.expose(0, 100, Purpose::read_source);
  for (uint32_t i = 1; i <= 4; i++) bench.feed(fpdu(read_request(i, 1, 0, 8, source.key, source.base)));
  ASSERT_FALSE(bench.engine.failure());
  bench.feed(fpdu(read_request(5, 1, 0, 8, source.key, source.base)));
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{0, 2, 7}));
}

TEST(TerminateMore, AnsweredReadRequestsFreeTheirPlace) {
  EngineBench bench;
  Exposure source = bench.expose(0, 100, Purpose::read_source);
  for (uint32_t i = 1; i <= 20; i++) {
    bench.feed(fpdu(read_request(i, 1, 0, 8, source.key, source.base)));
    ASSERT_FALSE(bench.engine.failure()) << i;
    bench.output();
  }
}

TEST(TerminateMore, CrcMismatch) {
  StreamParams params = EngineBench::responder();
  params.crc = true;
  Octets good = fpdu(send_segment(1, ramp(21)), true);
  for (size_t at = 20; at < good.size(); at++) {  // payload, pad or the CRC itself
    EngineBench bench(params);
    bench.post_receive(1, 0, 100);
    Octets bad = good;
    bad[at] ^= 0x10;
    bench.feed(bad, 7);
    ASSERT_TRUE(bench.engine.failure()) << at;
    EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{2, 0, 2}));
    std::vector<std::byte> tail = bench.engine.finish();
    EXPECT_EQ(tail.size(), 28u) << "nothing of a broken frame is quoted";
    ASSERT_EQ(bench.seen.size(), 1u);
    EXPECT_EQ(bench.seen[0].status, CompletionStatus::flushed);
  }
}

TEST(TerminateMore, WithoutCrcTheFieldIsIgnored) {
  EngineBench bench;
  bench.post_receive(1, 0, 100);
  Octets odd = fpdu(send_segment(1, ramp(21)));
  odd.back() = 0x99;
  EXPECT_EQ(bench.feed(odd), odd.size());
  EXPECT_EQ(bench.seen.size(), 1u);
}

TEST(TerminateMore, FpduTooShortForItsHeader) {
  for (uint16_t length = 0; length < 18; length++)
    for (bool is_tagged : {false, true}) {
      if (is_tagged && length >= 14) continue;
      EngineBench bench;
      Octets bytes;
      put(bytes, length, 2);
      put(bytes, is_tagged ? 0xc140 : 0x4143, 2);
      bytes = bytes + Octets(60, 0);
      bench.feed(bytes);
      ASSERT_TRUE(bench.engine.failure()) << length;
      EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{2, 0, 3}));
    }
}

TEST(TerminateMore, OpcodeChangesWithinAMessage) {
  {
    EngineBench bench;
    bench.post_receive(1, 0, 100);
    bench.feed(fpdu(send_segment(1, ramp(8), 0, false)) + fpdu(untagged(0x4145, 0, 0, 1, 8, ramp(8))));
    ASSERT_TRUE(bench.engine.failure());
    EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{0, 2, 6}));
  }
  {
    EngineBench bench;
    Exposure target = bench.expose(0, 100, Purpose::write_target);
    bench.post(Opcode::read, 1, 500, 8, {0x900, 0});
    bench.output();
    bench.feed(fpdu(tagged(0x8140, target.key, target.base, ramp(8))) + fpdu(tagged(0xc142, 1, 0, ramp(8))));
    ASSERT_TRUE(bench.engine.failure());
    EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{0, 2, 6}));
  }
}

TEST(TerminateMore, ReadResponsesMustMatch) {
  struct Case {
    const char* name;
    uint16_t control;
    uint32_t key_change;
    uint64_t offset_change;
    size_t bytes;
    TerminateCode code;
  };
  for (const Case& c :
       {Case{"other STag", 0xc142, 0x100, 0, 8, {1, 1, 0}}, Case{"other offset", 0xc142, 0, 1, 8, {1, 1, 1}},
        Case{"longer", 0xc142, 0, 0, 9, {1, 1, 1}}, Case{"shorter", 0xc142, 0, 0, 7, {0, 2, 255}},
        Case{"whole but not last", 0x8142, 0, 0, 8, {0, 2, 255}},
        Case{"empty", 0xc142, 0, 0, 0, {0, 2, 255}}}) {
    SCOPED_TRACE(c.name);
    EngineBench bench;
    bench.post(Opcode::read, 1, 500, 8, {0x900, 0});
    Octets out = bench.output();
    bench.feed(fpdu(tagged(c.control, static_cast<uint32_t>(get(out, 20, 4)) ^ c.key_change,
                           get(out, 24, 8) + c.offset_change, ramp(c.bytes))));
    ASSERT_TRUE(bench.engine.failure());
    EXPECT_EQ(bench.engine.failure()->code, c.code);
    EXPECT_TRUE(bench.untouched(500, 100));
  }
}

TEST(TerminateMore, PeerCannotUseTheSinkOfARead) {
  EngineBench bench;
  bench.post(Opcode::read, 1, 500, 8, {0x900, 0});
  Octets out = bench.output();
  bench.feed(fpdu(tagged(0xc140, static_cast<uint32_t>(get(out, 20, 4)), get(out, 24, 8), ramp(8))));
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{1, 1, 0}));
  EXPECT_TRUE(bench.untouched(500, 8));
}

TEST(TerminateMore, RevokedReceiveIsALocalError) {
  EngineBench bench;
  bench.post_receive(1, 0, 100);
  bench.region.revoke();
  bench.feed(fpdu(send_segment(1, ramp(8))));
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_EQ(bench.engine.failure()->code, (TerminateCode{0, 0, 0}));
}

}  // namespace
}  // namespace nfsrdma::rdma::iwarp
