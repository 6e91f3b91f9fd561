// SPDX-License-Identifier: Apache-2.0
// Contract: what is not allowed does not happen, and ends the pair on both sides with every request accounted for.
#include <errno.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {
namespace {

class Errors : public ContractTest {
 protected:
  // Each id of [first, last] completed exactly once at that end.
  void expect_each_once(End& end, uint64_t first, uint64_t last) {
    for (uint64_t id = first; id <= last; id++) EXPECT_EQ(end.count(id), 1u) << "request " << id;
  }
  Memory& zeroes(End& end, size_t bytes) {
    owned_.push_back(std::make_unique<Memory>(*end.pd, bytes));
    return *owned_.back();
  }
  void TearDown() override {
    client_.qp.reset();
    server_.qp.reset();
    owned_.clear();
    ContractTest::TearDown();
  }

 private:
  std::vector<std::unique_ptr<Memory>> owned_;
};

TEST_P(Errors, SendWithoutReceiveEndsThePair) {
  connect_pair();
  open_both_ways();
  Memory& m = zeroes(client_, 64);
  ASSERT_TRUE(send(client_, 1, m, 0, 64).ok());
  ASSERT_TRUE(both_down());
  EXPECT_EQ(client_.handler.disconnected_calls, 1);
  EXPECT_EQ(server_.handler.disconnected_calls, 1);
  for (const Completion& c : server_.seen) EXPECT_EQ(c.id, 9001u);
}

TEST_P(Errors, SendLongerThanTheReceiveIsNotDelivered) {
  connect_pair();
  open_both_ways();
  Memory& from = zeroes(client_, 8192);
  Memory& to = zeroes(server_, 8192);
  from.fill(1);
  ASSERT_TRUE(receive(server_, 1, to, 0, 100).ok());
  ASSERT_TRUE(receive(server_, 2, to, 4096, 100).ok());
  ASSERT_TRUE(send(client_, 3, from, 0, 101).ok());
  ASSERT_TRUE(both_down());
  ASSERT_TRUE(until([&] { return server_.find(1) && server_.find(2); }));
  EXPECT_EQ(server_.find(1)->status, CompletionStatus::length_error);
  EXPECT_EQ(server_.find(2)->status, CompletionStatus::flushed);
  EXPECT_TRUE(to.all(std::byte{0}, 100, 8192 - 100));
}

TEST_P(Errors, ErrorFlushesEveryRequestOnce) {
  connect_pair();
  open_both_ways();
  Memory& s = zeroes(server_, 1 << 20);
  Memory& c = zeroes(client_, 1 << 20);
  for (uint64_t id = 1; id <= 20; id++) ASSERT_TRUE(receive(server_, id, s, id * 64, 64).ok());
  for (uint64_t id = 1; id <= 20; id++) ASSERT_TRUE(receive(client_, id, c, id * 64, 64).ok());
  std::vector<SendRequest> requests(10);
  Sge piece{s.get(), 0, 1000};
  for (size_t i = 0; i < requests.size(); i++) {
    requests[i].id = 100 + i;
    requests[i].op = Opcode::write;
    requests[i].sge = {&piece, 1};
    requests[i].remote = {0x12345678, 0};  // no key of the client's
    requests[i].signaled = false;
  }
  ASSERT_TRUE(server_.qp->post_send(requests).ok());
  server_.qp->flush();
  ASSERT_TRUE(both_down());
  settle();
  expect_each_once(server_, 1, 20);
  expect_each_once(client_, 1, 20);
  for (uint64_t id = 1; id <= 20; id++) {
    EXPECT_EQ(server_.find(id)->status, CompletionStatus::flushed);
    EXPECT_EQ(client_.find(id)->status, CompletionStatus::flushed);
  }
  for (uint64_t id = 100; id < 110; id++) EXPECT_LE(server_.count(id), 1u);
  EXPECT_TRUE(c.all(std::byte{0}, 0, 1 << 20));
  EXPECT_EQ(server_.qp->post_send(requests).error().errno_value(), ENOTCONN);
  ReceiveRequest late;
  late.sge = {s.get(), 0, 64};
  EXPECT_EQ(server_.qp->post_receive({&late, 1}).error().errno_value(), ENOTCONN);
}

// Exposes memory of the client, does one thing that is not allowed, and sees the pair end with the memory untouched.
struct Violation {
  const char* name;
  Opcode op;
  Purpose purpose;
  uint32_t exposed;
  uint32_t length;
  int64_t base_shift;
  enum class Kind { bounds, outer_bounds, access } kind;  // outer: also outside of the registered memory
};

TEST_P(Errors, AccessOutsideOfAnExposure) {
  using enum Violation::Kind;
  const Violation violations[] = {
      {"write past the end", Opcode::write, Purpose::write_target, 4096, 4097, 0, bounds},
      {"write before the start", Opcode::write, Purpose::write_target, 4096, 16, -1, bounds},
      {"write past the region", Opcode::write, Purpose::write_target, 4096, 8193, 0, outer_bounds},
      {"write far behind", Opcode::write, Purpose::write_target, 4096, 16, 1 << 20, outer_bounds},
      {"write over the wrap", Opcode::write, Purpose::write_target, 4096, 64, INT64_MIN, outer_bounds},
      {"write to a read source", Opcode::write, Purpose::read_source, 4096, 16, 0, access},
      {"read of a write target", Opcode::read, Purpose::write_target, 4096, 16, 0, access},
      {"read past the end", Opcode::read, Purpose::read_source, 4096, 4097, 0, bounds},
      {"read before the start", Opcode::read, Purpose::read_source, 4096, 16, -16, bounds},
      {"read past the region", Opcode::read, Purpose::read_source, 4096, 8193, 0, outer_bounds},
  };
  for (const Violation& v : violations) {
    SCOPED_TRACE(v.name);
    if (v.kind == bounds && !GetParam().exact_bounds) continue;
    if (v.kind == access && !client_.pd->caps().keys_per_exposure) continue;
    client_.handler = Handler{};
    server_.handler = Handler{};
    client_.seen.clear();
    server_.seen.clear();
    client_.qp.reset();
    server_.qp.reset();
    connect_pair();
    open_both_ways();
    Memory& target = zeroes(client_, 3 * 4096);
    Memory& local = zeroes(server_, 3 * 4096);
    std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0x5a});
    auto exposure = expose(client_, target, 4096, v.exposed, v.purpose);
    ASSERT_TRUE(exposure.ok());
    uint64_t base = v.base_shift == INT64_MIN ? ~uint64_t{0} - 8 : exposure->base + static_cast<uint64_t>(v.base_shift);
    ASSERT_TRUE(tagged(server_, v.op, 1, {{local.get(), 0, v.length}}, {exposure->key, base}).ok());
    ASSERT_TRUE(both_down());
    if (v.op == Opcode::read) {
      ASSERT_TRUE(until([&] { return server_.find(1) != nullptr; }));
      if (GetParam().exact_bounds)
        EXPECT_EQ(server_.find(1)->status, CompletionStatus::remote_access);
      else
        EXPECT_NE(server_.find(1)->status, CompletionStatus::success);
      EXPECT_TRUE(local.all(std::byte{0}, 0, 3 * 4096));
    }
    EXPECT_TRUE(target.all(std::byte{0x5a}, 0, 3 * 4096));
  }
}

