// SPDX-License-Identifier: Apache-2.0
// Client ids, sessions, the reply cache, leases, grace.
#include "tests/server/harness.hpp"

namespace nfsrdma::server::testing {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  TempDir dir;
};

TEST_F(SessionTest, ExchangeIdCases) {
  Rig rig(dir);
  TestClient a(rig, "a");
  ExchangeIdResult first, second;
  ASSERT_EQ(a.exchange_id(&first), Status::ok);
  EXPECT_EQ(first.flags & exchange_flag::confirmed_r, 0u);
  // Unconfirmed: each try makes a new one.
  ASSERT_EQ(a.exchange_id(&second), Status::ok);
  EXPECT_NE(first.clientid, second.clientid);
  ASSERT_EQ(a.create_session(), Status::ok);
  // Confirmed, same verifier: the same again.
  ASSERT_EQ(a.exchange_id(&first), Status::ok);
  EXPECT_EQ(first.clientid, second.clientid);
  EXPECT_NE(first.flags & exchange_flag::confirmed_r, 0u);
  // Another user may not take it over while it has a session.
  a.options.uid = 5;
  EXPECT_EQ(a.exchange_id(), Status::clid_inuse);
  a.options.uid = 0;
  // Rebooted: a new id, and the old session goes when the new one is confirmed.
  a.verifier[0] = std::byte{1};
  ASSERT_EQ(a.exchange_id(&second), Status::ok);
  EXPECT_NE(second.clientid, first.clientid);
  EXPECT_EQ(a.run(ReclaimCompleteArgs{}).status(), Status::ok);
  SessionId old = a.session.session_id;
  ASSERT_EQ(a.create_session(), Status::ok);
  DestroySessionArgs destroy;
  destroy.session_id = old;
  EXPECT_EQ(a.alone(destroy).status(), Status::badsession);
}

TEST_F(SessionTest, ExchangeIdRefusals) {
  Rig rig(dir);
  TestClient a(rig, "a");
  ExchangeIdArgs args;
  args.client_owner.owner = base::bytes_of("a");
  args.flags = 0x8;
  EXPECT_EQ(a.alone(args).status(), Status::inval);
  args.flags = exchange_flag::upd_confirmed_rec_a;
  EXPECT_EQ(a.alone(args).status(), Status::noent);
  args.flags = 0;
  args.state_protect.how = StateProtect::ssv;
  EXPECT_EQ(a.alone(args).status(), Status::encr_alg_unsupp);
  a.establish();
  args.state_protect.how = StateProtect::none;
  args.flags = exchange_flag::upd_confirmed_rec_a;
  EXPECT_EQ(a.alone(args).status(), Status::ok);
  args.client_owner.verifier[0] = std::byte{9};
  EXPECT_EQ(a.alone(args).status(), Status::not_same);
}

TEST_F(SessionTest, CreateSessionIsExactlyOnce) {
  Rig rig(dir);
  TestClient a(rig, "a");
  ASSERT_EQ(a.exchange_id(), Status::ok);
  ASSERT_EQ(a.create_session(), Status::ok);
  SessionId first = a.session.session_id;
  a.exchange_sequence -= 1;
  ASSERT_EQ(a.create_session(), Status::ok);
  EXPECT_EQ(a.session.session_id, first);
  EXPECT_EQ(rig.server->state().counts().sessions, 1u);
  a.exchange_sequence += 1;
  EXPECT_EQ(a.create_session(), Status::seq_misordered);
  a.clientid ^= 1;
  EXPECT_EQ(a.create_session(), Status::stale_clientid);
}

TEST_F(SessionTest, PositionsOfOperations) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  EXPECT_EQ(a.alone(PutrootfhArgs{}).status(), Status::op_not_in_session);
  ExchangeIdArgs exchange;
  exchange.client_owner.owner = base::bytes_of("b");
  EXPECT_EQ(a.alone(exchange, PutrootfhArgs{}).status(), Status::not_only_op);
  EXPECT_EQ(a.run(PutrootfhArgs{}, a.next_sequence()).status(), Status::sequence_pos);
  EXPECT_EQ(a.run(GetfhArgs{}).status(), Status::nofilehandle);
  EXPECT_EQ(a.run(RestorefhArgs{}).status(), Status::restorefh);
  std::array<std::byte, 12> empty{};
  base::store_be(empty.data() + 4, uint32_t{1});
  Caught none = rig.call(*a.connection, empty);
  EXPECT_TRUE(none.replied);
  EXPECT_EQ(none.results.size(), 12u);
}

