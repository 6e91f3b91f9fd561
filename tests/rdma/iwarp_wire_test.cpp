// SPDX-License-Identifier: Apache-2.0
// CRC32C, MPA start-up frames and Terminate messages, from byte vectors.
#include "rdma/iwarp/crc32c.hpp"
#include "rdma/iwarp/mpa.hpp"
#include "tests/rdma/iwarp_frames.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

base::ConstBytes as_bytes(const Octets& o) {
  return {reinterpret_cast<const std::byte*>(o.data()), o.size()};
}
Octets as_octets(const std::vector<std::byte>& b) {
  Octets o;
  for (std::byte x : b) o.push_back(static_cast<uint8_t>(x));
  return o;
}
Octets text(const char* s) { return Octets(s, s + strlen(s)); }

struct CrcWay {
  const char* name;
  uint32_t (*update)(uint32_t, base::ConstBytes);
};
const CrcWay crc_ways[] = {
    {"default", crc32c_update}, {"table", crc32c_table}, {"instruction", crc32c_instruction}};

TEST(Crc32c, KnownValues) {
  // RFC 3720 appendix B.4 and the usual check string.
  Octets ascending(32), zeros(32, 0), ones(32, 0xff);
  for (size_t i = 0; i < 32; i++) ascending[i] = static_cast<uint8_t>(i);
  const std::pair<Octets, uint32_t> vectors[] = {{text("123456789"), 0xe3069283},
                                                 {zeros, 0x8a9136aa},
                                                 {ones, 0x62a8ab43},
                                                 {ascending, 0x46dd794e},
                                                 {{}, 0}};
  for (const CrcWay& way : crc_ways)
    for (const auto& [data, value] : vectors) {
      if (way.update == crc32c_instruction && !crc32c_instruction_present()) continue;
      EXPECT_EQ(~way.update(crc32c_start, as_bytes(data)), value) << way.name;
    }
  std::byte wire[4];
  store_crc(wire, crc32c_update(crc32c_start, as_bytes(text("123456789"))));
  EXPECT_EQ(wire[0], std::byte{0x83});  // least significant byte first
  EXPECT_EQ(wire[3], std::byte{0xe3});
}

TEST(Crc32c, AllWaysAgreeOnAnyLengthAndSplit) {
  Octets data = ramp(3000, 3);
  for (size_t n : {0u, 1u, 7u, 8u, 9u, 63u, 64u, 65u, 1000u, 2999u}) {
    Octets part(data.begin() + 1, data.begin() + 1 + static_cast<ptrdiff_t>(n));
    uint32_t expected = ~crc32c_by_bits(part);
    for (const CrcWay& way : crc_ways) {
      if (way.update == crc32c_instruction && !crc32c_instruction_present()) continue;
      for (size_t cut = 0; cut <= n; cut += 1 + n / 50) {
        uint32_t state = way.update(crc32c_start, as_bytes(part).first(cut));
        EXPECT_EQ(way.update(state, as_bytes(part).subspan(cut)), expected)
            << way.name << " " << n << " " << cut;
      }
    }
  }
}

// The frame of a Linux NFS client, as captured: revision 2, IRD 128, ORD 0, RFC 8797 data.
Octets kernel_request() {
  return text("MPA ID Req Frame") + Octets{0x10, 0x02, 0x00, 0x0c, 0x00, 0x80, 0x00, 0x00,
                                           0xf6, 0xab, 0x0e, 0x18, 0x01, 0x01, 0x03, 0x03};
}

MpaReader::State read_all(MpaReader& reader, const Octets& frame, size_t most, size_t* taken) {
  size_t at = 0;
  MpaReader::State state = MpaReader::State::reading;
  while (state == MpaReader::State::reading && at < frame.size()) {
    base::Bytes space = reader.space();
    size_t n = std::min({space.size(), most, frame.size() - at});
    std::memcpy(space.data(), frame.data() + at, n);
    at += n;
    state = reader.advance(n);
  }
  *taken = at;
  return state;
}

TEST(Mpa, KernelRequestInAnyPieces) {
  Octets frame = kernel_request();
  for (size_t most = 1; most <= frame.size(); most++) {
    MpaReader reader(false);
    size_t taken = 0;
    ASSERT_EQ(read_all(reader, frame + Octets(100, 0xee), most, &taken), MpaReader::State::complete) << most;
    EXPECT_EQ(taken, frame.size()) << "bytes behind the frame must stay in the socket";
    const MpaFrame& f = reader.frame();
    EXPECT_TRUE(f.enhanced);
    EXPECT_FALSE(f.markers || f.crc || f.reject || f.ours || f.peer_to_peer);
    EXPECT_EQ(f.revision, 2);
    EXPECT_EQ(f.ird, 128);
    EXPECT_EQ(f.ord, 0);
    EXPECT_EQ(as_octets(f.private_data), Octets({0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}));
  }
}

