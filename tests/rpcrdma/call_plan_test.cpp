// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/call_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "rpcrdma/pieces.hpp"
#include "rpcrdma/transfer.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

PlanLimits limits(uint32_t inline_bytes = 4096) {
  PlanLimits l;
  l.send_inline_bytes = l.receive_inline_bytes = inline_bytes;
  l.segments_max = 16;
  l.read_chunk_bytes_min = 1u << 30;
  l.reply_chunk_bytes_max = 1u << 20;
  l.buffer_bytes_max = (1u << 20) + 4096;
  return l;
}

PlanInput call(uint32_t args, uint32_t results) {
  PlanInput in;
  in.call_header_bytes = 40;
  in.args_bytes = args;
  in.results_bytes_max = results;
  return in;
}

TEST(CallPlan, AllInlineUpToTheLastByte) {
  // 28 of header, 40 of RPC header: 4028 of arguments fill 4096.
  CallPlan plan = plan_call(limits(), call(4028, 100));
  EXPECT_TRUE(plan.possible);
  EXPECT_FALSE(plan.long_call || plan.data_chunk || plan.write_chunk || plan.reply_chunk_bytes);
  EXPECT_EQ(plan.header_bytes, 28u);
  EXPECT_TRUE(plan_call(limits(), call(4032, 100)).long_call);
}

TEST(CallPlan, PayloadInlineUpToTheLastByte) {
  PlanInput in = call(100, 100);
  in.out_segments = 1;
  in.out_bytes = 4096 - 28 - 40 - 100;
  EXPECT_FALSE(plan_call(limits(), in).data_chunk);
  in.out_bytes -= 3;  // its pad fills the same space
  EXPECT_FALSE(plan_call(limits(), in).data_chunk);
  in.out_bytes += 4;
  CallPlan plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.data_chunk);
  EXPECT_FALSE(plan.long_call);
  EXPECT_EQ(plan.header_bytes, 28u + 24);
}

TEST(CallPlan, PayloadAboveTheThresholdGoesByChunk) {
  PlanLimits l = limits();
  l.read_chunk_bytes_min = 512;
  PlanInput in = call(100, 100);
  in.out_segments = 3;
  in.out_bytes = 511;
  EXPECT_FALSE(plan_call(l, in).data_chunk);
  in.out_bytes = 512;
  CallPlan plan = plan_call(l, in);
  EXPECT_TRUE(plan.data_chunk);
  EXPECT_EQ(plan.header_bytes, 28u + 3 * 24);
}

TEST(CallPlan, LongCallHoldsPayloadWhereABufferDoes) {
  PlanInput in = call(5000, 100);
  CallPlan plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.long_call);
  EXPECT_EQ(plan.long_call_bytes, 5040u);
  EXPECT_EQ(plan.header_bytes, 28u + 24);
  in.out_bytes = 10001;
  in.out_segments = 1;
  plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.long_call);
  EXPECT_FALSE(plan.data_chunk);
  EXPECT_EQ(plan.long_call_bytes, 5040u + 10004);
  in.out_bytes = 1u << 20;
  plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.long_call);
  EXPECT_TRUE(plan.data_chunk);
  EXPECT_EQ(plan.long_call_bytes, 5040u);
  EXPECT_EQ(plan.header_bytes, 28u + 24 + 24);
}

TEST(CallPlan, TooManyPiecesOfPayloadAreCopied) {
  PlanInput in = call(100, 100);
  in.out_bytes = 20000;
  in.out_segments = 17;
  CallPlan plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.possible);
  EXPECT_TRUE(plan.long_call);
  EXPECT_FALSE(plan.data_chunk);
  in.out_bytes = 2u << 20;
  EXPECT_FALSE(plan_call(limits(), in).possible);
}

TEST(CallPlan, ReplyInlineUpToTheLastByte) {
  EXPECT_EQ(plan_call(limits(), call(100, 4096 - 28 - 24)).reply_chunk_bytes, 0u);
  EXPECT_EQ(plan_call(limits(), call(100, 4096 - 28 - 24 + 4)).reply_chunk_bytes, 4096u);
  PlanInput in = call(100, 100);
  in.in_segments = 1;
  in.in_bytes = 4096 - 28 - 24 - 100;
  EXPECT_FALSE(plan_call(limits(), in).write_chunk);
  in.in_bytes++;
  CallPlan plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.write_chunk);
  EXPECT_EQ(plan.reply_chunk_bytes, 0u);
  EXPECT_EQ(plan.header_bytes, 28u + 8 + 16);
}

TEST(CallPlan, WriteChunkAndReplyChunkTogether) {
  PlanInput in = call(100, 9000);
  in.in_bytes = 1u << 20;
  in.in_segments = 16;
  CallPlan plan = plan_call(limits(), in);
  EXPECT_TRUE(plan.write_chunk);
  EXPECT_EQ(plan.reply_chunk_bytes, 12288u);
  EXPECT_EQ(plan.header_bytes, 28u + 8 + 16 * 16 + 4 + 16);
}

TEST(CallPlan, PayloadInTooManyPiecesComesInTheReplyChunk) {
  PlanInput in = call(100, 100);
  in.in_bytes = 65536;
  in.in_segments = 17;
  CallPlan plan = plan_call(limits(), in);
  EXPECT_FALSE(plan.write_chunk);
  EXPECT_EQ(plan.reply_chunk_bytes, 69632u);
}

