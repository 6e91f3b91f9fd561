// SPDX-License-Identifier: Apache-2.0
// What becomes of calls when the session, or the whole client id, is gone; and how slots follow the server.
#include "world.hpp"

namespace nfsrdma::session::test {
namespace {

using nfs4::Op;
using nfs4::Status;
using Calls = std::vector<std::unique_ptr<TestCall>>;

bool all_done(const Calls& calls) {
  return std::ranges::all_of(calls, [](auto& c) { return c->done; });
}

TEST(SessionRecovery, RefusedRequestsGoAgainInTheNewSession) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.forget_session();
  auto read = TestCall::read(), remove = TestCall::remove("x");
  read->start(w);
  remove->start(w);
  ASSERT_TRUE(w.until([&] { return read->done && remove->done; }));
  EXPECT_TRUE(read->ok()) << read->text();
  EXPECT_TRUE(remove->ok()) << remove->text();
  EXPECT_EQ(w.far.removed["x"], 1u);
  EXPECT_EQ(w.far.sessions_made, 2u);
  EXPECT_EQ(w.server->state_epoch(), 1u) << "opens and locks live on";
  EXPECT_EQ(w.far.reclaims_completed, 1u);
}

TEST(SessionRecovery, EveryLossOfTheSessionByName) {
  for (Status status : {Status::badsession, Status::deadsession, Status::bad_high_slot, Status::seq_misordered,
                        Status::stale_clientid}) {
    World w;
    ASSERT_TRUE(w.start());
    w.far.rule({Op::remove, Act::fail_sequence, status});
    auto call = TestCall::remove("x");
    ASSERT_TRUE(call->run(w));
    EXPECT_TRUE(call->ok()) << call->text();
    w.pass(base::seconds(5));
    EXPECT_EQ(w.far.sessions_made, 2u);
    EXPECT_EQ(w.far.sessions(), 1u) << "the old one is destroyed";
  }
}

TEST(SessionRecovery, CallsWhoseFateIsUnknownAreNotRepeated) {
  for (Act act : {Act::lose_before, Act::lose_after}) {
    World w;
    ASSERT_TRUE(w.start());
    w.far.rule({Op::remove, act});
    auto remove = TestCall::remove("x");
    remove->start(w);
    w.settle();
    w.far.forget_session();
    ASSERT_TRUE(w.until([&] { return remove->done; }));
    ASSERT_FALSE(remove->result);
    EXPECT_EQ(remove->result.error().errno_value(), EIO);
    EXPECT_NE(remove->text().find("unknown whether"), std::string::npos) << remove->text();
    EXPECT_EQ(w.far.removed["x"], act == Act::lose_after ? 1u : 0u);
  }
}

TEST(SessionRecovery, CallsThatMayBeRepeatedAre) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::lose_after});
  auto read = TestCall::read();
  read->start(w);
  w.settle();
  w.far.forget_session();
  ASSERT_TRUE(w.until([&] { return read->done; }));
  EXPECT_TRUE(read->ok()) << read->text();
}

TEST(SessionRecovery, RestartedServerGetsANewClientWithTheSameVerifier) {
  World w;
  ASSERT_TRUE(w.start());
  uint64_t before = w.server->client_id();
  w.far.restart();
  auto read = TestCall::read();
  ASSERT_TRUE(read->run(w));
  EXPECT_TRUE(read->ok()) << read->text();
  EXPECT_NE(w.server->client_id(), before);
  EXPECT_EQ(w.server->state_epoch(), 2u);
  EXPECT_EQ(read->compound.state_epoch, 2u);
  EXPECT_EQ(w.far.reclaims_completed, 2u);
  ASSERT_EQ(w.far.verifiers.size(), 2u);
  EXPECT_EQ(w.far.verifiers[0], w.far.verifiers[1]);
}