TEST(Mpa, OurRequestIsWhatTheKernelSends) {
  MpaFrame f;
  f.enhanced = true;
  f.ird = 128;
  for (int b : {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}) f.private_data.push_back(static_cast<std::byte>(b));
  EXPECT_EQ(as_octets(encode_mpa(f)), kernel_request());
  f.ours = true;
  Octets marked = as_octets(encode_mpa(f));
  EXPECT_EQ(marked.size(), kernel_request().size() + 8);
  EXPECT_EQ(get(marked, 18, 2), 20u);
  EXPECT_EQ(Octets(marked.begin() + 24, marked.begin() + 32), Octets({0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}));
  MpaReader reader(false);
  size_t taken = 0;
  ASSERT_EQ(read_all(reader, marked, 3, &taken), MpaReader::State::complete);
  EXPECT_TRUE(reader.frame().ours);
  EXPECT_EQ(reader.frame().private_data, f.private_data) << "the mark is not the consumer's business";
}

TEST(Mpa, ReplyFlags) {
  MpaReader reader(true);
  size_t taken = 0;
  Octets frame = text("MPA ID Rep Frame") + Octets{0x50, 0x02, 0x00, 0x06, 0xc0, 0x05, 0x40, 0x07, 'h', 'i'};
  ASSERT_EQ(read_all(reader, frame, 100, &taken), MpaReader::State::complete);
  EXPECT_TRUE(reader.frame().crc);
  EXPECT_TRUE(reader.frame().peer_to_peer);
  EXPECT_TRUE(reader.frame().rtr_send);
  EXPECT_FALSE(reader.frame().rtr_write);
  EXPECT_TRUE(reader.frame().rtr_read);
  EXPECT_EQ(reader.frame().ird, 5);
  EXPECT_EQ(reader.frame().ord, 7);
  EXPECT_EQ(as_octets(reader.frame().private_data), text("hi"));
}

TEST(Mpa, BadFrames) {
  struct Row {
    const char* name;
    Octets frame;
    MpaReader::State state;
    size_t taken_max;
  };
  const Octets key = text("MPA ID Req Frame");
  const Row rows[] = {
      {"other key", text("GET / HTTP/1.1\r\n\r\n       "), MpaReader::State::not_mpa, 20},
      {"reply instead of a request", text("MPA ID Rep Frame") + Octets{0x10, 2, 0, 0},
       MpaReader::State::not_mpa, 20},
      {"revision 0", key + Octets{0, 0, 0, 0}, MpaReader::State::malformed, 20},
      {"revision 3", key + Octets{0x10, 3, 0, 4, 0, 1, 0, 1}, MpaReader::State::malformed, 20},
      {"513 bytes of private data", key + Octets{0x10, 2, 2, 1} + Octets(513, 0), MpaReader::State::malformed,
       20},
      {"65535 bytes of private data", key + Octets{0x10, 2, 0xff, 0xff}, MpaReader::State::malformed, 20},
      {"enhanced without depths", key + Octets{0x10, 2, 0, 0}, MpaReader::State::malformed, 20},
      {"enhanced with half of them", key + Octets{0x10, 2, 0, 3, 0, 1, 0}, MpaReader::State::malformed, 20},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    for (size_t most : {1u, 1000u}) {
      MpaReader reader(false);
      size_t taken = 0;
      EXPECT_EQ(read_all(reader, row.frame, most, &taken), row.state);
      EXPECT_LE(taken, row.taken_max);
      EXPECT_FALSE(reader.problem().empty());
    }
  }
  MpaReader reader(false);
  size_t taken = 0;
  ASSERT_EQ(read_all(reader, key + Octets{0x10, 2, 2, 0} + Octets(512, 1), 1, &taken),
            MpaReader::State::complete);
  EXPECT_EQ(reader.frame().private_data.size(), 508u);
}

TEST(Mpa, RejectionWithoutDepthsIsStillARejection) {
  MpaReader reader(true);
  size_t taken = 0;
  ASSERT_EQ(read_all(reader, text("MPA ID Rep Frame") + Octets{0x30, 2, 0, 0}, 100, &taken),
            MpaReader::State::complete);
  EXPECT_TRUE(reader.frame().reject);
}

TEST(Mpa, Answers) {
  MpaFrame request;
  request.enhanced = true;
  request.ird = 16;
  request.ord = 3;
  Depths agreed;
  MpaFrame reply = answer_request(request, {64, 32}, false, &agreed);
  EXPECT_TRUE(reply.enhanced && reply.reply);
  EXPECT_FALSE(reply.reject || reply.crc || reply.ours);
  EXPECT_EQ(agreed.ord, 16u) << "never more Reads out than the peer serves";
  EXPECT_EQ(agreed.ird, 3u);
  EXPECT_EQ(reply.ord, 16);
  EXPECT_EQ(reply.ird, 3);
  EXPECT_GE(get(as_octets(encode_mpa(reply)), 18, 2), 4u)
      << "an enhanced Reply without depths crashes Linux siw";

  request.ird = request.ord = depth_not_negotiated;
  reply = answer_request(request, {64, 32}, true, &agreed);
  EXPECT_EQ(agreed.ord, 32u);
  EXPECT_EQ(agreed.ird, 64u);
  EXPECT_TRUE(reply.crc);

  request.crc = true;
  EXPECT_TRUE(answer_request(request, {}, false, &agreed).crc) << "CRC is on when either end asks";
  request.markers = true;
  reply = answer_request(request, {}, false, &agreed);
  EXPECT_TRUE(reply.reject);
  EXPECT_FALSE(reply.markers);

  MpaFrame old;
  old.revision = 1;
  reply = answer_request(old, {64, 32}, false, &agreed);
  EXPECT_FALSE(reply.enhanced || reply.reject);
  EXPECT_EQ(reply.revision, 1);
  EXPECT_EQ(agreed.ord, 32u);
}

