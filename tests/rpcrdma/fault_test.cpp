// SPDX-License-Identifier: Apache-2.0
// What a client makes of responders that break the rules, and of connections that end.
#include "tests/rpcrdma/store_service.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

using rpc::CallOutcome;

class Faults : public Pair {
 protected:
  StoreService store;
  std::unique_ptr<Memory> into;

  void begin() {
    service.handler = std::ref(store);
    start();
    open_credits();
    store.source = std::make_unique<Memory>(*pd, 65536);
    store.source->fill(1);
    into = std::make_unique<Memory>(*pd, 65536);
    into->fill(9);
  }
  void next(ReplyFaultKind kind, uint32_t value = 0) {
    ReplyFault fault;
    fault.kind = kind;
    fault.value = value;
    faults.replies.push_back(fault);
  }
  // A fetch of 20,000 bytes by write chunk, answered under the fault.
  void fetch(TestCall& call) { run(make_fetch(call, {into->sge(0, 20'000)}, 20'000)); }
  void expect_bad(ReplyFaultKind kind, uint32_t value = 0) {
    begin();
    next(kind, value);
    TestCall call, bystander;
    make_results(bystander, 4, 4);
    faults.replies.push_back({});
    faults.replies.back().kind = ReplyFaultKind::drop;
    make_fetch(call, {into->sge(0, 20'000)}, 20'000);
    endpoint->submit(call);
    endpoint->submit(bystander);
    endpoint->flush();
    ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
    ASSERT_TRUE(call.done() && bystander.done());
    EXPECT_EQ(call.outcome, CallOutcome::bad_reply) << call.error.text();
    EXPECT_EQ(call.error.errno_value(), EIO);
    EXPECT_EQ(call.error.origin(), ErrorOrigin::protocol);
    EXPECT_EQ(bystander.outcome, CallOutcome::lost);
    EXPECT_FALSE(endpoint->up());
    EXPECT_EQ(endpoint->stats().bad_replies, 1u);
    expect_reconnect_works();
  }
  void expect_reconnect_works() {
    endpoint.reset();
    faults.replies.clear();
    connect_client();
    ASSERT_TRUE(endpoint) << connect_error;
    open_credits();
    TestCall again;
    fetch(again);
    EXPECT_EQ(again.outcome, CallOutcome::replied) << again.error.text();
    EXPECT_EQ(pool->stats().bytes_used, 0u);
  }
};
NFSRDMA_BOTH_PROVIDERS(Faults);

TEST_P(Faults, F4SegmentLongerThanOffered) { expect_bad(ReplyFaultKind::long_segment); }
TEST_P(Faults, F4HundredThousandSegments) { expect_bad(ReplyFaultKind::many_segments); }
TEST_P(Faults, F4FourBillionSegments) { expect_bad(ReplyFaultKind::many_segments, 0xffffffff); }
TEST_P(Faults, F4UnknownVersion) { expect_bad(ReplyFaultKind::bad_version); }
TEST_P(Faults, F4UnknownProcedure) { expect_bad(ReplyFaultKind::bad_procedure); }
TEST_P(Faults, WrongHandle) { expect_bad(ReplyFaultKind::wrong_handle); }
TEST_P(Faults, ReadListInAReply) { expect_bad(ReplyFaultKind::read_list); }
TEST_P(Faults, LongReplyWithoutAChunk) { expect_bad(ReplyFaultKind::nomsg_empty); }

TEST_P(Faults, F4TruncatedAnywhere) {
  for (uint32_t n : {16u, 20u, 27u, 36u, 51u, 52u, 53u, 60u, 64u, 71u, 75u}) {
    SCOPED_TRACE(n);
    expect_bad(ReplyFaultKind::truncated, n);
    TearDown();
    pd.reset();
    observer.downs = 0;
    service.connections.clear();
  }
}

// Cut before the xid can be read, there is no call to blame: the connection goes and all calls are lost.
TEST_P(Faults, F4TruncatedToNearlyNothing) {
  for (uint32_t n : {1u, 4u, 15u}) {
    begin();
    next(ReplyFaultKind::truncated, n);
    TestCall call;
    fetch(call);
    EXPECT_EQ(call.outcome, CallOutcome::lost);
    EXPECT_EQ(call.error.origin(), ErrorOrigin::protocol);
    expect_reconnect_works();
    TearDown();
    pd.reset();
  }
}

TEST_P(Faults, ChunkThatWasNotOffered) {
  begin();
  next(ReplyFaultKind::extra_chunk);
  TestCall call;
  run(make_results(call, 4, 4));
  EXPECT_EQ(call.outcome, CallOutcome::bad_reply);
  expect_reconnect_works();
}

// The transport cannot know how much a READ returned; it hands up what it was told, and the layer that reads
// the length word finds the difference.
TEST_P(Faults, ShortSegmentIsReportedAsSuch) {
  begin();
  next(ReplyFaultKind::short_segment, 100);
  TestCall call;
  fetch(call);
  EXPECT_EQ(call.outcome, CallOutcome::replied);
  EXPECT_EQ(call.data_length, 19'900u);
  EXPECT_EQ(call.word(0), 20'000u);
}

TEST_P(Faults, UnknownXidIsDroppedAndCounted) {
  begin();
  next(ReplyFaultKind::unknown_xid);
  TestCall unanswered, other;
  endpoint->submit(make_results(unanswered, 4, 4));
  endpoint->submit(make_results(other, 4, 4));
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return other.done(); }));
  settle();
  EXPECT_EQ(other.outcome, CallOutcome::replied);
  EXPECT_FALSE(unanswered.done());
  EXPECT_EQ(endpoint->stats().bad_xids, 1u);
  EXPECT_TRUE(endpoint->up());
  endpoint->drop(Error(ETIMEDOUT, ErrorOrigin::connection, "the call timed out"));
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  EXPECT_EQ(unanswered.outcome, CallOutcome::lost);
  EXPECT_EQ(unanswered.error.errno_value(), ETIMEDOUT);
}

TEST_P(Faults, SecondReplyIsDroppedAndCounted) {
  begin();
  next(ReplyFaultKind::twice);
  TestCall call;
  run(make_results(call, 4, 4));
  settle();
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(endpoint->stats().bad_xids, 1u);
  EXPECT_TRUE(endpoint->up());
}

TEST_P(Faults, ErrChunkFailsOneCallAndKeepsTheConnection) {
  begin();
  next(ReplyFaultKind::error_chunk);
  TestCall call, after;
  fetch(call);
  EXPECT_EQ(call.outcome, CallOutcome::chunk_error);
  EXPECT_EQ(endpoint->stats().local_fences, 1u);
  fetch(after);
  EXPECT_EQ(after.outcome, CallOutcome::replied);
  EXPECT_TRUE(endpoint->up());
}

TEST_P(Faults, ErrVersIsPermanent) {
  begin();
  next(ReplyFaultKind::error_version);
  TestCall call;
  fetch(call);
  EXPECT_EQ(call.outcome, CallOutcome::refused);
  EXPECT_EQ(call.error.errno_value(), EPROTONOSUPPORT);
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  EXPECT_EQ(observer.errno_value, EPROTONOSUPPORT);
}

// A responder that leaves the write chunk unused: the results are whole.
TEST_P(Faults, WriteChunkIgnored) {
  for (ReplyFaultKind kind : {ReplyFaultKind::write_chunk_unused, ReplyFaultKind::write_chunk_empty,
                              ReplyFaultKind::write_chunk_absent}) {
    begin();
    next(kind);
    TestCall call;
    // 3,901 bytes would fit inline; a bound of 200 for the rest makes the client offer a chunk.
    make_fetch(call, {into->sge(0, 3901)}, 3901).results_bytes_max = 200;
    run(call);
    ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
    EXPECT_FALSE(call.data_placed);
    EXPECT_EQ(call.data_length, 0u);
    ASSERT_EQ(call.got.size(), 4u + 3904 + 4);
    for (uint32_t i = 0; i < 3901; i++) ASSERT_EQ(call.got[4 + i], Memory::pattern(1, i));
    EXPECT_EQ(call.got[4 + 3901], std::byte{0});
    for (uint32_t i = 0; i < 3901; i++) ASSERT_EQ(into->data[i], Memory::pattern(9, i));
    TearDown();
    pd.reset();
  }
}

TEST_P(Faults, F2OversizedSendEndsTheConnectionWithAReason) {
  begin();
  next(ReplyFaultKind::oversized);
  TestCall call;
  run(make_results(call, 4, 4));
  EXPECT_EQ(call.outcome, CallOutcome::lost);
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  expect_reconnect_works();
}

TEST_P(Faults, AReplyAboveTheAnnouncedSizeStillFindsRoom) {
  // knfsd does not look at what the client announced; Receives are twice as large for that.
  client_params.inline_bytes = 4096;
  server_params.responder.inline_bytes = 8192;
  begin();
  next(ReplyFaultKind::oversized, 8192);
  TestCall call;
  run(make_results(call, 4, 4));
  EXPECT_NE(call.outcome, CallOutcome::replied);  // it is 8,192 bytes of nonsense
  EXPECT_EQ(observer.why.find("larger than"), std::string::npos);
}

TEST_P(Faults, InvalidationOfAnotherCallsMemoryIsHostile) {
  begin();
  std::unique_ptr<rpc::ServerCall> held;
  service.handler = [&](std::unique_ptr<rpc::ServerCall> call) {
    if (held) return store(std::move(call));
    held = std::move(call);
  };
  TestCall first, second;
  endpoint->submit(make_fetch(first, {into->sge(0, 20'000)}, 20'000));
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return held != nullptr; }));
  next(ReplyFaultKind::wrong_invalidate);
  endpoint->submit(make_results(second, 4, 4));
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  EXPECT_EQ(second.outcome, CallOutcome::bad_reply);
  EXPECT_EQ(first.outcome, CallOutcome::lost);
  EXPECT_NE(observer.why.find("invalidated"), std::string::npos) << observer.why;
  held.reset();
}

TEST_P(Faults, InvalidationOfAnUnknownKeyEndsTheConnection) {
  begin();
  next(ReplyFaultKind::wrong_invalidate, 0x01020304);
  TestCall call;
  run(make_results(call, 4, 4));
  EXPECT_NE(call.outcome, CallOutcome::replied);
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  expect_reconnect_works();
}

TEST_P(Faults, DelayedReplyIsAReply) {
  begin();
  ReplyFault slow;
  slow.delay_ns = base::ms(50);
  faults.replies.push_back(slow);
  TestCall call;
  const base::TimeNs before = clock.now_ns();
  run(make_results(call, 4, 4));
  EXPECT_EQ(call.outcome, CallOutcome::replied);
  EXPECT_GE(clock.now_ns() - before, base::ms(50));
}

TEST_P(Faults, DisconnectWithCallsInFlight) {
  server_params.responder.credits = 4;
  begin();
  std::vector<std::unique_ptr<rpc::ServerCall>> held;
  service.handler = [&](std::unique_ptr<rpc::ServerCall> call) { held.push_back(std::move(call)); };
  TestCall calls[10];
  for (TestCall& call : calls) endpoint->submit(make_fetch(call, {into->sge(0, 5000)}, 5000));
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return held.size() == 4; }));
  ASSERT_EQ(service.connections.size(), 1u);
  service.connections[0]->drop(Error(ECONNABORTED, ErrorOrigin::local, "test"));
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(calls[i].completions, 1);
    EXPECT_EQ(calls[i].outcome, i < 4 ? CallOutcome::lost : CallOutcome::not_sent) << i;
    EXPECT_EQ(calls[i].error.origin(), ErrorOrigin::connection);
  }
  EXPECT_EQ(service.disconnects, 1);
  // The service still has its calls; answering them goes nowhere and hurts nobody.
  into->fill(9);
  store.source->fill(1);
  for (auto& call : held) store(std::move(call));
  EXPECT_EQ(store.releases, 4);
  for (uint32_t i = 0; i < 5000; i++) ASSERT_EQ(into->data[i], Memory::pattern(9, i));
  EXPECT_EQ(acceptor->connections(), 0u);
  service.handler = std::ref(store);
  expect_reconnect_works();
}

