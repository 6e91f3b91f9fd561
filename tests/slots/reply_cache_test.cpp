// SPDX-License-Identifier: Apache-2.0
#include "slots/reply_cache.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "slots/slot_table.hpp"

namespace nfsrdma::slots {
namespace {

using base::bytes_of;
using base::text_of;

Request request(uint32_t slot, uint32_t sequence_id, uint32_t highest = 0, uint64_t fingerprint = 7) {
  return {slot, sequence_id, highest, true, fingerprint};
}

TEST(ReplyCache, FirstRequestHasSequenceIdOne) {
  ReplyCache cache(2, 100);
  EXPECT_EQ(cache.check(request(0, 0)).verdict, Verdict::misordered);
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::misordered);
  EXPECT_EQ(cache.check(request(0, 1)).verdict, Verdict::fresh);
  EXPECT_EQ(cache.in_progress(), 1u);
}

TEST(ReplyCache, RepeatsAreAnsweredNotExecuted) {
  ReplyCache cache(2, 100);
  cache.check(request(0, 1));
  EXPECT_EQ(cache.check(request(0, 1)).verdict, Verdict::in_progress);
  EXPECT_TRUE(cache.complete(0, bytes_of("created"), true));
  for (int i = 0; i < 3; ++i) {
    ReplyCache::Answer answer = cache.check(request(0, 1));
    EXPECT_EQ(answer.verdict, Verdict::replay);
    EXPECT_EQ(text_of(answer.reply), "created");
  }
  EXPECT_EQ(cache.in_progress(), 0u);
}

TEST(ReplyCache, ReplyThatWasNotKeptIsUncached) {
  ReplyCache cache(1, 4);
  cache.check(request(0, 1));
  EXPECT_TRUE(cache.complete(0, bytes_of("read data"), false));
  EXPECT_EQ(cache.check(request(0, 1)).verdict, Verdict::uncached);
  cache.check(request(0, 2));
  EXPECT_FALSE(cache.complete(0, bytes_of("longer"), true));
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::uncached);
  EXPECT_EQ(cache.cached_bytes(), 0u);
}

TEST(ReplyCache, EmptyReplyCanBeKept) {
  ReplyCache cache(1, 0);
  cache.check(request(0, 1));
  EXPECT_TRUE(cache.complete(0, {}, true));
  EXPECT_EQ(cache.check(request(0, 1)).verdict, Verdict::replay);
}

TEST(ReplyCache, OtherContentUnderTheSameSequenceIdIsAFalseRetry) {
  ReplyCache cache(1, 100);
  cache.check(request(0, 1, 0, 7));
  cache.complete(0, bytes_of("a"), true);
  EXPECT_EQ(cache.check(request(0, 1, 0, 8)).verdict, Verdict::false_retry);
  EXPECT_EQ(text_of(cache.check(request(0, 1, 0, 7)).reply), "a");
  cache.take_over(request(0, 1, 0, 8));
  EXPECT_EQ(cache.check(request(0, 1, 0, 8)).verdict, Verdict::in_progress);
  cache.complete(0, bytes_of("b"), true);
  EXPECT_EQ(text_of(cache.check(request(0, 1, 0, 8)).reply), "b");
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::fresh);
}

TEST(ReplyCache, NextRequestMustWaitForTheOneInProgress) {
  ReplyCache cache(1, 100);
  cache.check(request(0, 1));
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::misordered);
  cache.complete(0, {}, false);
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::fresh);
}

TEST(ReplyCache, ForgottenRequestLeavesItsSequenceIdDue) {
  ReplyCache cache(1, 100);
  cache.check(request(0, 1));
  cache.forget(0);
  EXPECT_EQ(cache.in_progress(), 0u);
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::misordered);
  EXPECT_EQ(cache.check(request(0, 1, 0, 99)).verdict, Verdict::fresh);
  cache.complete(0, {}, true);
  cache.check(request(0, 2));
  cache.forget(0);
  EXPECT_EQ(cache.check(request(0, 2)).verdict, Verdict::fresh);
}

TEST(ReplyCache, RefusesSlotsThatItDoesNotHave) {
  ReplyCache cache(3, 100);
  EXPECT_EQ(cache.check(request(3, 1, 2)).verdict, Verdict::bad_slot);
  EXPECT_EQ(cache.check(request(UINT32_MAX, 1, 2)).verdict, Verdict::bad_slot);
  EXPECT_EQ(cache.check(request(2, 1, 3)).verdict, Verdict::bad_highest);
  EXPECT_EQ(cache.check(request(2, 1, 2)).verdict, Verdict::fresh);
}

TEST(ReplyCache, GrowingOpensSlotsAtOnce) {
  ReplyCache cache(1, 100);
  cache.set_target(3);
  EXPECT_EQ(cache.highest(), 2u);
  EXPECT_EQ(cache.target_highest(), 2u);
  EXPECT_EQ(cache.check(request(2, 1, 2)).verdict, Verdict::fresh);
}

TEST(ReplyCache, ShrinkingWaitsUntilTheRequesterHasSeenIt) {
  ReplyCache cache(4, 100);
  cache.check(request(3, 1, 3));
  cache.complete(3, bytes_of("kept"), true);
  cache.set_target(2);
  EXPECT_EQ(cache.slots(), 4u);
  EXPECT_EQ(cache.target_highest(), 1u);
  // Low slots only, but the sender cannot know the target yet.
  cache.check(request(0, 1, 0));
  EXPECT_EQ(cache.slots(), 4u);
  cache.complete(0, {}, false);
  // The same slot's next request has seen the reply above, but uses slot 3.
  cache.check(request(0, 2, 3));
  EXPECT_EQ(cache.slots(), 4u);
  cache.complete(0, {}, false);
  cache.check(request(0, 3, 1));
  EXPECT_EQ(cache.slots(), 2u);
  EXPECT_EQ(cache.cached_bytes(), 0u);
  EXPECT_EQ(cache.check(request(3, 1, 1)).verdict, Verdict::bad_slot);
}

