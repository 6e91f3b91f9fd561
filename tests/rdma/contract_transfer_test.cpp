// SPDX-License-Identifier: Apache-2.0
// Contract: data arrives whole, in order, where it shall.
#include <algorithm>

#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {
namespace {

class Transfer : public ContractTest {};

TEST_P(Transfer, SendReachesThePostedReceive) {
  connect_pair();
  Memory from(*client_.pd, 4096), to(*server_.pd, 4096);
  from.fill(1);
  ASSERT_TRUE(receive(server_, 1, to, 100, 3000).ok());
  ASSERT_TRUE(send(client_, 2, from, 7, 1234).ok());
  ASSERT_TRUE(until([&] { return server_.find(1) && client_.find(2); }));
  EXPECT_EQ(server_.find(1)->status, CompletionStatus::success);
  EXPECT_EQ(server_.find(1)->op, Opcode::receive);
  EXPECT_EQ(server_.find(1)->length, 1234u);
  EXPECT_FALSE(server_.find(1)->invalidated);
  EXPECT_EQ(client_.find(2)->status, CompletionStatus::success);
  EXPECT_EQ(client_.find(2)->op, Opcode::send);
  EXPECT_TRUE(to.has(1, 100, 1234, 7));
  EXPECT_TRUE(to.all(std::byte{0}, 100 + 1234, 4096 - 100 - 1234));
}

TEST_P(Transfer, SendsAreGatheredAndFillReceivesInOrder) {
  connect_pair();
  Memory from(*client_.pd, 4096), to(*server_.pd, 64 * 256);
  from.fill(3);
  for (uint64_t i = 0; i < 32; i++) ASSERT_TRUE(receive(server_, i, to, i * 256, 256).ok());
  for (uint32_t i = 0; i < 32; i++)
    ASSERT_TRUE(tagged(client_, Opcode::send, 100 + i,
                       {{from.get(), i, i}, {from.get(), 500 + i, 1}, {from.get(), 900, i % 4}, {from.get(), 1000, 9}},
                       {})
                    .ok());
  ASSERT_TRUE(until([&] { return server_.seen.size() == 32 && client_.seen.size() == 32; }));
  for (uint32_t i = 0; i < 32; i++) {
    EXPECT_EQ(server_.seen[i].id, i);
    EXPECT_EQ(client_.seen[i].id, 100 + i);
    ASSERT_EQ(server_.seen[i].length, i + 1 + i % 4 + 9);
    EXPECT_TRUE(to.has(3, i * 256, i, i));
    EXPECT_TRUE(to.has(3, i * 256 + i, 1, 500 + i));
    EXPECT_TRUE(to.has(3, i * 256 + i + 1, i % 4, 900));
    EXPECT_TRUE(to.has(3, i * 256 + i + 1 + i % 4, 9, 1000));
  }
}

TEST_P(Transfer, EmptySend) {
  connect_pair();
  open_both_ways();
  EXPECT_EQ(server_.find(9001)->length, 0u);
}

TEST_P(Transfer, WriteThenSendIsSeenInThatOrder) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t bytes = 300'000;
  Memory source(*server_.pd, bytes), reply(*server_.pd, 64), target(*client_.pd, bytes), inbox(*client_.pd, 64);
  for (uint8_t round = 1; round <= 5; round++) {
    source.fill(round);
    auto exposure = expose(client_, target, 0, bytes, Purpose::write_target);
    ASSERT_TRUE(exposure.ok()) << exposure.error().text();
    ASSERT_TRUE(receive(client_, round, inbox, 0, 64).ok());
    ASSERT_TRUE(tagged(server_, Opcode::write, 50u + round, {{source.get(), 0, bytes}},
                       {exposure->key, exposure->base}, false)
                    .ok());
    ASSERT_TRUE(send(server_, 70u + round, reply, 0, 40).ok());
    ASSERT_TRUE(until([&] { return client_.find(round) != nullptr; }));
    EXPECT_TRUE(target.has(round, 0, bytes)) << "the Send was delivered before the data of the Write was in place";
    ASSERT_TRUE(until([&] { return server_.find(70u + round) != nullptr; }));
    EXPECT_EQ(server_.find(50u + round), nullptr) << "an unsignaled request completed";
    ASSERT_TRUE(fence(client_, *exposure, 500u + round));
  }
}