TEST_F(SessionTest, MinorVersionsAndGarbage) {
  Rig rig(dir);
  TestClient a(rig, "a");
  std::vector<std::byte> bytes(256);
  for (uint32_t minor : {0u, 2u, 9u}) {
    CompoundBuilder builder(bytes, minor);
    builder.add(PutrootfhArgs{});
    Reply reply(rig.call(*a.connection, builder.finish()), 1);
    EXPECT_EQ(reply.status(), Status::minor_vers_mismatch);
    EXPECT_EQ(reply.result_count(), 0u);
  }
  Caught garbage = rig.call(*a.connection, std::span(bytes).first(6));
  EXPECT_EQ(garbage.status, rpc::AcceptStatus::garbage_args);
  // An operation that does not exist, and one that is not offered.
  a.establish();
  for (auto [number, status] : {std::pair{2u, Status::op_illegal}, {59u, Status::op_illegal}, {46u, Status::notsupp}}) {
    xdr::Encoder raw(bytes);
    raw(uint32_t{0}, uint32_t{1}, uint32_t{2}, Op::sequence, a.next_sequence(), number);
    Reply reply(rig.call(*a.connection, raw.written()), 2);
    ++a.sequence;
    EXPECT_EQ(reply.status(), status);
  }
}

TEST_F(SessionTest, RepeatedRequestsAreAnsweredNotExecuted) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  a.cache_this = true;
  CreateArgs mkdir;
  mkdir.name = "d";
  Encoded e = encode(xdr::Form::whole, a.next_sequence(), PutrootfhArgs{}, mkdir);
  Caught first = rig.call(*a.connection, e.bytes);
  Caught second = rig.call(*a.connection, e.bytes);
  EXPECT_EQ(Reply(first, 3).status(), Status::ok);
  EXPECT_EQ(first.results, second.results);
  // Over another connection too.
  auto other = rig.connect();
  EXPECT_EQ(rig.call(*other, e.bytes).results, first.results);
  // The same slot and sequence with other content is no repetition.
  mkdir.name = "e";
  Encoded f = encode(xdr::Form::whole, a.next_sequence(), PutrootfhArgs{}, mkdir);
  EXPECT_EQ(Reply(rig.call(*a.connection, f.bytes), 3).status(), Status::seq_false_retry);
  EXPECT_FALSE(std::filesystem::exists(dir.path("e")));
}

TEST_F(SessionTest, UncachedRepetitionsSaySo) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  Encoded e = encode(xdr::Form::whole, a.next_sequence(), PutrootfhArgs{}, GetfhArgs{});
  EXPECT_EQ(Reply(rig.call(*a.connection, e.bytes), 3).status(), Status::ok);
  Reply again(rig.call(*a.connection, e.bytes), 3);
  EXPECT_EQ(again.status(), Status::retry_uncached_rep);
  EXPECT_EQ(again.result_count(), 2u);
  ++a.sequence;
  EXPECT_EQ(a.run(PutrootfhArgs{}).status(), Status::ok);
  // A lone SEQUENCE is always kept.
  Encoded lone = encode(xdr::Form::whole, a.next_sequence());
  Caught first = rig.call(*a.connection, lone.bytes);
  EXPECT_EQ(rig.call(*a.connection, lone.bytes).results, first.results);
}

TEST_F(SessionTest, ARepeatedReadlinkHasItsPayloadAgain) {
  std::filesystem::create_symlink("target", dir.path("l"));
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  a.cache_this = true;
  LookupArgs lookup;
  lookup.name = "l";
  Encoded e = encode(xdr::Form::whole, a.next_sequence(), PutrootfhArgs{}, lookup, ReadlinkArgs{});
  Caught first = rig.call(*a.connection, e.bytes);
  EXPECT_EQ(first.payload, "target");
  Caught second = rig.call(*a.connection, e.bytes);
  EXPECT_EQ(second.payload, "target");
  EXPECT_EQ(second.payload_position, first.payload_position);
  EXPECT_EQ(second.results, first.results);
}

TEST_F(SessionTest, ARequestUnderWayIsNotStartedTwice) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  a.cache_this = true;
  CreateArgs mkdir;
  mkdir.name = "d";
  Encoded e = encode(xdr::Form::whole, a.next_sequence(), PutrootfhArgs{}, mkdir);
  auto first = rig.start(*a.connection, e.bytes);
  auto second = rig.start(*a.connection, e.bytes);
  rig.wait([&] { return first->replied && second->replied; });
  EXPECT_EQ(Reply(*first, 3).status(), Status::ok);
  Status s = Reply(*second, 3).status();
  EXPECT_TRUE(s == Status::delay || s == Status::ok) << to_string(s);
}