TEST(ReplyCache, ShrinkingLeavesSlotsInProgress) {
  ReplyCache cache(3, 100);
  cache.check(request(1, 1, 1));
  cache.set_target(1);
  cache.check(request(0, 1, 0));
  cache.complete(0, {}, false);
  cache.check(request(0, 2, 0));
  EXPECT_EQ(cache.slots(), 2u) << "slot 2 went, slot 1 is being executed";
  cache.complete(1, bytes_of("x"), true);
  EXPECT_EQ(cache.check(request(1, 1, 1)).verdict, Verdict::replay);
}

TEST(ReplyCache, ReopenedSlotStartsAnewOrGoesOn) {
  for (uint32_t first : {1u, 6u}) {
    ReplyCache cache(2, 100);
    for (uint32_t i = 1; i <= 5; ++i) {
      ASSERT_EQ(cache.check(request(1, i, 1)).verdict, Verdict::fresh);
      cache.complete(1, bytes_of("r"), true);
    }
    cache.set_target(1);
    cache.check(request(0, 1, 0));
    cache.complete(0, {}, false);
    cache.check(request(0, 2, 0));
    ASSERT_EQ(cache.slots(), 1u);
    cache.set_target(2);
    EXPECT_EQ(cache.check(request(1, 5, 1)).verdict, Verdict::misordered);
    EXPECT_EQ(cache.check(request(1, first, 1)).verdict, Verdict::fresh);
    cache.complete(1, {}, false);
    EXPECT_EQ(cache.check(request(1, first + 1, 1)).verdict, Verdict::fresh);
  }
}

TEST(ReplyCache, RequestAboveItsOwnHighestDoesNotRetireItself) {
  ReplyCache cache(3, 100);
  cache.set_target(1);
  cache.check(request(2, 1, 2));
  cache.complete(2, {}, false);
  EXPECT_EQ(cache.check(request(2, 2, 0)).verdict, Verdict::fresh);
  EXPECT_EQ(cache.slots(), 3u);
}

TEST(ReplyCache, HoldsNoMoreThanItWasGiven) {
  ReplyCache cache(2, 64);
  const std::string big(64, 'x');
  cache.check(request(0, 1));
  cache.complete(0, bytes_of(big), true);
  EXPECT_EQ(cache.cached_bytes(), 64u);
  cache.check(request(0, 2));
  cache.complete(0, bytes_of("tiny"), true);
  EXPECT_EQ(cache.cached_bytes(), 64u) << "the slot's memory is used again";
  EXPECT_EQ(text_of(cache.check(request(0, 2)).reply), "tiny");
}

TEST(ReplyCache, StatusOfEachVerdict) {
  EXPECT_EQ(status_of(Verdict::fresh), nfs4::Status::ok);
  EXPECT_EQ(status_of(Verdict::in_progress), nfs4::Status::delay);
  EXPECT_EQ(status_of(Verdict::false_retry), nfs4::Status::seq_false_retry);
  EXPECT_EQ(status_of(Verdict::misordered), nfs4::Status::seq_misordered);
  EXPECT_EQ(status_of(Verdict::bad_slot), nfs4::Status::badslot);
  EXPECT_EQ(status_of(Verdict::bad_highest), nfs4::Status::bad_high_slot);
}

// Requester and replier together: whatever the replier does to its target, they agree on every sequence id.
TEST(Slots, RequesterAndReplierStayInStep) {
  constexpr nfs4::SessionId session{};
  SlotTable table(8, 32);
  ReplyCache cache(8, 64);
  uint32_t seed = 12345;
  const auto random = [&seed](uint32_t below) {
    return (seed = seed * 1664525 + 1013904223) / 65536 % below;
  };
  std::vector<nfs4::SequenceArgs> out;
  int bad_slots = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random(100) < 3) cache.set_target(1 + random(32));
    std::optional<uint32_t> slot = random(2) ? table.acquire() : std::nullopt;
    if (slot) {
      const nfs4::SequenceArgs args = table.sequence(*slot, session, true);
      const Verdict verdict =
          cache.check({args.slotid, args.sequenceid, args.highest_slotid, true, 0}).verdict;
      if (verdict == Verdict::bad_slot) {
        ASSERT_TRUE(table.bad_slot(*slot));
        ++bad_slots;
        continue;
      }
      ASSERT_EQ(verdict, Verdict::fresh)
          << "step " << step << " slot " << *slot << " sequence id " << args.sequenceid;
      out.push_back(args);
    } else if (!out.empty()) {
      const size_t at = random(static_cast<uint32_t>(out.size()));
      const nfs4::SequenceArgs args = out[at];
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
      cache.complete(args.slotid, bytes_of("reply"), random(2) == 0);
      ASSERT_EQ(table.on_sequence(args.slotid, session,
                                  nfs4::SequenceResult{session, args.sequenceid, args.slotid, cache.highest(),
                                                       cache.target_highest(), 0}),
                ReplyCheck::good);
      table.accepted(args.slotid);
    }
  }
  EXPECT_GT(table.sequence_id(0), 100u);
  EXPECT_LT(bad_slots, 500) << "retired under the requester's feet: legal, but rare";
}

}  // namespace
}  // namespace nfsrdma::slots