TEST(Mpa, ReadyToReceiveOptions) {
  struct Row {
    bool b, c, d, reply_c, reply_d;
  };
  for (const Row& row : {Row{false, true, true, true, false}, Row{false, true, false, true, false},
                         Row{false, false, true, false, true}, Row{false, false, false, true, false}}) {
    MpaFrame request;
    request.enhanced = request.peer_to_peer = true;
    request.rtr_send = row.b;
    request.rtr_write = row.c;
    request.rtr_read = row.d;
    Depths agreed;
    MpaFrame reply = answer_request(request, {8, 8}, false, &agreed);
    EXPECT_TRUE(reply.peer_to_peer);
    EXPECT_EQ(reply.rtr_write, row.reply_c);
    EXPECT_EQ(reply.rtr_read, row.reply_d);
    EXPECT_FALSE(reply.rtr_send);
  }
}

TEST(Mpa, JudgingReplies) {
  MpaFrame reply;
  reply.reply = reply.enhanced = true;
  reply.ird = 4;
  reply.ord = 16;
  bool too_deep = false;
  auto depths = judge_reply(reply, {16, 8}, &too_deep);
  ASSERT_TRUE(depths.ok());
  EXPECT_EQ(depths->ord, 4u);
  EXPECT_EQ(depths->ird, 16u);
  reply.ord = 17;
  EXPECT_FALSE(judge_reply(reply, {16, 8}, &too_deep).ok());
  EXPECT_TRUE(too_deep);
  reply.ord = depth_not_negotiated;
  EXPECT_TRUE(judge_reply(reply, {16, 8}, &too_deep).ok());
  reply.markers = true;
  EXPECT_FALSE(judge_reply(reply, {16, 8}, &too_deep).ok());
  EXPECT_FALSE(too_deep);
}

TEST(TerminateMessage, LayoutsOfBothKinds) {
  TerminateCode code;
  struct Row {
    Octets body;
    TerminateCode code;
  };
  const Row rows[] = {
      {{0x11, 0x01, 0xc0, 0x00}, {1, 1, 1}},  // as RFC 5040 draws it
      {{0x12, 0x02, 0xc0, 0x00}, {1, 2, 2}}, {{0x20, 0x02, 0x00, 0x00}, {2, 0, 2}},
      {{0x02, 0x02, 0x00, 0x00}, {2, 0, 2}},  // siw: nibbles swapped, no flags
      {{0x21, 0x02, 0x03, 0x00}, {1, 2, 2}},  // siw: M and D in the low bits
      {{0x10, 0x00, 0x07, 0x00}, {0, 1, 0}},  // siw: invalid STag of a Read
      {{0x20, 0x07, 0x03, 0x00}, {0, 2, 7}}, {{0x11, 0x01, 0x03, 0x00}, {1, 1, 1}},
  };
  for (const Row& row : rows) {
    ASSERT_TRUE(decode_terminate(as_bytes(row.body), &code));
    EXPECT_EQ(code, row.code) << describe(code) << " instead of " << describe(row.code);
  }
  EXPECT_FALSE(decode_terminate(as_bytes(Octets{0x11}), &code));
  EXPECT_FALSE(known({3, 0, 0}));
}

TEST(TerminateMessage, EncodingQuotesTheSegment) {
  OffendingSegment segment;
  segment.ulpdu_bytes = 0x1234;
  segment.ddp_header_bytes = 14;
  std::memset(segment.ddp_header, 0xab, 14);
  Octets plain = as_octets(encode_terminate({1, 1, 1}, segment, true));
  Octets body{0x11, 0x01, 0xc0, 0x00, 0x12, 0x34};
  body = body + Octets(14, 0xab);
  EXPECT_EQ(plain, fpdu(untagged(0x4147, 0, 2, 1, 0, body), true));
  segment.has_read_request = true;
  segment.ddp_header_bytes = 18;
  std::memset(segment.ddp_header, 0xab, 18);
  Octets full{0x01, 0x02, 0xe0, 0x00, 0x12, 0x34};
  full = full + Octets(18, 0xab) + Octets(28, 0);
  EXPECT_EQ(as_octets(encode_terminate({0, 1, 2}, segment, false)), fpdu(untagged(0x4147, 0, 2, 1, 0, full)));
  EXPECT_EQ(as_octets(encode_terminate({2, 0, 2}, {}, false)),
            fpdu(untagged(0x4147, 0, 2, 1, 0, {0x20, 0x02, 0, 0})));
}

}  // namespace
}  // namespace nfsrdma::rdma::iwarp