TEST_P(Faults, SubmitWhileDownIsNotSent) {
  begin();
  std::vector<CallOutcome> outcomes;
  TestCall call;
  // Completion submits again: to a transport that is going down, then to one that is down.
  make_results(call, 4, 4).then = [&](TestCall& self) {
    outcomes.push_back(self.outcome);
    if (outcomes.size() < 3) endpoint->submit(self);
  };
  endpoint->drop(Error(ETIMEDOUT, ErrorOrigin::connection, "test"));
  EXPECT_FALSE(endpoint->up());
  endpoint->submit(call);
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  EXPECT_EQ(outcomes, (std::vector<CallOutcome>(3, CallOutcome::not_sent)));
  EXPECT_EQ(call.error.errno_value(), ETIMEDOUT);
}

TEST_P(Faults, DestructionCompletesWhatIsLeft) {
  begin();
  next(ReplyFaultKind::drop);
  TestCall call;
  endpoint->submit(make_fetch(call, {into->sge(0, 20'000)}, 20'000));
  endpoint->flush();
  settle();
  EXPECT_FALSE(call.done());
  endpoint.reset();
  EXPECT_EQ(call.outcome, CallOutcome::lost);
  EXPECT_EQ(observer.downs, 0);
  EXPECT_EQ(pool->stats().bytes_used, 0u);
}

TEST_P(Faults, ConnectionDroppedAfterExecution) {
  begin();
  next(ReplyFaultKind::drop_connection);
  TestCall call;
  run(make_results(call, 4, 4));
  EXPECT_EQ(call.outcome, CallOutcome::lost);
  ASSERT_TRUE(turn_until([&] { return observer.downs == 1; }));
  expect_reconnect_works();
}

class Connecting : public Pair {};
NFSRDMA_BOTH_PROVIDERS(Connecting);

TEST_P(Connecting, RefusedRejectedAndSwallowed) {
  client_params.timeout_ns = base::ms(300);
  make_drivers();
  serve();
  faults.connect.reject = true;
  connect_client();
  EXPECT_FALSE(endpoint);
  EXPECT_FALSE(connect_error.empty());
  faults.connect.reject = false;
  faults.connect.swallow = true;
  connect_error.clear();
  connect_client();
  EXPECT_FALSE(endpoint);
  EXPECT_FALSE(connect_error.empty());
  faults.connect.swallow = false;
  connect_client();
  EXPECT_TRUE(endpoint) << connect_error;
  EXPECT_EQ(acceptor->connections(), 1u);
}

TEST_P(Connecting, GivenUpWhileConnecting) {
  make_drivers();
  serve();
  faults.connect.swallow = true;
  make_pd();
  client_params.remote = acceptor->local();
  {
    auto task = connect(*driver, pd, *pool, client_params, observer, &reverse);
    bool over = false;
    auto wait = [](io::Task<Result<std::unique_ptr<Endpoint>>> t, bool& flag) -> io::Task<void> {
      (void)co_await t;
      flag = true;
    }(std::move(task), over);
    auto handle = wait.operator co_await();
    handle.await_suspend(std::noop_coroutine()).resume();
    settle();
    EXPECT_FALSE(over);
  }
  settle();
}

TEST_P(Connecting, TooManyConnections) {
  server_params.connections_max = 2;
  start();
  auto first = std::move(endpoint);
  connect_client();
  ASSERT_TRUE(endpoint);
  auto second = std::move(endpoint);
  connect_client();
  EXPECT_FALSE(endpoint);
  second.reset();
  ASSERT_TRUE(turn_until([&] { return acceptor->connections() == 1; }));
  connect_client();
  EXPECT_TRUE(endpoint) << connect_error;
}

// Each end with and without private data, at several sizes: the smaller side counts, and silence means 1,024.
TEST_P(Connecting, F2InlineSizesAreAgreed) {
  StoreService store;
  service.handler = std::ref(store);
  for (uint32_t ours : {1024u, 4096u, 8192u})
    for (uint32_t theirs : {1024u, 4096u, 8192u})
      for (bool we_announce : {true, false})
        for (bool they_announce : {true, false}) {
          SCOPED_TRACE(::testing::Message() << ours << " " << theirs << " " << we_announce << they_announce);
          client_params.inline_bytes = ours;
          client_params.announce = we_announce;
          server_params.responder.inline_bytes = theirs;
          server_params.responder.receive_bytes =
              0;  // exactly what was announced: one byte more ends the connection
          faults.connect.private_data = they_announce;
          start();
          open_credits();
          const uint32_t agreed = std::min(ours, they_announce ? theirs : 1024u);
          EXPECT_EQ(endpoint->send_inline_bytes(), agreed);
          const uint32_t back_agreed = we_announce ? agreed : 1024u;
          EXPECT_EQ(endpoint->receive_inline_bytes(), back_agreed);
          EXPECT_EQ(endpoint->reverse_bytes_max(), std::min(back_agreed, 4096u) - 28);
          Memory memory(*pd, 1u << 20);
          store.source = std::make_unique<Memory>(*pd, 1u << 20);
          for (uint32_t n : {1u, 900u, 944u, 948u, 1100u, 4016u, 4017u, 8112u, 8113u, 1u << 20}) {
            TestCall call, back, echo;
            run(make_store(call, {memory.sge(0, n)}, n));
            ASSERT_EQ(call.outcome, CallOutcome::replied) << n << call.error.text();
            run(make_fetch(back, {memory.sge(0, n)}, n));
            ASSERT_EQ(back.outcome, CallOutcome::replied) << n << back.error.text();
            std::vector<uint32_t> words(std::max(2u, std::min(n, 100'000u) / 4));
            words[0] = op_echo;
            echo.set_args(words);
            echo.results_bytes_max = static_cast<uint32_t>(words.size() * 4);
            run(echo);
            ASSERT_EQ(echo.outcome, CallOutcome::replied) << n << echo.error.text();
          }
          EXPECT_TRUE(endpoint->up());
          store.source.reset();
          TearDown();
          pd.reset();
        }
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