TEST_F(SessionTest, SlotAndSequenceErrors) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  SequenceArgs s = a.next_sequence();
  s.slotid = 16;
  EXPECT_EQ(a.alone(s).status(), Status::badslot);
  s = a.next_sequence();
  s.highest_slotid = 16;
  EXPECT_EQ(a.alone(s).status(), Status::bad_high_slot);
  s = a.next_sequence();
  s.sequenceid += 1;
  EXPECT_EQ(a.alone(s).status(), Status::seq_misordered);
  s = a.next_sequence();
  s.session_id[3] ^= std::byte{1};
  EXPECT_EQ(a.alone(s).status(), Status::badsession);
  EXPECT_EQ(a.run().status(), Status::ok);
}

TEST_F(SessionTest, SizesAreHeld) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  // No room for GETATTR's result: what came before stands.
  GetattrArgs getattr;
  getattr.mask = stat_attributes;
  CallOptions small;
  small.results_bytes_max = 120;
  Reply reply = a.run_with(small, PutrootfhArgs{}, getattr);
  EXPECT_EQ(reply.status(), Status::rep_too_big);
  EXPECT_EQ(reply.result_count(), 3u);
  // Nothing may have happened when the answer of a change does not fit.
  CreateArgs mkdir;
  mkdir.name = "d";
  small.results_bytes_max = 100;
  EXPECT_EQ(a.run_with(small, PutrootfhArgs{}, mkdir).status(), Status::rep_too_big);
  EXPECT_FALSE(std::filesystem::exists(dir.path("d")));
  // Too large to be kept.
  a.cache_this = true;
  for (int i = 0; i < 60; ++i) dir.write("a long name to fill the listing with " + std::to_string(i), "");
  ReaddirArgs readdir;
  readdir.maxcount_bytes = 1 << 16;
  readdir.mask = stat_attributes;
  Reply listed = a.run(PutrootfhArgs{}, readdir);
  EXPECT_EQ(listed.status(), Status::ok);
  EXPECT_LE(listed.caught().results.size(), 4096u);
  Reply twice = a.run(PutrootfhArgs{}, readdir, readdir, readdir);
  EXPECT_EQ(twice.status(), Status::rep_too_big_to_cache);
}

TEST_F(SessionTest, TooManyOperations) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  std::vector<std::byte> bytes(8192);
  CompoundBuilder builder(bytes, 1);
  builder.add(a.next_sequence());
  for (int i = 0; i < 32; ++i) builder.add(PutrootfhArgs{});
  Reply reply(rig.call(*a.connection, builder.finish()), 33);
  EXPECT_EQ(reply.status(), Status::too_many_ops);
}

TEST_F(SessionTest, LeasesExpireAndSilentClientsLoseTheirState) {
  ServerParams params;
  params.state.lease_ns = base::seconds(10);
  Rig rig(dir, params);
  TestClient a(rig, "a"), b(rig, "b");
  a.establish();
  b.establish();
  ASSERT_EQ(a.open("f", share::access_both, share::deny_both).status, Status::ok);
  EXPECT_EQ(b.open("f").status, Status::share_denied);
  rig.clock.advance(base::seconds(6));
  EXPECT_EQ(b.run().status(), Status::ok);
  rig.server->state().tick();
  EXPECT_EQ(rig.server->state().counts().clients, 2u);
  rig.clock.advance(base::seconds(6));
  rig.server->state().tick();
  EXPECT_EQ(rig.server->state().counts().clients, 1u);
  EXPECT_EQ(rig.server->state().counts().opens, 0u);
  EXPECT_EQ(b.open("f").status, Status::ok);
  EXPECT_EQ(a.run().status(), Status::badsession);
  EXPECT_EQ(a.create_session(), Status::stale_clientid);
  a.establish();
}

TEST_F(SessionTest, DestroyingOneAfterTheOther) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  DestroyClientidArgs client;
  client.clientid = a.clientid;
  EXPECT_EQ(a.alone(client).status(), Status::clientid_busy);
  DestroySessionArgs session;
  session.session_id = a.session.session_id;
  EXPECT_EQ(a.run(session).status(), Status::ok);
  EXPECT_EQ(a.alone(session).status(), Status::badsession);
  EXPECT_EQ(a.alone(client).status(), Status::ok);
  EXPECT_EQ(a.alone(client).status(), Status::stale_clientid);
  EXPECT_EQ(rig.server->state().counts().clients, 0u);
}

TEST_F(SessionTest, NothingIsOpenedBeforeReclaimComplete) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish(false);
  EXPECT_EQ(a.open("f").status, Status::grace);
  EXPECT_FALSE(std::filesystem::exists(dir.path("f")));
  EXPECT_EQ(a.run(ReclaimCompleteArgs{}).status(), Status::ok);
  EXPECT_EQ(a.run(ReclaimCompleteArgs{}).status(), Status::complete_already);
  EXPECT_EQ(a.open("f").status, Status::ok);
}

