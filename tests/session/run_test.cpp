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

}  // namespace
}  // namespace nfsrdma::session::test
