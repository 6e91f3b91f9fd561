// SPDX-License-Identifier: Apache-2.0
// The stream engine against hand-written bytes: splits, sizes, order, memory that goes away. Terminate codes
// have a file of their own.
#include "tests/rdma/iwarp_frames.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

// One of each: Send in two segments, Writes with every pad, a Read Request, Send with Invalidate, an empty
// Write.
Octets mixed_stream(const Exposure& target, const Exposure& source, const Exposure& doomed, bool crc) {
  Octets s;
  s = s + fpdu(tagged(0xc140, 0, 0, {}), crc);
  s = s + fpdu(send_segment(1, ramp(33), 0, false), crc) +
      fpdu(tagged(0x8140, target.key, target.base, ramp(5)), crc);
  s = s + fpdu(send_segment(1, ramp(10, 100), 33), crc);
  s = s + fpdu(tagged(0x8140, target.key, target.base + 5, ramp(6, 50)), crc);
  s = s + fpdu(tagged(0x8140, target.key, target.base + 11, ramp(7, 60)), crc);
  s = s + fpdu(tagged(0xc140, target.key, target.base + 18, ramp(700, 70)), crc);
  s = s + fpdu(read_request(1, 0x7777, 0x123456789abcdef0, 300, source.key, source.base + 2), crc);
  s = s + fpdu(untagged(0x4146, doomed.key, 0, 2, 0, ramp(1)), crc);
  s = s + fpdu(untagged(0x4145, 0, 0, 3, 0, {}), crc);
  return s;
}

void check_mixed(EngineBench& bench, const Octets& stream, size_t most, bool crc) {
  bench.post_receive(1, 0, 100);
  bench.post_receive(2, 100, 100);
  bench.post_receive(3, 200, 100);
  ASSERT_EQ(bench.feed(stream, most), stream.size());
  ASSERT_FALSE(bench.engine.failure()) << bench.engine.failure()->error.text();
  ASSERT_TRUE(bench.engine.receive_at_boundary());
  ASSERT_EQ(bench.seen.size(), 3u);
  EXPECT_EQ(bench.seen[0].id, 1u);
  EXPECT_EQ(bench.seen[0].length, 43u);
  EXPECT_TRUE(bench.holds(0, ramp(33) + ramp(10, 100)));
  EXPECT_TRUE(bench.seen[1].invalidated);
  EXPECT_EQ(bench.seen[1].length, 1u);
  EXPECT_FALSE(bench.seen[2].invalidated);
  EXPECT_EQ(bench.seen[2].length, 0u);
  EXPECT_TRUE(bench.holds(5000, ramp(5) + ramp(6, 50) + ramp(7, 60) + ramp(700, 70)));
  EXPECT_TRUE(bench.untouched(5718, 100));
  Octets answer(300);
  std::memcpy(answer.data(), bench.bytes.data() + 9002, 300);
  EXPECT_EQ(bench.output(), fpdu(tagged(0xc142, 0x7777, 0x123456789abcdef0, answer), crc));
}

TEST(EngineReceive, AnySplitGivesTheSame) {
  for (bool crc : {false, true}) {
    StreamParams params = EngineBench::responder();
    params.crc = crc;
    size_t length = 1000;
    for (size_t most = 1; most < length; most += most < 80 ? 1 : 37) {
      SCOPED_TRACE(most);
      EngineBench bench(params);
      Exposure target = bench.expose(5000, 4000, Purpose::write_target);
      Exposure source = bench.expose(9000, 500, Purpose::read_source);
      Exposure doomed = bench.expose(12000, 100, Purpose::write_target);
      Octets stream = mixed_stream(target, source, doomed, crc);
      length = stream.size();
      check_mixed(bench, stream, most, crc);
    }
  }
}

