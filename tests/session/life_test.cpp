// SPDX-License-Identifier: Apache-2.0
// The session's life: start, its connections and their back channels, lease, end.
#include "world.hpp"

namespace nfsrdma::session::test {
namespace {

using nfs4::ChannelDirection;
using nfs4::Op;
using nfs4::Status;

ServerParams with_connections(uint32_t n) {
  ServerParams p;
  p.nconnect = n;
  return p;
}

TEST(SessionStart, FailureNamesTheStep) {
  World refused;
  refused.net.refuse = Error(ECONNREFUSED, ErrorOrigin::connection, "nobody listens");
  auto r = refused.start();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().origin(), ErrorOrigin::connection);
  EXPECT_EQ(refused.steps.back(), "connect FAILED: nobody listens");

  World lost;
  lost.far.rule({Op::exchange_id, Act::lose_before});
  EXPECT_FALSE(lost.start());
  EXPECT_TRUE(lost.steps.back().starts_with("EXCHANGE_ID FAILED")) << lost.steps.back();

  World nothing;
  nothing.far.slots = 0;
  r = nothing.start();
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().text().find("too little"), std::string::npos) << r.error().text();

  World busy;
  busy.far.rule({Op::reclaim_complete, Act::fail_sequence, Status::badsession});
  EXPECT_FALSE(busy.start());
  EXPECT_TRUE(busy.steps.back().starts_with("session FAILED")) << busy.steps.back();
}

TEST(SessionStart, OldServersAndForeignOwnersGetAdvice) {
  World old;
  old.far.rule({Op::exchange_id, Act::fail_first, Status::minor_vers_mismatch});
  auto r = old.start();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().errno_value(), EPROTONOSUPPORT);
  EXPECT_NE(r.error().text().find("NFSv4.1 is needed"), std::string::npos) << r.error().text();

  World taken;
  taken.far.rule({Op::create_session, Act::fail_first, Status::clid_inuse});
  r = taken.start();
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().text().find("client_id"), std::string::npos) << r.error().text();
}

TEST(SessionStart, SilentServerEndsWithTheAbort) {
  for (Op op : {Op::illegal, Op::exchange_id, Op::create_session, Op::reclaim_complete, Op::bind_conn_to_session}) {
    World w(with_connections(2));
    w.far.rule({op, Act::silence, Status::ok, 100});
    std::optional<Result<void>> ended;
    w.loops[0]->post([&] { io::spawn(w.server->start(nullptr), [&](Result<void> r) { ended.emplace(std::move(r)); }); });
    w.pass(base::seconds(10));
    ASSERT_FALSE(ended);
    w.server->cut_off(Error(ETIMEDOUT, ErrorOrigin::connection, "too late"));
    ASSERT_TRUE(w.until([&] { return ended.has_value(); }, base::seconds(1))) << nfs4::to_string(op);
    EXPECT_FALSE(*ended);
  }
}

TEST(SessionStart, AbortWhileConnectingSendsNothingMore) {
  World w;
  w.net.connect_ns = base::seconds(8);
  std::optional<Result<void>> ended;
  w.loops[0]->post([&] { io::spawn(w.server->start(nullptr), [&](Result<void> r) { ended.emplace(std::move(r)); }); });
  w.pass(base::seconds(1));
  w.server->cut_off(Error(ETIMEDOUT, ErrorOrigin::connection, "too late"));
  ASSERT_TRUE(w.until([&] { return ended.has_value(); }, base::seconds(8)));
  ASSERT_FALSE(*ended);
  EXPECT_EQ(ended->error().text(), "too late");
  EXPECT_TRUE(w.far.log.empty());
}

TEST(SessionStart, ConnectionsAreBoundTheFirstTwoForCallbacksToo) {
  World w(with_connections(4), 2);
  w.far.strict_binding = true;
  ASSERT_TRUE(w.start());
  EXPECT_EQ(w.net.live.size(), 4u);
  ASSERT_EQ(w.far.binds.size(), 3u);
  EXPECT_EQ(w.far.binds[0].direction, ChannelDirection::fore_or_both);
  EXPECT_EQ(w.far.binds[1].direction, ChannelDirection::fore);
  EXPECT_EQ(w.far.binds[2].direction, ChannelDirection::fore);
  std::vector<std::unique_ptr<TestCall>> calls;
  for (uint32_t i = 0; i < 8; i++) {
    calls.push_back(TestCall::read());
    calls.back()->start(w, i % 2);
  }
  ASSERT_TRUE(w.until([&] { return std::ranges::all_of(calls, [](auto& c) { return c->ok(); }); }));
  std::set<uint32_t> used;
  for (auto& s : w.far.calls_with(Op::putrootfh)) used.insert(s->connection);
  EXPECT_EQ(used.size(), 4u) << "all connections carry calls";
}

