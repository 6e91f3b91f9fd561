// SPDX-License-Identifier: Apache-2.0
// The decorators over the loop provider: what they log, and that faults come as planned and repeatably.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/log.hpp"
#include "rdma/providers.hpp"
#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {

FaultPlan plan_for_next_test;
bool trace_in_next_test = false;

std::vector<ContractProvider> contract_providers() {
  return {{"loop",
           [] {
             auto inner = make_loop_provider();
             return trace_in_next_test ? make_trace_provider(inner)
                                       : make_fault_provider(inner, plan_for_next_test);
           },
           loopback()}};
}

namespace {

std::vector<std::string> lines;

class HookBase : public ContractTest {
 protected:
  void SetUp() override {}  // each test chooses its plan first
  void start(const FaultPlan& plan) {
    trace_in_next_test = false;
    plan_for_next_test = plan;
    ContractTest::SetUp();
    connect_pair();
  }
  // Sends n messages of 100 bytes one after the other; what the server saw of each.
  std::vector<std::string> exchange(int n) {
    Memory out(*client_.pd, 4096), in(*server_.pd, 4096);
    out.fill(1);
    std::vector<std::string> seen;
    for (int i = 0; i < n; i++) {
      uint64_t id = 100 + static_cast<uint64_t>(i);
      if (!receive(server_, id, in, 0, 200) || !send(client_, id, out, 0, 100)) {
        seen.push_back("not taken");
        break;
      }
      if (!until([&] { return server_.find(id) && client_.find(id); })) break;
      const Completion& c = *server_.find(id);
      size_t wrong = 0;
      for (size_t k = 0; k < c.length; k++) wrong += in[k] != pattern(1, k);
      seen.push_back(base::text("%s %u %zu", to_string(c.status), c.length, wrong));
    }
    client_.qp.reset();
    server_.qp.reset();
    return seen;
  }
  void restart() {
    TearDown();
    client_ = End{};
    server_ = End{};
  }
};

class Faults : public HookBase {};

TEST_P(Faults, TruncatedReceives) {
  FaultPlan plan;
  plan.truncate_receive = 500'000;
  start(plan);
  auto seen = exchange(40);
  ASSERT_EQ(seen.size(), 40u);
  size_t whole = static_cast<size_t>(std::count(seen.begin(), seen.end(), "success 100 0"));
  EXPECT_GT(whole, 5u);
  EXPECT_LT(whole, 35u);
}

TEST_P(Faults, CorruptedReceivesDifferInOneByte) {
  FaultPlan plan;
  plan.corrupt_receive = 1'000'000;
  start(plan);
  for (const std::string& s : exchange(20)) EXPECT_EQ(s, "success 100 1");
}

TEST_P(Faults, FailedCompletionEndsThePair) {
  FaultPlan plan;
  plan.fail_completion = 1'000'000;
  start(plan);
  auto seen = exchange(5);
  ASSERT_GE(seen.size(), 1u);
  EXPECT_EQ(seen[0].substr(0, 15), "transport error");
  EXPECT_LE(seen.size(), 2u);
}

TEST_P(Faults, DroppedConnection) {
  FaultPlan plan;
  plan.drop_connection = 1'000'000;
  start(plan);
  Memory out(*client_.pd, 4096);
  EXPECT_FALSE(send(client_, 1, out, 0, 10).ok());
  EXPECT_TRUE(both_down());
  client_.qp.reset();
}

TEST_P(Faults, DelayedCompletionsKeepTheirOrder) {
  FaultPlan plan;
  plan.delay_completion = 500'000;
  plan.delay_max_ns = base::us(300);
  start(plan);
  Memory out(*client_.pd, 4096), in(*server_.pd, 4096);
  for (uint64_t id = 0; id < 30; id++) ASSERT_TRUE(receive(server_, id, in, 0, 64).ok());
  for (uint64_t id = 0; id < 30; id++) ASSERT_TRUE(send(client_, id, out, 0, 64).ok());
  ASSERT_TRUE(until([&] { return server_.seen.size() == 30 && client_.seen.size() == 30; }));
  for (uint64_t id = 0; id < 30; id++) {
    EXPECT_EQ(server_.seen[id].id, id);
    EXPECT_EQ(client_.seen[id].id, id);
  }
  client_.qp.reset();
  server_.qp.reset();
}

// A held completion is announced by the deadline and handed out when its time has come, not before.
TEST_P(Faults, DelayFollowsTheClockThatIsPassedIn) {
  FaultPlan plan;
  plan.delay_completion = 1'000'000;
  plan.delay_max_ns = base::seconds(100);
  start(plan);
  Memory out(*client_.pd, 4096), in(*server_.pd, 4096);
  ASSERT_TRUE(receive(server_, 1, in, 0, 64).ok());
  ASSERT_TRUE(send(client_, 2, out, 0, 64, false).ok());
  Completion c[4];
  TimeNs now = base::system_clock().now_ns();
  EXPECT_EQ(server_.cq->poll(now, c), 0u);
  TimeNs due = server_.cq->deadline_ns();
  ASSERT_GT(due, now);
  ASSERT_LE(due, now + plan.delay_max_ns);
  EXPECT_TRUE(server_.cq->arm());
  EXPECT_EQ(server_.cq->poll(due - 1, c), 0u);
  EXPECT_EQ(server_.cq->poll(due, c), 1u);
  EXPECT_EQ(c[0].id, 1u);
  EXPECT_EQ(server_.cq->deadline_ns(), base::never_ns);
  client_.qp.reset();
  server_.qp.reset();
}

TEST_P(Faults, TheSameSeedDoesTheSame) {
  FaultPlan plan;
  plan.truncate_receive = 300'000;
  plan.corrupt_receive = 300'000;
  std::vector<std::vector<std::string>> runs;
  for (uint64_t seed : {7u, 7u, 8u}) {
    plan.seed = seed;
    start(plan);
    runs.push_back(exchange(40));
    restart();
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST_P(Faults, UnsignaledFailureIsReported) {
  start({});
  Memory out(*client_.pd, 4096);
  ASSERT_TRUE(send(client_, 3, out, 0, 10, false).ok());  // nothing is posted over there
  ASSERT_TRUE(until([&] { return client_.find(3) != nullptr; }));
  EXPECT_EQ(client_.find(3)->status, CompletionStatus::rnr_exceeded);
  client_.qp.reset();
  server_.qp.reset();
}

class Trace : public HookBase {};

TEST_P(Trace, OneLinePerRequestAndCompletion) {
  trace_in_next_test = true;
  ContractTest::SetUp();
  lines.clear();
  base::set_log([](base::LogLevel, std::string_view, std::string_view line) { lines.emplace_back(line); },
                base::LogLevel::trace);
  connect_pair();
  Memory out(*client_.pd, 4096), in(*server_.pd, 4096);
  auto exposure = server_.qp->expose(*in, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  ASSERT_TRUE(receive(server_, 1, in, 0, 64).ok());
  ASSERT_TRUE(tagged(client_, Opcode::write, 2, {{out.get(), 0, 77}}, {exposure->key, exposure->base}).ok());
  ASSERT_TRUE(send(client_, 3, out, 0, 64, false).ok());
  ASSERT_TRUE(until([&] { return server_.find(1) && client_.find(2); }));
  settle();
  EXPECT_EQ(client_.find(3), nullptr);
  EXPECT_TRUE(server_.qp->fence(*exposure, 9));
  client_.qp.reset();
  ASSERT_TRUE(until([&] { return server_.handler.disconnected.has_value(); }));
  server_.qp.reset();
  base::set_log(nullptr, base::LogLevel::off);
  auto count = [](const std::string& part) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& l) { return l.find(part) != l.npos; });
  };
  EXPECT_EQ(count("established"), 2);
  EXPECT_EQ(count("expose key"), 1);
  EXPECT_EQ(count("fence key"), 1);
  EXPECT_EQ(count("post receive id 1 bytes 64"), 1);
  EXPECT_EQ(count("post write id 2 bytes 77"), 1);
  EXPECT_EQ(count("post send id 3 bytes 64"), 1);
  EXPECT_EQ(count("done write id 2 success bytes 77"), 1);
  EXPECT_EQ(count("done send id 3 success"), 1);
  EXPECT_EQ(count("done receive id 1 success bytes 64"), 1);
  EXPECT_EQ(count("disconnected"), 1);
}

INSTANTIATE_TEST_SUITE_P(Hook, Faults, testing::ValuesIn(contract_providers()));
INSTANTIATE_TEST_SUITE_P(Hook, Trace, testing::ValuesIn(contract_providers()));

}  // namespace
}  // namespace nfsrdma::rdma::contract
