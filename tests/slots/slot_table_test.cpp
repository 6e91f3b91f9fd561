// SPDX-License-Identifier: Apache-2.0
#include "slots/slot_table.hpp"

#include <gtest/gtest.h>

namespace nfsrdma::slots {
namespace {

constexpr nfs4::SessionId session{std::byte{1}, std::byte{2}};

nfs4::SequenceResult echo(const SlotTable& table, uint32_t slot, uint32_t target) {
  return {session, table.sequence_id(slot), slot, target, target, 0};
}

// Answers the request on a slot: SEQUENCE succeeded and carries this target.
void answer(SlotTable& table, uint32_t slot, uint32_t target) {
  ASSERT_EQ(table.on_sequence(slot, session, echo(table, slot, target)), ReplyCheck::good);
  table.accepted(slot);
}

TEST(SlotTable, TakesTheLowestFreeSlot) {
  SlotTable table(4);
  EXPECT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.acquire(), 1u);
  EXPECT_EQ(table.acquire(), 2u);
  table.accepted(1);
  EXPECT_EQ(table.acquire(), 1u);
  EXPECT_EQ(table.acquire(), 3u);
  EXPECT_EQ(table.acquire(), std::nullopt);
  EXPECT_EQ(table.in_use(), 4u);
  EXPECT_EQ(table.available(), 0u);
}

TEST(SlotTable, WorksAcrossWordsOfItsBitmap) {
  SlotTable table(130);
  for (uint32_t i = 0; i < 130; ++i) ASSERT_EQ(table.acquire(), i);
  EXPECT_EQ(table.acquire(), std::nullopt);
  table.accepted(129);
  table.accepted(64);
  EXPECT_EQ(table.highest_in_use(), 128u);
  EXPECT_EQ(table.acquire(), 64u);
  EXPECT_EQ(table.acquire(), 129u);
}

TEST(SlotTable, SequenceIdsStartAtOneAndAdvanceOnlyWhenAccepted) {
  SlotTable table(2);
  table.acquire();
  EXPECT_EQ(table.sequence(0, session, true), (nfs4::SequenceArgs{session, 1, 0, 0, true}));
  table.not_executed(0);
  table.acquire();
  EXPECT_EQ(table.sequence_id(0), 1u);
  table.accepted(0);
  table.acquire();
  EXPECT_EQ(table.sequence_id(0), 2u);
}

TEST(SlotTable, SequenceIdsAdvancePerSlot) {
  SlotTable table(2);
  for (uint32_t i = 1; i <= 1000; ++i) {
    ASSERT_EQ(table.acquire(), 0u);
    ASSERT_EQ(table.sequence_id(0), i);
    table.accepted(0);
  }
  EXPECT_EQ(table.sequence_id(1), 1u);
}

TEST(SlotTable, HighestInUseIsSentWithEachRequest) {
  SlotTable table(8);
  table.acquire();
  table.acquire();
  table.acquire();
  EXPECT_EQ(table.sequence(2, session, false).highest_slotid, 2u);
  EXPECT_EQ(table.sequence(0, session, false).highest_slotid, 0u) << "as it was when slot 0 was sent";
  table.accepted(0);
  table.accepted(1);
  ASSERT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.sequence(0, session, false).highest_slotid, 2u);
}

TEST(SlotTable, ReplayKeepsSlotAndSequenceId) {
  SlotTable table(2);
  table.acquire();
  table.lost(0);
  EXPECT_EQ(table.state(0), SlotState::replay);
  EXPECT_EQ(table.acquire(), 1u) << "a slot waiting for its replay is not free";
  table.resent(0);
  EXPECT_EQ(table.state(0), SlotState::sent);
  EXPECT_EQ(table.sequence(0, session, true).sequenceid, 1u);
  answer(table, 0, 1);
  EXPECT_EQ(table.state(0), SlotState::free);
  EXPECT_EQ(table.sequence_id(0), 2u);
}

TEST(SlotTable, OrphanHoldsItsSlotUntilTheReply) {
  SlotTable table(1);
  table.acquire();
  table.abandon(0);
  EXPECT_EQ(table.state(0), SlotState::orphan);
  EXPECT_EQ(table.acquire(), std::nullopt);
  table.lost(0);
  EXPECT_EQ(table.state(0), SlotState::orphan) << "nobody is there to replay it";
  answer(table, 0, 0);
  EXPECT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.sequence_id(0), 2u);
}

TEST(SlotTable, ResetForgetsEverything) {
  SlotTable table(3);
  table.acquire();
  table.acquire();
  table.abandon(1);
  table.accepted(0);
  table.reset(2);
  EXPECT_EQ(table.in_use(), 0u);
  EXPECT_EQ(table.usable(), 2u);
  EXPECT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.sequence_id(0), 1u);
}

