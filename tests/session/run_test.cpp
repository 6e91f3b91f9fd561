// SPDX-License-Identifier: Apache-2.0
// Server::run(): what each kind of answer, or its absence, does to a request.
#include "world.hpp"

namespace nfsrdma::session::test {
namespace {

using nfs4::Op;
using nfs4::Status;

TEST(SessionStart, GoesStepByStepAndEndsClean) {
  World w;
  ASSERT_TRUE(w.start());
  EXPECT_EQ(w.far.count(Op::exchange_id), 1u);
  EXPECT_EQ(w.far.count(Op::create_session), 1u);
  EXPECT_EQ(w.far.reclaims_completed, 1u);
  ASSERT_EQ(w.steps.size(), 4u);
  EXPECT_TRUE(w.stop());
  EXPECT_EQ(w.far.sessions_destroyed, 1u);
  EXPECT_EQ(w.far.clients_destroyed, 1u);
  EXPECT_TRUE(w.net.live.empty());
  w.server.reset();
}

TEST(SessionRun, ServesCalls) {
  World w;
  ASSERT_TRUE(w.start());
  auto a = TestCall::read(), b = TestCall::remove("x");
  EXPECT_TRUE(a->run(w) && a->ok()) << a->text();
  EXPECT_TRUE(b->run(w) && b->ok()) << b->text();
  EXPECT_EQ(w.far.removed["x"], 1u);
}

TEST(SessionRun, LostConnectionReplaysOnTheSameSlotWithTheSameBody) {
  for (Act act : {Act::lose_before, Act::lose_after}) {
    World w;
    ASSERT_TRUE(w.start());
    w.far.rule({Op::remove, act});
    auto call = TestCall::remove("x");
    ASSERT_TRUE(call->run(w)) << "hangs";
    EXPECT_TRUE(call->ok()) << call->text();
    auto sent = w.far.calls_with(Op::remove);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_NE(sent[0]->connection, sent[1]->connection);
    EXPECT_EQ(sent[0]->args, sent[1]->args);
    EXPECT_EQ(w.far.removed["x"], 1u);
    EXPECT_EQ(w.server->replays(), 1u);
    EXPECT_EQ(w.server->reconnects(), 1u);
  }
}

// Several at once, over two connections that both go: each once, and no slot is used for two calls at a time.
TEST(SessionRun, ManyCallsSurviveTheLossOfEveryConnection) {
  ServerParams p;
  p.nconnect = 2;
  World w(p, 2);
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::lose_after, Status::ok, 1, {}, 3});
  w.far.rule({Op::remove, Act::lose_before, Status::ok, 1, {}, 9});
  w.far.rule({Op::remove, Act::lose_after, Status::ok, 1, {}, 20});
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 40; i++) {
    calls.push_back(TestCall::remove(std::to_string(i)));
    calls.back()->start(w, static_cast<uint32_t>(i) % 2);
  }
  ASSERT_TRUE(w.until([&] { return std::ranges::all_of(calls, [](auto& c) { return c->done; }); }));
  for (int i = 0; i < 40; i++) {
    EXPECT_TRUE(calls[static_cast<size_t>(i)]->ok()) << calls[static_cast<size_t>(i)]->text();
    EXPECT_EQ(w.far.removed[std::to_string(i)], 1u) << i;
    EXPECT_EQ(calls[static_cast<size_t>(i)]->ended_on, w.loops[static_cast<size_t>(i) % 2].get());
  }
  EXPECT_EQ(w.far.false_retries + w.far.misordered, 0u);
  EXPECT_LT(w.far.highest_slot_used, w.far.slots);
}

TEST(SessionRun, CallsThatWereNeverSentGoOnTheNextConnection) {
  World w;
  ASSERT_TRUE(w.start());
  w.net.live[0]->stalled = true;
  auto call = TestCall::remove("x");
  call->start(w);
  w.settle();
  EXPECT_FALSE(call->done);
  w.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  ASSERT_TRUE(w.until([&] { return call->done; }));
  EXPECT_TRUE(call->ok()) << call->text();
  EXPECT_EQ(w.server->replays(), 0u);
  EXPECT_EQ(w.far.count(Op::remove), 1u);
}

