// SPDX-License-Identifier: Apache-2.0
// Flow control: never more calls out than the latest grant, and never none.
#include "tests/rpcrdma/store_service.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

using rpc::CallOutcome;

// Holds calls until the test answers them, so that it sees how many the client lets out.
class FlowControl : public Pair {
 protected:
  std::deque<std::unique_ptr<rpc::ServerCall>> held;
  std::vector<std::unique_ptr<TestCall>> calls;
  int done = 0;

  void begin() {
    service.handler = [this](std::unique_ptr<rpc::ServerCall> call) { held.push_back(std::move(call)); };
    start();
  }
  void submit(int n) {
    for (int i = 0; i < n; i++) {
      calls.push_back(std::make_unique<TestCall>());
      make_results(*calls.back(), 4, 4).then = [this](TestCall&) { done++; };
      endpoint->submit(*calls.back());
    }
    endpoint->flush();
  }
  // How many calls are at the server once nothing moves any more.
  size_t outstanding() {
    settle();
    return held.size();
  }
  // Answers the oldest call with this grant.
  void answer(uint32_t grant) {
    ASSERT_FALSE(held.empty());
    faults.replies.push_back({});
    faults.replies.back().credits = grant;
    auto call = std::move(held.front());
    held.pop_front();
    call->reply(rpc::AcceptStatus::success, 0);
  }
  void TearDown() override {
    held.clear();
    Pair::TearDown();
  }
};
NFSRDMA_BOTH_PROVIDERS(FlowControl);

TEST_P(FlowControl, OneUntilTheFirstReplyThenTheGrant) {
  begin();
  EXPECT_EQ(endpoint->credits_free(), 1u);
  submit(30);
  EXPECT_EQ(endpoint->credits_free(), 0u);
  EXPECT_EQ(outstanding(), 1u);
  answer(8);
  EXPECT_EQ(outstanding(), 8u);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(endpoint->credits_granted(), 8u);
  // Summed at each Send, that call included: 1 alone, then up to 8 at once.
  EXPECT_EQ(endpoint->stats().in_flight_sum, 1u + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
}

TEST_P(FlowControl, ZeroCountsAsOne) {
  begin();
  submit(5);
  for (int i = 0; i < 5; i++) {
    EXPECT_EQ(outstanding(), 1u);
    answer(0);
  }
  settle();
  EXPECT_EQ(done, 5);
  EXPECT_EQ(endpoint->credits_granted(), 1u);
}

TEST_P(FlowControl, AShrunkenGrantIsWaitedOut) {
  begin();
  submit(40);
  EXPECT_EQ(outstanding(), 1u);
  answer(16);
  EXPECT_EQ(outstanding(), 16u);
  answer(4);  // 15 are out: nothing new until fewer than 4 are
  EXPECT_EQ(outstanding(), 15u);
  for (int out = 14; out >= 4; out--) {
    answer(4);
    EXPECT_EQ(outstanding(), static_cast<size_t>(out));
  }
  answer(4);
  EXPECT_EQ(outstanding(), 4u);
  answer(1);
  EXPECT_EQ(outstanding(), 3u);
  answer(6);
  EXPECT_EQ(outstanding(), 6u);
  EXPECT_TRUE(endpoint->up());
}

TEST_P(FlowControl, F4AHugeGrantMeetsOurOwnCeiling) {
  client_params.credits = 24;
  server_params.responder.credits = 64;
  begin();
  submit(100);
  EXPECT_EQ(outstanding(), 1u);
  answer(4'000'000'000u);
  EXPECT_EQ(outstanding(), 24u);
  EXPECT_EQ(endpoint->credits_granted(), 24u);
  answer(0xffffffff);
  EXPECT_EQ(outstanding(), 24u);
}

TEST_P(FlowControl, EverythingIsAnsweredUnderAChangingGrant) {
  begin();
  base::SeededRandom random(3);
  submit(400);
  uint32_t grant = 1, highest = 0;
  for (int i = 0; i < 400; i++) {
    const size_t out = outstanding();
    ASSERT_GE(out, 1u);
    highest = std::max(highest, static_cast<uint32_t>(out));
    grant = static_cast<uint32_t>(random.below(40));
    answer(grant);
  }
  settle();
  EXPECT_EQ(done, 400);
  EXPECT_LE(highest, 40u);
  for (auto& call : calls) EXPECT_EQ(call->outcome, CallOutcome::replied);
}

// The last call's completion submits the next one: the credit goes round without anybody's flush.
TEST_P(FlowControl, SubmitFromCompletionUsesTheFreedCredit) {
  server_params.responder.credits = 1;
  start();
  TestCall call;
  int rounds = 0;
  make_results(call, 4, 4).then = [&](TestCall& self) {
    if (++rounds < 200) endpoint->submit(self);
  };
  endpoint->submit(call);
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return rounds == 200; }));
  EXPECT_EQ(endpoint->stats().sends, 200u);
  EXPECT_EQ(endpoint->in_flight(), 0u);
}

TEST_P(FlowControl, XidsDoNotRepeat) {
  std::vector<uint32_t> xids;
  service.handler = [&](std::unique_ptr<rpc::ServerCall> call) {
    xids.push_back(call->header.xid);
    call->reply(rpc::AcceptStatus::success, 0);
  };
  client_params.credits = 5;
  start();
  for (int i = 0; i < 500; i++) {
    TestCall call;
    run(call);
  }
  std::ranges::sort(xids);
  EXPECT_EQ(std::ranges::adjacent_find(xids), xids.end());
}

// The server's side: more calls than it granted find Receives for a few, and never take more than that.
TEST_P(FlowControl, ManyConnectionsAtOnce) {
  service.handler = {};
  start();
  std::vector<std::unique_ptr<Endpoint>> more;
  for (int i = 0; i < 15; i++) {
    more.push_back(std::move(endpoint));
    connect_client();
    ASSERT_TRUE(endpoint) << connect_error;
  }
  EXPECT_EQ(acceptor->connections(), 16u);
  more.push_back(std::move(endpoint));
  std::vector<std::unique_ptr<TestCall>> all;
  int answered = 0;
  for (auto& e : more)
    for (int i = 0; i < 50; i++) {
      all.push_back(std::make_unique<TestCall>());
      make_results(*all.back(), 4, 4).then = [&](TestCall&) { answered++; };
      e->submit(*all.back());
    }
  for (auto& e : more) e->flush();
  ASSERT_TRUE(turn_until([&] { return answered == 16 * 50; }));
  more.clear();
  ASSERT_TRUE(turn_until([&] { return acceptor->connections() == 0; }));
  EXPECT_EQ(service.disconnects, 16);
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