TEST_P(Errors, ADeadKeyIsRefusedAfterFence) {
  connect_pair();
  open_both_ways();
  if (!client_.pd->caps().keys_per_exposure) GTEST_SKIP() << "keys of this provider live as long as the region";
  Memory& target = zeroes(client_, 4096);
  Memory& local = zeroes(server_, 4096);
  local.fill(3);
  auto dead = expose(client_, target, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(dead.ok());
  ASSERT_TRUE(fence(client_, *dead, 50));
  auto alive = expose(client_, target, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(alive.ok());
  EXPECT_NE(alive->key, dead->key);
  ASSERT_TRUE(tagged(server_, Opcode::write, 1, {{local.get(), 0, 16}}, {dead->key, dead->base}).ok());
  ASSERT_TRUE(both_down());
  EXPECT_TRUE(target.all(std::byte{0}, 0, 4096));
}

TEST_P(Errors, KeysDoNotRepeatSoon) {
  connect_pair();
  Memory& target = zeroes(client_, 4096);
  if (!client_.pd->caps().keys_per_exposure) GTEST_SKIP() << "keys of this provider live as long as the region";
  std::vector<uint32_t> keys;
  for (int i = 0; i < 500; i++) {
    auto exposure = expose(client_, target, 0, 4096, Purpose::write_target);
    ASSERT_TRUE(exposure.ok());
    keys.push_back(exposure->key);
    ASSERT_TRUE(fence(client_, *exposure, 1000u + static_cast<uint64_t>(i)));
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST_P(Errors, RemoteInvalidateEndsTheExposure) {
  connect_pair();
  open_both_ways();
  if (!client_.pd->caps().remote_invalidate) GTEST_SKIP() << "this provider has no remote invalidation";
  Memory& target = zeroes(client_, 4096);
  Memory& inbox = zeroes(client_, 4096);
  Memory& local = zeroes(server_, 4096);
  local.fill(8);
  auto exposure = expose(client_, target, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  ASSERT_TRUE(receive(client_, 1, inbox, 0, 64).ok());
  ASSERT_TRUE(receive(client_, 2, inbox, 64, 64).ok());
  ASSERT_TRUE(tagged(server_, Opcode::write, 10, {{local.get(), 0, 4096}}, {exposure->key, exposure->base}).ok());
  SendRequest last;
  Sge piece{local.get(), 0, 20};
  last.id = 11;
  last.op = Opcode::send_invalidate;
  last.sge = {&piece, 1};
  last.invalidate_key = exposure->key;
  ASSERT_TRUE(server_.qp->post_send({&last, 1}).ok());
  server_.qp->flush();
  ASSERT_TRUE(until([&] { return client_.find(1) != nullptr; }));
  EXPECT_TRUE(client_.find(1)->invalidated);
  EXPECT_EQ(client_.find(1)->invalidated_key, exposure->key);
  EXPECT_EQ(client_.find(1)->length, 20u);
  EXPECT_TRUE(target.has(8, 0, 4096));
  EXPECT_TRUE(client_.qp->fence(*exposure, 77)) << "nothing is left to wait for";
  std::fill(target.bytes().begin(), target.bytes().end(), std::byte{1});
  ASSERT_TRUE(tagged(server_, Opcode::write, 12, {{local.get(), 0, 4096}}, {exposure->key, exposure->base}).ok());
  ASSERT_TRUE(both_down());
  EXPECT_TRUE(target.all(std::byte{1}, 0, 4096));
}

TEST_P(Errors, InvalidateOfAnUnknownKeyEndsThePair) {
  connect_pair();
  open_both_ways();
  if (!client_.pd->caps().remote_invalidate) GTEST_SKIP() << "this provider has no remote invalidation";
  Memory& inbox = zeroes(client_, 4096);
  ASSERT_TRUE(receive(client_, 1, inbox, 0, 64).ok());
  SendRequest bad;
  bad.id = 2;
  bad.op = Opcode::send_invalidate;
  bad.invalidate_key = 0x00abcd00;
  ASSERT_TRUE(server_.qp->post_send({&bad, 1}).ok());
  server_.qp->flush();
  ASSERT_TRUE(both_down());
  ASSERT_TRUE(until([&] { return client_.find(1) != nullptr; }));
  EXPECT_NE(client_.find(1)->status, CompletionStatus::success);
}

TEST_P(Errors, KeysOfAnotherConnectionAreWorthless) {
  connect_pair();
  open_both_ways();
  Memory& target = zeroes(client_, 4096);
  Memory& local = zeroes(server_, 4096);
  local.fill(1);
  // A second pair between the same two ends; its key is used on the first.
  End other_client, other_server;
  std::swap(other_server.qp, server_.qp);
  Handler second_handler;
  auto qp = client_.pd->create_queue_pair(*client_.cq, default_params(), second_handler);
  ASSERT_TRUE(qp.ok());
  server_.handler = Handler{};
  ConnectParams params;
  params.remote = listener_->local();
  ASSERT_TRUE((*qp)->connect(params).ok());
  ASSERT_TRUE(until([&] { return second_handler.established && server_.handler.established; }));
  std::swap(other_server.qp, server_.qp);  // server_.qp is the first again
  auto exposure = (*qp)->expose(*target, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  if (!client_.pd->caps().keys_per_exposure) GTEST_SKIP() << "keys of this provider belong to the domain";
  ASSERT_TRUE(tagged(server_, Opcode::write, 1, {{local.get(), 0, 64}}, {exposure->key, exposure->base}).ok());
  ASSERT_TRUE(until([&] { return client_.handler.disconnected.has_value(); }));
  settle();
  EXPECT_FALSE(second_handler.disconnected) << "the connection that owns the key is not to blame";
  EXPECT_TRUE(target.all(std::byte{0}, 0, 4096));
}

TEST_P(Errors, RequestsOutsideOfTheirMemoryAreNotTaken) {
  connect_pair();
  open_both_ways();
  Memory& m = zeroes(client_, 4096);
  EXPECT_EQ(send(client_, 1, m, 4000, 97).error().errno_value(), EINVAL);
  EXPECT_EQ(send(client_, 1, m, ~uint64_t{0} - 10, 50).error().errno_value(), EINVAL);
  EXPECT_EQ(receive(client_, 1, m, 4096, 1).error().errno_value(), EINVAL);
  EXPECT_EQ(client_.qp->expose(*m, 4000, 97, Purpose::write_target).error().errno_value(), EINVAL);
  EXPECT_EQ(client_.qp->expose(*m, 0, 0, Purpose::write_target).error().errno_value(), EINVAL);
  std::vector<Sge> many(client_.pd->caps().send_sge_max + 1, Sge{m.get(), 0, 1});
  EXPECT_EQ(tagged(client_, Opcode::send, 1, many, {}).error().errno_value(), EINVAL);
  settle();
  EXPECT_EQ(client_.count(1), 0u);
  EXPECT_FALSE(client_.handler.disconnected);
}

TEST_P(Errors, DepthsAreLimits) {
  QueuePairParams params = default_params();
  params.send_depth = 4;
  params.receive_depth = 3;
  connect_pair(params, default_params());
  Memory& m = zeroes(client_, 4096);
  std::vector<ReceiveRequest> receives(4);
  for (auto& r : receives) r.sge = {m.get(), 0, 16};
  EXPECT_EQ(client_.qp->post_receive(receives).error().errno_value(), ENOBUFS);
  EXPECT_TRUE(client_.qp->post_receive(std::span(receives).first(3)).ok());
  EXPECT_EQ(client_.qp->post_receive(std::span(receives).first(1)).error().errno_value(), ENOBUFS);
  Memory& s = zeroes(server_, 4096);
  for (uint64_t id = 1; id <= 8; id++) ASSERT_TRUE(receive(server_, id, s, 0, 16).ok());
  std::vector<SendRequest> sends(5);
  for (uint64_t i = 0; i < 5; i++) sends[i].id = 100 + i;
  EXPECT_EQ(client_.qp->post_send(sends).error().errno_value(), ENOBUFS);
  EXPECT_TRUE(client_.qp->post_send(std::span(sends).first(4)).ok());
  EXPECT_EQ(client_.qp->post_send(std::span(sends).last(1)).error().errno_value(), ENOBUFS);
  client_.qp->flush();
  ASSERT_TRUE(until([&] { return client_.find(103) && server_.find(4); }));
  EXPECT_TRUE(client_.qp->post_send(std::span(sends).last(1)).ok());
  client_.qp->flush();
  ASSERT_TRUE(until([&] { return client_.find(104) && server_.find(5); }));
}

TEST_P(Errors, DisconnectWithWorkInFlight) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t bytes = 4 << 20;
  Memory& source = zeroes(client_, bytes);
  Memory& sink = zeroes(server_, bytes);
  auto exposure = expose(client_, source, 0, bytes, Purpose::read_source);
  ASSERT_TRUE(exposure.ok());
  for (uint64_t id = 1; id <= 8; id++)
    ASSERT_TRUE(tagged(server_, Opcode::read, id, {{sink.get(), 0, bytes}}, {exposure->key, exposure->base}).ok());
  for (uint64_t id = 11; id <= 20; id++) ASSERT_TRUE(receive(server_, id, sink, 0, 64).ok());
  for (uint64_t id = 11; id <= 20; id++) ASSERT_TRUE(receive(client_, id, source, 0, 64).ok());
  drain(client_);
  drain(server_);
  client_.qp->disconnect();
  ASSERT_TRUE(both_down());
  settle();
  expect_each_once(server_, 1, 8);
  expect_each_once(server_, 11, 20);
  expect_each_once(client_, 11, 20);
  client_.qp->disconnect();
  server_.qp->disconnect();
  settle();
  EXPECT_EQ(client_.handler.disconnected_calls, 1);
  EXPECT_EQ(server_.handler.disconnected_calls, 1);
}

TEST_P(Errors, DestroyedPairSaysNothingMore) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t bytes = 2 << 20;
  Memory& sink = zeroes(client_, bytes);
  Memory& source = zeroes(server_, bytes);
  auto exposure = expose(client_, sink, 0, bytes, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  for (uint64_t id = 1; id <= 10; id++) ASSERT_TRUE(receive(client_, id, sink, 0, 64).ok());
  for (uint64_t id = 1; id <= 8; id++)
    ASSERT_TRUE(tagged(server_, Opcode::write, id, {{source.get(), 0, bytes}}, {exposure->key, exposure->base}).ok());
  drain(client_);
  client_.seen.clear();
  client_.qp.reset();
  std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{7});
  ASSERT_TRUE(until([&] { return server_.handler.disconnected.has_value(); }));
  settle();
  EXPECT_TRUE(client_.seen.empty());
  EXPECT_FALSE(client_.handler.disconnected);
  EXPECT_TRUE(sink.all(std::byte{7}, 0, bytes)) << "memory was touched after its pair was destroyed";
}

TEST_P(Errors, RevokedMemoryIsOutOfReach) {
  connect_pair();
  open_both_ways();
  if (!GetParam().faithful_memory) GTEST_SKIP() << "revocation tears the pair down on this provider";
  Memory& target = zeroes(client_, 4096);
  Memory& local = zeroes(server_, 4096);
  local.fill(1);
  auto exposure = expose(client_, target, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  (*target).revoke();
  std::byte one[1];
  EXPECT_EQ((*target).copy_out(0, one).error().errno_value(), EIO);
  EXPECT_EQ((*target).copy_in(0, one).error().errno_value(), EIO);
  EXPECT_EQ((*target).make_visible(0, 1).error().errno_value(), EIO);
  EXPECT_EQ(send(client_, 1, target, 0, 16).error().errno_value(), EIO);
  EXPECT_EQ(receive(client_, 1, target, 0, 16).error().errno_value(), EIO);
  EXPECT_EQ(client_.qp->expose(*target, 0, 16, Purpose::read_source).error().errno_value(), EIO);
  ASSERT_TRUE(tagged(server_, Opcode::write, 1, {{local.get(), 0, 4096}}, {exposure->key, exposure->base}).ok());
  ASSERT_TRUE(both_down());
  EXPECT_TRUE(target.all(std::byte{0}, 0, 4096));
}

TEST_P(Errors, RevokedReceiveMemoryIsNotWritten) {
  connect_pair();
  open_both_ways();
  if (!GetParam().faithful_memory) GTEST_SKIP() << "revocation tears the pair down on this provider";
  Memory& inbox = zeroes(client_, 4096);
  Memory& local = zeroes(server_, 4096);
  local.fill(1);
  ASSERT_TRUE(receive(client_, 1, inbox, 0, 4096).ok());
  (*inbox).revoke();
  ASSERT_TRUE(send(server_, 2, local, 0, 100).ok());
  ASSERT_TRUE(both_down());
  ASSERT_TRUE(until([&] { return client_.find(1) != nullptr; }));
  EXPECT_EQ(client_.find(1)->status, CompletionStatus::protection_error);
  EXPECT_TRUE(inbox.all(std::byte{0}, 0, 4096));
}

// Memory is revoked by another thread while the peer writes it. After revoke() returned no byte may change.
TEST_P(Errors, RevokeFromAnotherThreadStopsTheBytes) {
  connect_pair();
  open_both_ways();
  if (!GetParam().faithful_memory) GTEST_SKIP() << "revocation tears the pair down on this provider";
  constexpr uint32_t bytes = 1 << 20;
  Memory& target = zeroes(client_, bytes);
  Memory& source = zeroes(server_, bytes);
  auto exposure = expose(client_, target, 0, bytes, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  bool changed = false;
  std::atomic<bool> revoked{false}, flowing{false};
  std::thread owner([&] {
    while (!flowing) std::this_thread::yield();
    (*target).revoke();
    std::vector<std::byte> before(target.bytes().begin(), target.bytes().end());
    revoked = true;
    std::this_thread::yield();
    for (int i = 0; i < 50; i++) changed |= !std::equal(before.begin(), before.end(), target.bytes().begin());
  });
  for (uint8_t round = 1; round < 60 && !revoked && !client_.handler.disconnected; round++) {
    source.fill(round);
    flowing = round > 1;
    if (!tagged(server_, Opcode::write, round, {{source.get(), 0, bytes}}, {exposure->key, exposure->base})) break;
    until([&] { return server_.find(round) != nullptr || server_.handler.disconnected; });
  }
  flowing = true;
  until([&] { return revoked.load(); });
  source.fill(200);
  (void)tagged(server_, Opcode::write, 200, {{source.get(), 0, bytes}}, {exposure->key, exposure->base});
  settle();
  owner.join();
  EXPECT_FALSE(changed);
}

INSTANTIATE_TEST_SUITE_P(Contract, Errors, testing::ValuesIn(contract_providers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nfsrdma::rdma::contract