TEST(SessionRun, SequenceDelayRepeatsSlotAndSequenceIdAfterAWhile) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::fail_sequence, Status::delay, 2});
  auto call = TestCall::remove("x");
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->ok()) << call->text();
  auto sent = w.far.calls_with(Op::remove);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0]->args, sent[2]->args);
  EXPECT_GE(sent[1]->at_ns - sent[0]->at_ns, base::ms(100));
  EXPECT_EQ(sent[0]->connection, sent[2]->connection);
}

TEST(SessionRun, OperationDelayIsANewRequestWithBackOff) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::fail_last, Status::delay, 3});
  auto call = TestCall::remove("x");
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->ok()) << call->text();
  auto sent = w.far.calls_with(Op::remove);
  ASSERT_EQ(sent.size(), 4u);
  for (uint32_t i = 1; i < 4; i++) EXPECT_EQ(sent[i]->sequence->sequenceid, sent[0]->sequence->sequenceid + i);
  EXPECT_EQ(sent[1]->at_ns - sent[0]->at_ns, base::ms(100));
  EXPECT_EQ(sent[2]->at_ns - sent[1]->at_ns, base::ms(200));
  EXPECT_EQ(sent[3]->at_ns - sent[2]->at_ns, base::ms(400));
}

// Whoever gave a time limit gets an answer when it has passed, whatever the server is busy with.
TEST(SessionRun, DelayEndsAtTheCallersLimit) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::fail_last, Status::delay, 1000});
  auto call = TestCall::read();
  call->compound.give_up_at_ns = w.clock.now_ns() + base::seconds(20);
  ASSERT_TRUE(call->run(w));
  ASSERT_FALSE(call->result);
  EXPECT_EQ(call->result.error().errno_value(), ETIMEDOUT);
}

TEST(SessionRun, ErrorsOfLaterOperationsGoToTheCaller) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::fail_last, Status::noent});
  auto call = TestCall::remove("x");
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->result);
  EXPECT_EQ(call->status, Status::noent);
  EXPECT_EQ(w.server->counters(Op::remove).errors.load(), 1u);
}

TEST(SessionRun, RefusalAtRpcLevelKeepsTheSequenceId) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::refuse});
  auto refused = TestCall::remove("x"), after = TestCall::remove("y");
  ASSERT_TRUE(refused->run(w));
  EXPECT_FALSE(refused->result);
  ASSERT_TRUE(after->run(w));
  EXPECT_TRUE(after->ok()) << after->text();
  auto sent = w.far.calls_with(Op::remove);
  EXPECT_EQ(sent[0]->sequence, sent[1]->sequence);
  EXPECT_EQ(w.far.misordered, 0u);
}

// The call fails with a clear error; its slot is settled whether the server had executed it or not.
TEST(SessionRun, ChunkErrorFailsTheCallAndSettlesTheSlot) {
  for (Act act : {Act::chunk_error, Act::chunk_error_after}) {
    World w;
    ASSERT_TRUE(w.start());
    w.far.rule({Op::remove, act});
    auto call = TestCall::remove("x"), after = TestCall::remove("y");
    ASSERT_TRUE(call->run(w));
    ASSERT_FALSE(call->result);
    EXPECT_EQ(call->result.error().errno_value(), EMSGSIZE);
    w.settle();
    ASSERT_TRUE(after->run(w));
    EXPECT_TRUE(after->ok()) << after->text();
    EXPECT_EQ(w.far.sessions_made, 1u);
    EXPECT_EQ(w.far.misordered, 0u);
    EXPECT_EQ(w.net.connections, 1u);
  }
}

TEST(SessionRun, BadReplyFailsTheCallAndReplacesTheConnection) {
  for (Act act : {Act::bad_reply, Act::garbage}) {
    World w;
    ASSERT_TRUE(w.start());
    w.far.rule({Op::remove, act});
    auto call = TestCall::remove("x"), after = TestCall::remove("y");
    ASSERT_TRUE(call->run(w));
    ASSERT_FALSE(call->result);
    EXPECT_EQ(call->result.error().origin(), ErrorOrigin::protocol) << call->text();
    w.pass(base::seconds(1));
    EXPECT_EQ(w.net.connections, 2u);
    ASSERT_TRUE(after->run(w));
    EXPECT_TRUE(after->ok()) << after->text();
    EXPECT_EQ(w.far.removed["x"], 1u);
    EXPECT_EQ(w.far.misordered, 0u);
    EXPECT_EQ(w.far.sessions_made, 1u);
  }
}