TEST_P(Transfer, WritesOfOddLengthsInManyPieces) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t space = 1 << 20;
  Memory source(*server_.pd, space), target(*client_.pd, space), inbox(*client_.pd, 64), note(*server_.pd, 64);
  source.fill(9);
  uint64_t id = 1;
  for (uint32_t length : {0u, 1u, 2u, 3u, 4u, 5u, 1447u, 4095u, 4096u, 4097u, 65519u, 65520u, 65521u, 65535u, 65536u,
                          65537u, 131073u, 262147u}) {
    std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0xee});
    auto exposure = expose(client_, target, 64, std::max(length, 1u), Purpose::write_target);
    ASSERT_TRUE(exposure.ok());
    uint32_t a = length / 3, b = length / 2 - a, c = length - a - b;
    ASSERT_TRUE(tagged(server_, Opcode::write, id,
                       {{source.get(), 11, a}, {source.get(), 300'001, b}, {source.get(), 600'002, c}},
                       {exposure->key, exposure->base})
                    .ok());
    ASSERT_TRUE(receive(client_, id + 1, inbox, 0, 64).ok());
    ASSERT_TRUE(send(server_, id + 2, note, 0, 1).ok());
    ASSERT_TRUE(until([&] { return client_.find(id + 1) && server_.find(id + 2); }));
    ASSERT_EQ(server_.find(id)->status, CompletionStatus::success);
    EXPECT_TRUE(target.has(9, 64, a, 11)) << length;
    EXPECT_TRUE(target.has(9, 64 + a, b, 300'001)) << length;
    EXPECT_TRUE(target.has(9, 64 + a + b, c, 600'002)) << length;
    EXPECT_TRUE(target.all(std::byte{0xee}, 0, 64));
    EXPECT_TRUE(target.all(std::byte{0xee}, 64 + length, 4096));
    ASSERT_TRUE(fence(client_, *exposure, id + 3));
    id += 4;
  }
}

TEST_P(Transfer, ReadsOfOddLengths) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t space = 512 << 10;
  Memory source(*client_.pd, space), sink(*server_.pd, space);
  source.fill(5);
  uint64_t id = 1;
  for (uint32_t length : {1u, 2u, 3u, 4u, 4095u, 4097u, 65519u, 65521u, 65536u, 131074u, 262147u}) {
    std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0xee});
    auto exposure = expose(client_, source, 1000, length, Purpose::read_source);
    ASSERT_TRUE(exposure.ok());
    ASSERT_TRUE(tagged(server_, Opcode::read, id, {{sink.get(), 128, length}}, {exposure->key, exposure->base}).ok());
    ASSERT_TRUE(until([&] { return server_.find(id) != nullptr; }));
    EXPECT_EQ(server_.find(id)->status, CompletionStatus::success);
    EXPECT_EQ(server_.find(id)->op, Opcode::read);
    EXPECT_TRUE(sink.has(5, 128, length, 1000)) << length;
    EXPECT_TRUE(sink.all(std::byte{0xee}, 0, 128));
    EXPECT_TRUE(sink.all(std::byte{0xee}, 128 + length, 4096));
    ASSERT_TRUE(fence(client_, *exposure, id + 1));
    id += 2;
  }
}

TEST_P(Transfer, PartOfAnExposureCanBeReached) {
  connect_pair();
  open_both_ways();
  Memory source(*server_.pd, 8192), target(*client_.pd, 8192), sink(*server_.pd, 8192);
  source.fill(1);
  auto writable = expose(client_, target, 0, 8192, Purpose::write_target);
  ASSERT_TRUE(writable.ok());
  for (uint32_t i = 0; i < 8; i++)
    ASSERT_TRUE(tagged(server_, Opcode::write, i, {{source.get(), i * 1024, 1024}},
                       {writable->key, writable->base + (7 - i) * 1024})
                    .ok());
  ASSERT_TRUE(until([&] { return server_.find(7) != nullptr; }));
  Memory inbox(*client_.pd, 64);
  ASSERT_TRUE(receive(client_, 20, inbox, 0, 64).ok());
  ASSERT_TRUE(tagged(server_, Opcode::send, 21, {}, {}).ok());
  ASSERT_TRUE(until([&] { return client_.find(20) != nullptr; }));
  for (uint32_t i = 0; i < 8; i++) EXPECT_TRUE(target.has(1, (7 - i) * 1024, 1024, i * 1024));
  auto readable = expose(client_, target, 0, 8192, Purpose::read_source);
  ASSERT_TRUE(readable.ok());
  ASSERT_TRUE(tagged(server_, Opcode::read, 30, {{sink.get(), 0, 1024}}, {readable->key, readable->base + 1024}).ok());
  ASSERT_TRUE(until([&] { return server_.find(30) != nullptr; }));
  EXPECT_TRUE(sink.has(1, 0, 1024, 6 * 1024));
}