TEST_F(SessionTest, RecordedClientsReclaimAfterARestart) {
  TempDir state;
  base::SeededRandom random(1);
  FileHandle handle;
  Stateid old;
  auto params_for = [&](Recovery& recovery, uint32_t instance) {
    ServerParams params;
    params.state.recorded = recovery.owners();
    params.state.instance = instance;
    params.state.grace_ns = base::seconds(30);
    return params;
  };
  PosixParams posix;
  posix.state_dir = state.path();
  {
    auto recovery = Recovery::open(state.path(), random);
    ASSERT_TRUE(recovery);
    EXPECT_FALSE(Recovery::open(state.path(), random));
    Rig rig(dir, params_for(**recovery, 1), posix, recovery->get());
    TestClient a(rig, "a");
    a.establish();
    auto opened = a.open("f");
    ASSERT_EQ(opened.status, Status::ok);
    handle = opened.handle;
    old = opened.open.stateid;
  }
  auto recovery = Recovery::open(state.path(), random);
  ASSERT_TRUE(recovery);
  EXPECT_EQ((*recovery)->owners(), std::set<std::string>{"a"});
  Rig rig(dir, params_for(**recovery, 2), posix, recovery->get());
  TestClient a(rig, "a"), b(rig, "b");
  b.establish();
  EXPECT_EQ(b.open("f").status, Status::grace);
  a.establish(false);
  ReadArgs read;
  read.stateid = old;
  EXPECT_EQ(a.run(putfh(handle), read).status(), Status::stale_stateid);
  OpenArgs reclaim;
  reclaim.share_access = share::access_both;
  reclaim.owner.owner = base::bytes_of("owner");
  reclaim.claim.type = ClaimType::previous;
  EXPECT_EQ(b.run(putfh(handle), reclaim).status(), Status::no_grace);
  EXPECT_EQ(a.run(putfh(handle), reclaim).status(), Status::ok);
  EXPECT_TRUE(rig.server->state().in_grace());
  EXPECT_EQ(a.run(ReclaimCompleteArgs{}).status(), Status::ok);
  EXPECT_FALSE(rig.server->state().in_grace());
  EXPECT_EQ(a.run(putfh(handle), reclaim).status(), Status::no_grace);
  EXPECT_EQ(b.open("g").status, Status::ok);
}

TEST_F(SessionTest, GraceEndsByItself) {
  ServerParams params;
  params.state.recorded = {"never comes back"};
  params.state.grace_ns = base::seconds(20);
  Rig rig(dir, params);
  TestClient a(rig, "a");
  a.establish();
  EXPECT_EQ(a.open("f").status, Status::grace);
  rig.clock.advance(base::seconds(21));
  EXPECT_EQ(rig.server->state().tick(), std::vector<std::string>{"never comes back"});
  EXPECT_EQ(a.open("f").status, Status::ok);
}

TEST_F(SessionTest, LimitsAreHeld) {
  ServerParams params;
  params.state.limits.clients_max = 2;
  params.state.limits.sessions_per_client = 2;
  Rig rig(dir, params);
  TestClient a(rig, "a"), b(rig, "b"), c(rig, "c");
  a.establish();
  ASSERT_EQ(b.exchange_id(), Status::ok);
  // Who only announced itself makes room for the next; who has a session does not.
  c.establish();
  EXPECT_EQ(b.exchange_id(), Status::delay);
  EXPECT_EQ(a.create_session(), Status::ok);
  EXPECT_EQ(a.create_session(), Status::nospc);
}

TEST_F(SessionTest, ConnectionsAreBound) {
  Rig rig(dir);
  TestClient a(rig, "a");
  a.establish();
  auto flags = [&a] {
    Reply reply = a.alone(a.next_sequence());
    ++a.sequence;
    return reply.next<SequenceResult>().status_flags;
  };
  EXPECT_EQ(flags(), sequence_flag::cb_path_down);
  BindConnToSessionArgs bind;
  bind.session_id = a.session.session_id;
  bind.direction = ChannelDirection::fore_or_both;
  EXPECT_EQ(a.alone(bind, PutrootfhArgs{}).status(), Status::not_only_op);
  Reply reply = a.alone(bind);
  ASSERT_EQ(reply.status(), Status::ok);
  EXPECT_EQ(reply.next<BindConnToSessionResult>().direction, channel_both);
  EXPECT_EQ(flags(), 0u);
  bind.session_id[0] ^= std::byte{1};
  EXPECT_EQ(a.alone(bind).status(), Status::badsession);
}

}  // namespace
}  // namespace nfsrdma::server::testing