TEST(EngineReceive, CutAtEveryByte) {
  size_t length = 1;
  for (size_t cut = 0; cut < length; cut++) {
    SCOPED_TRACE(cut);
    EngineBench bench;
    Exposure target = bench.expose(5000, 4000, Purpose::write_target);
    Exposure source = bench.expose(9000, 500, Purpose::read_source);
    Exposure doomed = bench.expose(12000, 100, Purpose::write_target);
    Octets stream = mixed_stream(target, source, doomed, false);
    length = stream.size();
    bench.post_receive(1, 0, 100);
    bench.post_receive(2, 100, 100);
    bench.post_receive(3, 200, 100);
    Octets first(stream.begin(), stream.begin() + static_cast<ptrdiff_t>(cut));
    Octets second(stream.begin() + static_cast<ptrdiff_t>(cut), stream.end());
    ASSERT_EQ(bench.feed(first), first.size());
    ASSERT_EQ(bench.feed(second), second.size());
    ASSERT_EQ(bench.seen.size(), 3u);
    EXPECT_TRUE(bench.holds(5000, ramp(5) + ramp(6, 50) + ramp(7, 60) + ramp(700, 70)));
  }
}

TEST(EngineReceive, LargestAndSmallestFpdus) {
  for (bool crc : {false, true}) {
    StreamParams params = EngineBench::responder();
    params.crc = crc;
    EngineBench bench(params);
    constexpr size_t largest = 65535 - 14;
    Exposure target = bench.expose(0, 3 * 65536, Purpose::write_target);
    Octets data = ramp(2 * largest);
    Octets a(data.begin(), data.begin() + largest), b(data.begin() + largest, data.end());
    Octets stream = fpdu(tagged(0x8140, target.key, target.base, a), crc) +
                    fpdu(tagged(0xc140, target.key, target.base + largest, b), crc);
    ASSERT_EQ(bench.feed(stream), stream.size());
    EXPECT_TRUE(bench.holds(0, data));

    bench.post_receive(7, 500'000, 65535 - 18);
    Octets message = ramp(65535 - 18, 9);
    stream = fpdu(send_segment(1, message), crc);
    ASSERT_EQ(bench.feed(stream), stream.size());
    EXPECT_TRUE(bench.holds(500'000, message));

    Octets tiny;
    bench.post_receive(8, 600'000, 300);
    for (uint32_t i = 0; i < 300; i++)
      tiny =
          tiny + fpdu(send_segment(2, {static_cast<uint8_t>(i)}, i, i == 299), crc) +
          fpdu(tagged(i == 299 ? 0xc140 : 0x8140, target.key, target.base + i, {static_cast<uint8_t>(i + 1)}),
               crc);
    ASSERT_EQ(bench.feed(tiny), tiny.size());
    ASSERT_EQ(bench.seen.size(), 2u);
    EXPECT_EQ(bench.seen[1].length, 300u);
    for (size_t i = 0; i < 300; i++) {
      EXPECT_EQ(bench.bytes[600'000 + i], static_cast<std::byte>(i));
      EXPECT_EQ(bench.bytes[i], static_cast<std::byte>(i + 1));
    }
  }
}

TEST(EngineReceive, BulkPayloadIsNotCopied) {
  EngineBench bench;
  Exposure target = bench.expose(0, 1 << 20, Purpose::write_target);
  Octets stream;
  for (uint32_t at = 0; at < 1 << 20;) {
    uint32_t n = std::min<uint32_t>(65520, (1 << 20) - at);
    stream =
        stream + fpdu(tagged(at + n == 1 << 20 ? 0xc140 : 0x8140, target.key, target.base + at, ramp(n)));
    at += n;
  }
  ASSERT_EQ(bench.feed(stream), stream.size());
  const Receiver& receiver = bench.engine.receiver();
  EXPECT_EQ(receiver.direct_bytes() + receiver.copied_bytes(), 1u << 20);
  EXPECT_LT(receiver.copied_bytes() * 100, 1u << 20);
}

TEST(EngineReceive, ReceiveWithoutMemoryTakesAnEmptyMessage) {
  EngineBench bench;
  ReceiveRequest r;
  r.id = 5;
  ASSERT_TRUE(bench.engine.post_receive({&r, 1}).ok());
  bench.feed(fpdu(send_segment(1, {})));
  ASSERT_EQ(bench.seen.size(), 1u);
  ASSERT_TRUE(bench.engine.post_receive({&r, 1}).ok());
  bench.feed(fpdu(send_segment(2, {1})));
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_EQ(bench.engine.failure()->code, terminate::message_too_long);
}

TEST(EngineReceive, FencedInTheMiddleOfASegment) {
  EngineBench bench;
  Exposure target = bench.expose(0, 100'000, Purpose::write_target);
  Octets stream = fpdu(tagged(0xc140, target.key, target.base, ramp(60'000)));
  Octets half(stream.begin(), stream.begin() + 30'000);
  ASSERT_EQ(bench.feed(half, 1000), half.size());
  ASSERT_TRUE(bench.engine.fence(target, 1));
  std::fill(bench.bytes.begin(), bench.bytes.end(), std::byte{0xcc});
  bench.feed(Octets(stream.begin() + 30'000, stream.end()), 1000);
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_EQ(bench.engine.failure()->code, terminate::write_invalid_stag);
  EXPECT_TRUE(bench.untouched(0, 100'000));
}

TEST(EngineReceive, RevokedInTheMiddleOfAMessage) {
  EngineBench bench;
  bench.post_receive(1, 0, 50'000);
  Octets stream = fpdu(send_segment(1, ramp(50'000)));
  ASSERT_EQ(bench.feed(Octets(stream.begin(), stream.begin() + 30'000), 1000), 30'000u);
  bench.region.revoke();
  std::fill(bench.bytes.begin(), bench.bytes.end(), std::byte{0xcc});
  bench.feed(Octets(stream.begin() + 30'000, stream.end()), 1000);
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_TRUE(bench.untouched(0, 50'000));
  bench.engine.finish();
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.seen[0].status, CompletionStatus::protection_error);
}

TEST(EngineSend, BytesOnTheWire) {
  EngineBench bench;
  Octets data = ramp(40);
  std::memcpy(bench.bytes.data() + 100, data.data(), 40);
  bench.post(Opcode::send, 1, 100, 40);
  bench.post(Opcode::write, 2, 100, 5, {0x00012300, 0x1000});
  bench.post(Opcode::send_invalidate, 3, 100, 1, {}, 0xabcdef01);
  Octets out = bench.output();
  Octets expected{0x00, 0x3a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  expected = expected + data + Octets{0, 0, 0, 0};
  expected = expected + Octets{0x00, 0x13, 0xc1, 0x40, 0x00, 0x01, 0x23, 0x00, 0, 0, 0, 0, 0, 0, 0x10, 0x00};
  expected = expected + Octets(data.begin(), data.begin() + 5) + Octets(3 + 4, 0);
  expected =
      expected + Octets{0x00, 0x13, 0x41, 0x44, 0xab, 0xcd, 0xef, 0x01, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0};
  expected = expected + Octets{data[0]} + Octets(3 + 4, 0);
  EXPECT_EQ(out, expected);
  ASSERT_EQ(bench.seen.size(), 3u);
  for (size_t i = 0; i < 3; i++) EXPECT_EQ(bench.seen[i].id, i + 1);
}

TEST(EngineSend, CrcCoversLengthToPad) {
  StreamParams params = EngineBench::responder();
  params.crc = true;
  EngineBench bench(params);
  Octets data = ramp(2000);
  std::memcpy(bench.bytes.data(), data.data(), data.size());
  for (uint32_t n : {0u, 1u, 2u, 3u, 4u, 511u, 512u, 513u, 1999u}) {
    bench.post(Opcode::write, 1, 0, n, {0x500, 0x1000});
    EXPECT_EQ(bench.output(),
              fpdu(tagged(0xc140, 0x500, 0x1000, Octets(data.begin(), data.begin() + n)), true));
  }
}

TEST(EngineSend, SegmentsFitTheMssWithoutPad) {
  for (uint32_t mss : {536u, 1448u, 1460u, 8948u, 65483u, 65543u}) {
    StreamParams params = EngineBench::responder();
    params.fpdu_bytes = mss;
    EngineBench bench(params);
    for (size_t i = 0; i < bench.bytes.size(); i++) bench.bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
    constexpr uint32_t total = 300'001;
    bench.post(Opcode::write, 1, 7, total, {0x500, 0x1000});
    bench.post(Opcode::send, 2, 7, total);
    Octets out = bench.output(10'000);
    size_t at = 0, done = 0;
    bool in_send = false;
    while (at < out.size()) {
      size_t ulpdu = get(out, at, 2);
      bool last = out[at + 2] & 0x40, is_tagged = out[at + 2] & 0x80;
      size_t header = is_tagged ? 14 : 18, payload = ulpdu - header;
      ASSERT_EQ(is_tagged, !in_send);
      EXPECT_LE(ulpdu + 6, std::min(mss, 65541u));
      EXPECT_TRUE(last || (2 + ulpdu) % 4 == 0);
      EXPECT_EQ(is_tagged ? get(out, at + 8, 8) - 0x1000 : get(out, at + 16, 4), done);
      ASSERT_EQ(std::memcmp(out.data() + at + 2 + header, bench.bytes.data() + 7 + done, payload), 0);
      done += payload;
      at += (2 + ulpdu + 3) / 4 * 4 + 4;
      if (last) {
        EXPECT_EQ(done, total);
        done = 0;
        in_send = true;
      }
    }
    EXPECT_EQ(at, out.size());
    EXPECT_EQ(bench.seen.size(), 2u);
  }
}

TEST(EngineSend, ResponderIsSilentUntilTheFirstFpdu) {
  StreamParams params = EngineBench::responder();
  params.may_send = false;
  EngineBench bench(params);
  bench.post(Opcode::send, 1, 0, 10);
  EXPECT_FALSE(bench.engine.has_output());
  EXPECT_TRUE(bench.output().empty());
  bench.feed(fpdu(tagged(0xc140, 0, 0, {})));
  EXPECT_TRUE(bench.engine.has_output());
  EXPECT_FALSE(bench.output().empty());
}

TEST(EngineSend, ReadsWaitForDepthAndResponsesMatch) {
  StreamParams params = EngineBench::responder();
  params.ord = 2;
  EngineBench bench(params);
  for (uint64_t i = 0; i < 3; i++) bench.post(Opcode::read, i, 1000 * i, 10, {0x900, 0x40 + i});
  bench.post(Opcode::send, 9, 0, 4);
  Octets out = bench.output();
  ASSERT_EQ(out.size(), 2 * (20u + 28 + 4)) << "the third Read and the Send behind it wait";
  Octets answer;
  for (size_t i = 0; i < 2; i++) {
    size_t at = i * 52;
    EXPECT_EQ(get(out, at, 4), 0x002e4141u);
    EXPECT_EQ(get(out, at + 8, 4), 1u);      // queue
    EXPECT_EQ(get(out, at + 12, 4), i + 1);  // MSN
    EXPECT_EQ(get(out, at + 32, 4), 10u);
    EXPECT_EQ(get(out, at + 36, 4), 0x900u);
    EXPECT_EQ(get(out, at + 40, 8), 0x40 + i);
    uint32_t sink = static_cast<uint32_t>(get(out, at + 20, 4));
    uint64_t offset = get(out, at + 24, 8);
    answer = answer + fpdu(tagged(0x8142, sink, offset, ramp(4))) +
             fpdu(tagged(0xc142, sink, offset + 4, ramp(6, 9)));
  }
  EXPECT_TRUE(bench.seen.empty());
  ASSERT_EQ(bench.feed(answer), answer.size());
  ASSERT_EQ(bench.seen.size(), 2u);
  EXPECT_TRUE(bench.holds(1000, ramp(4) + ramp(6, 9)));
  EXPECT_TRUE(bench.untouched(1010, 100));
  Octets rest = bench.output();
  EXPECT_EQ(rest.size(), 52u + 28);
  EXPECT_EQ(get(rest, 12, 4), 3u);
  EXPECT_EQ(bench.seen.size(), 2u) << "the Send completes behind the Read";
  uint32_t sink = static_cast<uint32_t>(get(rest, 20, 4));
  bench.feed(fpdu(tagged(0xc142, sink, get(rest, 24, 8), ramp(10))));
  ASSERT_EQ(bench.seen.size(), 4u);
  EXPECT_EQ(bench.seen[2].id, 2u);
  EXPECT_EQ(bench.seen[3].id, 9u);
}

TEST(EngineSend, EmptyReads) {
  EngineBench bench;
  bench.post(Opcode::read, 1, 0, 0, {0, 0});
  Octets out = bench.output();
  EXPECT_EQ(out, fpdu(read_request(1, 0, 0, 0, 0, 0)));
  bench.feed(fpdu(tagged(0xc142, 0, 0, {})));
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.seen[0].status, CompletionStatus::success);
  bench.feed(fpdu(read_request(1, 0x1234, 0x55, 0, 1, 0)));
  EXPECT_EQ(bench.output(), fpdu(tagged(0xc142, 0x1234, 0x55, {})));
}

TEST(EngineSend, AnswersAndRequestsTakeTurns) {
  EngineBench bench;
  Exposure source = bench.expose(0, 1000, Purpose::read_source);
  Octets requests;
  for (uint32_t i = 1; i <= 4; i++)
    requests = requests + fpdu(read_request(i, i, 0, 8, source.key, source.base));
  for (uint64_t i = 0; i < 4; i++) bench.post(Opcode::send, i, 0, 8);
  bench.feed(requests);
  Octets out = bench.output();
  std::string order;
  for (size_t at = 0; at < out.size(); at += get(out, at, 2) + 6) order += (out[at + 2] & 0x80) ? 'r' : 's';
  EXPECT_EQ(order, "rsrsrsrs");
}

TEST(EngineSend, FenceWaitsForAnswersUnderWay) {
  EngineBench bench;
  Exposure source = bench.expose(0, 200'000, Purpose::read_source);
  bench.feed(fpdu(read_request(1, 5, 0, 200'000, source.key, source.base)));
  std::span<iovec> iov = bench.engine.plan_send();
  ASSERT_FALSE(iov.empty());
  bench.engine.sent(std::min<size_t>(iov[0].iov_len, 10));
  EXPECT_FALSE(bench.engine.fence(source, 77));
  bench.feed(fpdu(read_request(2, 5, 0, 10, source.key, source.base)));
  ASSERT_TRUE(bench.engine.failure()) << "the key is dead from the fence on";
  EXPECT_EQ(bench.engine.failure()->code, terminate::read_invalid_stag);
  EXPECT_TRUE(bench.seen.empty());
  bench.engine.finish();
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.seen[0].op, Opcode::fence);
  EXPECT_EQ(bench.seen[0].id, 77u);
}

TEST(EngineSend, FenceCompletesWhenTheAnswerIsOut) {
  EngineBench bench;
  Exposure source = bench.expose(0, 200'000, Purpose::read_source);
  bench.feed(fpdu(read_request(1, 5, 0, 200'000, source.key, source.base)));
  EXPECT_FALSE(bench.engine.fence(source, 77));
  bench.output(5000);
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.seen[0].op, Opcode::fence);
  EXPECT_TRUE(bench.engine.fence(source, 78)) << "a second fence finds nothing";
}

TEST(EngineSend, InvalidateOfAKeyWithAnswersUnderWayIsRefused) {
  EngineBench bench;
  Exposure source = bench.expose(0, 1000, Purpose::read_source);
  bench.post_receive(1, 0, 100);
  bench.feed(fpdu(read_request(1, 5, 0, 1000, source.key, source.base)) +
             fpdu(untagged(0x4144, source.key, 0, 1, 0, {})));
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_EQ(bench.engine.failure()->code, terminate::cannot_invalidate);
}

// The rest of a half-sent FPDU still goes out, then the Terminate: the peer must be able to read it.
TEST(EngineSend, FinishEndsAtAnFpduBoundary) {
  for (size_t sent : {0u, 1u, 16u, 17u, 1000u, 65539u, 65540u, 65541u, 100'000u}) {
    SCOPED_TRACE(sent);
    EngineBench bench;
    bench.post(Opcode::write, 1, 0, 200'000, {0x500, 0});
    std::span<iovec> iov = bench.engine.plan_send();
    size_t left = sent;
    Octets gone;
    for (const iovec& piece : iov) {
      size_t n = std::min(piece.iov_len, left);
      const uint8_t* from = static_cast<const uint8_t*>(piece.iov_base);
      gone.insert(gone.end(), from, from + n);
      left -= n;
    }
    bench.engine.sent(sent);
    bench.feed(fpdu(send_segment(1, {})));
    ASSERT_TRUE(bench.engine.failure());
    for (std::byte b : bench.engine.finish()) gone.push_back(static_cast<uint8_t>(b));
    std::string seen;
    size_t at = 0;
    while (at < gone.size()) {
      seen += (gone[at + 2] & 0x80) ? 'w' : 't';
      at += (get(gone, at, 2) + 2 + 3) / 4 * 4 + 4;
    }
    EXPECT_EQ(at, gone.size());
    size_t whole = (sent + 65540 - 1) / 65540;  // 65520 of payload, 20 of framing
    EXPECT_EQ(seen, std::string(whole, 'w') + "t");
    ASSERT_EQ(bench.seen.size(), 1u);
    EXPECT_EQ(bench.seen[0].status, CompletionStatus::flushed);
  }
}

TEST(EngineSend, RevocationBetweenTwoWrites) {
  EngineBench bench;
  bench.post(Opcode::write, 1, 0, 200'000, {0x500, 0});
  std::span<iovec> iov = bench.engine.plan_send();
  ASSERT_GT(iov.size(), 2u);
  bench.engine.sent(1000);
  bench.region.revoke();
  EXPECT_TRUE(bench.engine.plan_send().empty()) << "no byte of the memory is named any more";
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_TRUE(bench.engine.finish().empty());
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.seen[0].status, CompletionStatus::protection_error);
}

TEST(EngineSend, RevocationOfOtherMemoryChangesNothing) {
  EngineBench bench;
  std::vector<std::byte> other_bytes(100);
  HostRegion other(bench.users, other_bytes.data(), 100, MemoryKind::host, false);
  bench.post(Opcode::write, 1, 0, 200'000, {0x500, 0});
  (void)bench.engine.plan_send();
  other.revoke();
  bench.output();
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.seen[0].status, CompletionStatus::success);
}

TEST(EngineSend, RevokedSourceOfAReadEndsTheStream) {
  EngineBench bench;
  Exposure source = bench.expose(0, 200'000, Purpose::read_source);
  bench.feed(fpdu(read_request(1, 5, 0, 200'000, source.key, source.base)));
  (void)bench.engine.plan_send();
  bench.engine.sent(100);
  bench.region.revoke();
  EXPECT_TRUE(bench.engine.plan_send().empty());
  EXPECT_TRUE(bench.engine.failure());
}

TEST(EngineSend, TerminateFromThePeerFailsTheOldestRead) {
  for (const Octets& body : {Octets{0x01, 0x02, 0, 0}, Octets{0x10, 0x02, 0x07, 0}}) {
    EngineBench bench;
    bench.post(Opcode::read, 1, 0, 10, {0x900, 0});
    bench.post(Opcode::read, 2, 0, 10, {0x900, 0});
    bench.output();
    bench.feed(fpdu(untagged(0x4147, 0, 2, 1, 0, body)));
    ASSERT_TRUE(bench.engine.failure());
    EXPECT_FALSE(bench.engine.failure()->tell_peer);
    EXPECT_TRUE(bench.engine.finish().empty());
    ASSERT_EQ(bench.seen.size(), 2u);
    EXPECT_EQ(bench.seen[0].status, CompletionStatus::remote_access);
    EXPECT_EQ(bench.seen[1].status, CompletionStatus::flushed);
  }
}

TEST(EngineSend, OversizedTerminateIsStillTheEnd) {
  EngineBench bench;
  bench.feed(fpdu(untagged(0x4147, 0, 2, 1, 0, ramp(5000))));
  ASSERT_TRUE(bench.engine.failure());
  EXPECT_FALSE(bench.engine.failure()->tell_peer);
}

}  // namespace
}  // namespace nfsrdma::rdma::iwarp