TEST(SessionRecovery, SecondRestartDuringRecoveryStartsOver) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.restart();
  w.far.rule({Op::reclaim_complete, Act::fail_sequence, Status::badsession, 2});
  auto read = TestCall::read();
  ASSERT_TRUE(read->run(w)) << "recovery waits for itself";
  EXPECT_TRUE(read->ok()) << read->text();
  EXPECT_EQ(w.far.reclaims_completed, 2u) << "without it every later OPEN would be answered GRACE";
}

TEST(SessionRecovery, LostConnectionsDuringRecoveryOnlyDelayIt) {
  for (Op op : {Op::exchange_id, Op::create_session, Op::reclaim_complete, Op::bind_conn_to_session})
    for (Act act : {Act::lose_before, Act::lose_after}) {
      World w;
      ASSERT_TRUE(w.start());
      w.far.restart();
      w.far.rule({op, act, Status::ok, 2});
      auto read = TestCall::read();
      ASSERT_TRUE(read->run(w)) << nfs4::to_string(op);
      EXPECT_TRUE(read->ok()) << read->text();
      EXPECT_GE(w.far.reclaims_completed, 2u);
    }
}

TEST(SessionRecovery, ErrorsDuringRecoveryAreTriedAgain) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.forget_session();
  w.far.rule({Op::exchange_id, Act::fail_first, Status::delay, 2});
  w.far.rule({Op::exchange_id, Act::fail_first, Status::serverfault, 1});
  w.far.rule({Op::create_session, Act::fail_first, Status::stale_clientid, 1});
  auto read = TestCall::read();
  ASSERT_TRUE(read->run(w));
  EXPECT_TRUE(read->ok()) << read->text();
}

// A reply that carries the numbers of another request: nothing that this server says about its session holds.
TEST(SessionRecovery, WrongEchoResetsTheSession) {
  using Twist = std::function<void(nfs4::SequenceResult&)>;
  for (const Twist& twist : {Twist([](auto& r) { r.sequenceid++; }), Twist([](auto& r) { r.slotid++; }),
                             Twist([](auto& r) { r.session_id[0] ^= std::byte{1}; })}) {
    World w;
    ASSERT_TRUE(w.start());
    w.far.rule({Op::remove, Act::serve, Status::ok, 1, twist});
    w.far.rule({Op::putrootfh, Act::serve, Status::ok, 1, twist});
    auto remove = TestCall::remove("x"), read = TestCall::read();
    ASSERT_TRUE(remove->run(w));
    EXPECT_FALSE(remove->result);
    EXPECT_EQ(w.far.removed["x"], 1u);
    ASSERT_TRUE(read->run(w));
    EXPECT_TRUE(read->ok()) << read->text();
    EXPECT_EQ(w.far.sessions_made, 3u);
  }
}

TEST(SessionRecovery, ReplyOfTheOldSessionStillCounts) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::hold});
  w.far.rule({Op::remove, Act::fail_sequence, Status::deadsession});
  auto slow = TestCall::remove("slow"), refused = TestCall::remove("refused");
  slow->start(w);
  refused->start(w);
  w.far.rule({Op::destroy_session, Act::fail_first, Status::delay, 1});
  ASSERT_TRUE(w.until([&] { return refused->done; }));
  ASSERT_EQ(w.far.sessions_made, 2u);
  w.far.release();
  ASSERT_TRUE(w.until([&] { return slow->done; }));
  EXPECT_TRUE(slow->ok()) << slow->text();
  EXPECT_EQ(w.far.removed["slow"], 1u);
}

TEST(SessionSlots, NeverMoreThanGranted) {
  World w;
  w.far.slots = 5;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::hold, Status::ok, 1000});
  Calls calls;
  for (int i = 0; i < 30; i++) {
    calls.push_back(TestCall::read());
    calls.back()->start(w);
  }
  for (w.settle(); !all_done(calls); w.settle()) {
    ASSERT_EQ(w.far.held(), 5u);
    w.far.release();
  }
  EXPECT_EQ(w.far.highest_slot_used, 4u);
  EXPECT_EQ(w.far.misordered + w.far.false_retries, 0u);
}