TEST(SessionChannels, ReconnectedOnesAreBoundAgainAsTheyWere) {
  World w(with_connections(3));
  w.far.strict_binding = true;
  ASSERT_TRUE(w.start());
  w.far.binds.clear();
  for (uint32_t connection : {1u, 3u}) {
    w.net.find(connection)->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
    w.pass(base::seconds(1));
  }
  ASSERT_EQ(w.far.binds.size(), 2u);
  EXPECT_EQ(w.far.binds[0].direction, ChannelDirection::fore_or_both);
  EXPECT_EQ(w.far.binds[1].direction, ChannelDirection::fore);
  EXPECT_EQ(w.server->reconnects(), 2u);
}

// Lost after it was bound and before the start as a whole was over: nobody would miss it otherwise.
TEST(SessionChannels, LossDuringTheStartIsMadeGood) {
  World w(with_connections(3));
  w.far.rule({Op::bind_conn_to_session, Act::serve, Status::ok, 1});
  w.far.rule({Op::bind_conn_to_session, Act::hold, Status::ok, 1});
  std::optional<Result<void>> ended;
  w.loops[0]->post([&] { io::spawn(w.server->start(nullptr), [&](Result<void> r) { ended.emplace(std::move(r)); }); });
  ASSERT_TRUE(w.until([&] { return w.far.held() == 1; }));
  w.net.find(2)->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.settle();
  w.far.release();
  ASSERT_TRUE(w.until([&] { return ended.has_value(); }));
  ASSERT_TRUE(*ended);
  w.pass(base::seconds(1));
  EXPECT_EQ(w.net.live.size(), 3u);
}

TEST(SessionChannels, ReconnectingBacksOffAndStartsAnewAfterSuccess) {
  World w;
  ASSERT_TRUE(w.start());
  w.net.refuse = Error(ECONNREFUSED, ErrorOrigin::connection, "refused");
  w.net.attempts = 0;
  w.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.pass(base::seconds(1));
  EXPECT_EQ(w.net.attempts, 3u);  // after 100, 300 and 700 ms
  w.pass(base::seconds(120));
  EXPECT_LE(w.net.attempts, 16u);
  w.net.refuse.reset();
  w.pass(base::seconds(16));
  ASSERT_EQ(w.net.live.size(), 1u);
  w.net.attempts = 0;
  w.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.pass(base::ms(200));
  EXPECT_EQ(w.net.attempts, 1u);
}

TEST(SessionChannels, RefusedBindingIsTriedAgain) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::bind_conn_to_session, Act::fail_first, Status::serverfault, 2});
  w.far.rule({Op::bind_conn_to_session, Act::fail_first, Status::delay, 2});
  w.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  auto call = TestCall::read();
  ASSERT_TRUE(call->run(w));
  EXPECT_TRUE(call->ok()) << call->text();
  EXPECT_EQ(w.net.connections, 4u);
}

// A session that the server forgot while the connection was down is found out by the binding.
TEST(SessionChannels, BindingToAForgottenSessionStartsRecovery) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.forget_session();
  w.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.pass(base::seconds(2));
  EXPECT_EQ(w.far.sessions_made, 2u);
}

TEST(SessionLease, IdleSessionIsRenewedInTime) {
  World w;
  ASSERT_TRUE(w.start());
  w.server->set_lease(90);
  w.settle();
  size_t before = w.far.count(Op::sequence);
  base::TimeNs last = w.clock.now_ns();
  w.pass(base::seconds(3600));
  auto sent = w.far.calls_with(Op::sequence);
  EXPECT_GE(sent.size() - before, 119u);
  EXPECT_LE(sent.size() - before, 130u);
  for (size_t i = before; i < sent.size(); i++) {
    EXPECT_LE(sent[i]->at_ns - last, base::seconds(31));
    EXPECT_TRUE(sent[i]->urgent);
    last = sent[i]->at_ns;
  }
}

TEST(SessionLease, TrafficRenewsItToo) {
  World w;
  ASSERT_TRUE(w.start());
  w.server->set_lease(30);
  size_t before = w.far.count(Op::sequence);
  for (int i = 0; i < 60; i++) {
    auto call = TestCall::read();
    ASSERT_TRUE(call->run(w));
    w.pass(base::seconds(5));
  }
  EXPECT_EQ(w.far.count(Op::sequence) - before, 60u);
}

// All slots wait on a server that works slowly: the renewal takes the first that comes free.
TEST(SessionLease, RenewalPassesAQueueOfCalls) {
  World w;
  w.far.slots = 2;
  ASSERT_TRUE(w.start());
  w.server->set_lease(30);
  w.far.rule({Op::putrootfh, Act::hold, Status::ok, 1000});
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 10; i++) {
    calls.push_back(TestCall::read());
    calls.back()->start(w);
  }
  w.pass(base::seconds(15));
  size_t before = w.far.log.size();
  w.far.release();
  w.settle();
  ASSERT_GT(w.far.log.size(), before);
  EXPECT_FALSE(w.far.log[before]->has(Op::putrootfh)) << "the lone SEQUENCE comes first";
  while (w.far.held()) {
    w.far.release();
    w.settle();
  }
}