// Two calls find the same connection bad: the second must not end its successor.
TEST(SessionRun, AConnectionIsReplacedOnce) {
  World w;
  ASSERT_TRUE(w.start());
  auto a = TestCall::read(), b = TestCall::read();
  ASSERT_TRUE(a->run(w));
  ASSERT_TRUE(b->run(w));
  w.server->replace_connection_of(a->compound, Error(EIO, ErrorOrigin::protocol, "first"));
  w.pass(base::seconds(1));
  ASSERT_EQ(w.net.connections, 2u);
  w.server->replace_connection_of(b->compound, Error(EIO, ErrorOrigin::protocol, "second"));
  w.pass(base::seconds(1));
  EXPECT_EQ(w.net.connections, 2u);
}

TEST(SessionRun, ConnectionThatIsNotBoundIsReplacedAndTheRequestStaysTheSame) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::lose_after});
  w.far.rule({Op::remove, Act::fail_sequence, Status::conn_not_bound_to_session});
  auto call = TestCall::remove("x");
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->ok()) << call->text();
  EXPECT_EQ(w.far.removed["x"], 1u);
  auto sent = w.far.calls_with(Op::remove);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0]->args, sent[2]->args);
  EXPECT_EQ(w.net.connections, 3u);
}

TEST(SessionRun, ReplyThatWasNotKeptIsAskedAgainOnlyWhenThatIsHarmless) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::lose_after, Status::ok, 2});
  auto read = TestCall::read();
  ASSERT_TRUE(read->run(w));
  EXPECT_TRUE(read->ok()) << read->text();  // RETRY_UNCACHED_REP in between

  World v;
  ASSERT_TRUE(v.start());
  v.far.rule({Op::remove, Act::fail_last, Status::retry_uncached_rep});
  auto remove = TestCall::remove("x");
  ASSERT_TRUE(remove->run(v));
  ASSERT_FALSE(remove->result);
  EXPECT_NE(remove->text().find("unknown whether"), std::string::npos) << remove->text();
}

TEST(SessionRun, FalseRetryMovesOn) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::fail_sequence, Status::seq_false_retry, 2});
  auto remove = TestCall::remove("x");
  ASSERT_TRUE(remove->run(w));
  EXPECT_FALSE(remove->result);
  EXPECT_EQ(w.far.calls_with(Op::putrootfh).size(), 1u);
}

TEST(SessionRun, SoftMountGivesUpWhenNobodyAnswers) {
  ServerParams p;
  p.soft = true;
  p.soft_errno = ETIMEDOUT;
  p.retrans = 2;
  p.channel.answer_timeout_ns = base::seconds(10);
  World w(p);
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::silence_after, Status::ok, 100});
  auto call = TestCall::remove("x");
  base::TimeNs begin = w.clock.now_ns();
  ASSERT_TRUE(call->run(w));
  ASSERT_FALSE(call->result);
  EXPECT_EQ(call->result.error().errno_value(), ETIMEDOUT);
  EXPECT_GE(w.clock.now_ns() - begin, base::seconds(30));
  EXPECT_LE(w.clock.now_ns() - begin, base::seconds(41));
  EXPECT_EQ(w.server->counters(Op::remove).timeouts.load(), 3u);
}