TEST(SessionSlots, FollowTheServersTargetDownAndUp) {
  World w;
  w.far.slots = 8;
  ASSERT_TRUE(w.start());
  auto wave = [&](size_t n) {
    w.far.rule({Op::putrootfh, Act::hold, Status::ok, static_cast<uint32_t>(n)});
    Calls calls;
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
      calls.push_back(TestCall::read());
      calls.back()->start(w);
    }
    while (!all_done(calls)) {
      w.settle();
      if (w.far.held() == 0) break;
      most = std::max(most, w.far.held());
      w.far.release();
    }
    EXPECT_TRUE(all_done(calls));
    for (auto& c : calls) EXPECT_TRUE(c->ok()) << c->text();
    return most;
  };
  EXPECT_EQ(wave(20), 8u);
  w.far.cache().set_target(2);
  wave(1);
  EXPECT_EQ(wave(20), 2u);
  w.far.cache().set_target(20);
  wave(1);
  EXPECT_EQ(wave(40), 20u);
  EXPECT_EQ(w.far.sessions_made, 1u);
  EXPECT_EQ(w.far.misordered + w.far.false_retries, 0u);
}

TEST(SessionSlots, RetiredSlotIsLeftAndTheRequestTakesALowerOne) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.cache().set_target(1);
  w.far.rule({Op::remove, Act::hold});
  w.far.rule({Op::remove, Act::fail_sequence, Status::badslot});
  auto low = TestCall::remove("low"), high = TestCall::remove("high");
  low->start(w);
  high->start(w);
  w.settle();
  EXPECT_FALSE(high->done) << "only slot 0 is left, and it is taken";
  w.far.release();
  ASSERT_TRUE(w.until([&] { return low->done && high->done; }));
  EXPECT_TRUE(low->ok() && high->ok()) << low->text() << high->text();
  auto sent = w.far.calls_with(Op::remove);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[1]->sequence->slotid, 1u);
  EXPECT_EQ(sent[2]->sequence->slotid, 0u);
  EXPECT_EQ(w.far.sessions_made, 1u);
}

// After the loss of a transmission a retired slot says nothing about what happened to it.
TEST(SessionSlots, RetiredSlotAfterALossLeavesTheFateUnknown) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::hold});
  w.far.rule({Op::remove, Act::lose_after});
  w.far.rule({Op::remove, Act::hold});
  w.far.rule({Op::remove, Act::fail_sequence, Status::badslot});
  auto low = TestCall::remove("low"), high = TestCall::remove("high");
  low->start(w);
  high->start(w);
  ASSERT_TRUE(w.until([&] { return high->done; }));
  EXPECT_FALSE(high->result);
  EXPECT_EQ(w.far.removed["high"], 1u);
  w.far.release();
  ASSERT_TRUE(w.until([&] { return low->done; }));
  EXPECT_EQ(w.far.removed["low"], 1u);
}

TEST(SessionSlots, SlotZeroCannotBeRetired) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::fail_sequence, Status::badslot});
  auto call = TestCall::remove("x");
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->ok()) << call->text();
  EXPECT_EQ(w.far.sessions_made, 2u);
}

TEST(SessionSlots, UrgentCallsGoFirst) {
  World w;
  w.far.slots = 1;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::hold});
  Calls calls;
  for (int i = 0; i < 4; i++) {
    calls.push_back(TestCall::read());
    calls.back()->compound.urgent = i == 3;
    calls.back()->start(w);
  }
  w.settle();
  w.far.release();
  ASSERT_TRUE(w.until([&] { return all_done(calls); }));
  auto sent = w.far.calls_with(Op::putrootfh);
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_FALSE(sent[0]->urgent);
  EXPECT_TRUE(sent[1]->urgent);
}

}  // namespace
}  // namespace nfsrdma::session::test