TEST(CallPlan, F5ReplyChunkIsCutToItsLimit) {
  PlanLimits l = limits();
  EXPECT_EQ(plan_call(l, call(100, (1u << 20) + 200)).reply_chunk_bytes, 1u << 20);
  l.reply_chunk_bytes_max = 5000;
  EXPECT_EQ(plan_call(l, call(100, 9000)).reply_chunk_bytes, 5000u);
  l.reply_chunk_bytes_max = 8u << 20;
  EXPECT_EQ(plan_call(l, call(100, 4u << 20)).reply_chunk_bytes, (1u << 20) + 4096);
  EXPECT_TRUE(plan_call(l, call(100, 0xffffffff)).possible);
  l.reply_chunk_bytes_max = 0;
  EXPECT_FALSE(plan_call(l, call(100, 9000)).possible);
}

TEST(CallPlan, HugeNumbersDoNotWrapAround) {
  PlanInput in = call(0xfffffff0, 0xffffffff);
  in.out_bytes = in.in_bytes = 0xffffffff;
  in.out_segments = in.in_segments = 0xffffffff;
  EXPECT_FALSE(plan_call(limits(), in).possible);
}

TEST(CallPlan, EveryFormFitsWhatItPromises) {
  // All sizes around the edges: the message that results never exceeds the inline size.
  for (uint32_t room : {1024u, 4096u})
    for (uint32_t args = 0; args < room + 8; args += 4)
      for (uint32_t out : {0u, 1u, 2u, 3u, 4u, room / 2, room, 70'001u}) {
        PlanInput in = call(args, 300);
        in.out_bytes = out;
        in.out_segments = out ? 1 : 0;
        CallPlan plan = plan_call(limits(room), in);
        ASSERT_TRUE(plan.possible);
        uint32_t sent = plan.header_bytes;
        if (!plan.long_call) sent += 40 + args + (plan.data_chunk ? 0 : (out + 3) / 4 * 4);
        ASSERT_LE(sent, room) << args << " " << out;
      }
}

struct FakeRegion final : rdma::Region {
  FakeRegion() : Region(nullptr, 1u << 30, rdma::MemoryKind::host) {}
  Result<void> copy_in(uint64_t, base::ConstBytes) override { return {}; }
  Result<void> copy_out(uint64_t, base::Bytes) override { return {}; }
  Result<void> make_visible(uint64_t, size_t) override { return {}; }
  void revoke() override {}
};

TEST(Pieces, NeighboursJoinAndLongOnesSplit) {
  FakeRegion a, b;
  const rdma::Sge pieces[] = {{&a, 0, 100},  {&a, 100, 50}, {&a, 150, 0},
                              {&b, 150, 10}, {&a, 160, 0},  {&b, 161, 250}};
  std::vector<rdma::Sge> got;
  for_each_segment(pieces, 120, [&](const rdma::Sge& s) { got.push_back(s); });
  ASSERT_EQ(got.size(), 6u);
  const uint32_t lengths[] = {120, 30, 10, 120, 120, 10};
  const uint64_t offsets[] = {0, 120, 150, 161, 281, 401};
  for (size_t i = 0; i < 6; i++) {
    EXPECT_EQ(got[i].length, lengths[i]);
    EXPECT_EQ(got[i].offset, offsets[i]);
  }
  EXPECT_EQ(count_segments(pieces, 120), 6u);
  EXPECT_EQ(total_bytes(pieces), 410u);
  EXPECT_EQ(count_segments({}, 120), 0u);
}

TEST(Transfer, EveryByteGoesToItsPlaceOnce) {
  FakeRegion region;
  const rdma::Sge from[] = {{&region, 1000, 7}, {&region, 2000, 0}, {&region, 3000, 90}, {&region, 4000, 33}};
  const Segment to[] = {{1, 10, 100}, {2, 0, 0}, {3, 64, 300}, {4, 500, 400}};
  for (uint32_t bytes_max : {1u, 5u, 16u, 1000u})
    for (size_t sge_max : {size_t{1}, size_t{2}, size_t{4}}) {
      Transfer transfer(from, to, 130);
      std::vector<std::pair<uint64_t, uint64_t>> moves;  // local byte -> remote byte
      std::array<rdma::Sge, 4> sge;
      size_t count = 0;
      rdma::RemoteSegment remote;
      while (transfer.next(bytes_max, {sge.data(), sge_max}, count, remote)) {
        uint64_t at = remote.base, total = 0;
        for (size_t i = 0; i < count; i++)
          for (uint32_t b = 0; b < sge[i].length; b++, total++) moves.emplace_back(sge[i].offset + b, at++);
        ASSERT_LE(total, bytes_max);
        ASSERT_GT(total, 0u);
      }
      EXPECT_TRUE(transfer.done());
      ASSERT_EQ(moves.size(), 130u);
      for (size_t i = 0; i < 130; i++) {
        const uint64_t local = i < 7 ? 1000 + i : i < 97 ? 3000 + i - 7 : 4000 + i - 97;
        const uint64_t far = i < 10 ? 100 + i : i < 74 ? 300 + i - 10 : 400 + i - 74;
        ASSERT_EQ(moves[i], (std::pair{local, far})) << i;
      }
    }
}

TEST(Transfer, TooLittleRoomEndsInsteadOfLooping) {
  FakeRegion region;
  const rdma::Sge from[] = {{&region, 0, 100}};
  const Segment to[] = {{1, 60, 0}};
  Transfer transfer(from, to, 100);
  std::array<rdma::Sge, 2> sge;
  size_t count = 0;
  rdma::RemoteSegment remote;
  EXPECT_TRUE(transfer.next(1000, sge, count, remote));
  EXPECT_FALSE(transfer.next(1000, sge, count, remote));
  EXPECT_FALSE(transfer.done());
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