TEST(SlotTable, NoticesAReplierThatEchoesSomethingElse) {
  SlotTable table(2);
  table.acquire();
  nfs4::SequenceResult result = echo(table, 0, 1);
  result.sequenceid = 2;
  EXPECT_EQ(table.on_sequence(0, session, result), ReplyCheck::mismatch);
  result = echo(table, 0, 1);
  result.slotid = 1;
  EXPECT_EQ(table.on_sequence(0, session, result), ReplyCheck::mismatch);
  result = echo(table, 0, 1);
  result.session_id[15] = std::byte{9};
  EXPECT_EQ(table.on_sequence(0, session, result), ReplyCheck::mismatch);
  EXPECT_EQ(table.on_sequence(0, session, echo(table, 0, 1)), ReplyCheck::good);
}

TEST(SlotTable, GrowsPastTheNegotiatedNumberUpToItsLimit) {
  SlotTable table(2, 5);
  table.acquire();
  table.acquire();
  EXPECT_EQ(table.acquire(), std::nullopt);
  answer(table, 0, 3);
  EXPECT_EQ(table.usable(), 4u);
  EXPECT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.acquire(), 2u);
  EXPECT_EQ(table.sequence_id(2), 1u);
  answer(table, 0, 4000000000u);
  EXPECT_EQ(table.usable(), 5u);
}

TEST(SlotTable, ShrinksByNotUsingHigherSlotsAnyMore) {
  SlotTable table(4);
  for (int i = 0; i < 4; ++i) table.acquire();
  answer(table, 0, 1);
  EXPECT_EQ(table.usable(), 2u);
  answer(table, 3, 3);  // sent after slot 0's request: its target counts
  EXPECT_EQ(table.usable(), 4u);
  ASSERT_EQ(table.acquire(), 0u);
  answer(table, 0, 1);
  EXPECT_EQ(table.in_use(), 2u) << "slots 1 and 2 are still out";
  EXPECT_FALSE(table.shrink_unconfirmed());
  table.accepted(2);
  EXPECT_TRUE(table.shrink_unconfirmed());
  EXPECT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.acquire(), std::nullopt) << "2 and 3 are free but above the target";
  EXPECT_EQ(table.sequence(0, session, false).highest_slotid, 1u);
  answer(table, 0, 1);
  EXPECT_FALSE(table.shrink_unconfirmed());
}

TEST(SlotTable, SlotThatComesBackGoesOnAndStartsAnewOnlyWhenForgotten) {
  SlotTable table(2);
  table.acquire();
  table.acquire();
  answer(table, 1, 1);
  answer(table, 0, 1);
  table.set_target(0);
  table.acquire();
  answer(table, 0, 0);
  table.set_target(1);
  table.acquire();
  ASSERT_EQ(table.acquire(), 1u);
  EXPECT_EQ(table.sequence_id(1), 2u);
  EXPECT_TRUE(table.misordered(1));
  EXPECT_EQ(table.sequence_id(1), 1u);
  EXPECT_EQ(table.state(1), SlotState::sent);
  EXPECT_FALSE(table.misordered(1)) << "the new sequence id is wrong too: nothing left to try";
  EXPECT_FALSE(table.misordered(0)) << "slot 0 was never given up";
}

TEST(SlotTable, SlotThatCameBackIsOrdinaryAfterItsFirstRequest) {
  SlotTable table(2);
  table.acquire();
  table.acquire();
  answer(table, 1, 1);
  table.set_target(0);
  table.set_target(1);
  ASSERT_EQ(table.acquire(), 1u);
  answer(table, 1, 1);
  ASSERT_EQ(table.acquire(), 1u);
  EXPECT_FALSE(table.misordered(1));
}

TEST(SlotTable, TargetOfAnOlderRequestIsIgnored) {
  SlotTable table(4);
  table.acquire();
  table.acquire();
  answer(table, 1, 0);
  answer(table, 0, 3);
  EXPECT_EQ(table.usable(), 1u);
}

TEST(SlotTable, ResentRequestCountsAsNew) {
  SlotTable table(4);
  table.acquire();
  table.acquire();
  table.lost(0);
  table.resent(0);
  answer(table, 1, 0);
  answer(table, 0, 2);
  EXPECT_EQ(table.usable(), 3u);
}

TEST(SlotTable, RecallSlotLowersTheTarget) {
  SlotTable table(4);
  table.set_target(0);
  EXPECT_TRUE(table.shrink_unconfirmed());
  EXPECT_EQ(table.acquire(), 0u);
  EXPECT_EQ(table.acquire(), std::nullopt);
}

TEST(SlotTable, BadSlotLowersTheTargetBelowIt) {
  SlotTable table(4);
  for (int i = 0; i < 4; ++i) table.acquire();
  EXPECT_TRUE(table.bad_slot(2));
  EXPECT_EQ(table.target_highest(), 1u);
  EXPECT_TRUE(table.bad_slot(3));
  EXPECT_EQ(table.target_highest(), 1u);
  EXPECT_EQ(table.acquire(), std::nullopt);
  EXPECT_FALSE(table.bad_slot(0));
  EXPECT_EQ(table.in_use(), 1u);
  EXPECT_EQ(table.acquire(), 0u);
}

}  // namespace
}  // namespace nfsrdma::slots