TEST_P(Transfer, EightMebibytesEachWay) {
  connect_pair();
  open_both_ways();
  const uint32_t bytes = std::min<uint32_t>((8 << 20) + 3, client_.pd->caps().segment_bytes_max);
  Memory here(*client_.pd, bytes), there(*server_.pd, bytes), back(*client_.pd, bytes);
  here.fill(77);
  auto readable = expose(client_, here, 0, bytes, Purpose::read_source);
  auto writable = expose(client_, back, 0, bytes, Purpose::write_target);
  ASSERT_TRUE(readable.ok() && writable.ok());
  ASSERT_TRUE(tagged(server_, Opcode::read, 1, {{there.get(), 0, bytes}}, {readable->key, readable->base}).ok());
  ASSERT_TRUE(until([&] { return server_.find(1) != nullptr; }));
  ASSERT_EQ(server_.find(1)->status, CompletionStatus::success);
  EXPECT_TRUE(there.has(77, 0, bytes));
  const uint32_t half = bytes / 2;
  ASSERT_TRUE(tagged(server_, Opcode::write, 2, {{there.get(), 0, half}, {there.get(), half, bytes - half}},
                     {writable->key, writable->base})
                  .ok());
  Memory inbox(*client_.pd, 64);
  ASSERT_TRUE(receive(client_, 3, inbox, 0, 64).ok());
  ASSERT_TRUE(tagged(server_, Opcode::send, 4, {}, {}).ok());
  ASSERT_TRUE(until([&] { return client_.find(3) != nullptr; }));
  EXPECT_TRUE(back.has(77, 0, bytes));
}

TEST_P(Transfer, ReadsAboveTheAgreedDepthWait) {
  QueuePairParams client = default_params(), server = default_params();
  client.ird = 2;
  server.ord = 8;
  connect_pair(client, server);
  EXPECT_EQ(server_.handler.ord, 2u);
  open_both_ways();
  constexpr uint32_t piece = 40'000, n = 40;
  Memory source(*client_.pd, piece * n), sink(*server_.pd, piece * n);
  source.fill(6);
  auto exposure = expose(client_, source, 0, piece * n, Purpose::read_source);
  ASSERT_TRUE(exposure.ok());
  for (uint32_t i = 0; i < n; i++)
    ASSERT_TRUE(tagged(server_, Opcode::read, i, {{sink.get(), i * piece, piece}},
                       {exposure->key, exposure->base + i * piece})
                    .ok());
  server_.seen.clear();
  ASSERT_TRUE(until([&] { return server_.seen.size() >= n; }));
  for (uint32_t i = 0; i < n; i++) {
    EXPECT_EQ(server_.seen[i].id, i);
    EXPECT_EQ(server_.seen[i].status, CompletionStatus::success);
  }
  EXPECT_TRUE(sink.has(6, 0, piece * n));
}

TEST_P(Transfer, BothDirectionsAtOnce) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t bytes = 700'001;
  Memory c_out(*client_.pd, bytes), c_in(*client_.pd, bytes), s_out(*server_.pd, bytes), s_in(*server_.pd, bytes);
  c_out.fill(1);
  s_out.fill(2);
  auto c_target = expose(client_, c_in, 0, bytes, Purpose::write_target);
  auto s_target = expose(server_, s_in, 0, bytes, Purpose::write_target);
  ASSERT_TRUE(c_target.ok() && s_target.ok());
  Memory c_box(*client_.pd, 64), s_box(*server_.pd, 64);
  ASSERT_TRUE(receive(client_, 1, c_box, 0, 64).ok());
  ASSERT_TRUE(receive(server_, 1, s_box, 0, 64).ok());
  ASSERT_TRUE(tagged(client_, Opcode::write, 2, {{c_out.get(), 0, bytes}}, {s_target->key, s_target->base}).ok());
  ASSERT_TRUE(tagged(server_, Opcode::write, 2, {{s_out.get(), 0, bytes}}, {c_target->key, c_target->base}).ok());
  ASSERT_TRUE(tagged(client_, Opcode::send, 3, {}, {}).ok());
  ASSERT_TRUE(tagged(server_, Opcode::send, 3, {}, {}).ok());
  ASSERT_TRUE(until([&] { return client_.find(1) && server_.find(1); }));
  EXPECT_TRUE(c_in.has(2, 0, bytes));
  EXPECT_TRUE(s_in.has(1, 0, bytes));
}

TEST_P(Transfer, MemoryCopies) {
  Memory m(*client_.pd, 4096);
  std::byte data[10], back[10];
  for (size_t i = 0; i < 10; i++) data[i] = pattern(1, i);
  EXPECT_TRUE((*m).copy_in(4086, data).ok());
  EXPECT_TRUE((*m).copy_out(4086, back).ok());
  EXPECT_TRUE(std::equal(data, data + 10, back));
  EXPECT_EQ((*m).copy_in(4087, data).error().errno_value(), EFAULT);
  EXPECT_EQ((*m).copy_out(~uint64_t{0} - 3, back).error().errno_value(), EFAULT);
  EXPECT_TRUE((*m).make_visible(0, 4096).ok());
}

INSTANTIATE_TEST_SUITE_P(Contract, Transfer, testing::ValuesIn(contract_providers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nfsrdma::rdma::contract