TEST(SessionBackChannel, IsRestoredOncePerReportAndThenPatiently) {
  World w(with_connections(2));
  ASSERT_TRUE(w.start());
  w.server->set_lease(90);
  w.far.binds.clear();
  w.far.status_flags = nfs4::sequence_flag::cb_path_down;
  for (int i = 0; i < 100; i++) {
    auto call = TestCall::read();
    ASSERT_TRUE(call->run(w));
  }
  w.settle();
  EXPECT_EQ(w.far.binds.size(), 2u) << "both callback connections, once";
  for (auto& bind : w.far.binds) EXPECT_EQ(bind.direction, ChannelDirection::fore_or_both);
  w.pass(base::seconds(95));
  EXPECT_GE(w.far.binds.size(), 4u);
  EXPECT_LE(w.far.binds.size(), 10u);
  w.far.status_flags = 0;
  w.pass(base::seconds(40));
  size_t after = w.far.binds.size();
  w.pass(base::seconds(300));
  EXPECT_EQ(w.far.binds.size(), after);
  // And the next time it happens it is noticed again.
  w.far.status_flags = nfs4::sequence_flag::cb_path_down_session;
  auto call = TestCall::read();
  ASSERT_TRUE(call->run(w));
  w.settle();
  EXPECT_EQ(w.far.binds.size(), after + 2);
}

TEST(SessionEnd, SilentServerIsNotWaitedFor) {
  for (Op op : {Op::destroy_session, Op::destroy_clientid}) {
    World w(with_connections(3), 2);
    ASSERT_TRUE(w.start());
    w.far.rule({op, Act::silence, Status::ok, 100});
    base::TimeNs begin = w.clock.now_ns();
    ASSERT_TRUE(w.stop());
    EXPECT_LE(w.clock.now_ns() - begin, base::seconds(6));
    EXPECT_GE(w.clock.now_ns() - begin, base::seconds(4));
    EXPECT_TRUE(w.net.live.empty());
    w.server.reset();
  }
}

TEST(SessionEnd, BusyServerIsNotWaitedForWithoutEnd) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::destroy_session, Act::fail_first, Status::delay, 1'000'000});
  base::TimeNs begin = w.clock.now_ns();
  ASSERT_TRUE(w.stop());
  EXPECT_LE(w.clock.now_ns() - begin, base::seconds(6));
}

TEST(SessionEnd, WhileDisconnected) {
  World w(with_connections(2), 2);
  ASSERT_TRUE(w.start());
  w.net.refuse = Error(ECONNREFUSED, ErrorOrigin::connection, "refused");
  w.net.find(1)->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.net.find(2)->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.pass(base::seconds(1));
  base::TimeNs begin = w.clock.now_ns();
  ASSERT_TRUE(w.stop());
  EXPECT_LE(w.clock.now_ns() - begin, base::seconds(1));
}

TEST(SessionEnd, WhileReconnectingOrBinding) {
  World w;
  ASSERT_TRUE(w.start());
  w.net.connect_ns = base::seconds(3);
  w.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  w.pass(base::seconds(1));
  ASSERT_TRUE(w.stop());
  EXPECT_TRUE(w.net.live.empty());

  World v;
  ASSERT_TRUE(v.start());
  v.far.rule({Op::bind_conn_to_session, Act::fail_first, Status::delay, 1'000'000});
  v.net.live[0]->drop(Error(ECONNRESET, ErrorOrigin::connection, "cut"));
  v.pass(base::seconds(1));
  ASSERT_TRUE(v.stop());
  EXPECT_TRUE(v.net.live.empty());
}

TEST(SessionEnd, WhileRecovering) {
  World w;
  ASSERT_TRUE(w.start());
  w.far.restart();
  w.far.rule({Op::exchange_id, Act::silence, Status::ok, 100});
  auto call = TestCall::read();
  call->start(w);
  w.settle();
  EXPECT_FALSE(call->done);
  w.server->cut_off(Error(ECANCELED, ErrorOrigin::local, "over"));
  ASSERT_TRUE(w.until([&] { return call->done; }, base::seconds(1)));
  EXPECT_FALSE(call->result);
  ASSERT_TRUE(w.stop());
}

// Calls under way, waiting for a slot, for a connection or for recovery: each ends with an error.
TEST(SessionEnd, AbortEndsEveryCall) {
  World w(with_connections(2), 2);
  w.far.slots = 2;
  ASSERT_TRUE(w.start());
  w.far.rule({Op::putrootfh, Act::silence, Status::ok, 1000});
  std::vector<std::unique_ptr<TestCall>> calls;
  for (uint32_t i = 0; i < 12; i++) {
    calls.push_back(TestCall::read());
    calls.back()->start(w, i % 2);
  }
  w.settle();
  w.server->cut_off(Error(ECANCELED, ErrorOrigin::local, "over"));
  ASSERT_TRUE(w.until([&] { return std::ranges::all_of(calls, [](auto& c) { return c->done; }); }, base::seconds(1)));
  for (auto& c : calls) EXPECT_FALSE(c->result);
  auto late = TestCall::read();
  ASSERT_TRUE(late->run(w));
  EXPECT_FALSE(late->result);
}

}  // namespace
}  // namespace nfsrdma::session::test