TEST(SessionRun, SoftMountGivesUpWhenTheServerIsGone) {
  ServerParams p;
  p.soft = true;
  p.channel.answer_timeout_ns = base::seconds(10);
  World w(p);
  ASSERT_TRUE(w.start());
  w.net.refuse = Error(ECONNREFUSED, ErrorOrigin::connection, "refused");
  w.far.rule({Op::remove, Act::lose_before});
  auto call = TestCall::remove("x"), later = TestCall::read();
  ASSERT_TRUE(call->run(w));
  EXPECT_EQ(call->result.ok() ? 0 : call->result.error().errno_value(), EIO);
  ASSERT_TRUE(later->run(w));
  EXPECT_EQ(later->result.ok() ? 0 : later->result.error().errno_value(), EIO);
  // It comes back: slots that were given up serve again, with no new session.
  w.net.refuse.reset();
  for (int i = 0; i < 20; i++) {
    auto again = TestCall::remove("again" + std::to_string(i));
    ASSERT_TRUE(again->run(w));
    EXPECT_TRUE(again->ok()) << again->text();
  }
  EXPECT_EQ(w.far.sessions_made, 1u);
}

// As many calls are given up as there are slots: none of them is lost for good.
TEST(SessionRun, SlotsThatWereGivenUpComeBack) {
  ServerParams p;
  p.soft = true;
  p.channel.answer_timeout_ns = base::seconds(10);
  World w(p);
  w.far.slots = 4;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::silence, Status::ok, 6});
  w.far.rule({Op::remove, Act::silence_after, Status::ok, 6});
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 4; i++) {
    calls.push_back(TestCall::remove(std::to_string(i)));
    calls.back()->start(w);
  }
  ASSERT_TRUE(w.until([&] { return std::ranges::all_of(calls, [](auto& c) { return c->done; }); }));
  w.pass(base::seconds(60));
  for (int i = 0; i < 8; i++) {
    auto again = TestCall::remove("again" + std::to_string(i));
    ASSERT_TRUE(again->run(w));
    EXPECT_TRUE(again->ok()) << again->text();
  }
  EXPECT_EQ(w.far.sessions_made, 1u);
}

// A hard mount waits for as long as it takes.
TEST(SessionRun, HardMountOutlivesALongOutage) {
  World w;
  ASSERT_TRUE(w.start());
  w.net.refuse = Error(ECONNREFUSED, ErrorOrigin::connection, "refused");
  w.far.rule({Op::remove, Act::lose_after});
  auto call = TestCall::remove("x");
  call->start(w);
  w.pass(base::seconds(3000));
  EXPECT_FALSE(call->done);
  EXPECT_GT(w.net.attempts, 100u);
  EXPECT_LT(w.net.attempts, 300u);
  w.net.refuse.reset();
  ASSERT_TRUE(w.until([&] { return call->done; }));
  EXPECT_TRUE(call->ok()) << call->text();
  EXPECT_EQ(w.far.removed["x"], 1u);
}

TEST(SessionRun, SilenceReplacesTheConnectionAfterTheAnswerTimeout) {
  ServerParams p;
  p.channel.answer_timeout_ns = base::seconds(10);
  World w(p);
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::silence_after});
  auto call = TestCall::remove("x");
  base::TimeNs begin = w.clock.now_ns();
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->ok()) << call->text();
  EXPECT_EQ(w.far.removed["x"], 1u);
  EXPECT_EQ(w.net.connections, 2u);
  EXPECT_GE(w.clock.now_ns() - begin, base::seconds(10));
  // Nothing goes twice over one connection.
  auto sent = w.far.calls_with(Op::remove);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_NE(sent[0]->connection, sent[1]->connection);
}

// Each call has the whole time-out: a steady stream with one straggler does not postpone its end.
TEST(SessionRun, AnswerTimeoutIsOfTheOldestCall) {
  ServerParams p;
  p.channel.answer_timeout_ns = base::seconds(10);
  World w(p);
  ASSERT_TRUE(w.start());
  w.far.rule({Op::remove, Act::silence});
  auto stuck = TestCall::remove("x");
  stuck->start(w);
  base::TimeNs begin = w.clock.now_ns();
  for (int i = 0; i < 12; i++) {
    auto other = TestCall::read();
    ASSERT_TRUE(other->run(w));
    w.pass(base::seconds(1));
  }
  EXPECT_TRUE(stuck->ok()) << stuck->text();
  EXPECT_LE(w.clock.now_ns() - begin, base::seconds(13));
}

}  // namespace
}  // namespace nfsrdma::session::test
