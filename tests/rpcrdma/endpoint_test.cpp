// SPDX-License-Identifier: Apache-2.0
// Both roles against each other: every form in which a call and its reply can travel.
#include "tests/rpcrdma/store_service.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

using rpc::CallOutcome;

constexpr uint32_t mib = 1u << 20;

class Forms : public Pair {
 protected:
  StoreService store;
  int fetches = 0;
  void begin() {
    service.handler = std::ref(store);
    start();
    open_credits();
  }
  // Sends a store of the pieces, whose bytes are pattern(seed) in order, and checks what arrived.
  void check_store(std::vector<rdma::Sge> pieces, uint32_t n) {
    TestCall call;
    std::vector<std::byte> expected;
    for (const rdma::Sge& p : pieces)
      expected.insert(expected.end(), p.region->host() + p.offset, p.region->host() + p.offset + p.length);
    run(make_store(call, std::move(pieces), n));
    ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
    ASSERT_EQ(call.got.size(), 4u);
    EXPECT_EQ(call.word(0), n);
    EXPECT_EQ(store.stored, expected);
    ASSERT_EQ(store.tail.size(), 4u);
    EXPECT_EQ(base::load_be<uint32_t>(store.tail.data()), trailer);
  }
  // The first n bytes of `into`, which is pattern(9) beforehand, must become pattern(1), the rest must stay.
  void check_fetch(Memory& into, std::vector<rdma::Sge> pieces, uint32_t n) {
    into.fill(9);
    TestCall call;
    run(make_fetch(call, std::move(pieces), n));
    ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
    ASSERT_GE(call.got.size(), 8u);
    EXPECT_EQ(call.word(0), n);
    std::vector<std::byte> data;
    size_t results_end = 4;
    if (call.data_placed) {
      EXPECT_EQ(call.data_length, n);
      for (const rdma::Sge& p : call.in_pieces)
        data.insert(data.end(), p.region->host() + p.offset, p.region->host() + p.offset + p.length);
      data.resize(n);
    } else {
      EXPECT_EQ(call.data_length, 0u);
      ASSERT_GE(call.got.size(), 8 + n + base::pad4(n));
      data.assign(call.got.begin() + 4, call.got.begin() + 4 + n);
      results_end += n + base::pad4(n);
    }
    EXPECT_EQ(base::load_be<uint32_t>(call.got.data() + results_end), trailer);
    EXPECT_EQ(call.got.size(), results_end + 4);
    ASSERT_EQ(Memory::wrong_byte(data.data(), n, 1), n);
    fetches++;
    ASSERT_TRUE(turn_until([&] { return store.releases == fetches; }));
  }
  void expect_untouched(const Memory& m, size_t from) {
    ASSERT_EQ(Memory::wrong_byte(m.data + from, m.bytes - from, 9, from), m.bytes - from);
  }
};
NFSRDMA_BOTH_PROVIDERS(Forms);

const uint32_t sizes[] = {0,    1,    2,     3,     4,     5,       6,       7,       400,  900,
                          901,  902,  903,   1000,  1023,  1024,    1025,    1100,    3900, 3901,
                          3902, 3903, 3904,  3950,  3999,  4000,    4095,    4096,    4097, 8191,
                          8192, 8193, 65535, 65536, 65537, mib - 1, mib - 2, mib - 3, mib,  mib + 1};

TEST_P(Forms, NullCallAndSmallCall) {
  begin();
  EXPECT_EQ(endpoint->credits_granted(), 64u);
  EXPECT_EQ(endpoint->send_inline_bytes(), 4096u);
  TestCall call;
  call.set_args({op_echo, 7, 9});
  call.results_bytes_max = 12;
  run(call);
  ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
  EXPECT_EQ(call.got, call.body);
  EXPECT_EQ(endpoint->in_flight(), 0u);
  EXPECT_EQ(endpoint->stats().sends, 2u);
  EXPECT_EQ(endpoint->stats().receives, 2u);
  EXPECT_NE(endpoint->describe().find("inline 4096/4096 credits 64"), std::string::npos)
      << endpoint->describe();
}

TEST_P(Forms, F1StoreOfEverySize) {
  begin();
  Memory memory(*pd, 2 * mib);
  memory.fill(5);
  for (uint32_t n : sizes) {
    check_store({memory.sge(n % 13, n)}, n);
    // Header 28, RPC header 40, arguments 12: what is left of 4096 goes inline.
    EXPECT_EQ(store.stored_out_of_band, n > 4096 - 28 - 40 - 12) << n;
  }
  EXPECT_EQ(endpoint->stats().pullup_bytes, 0u);
  EXPECT_EQ(endpoint->stats().bad_replies, 0u);
}

TEST_P(Forms, F1FetchOfEverySize) {
  store.source = nullptr;
  begin();
  store.source = std::make_unique<Memory>(*pd, 2 * mib);
  store.source->fill(1);
  Memory into(*pd, 2 * mib);
  for (uint32_t n : sizes) {
    check_fetch(into, {into.sge(0, n)}, n);
    expect_untouched(into, n);
  }
  EXPECT_GT(endpoint->stats().write_segments, 0u);
  EXPECT_EQ(endpoint->stats().reply_segments, 0u);
}

TEST_P(Forms, OddLengthsInManyPieces) {
  begin();
  store.source = std::make_unique<Memory>(*pd, mib);
  store.source->fill(1);
  store.source_cut = 4099;
  Memory memory(*pd, mib);
  for (uint32_t count : {2u, 3u, 5u, 16u, 17u, 40u})
    for (uint32_t length : {1u, 2u, 3u, 61u, 1001u, 5003u}) {
      std::vector<rdma::Sge> pieces;
      // Apart from each other, so that none can be joined.
      for (uint32_t i = 0; i < count; i++) pieces.push_back(memory.sge(uint64_t{i} * (length + 7), length));
      memory.fill(5);
      check_store(pieces, count * length);
      check_fetch(memory, pieces, count * length);
      for (uint32_t i = 0; i < count; i++)
        for (uint64_t gap = 0; gap < 7; gap++) {
          const uint64_t at = uint64_t{i} * (length + 7) + length + gap;
          ASSERT_EQ(memory.data[at], Memory::pattern(9, at));
        }
    }
}

TEST_P(Forms, LongCallsAndLongReplies) {
  begin();
  for (uint32_t n : {4024u, 4028u, 4032u, 5000u, 65536u, mib - 24}) {
    TestCall call;
    std::vector<uint32_t> words(n / 4);
    for (size_t i = 0; i < words.size(); i++) words[i] = static_cast<uint32_t>(i * 2654435761u);
    words[0] = op_echo;
    call.set_args(words);
    call.results_bytes_max = n;
    run(call);
    ASSERT_EQ(call.outcome, CallOutcome::replied) << n << " " << call.error.text();
    EXPECT_EQ(call.got, call.body);
  }
  EXPECT_EQ(endpoint->stats().nomsg_calls, 4u);
  EXPECT_EQ(endpoint->stats().reply_segments, 3u);
}

TEST_P(Forms, RepliesOfEverySizeAroundTheInlineLimit) {
  begin();
  for (uint32_t n : {0u, 4u, 4000u, 4040u, 4044u, 4048u, 4052u, 4096u, 8192u, 100'000u}) {
    TestCall call;
    run(make_results(call, n, n));
    ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
    ASSERT_EQ(call.got.size(), n);
    ASSERT_EQ(Memory::wrong_byte(call.got.data(), n, 3), n);
    EXPECT_EQ(endpoint->stats().reply_segments > 0, n > 4096 - 28 - 24) << n;
  }
}

TEST_P(Forms, SmallReplyThroughABigReplyChunk) {
  for (bool always : {true, false}) {
    server_params.responder.reply_chunk_always = always;
    begin();
    TestCall call;
    run(make_results(call, 12, 50'000));
    ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
    EXPECT_EQ(call.got.size(), 12u);
    EXPECT_EQ(endpoint->stats().total_rdma_reply_bytes, always ? 36u : 0u);
    TearDown();
    pd.reset();
  }
}

TEST_P(Forms, ReplyLargerThanItsRoomIsAChunkErrorAndTheConnectionLives) {
  begin();
  TestCall too_large;
  run(make_results(too_large, 100'000, 50'000));
  EXPECT_EQ(too_large.outcome, CallOutcome::chunk_error);
  EXPECT_EQ(too_large.error.origin(), ErrorOrigin::server);
  TestCall inline_overflow;
  run(make_results(inline_overflow, 8000, 100));
  EXPECT_EQ(inline_overflow.outcome, CallOutcome::chunk_error);
  TestCall fine;
  run(make_results(fine, 100, 100));
  EXPECT_EQ(fine.outcome, CallOutcome::replied);
  EXPECT_TRUE(endpoint->up());
  EXPECT_EQ(service.connections.size(), 1u);
}

TEST_P(Forms, PayloadLargerThanItsWriteChunkIsAChunkError) {
  begin();
  store.source = std::make_unique<Memory>(*pd, mib);
  Memory into(*pd, mib);
  into.fill(9);
  TestCall call;
  make_fetch(call, {into.sge(0, 10'000)}, 10'000);
  call.set_args({op_fetch, 20'000});
  run(call);
  EXPECT_EQ(call.outcome, CallOutcome::chunk_error);
  expect_untouched(into, 0);
  EXPECT_EQ(store.releases, 1);
}

TEST_P(Forms, WriteChunkAndReplyChunkInOneCall) {
  begin();
  store.source = std::make_unique<Memory>(*pd, mib);
  store.source->fill(1);
  Memory into(*pd, mib);
  into.fill(9);
  TestCall call;
  make_fetch(call, {into.sge(0, 300'001)}, 300'001).results_bytes_max = 9000;
  run(call);
  ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
  EXPECT_TRUE(call.data_placed);
  EXPECT_EQ(call.data_length, 300'001u);
  EXPECT_EQ(call.got.size(), 8u);
  ASSERT_EQ(Memory::wrong_byte(into.data, 300'001, 1), 300'001u);
  expect_untouched(into, 300'001);
}

TEST_P(Forms, ShortPayloadFillsTheFirstSegments) {
  begin();
  store.source = std::make_unique<Memory>(*pd, mib);
  store.source->fill(1);
  Memory into(*pd, mib);
  for (uint32_t n : {0u, 1u, 4999u, 5000u, 5001u, 14'999u}) {
    into.fill(9);
    TestCall call;
    make_fetch(call, {into.sge(0, 5000), into.sge(8000, 5000), into.sge(20'000, 5000)}, 15'000);
    call.set_args({op_fetch, n});
    run(call);
    ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
    EXPECT_EQ(call.data_length, n);
    EXPECT_EQ(call.data_placed, n > 0);
    for (uint32_t i = 0; i < n; i++)
      ASSERT_EQ(into.data[i < 5000 ? i : i < 10'000 ? 3000 + i : 10'000 + i], Memory::pattern(1, i));
    expect_untouched(into, n <= 5000 ? n : n <= 10'000 ? 3000 + n : 10'000 + n);
  }
}

TEST_P(Forms, LongCallWithPayload) {
  client_params.inline_bytes = 1024;
  begin();
  Memory memory(*pd, 2 * mib);
  memory.fill(5);
  rpc::AuthSys auth;
  auth.machine = std::string_view("a host with a name that is quite long, as some are");
  rpc::Credential credential = rpc::Credential::sys(auth);
  for (uint32_t n : {3u, 5000u, mib - 4096, mib + 3000}) {
    TestCall call;
    std::vector<uint32_t> words(300, trailer);
    words[0] = op_store;
    words[1] = n;
    call.set_args(words);
    call.credential = &credential;
    call.out_pieces = {memory.sge(4, n)};
    call.out = {call.out_pieces, n, 8};
    call.results_bytes_max = 4;
    run(call);
    ASSERT_EQ(call.outcome, CallOutcome::replied) << n << " " << call.error.text();
    EXPECT_EQ(store.stored.size(), n);
    EXPECT_TRUE(std::equal(store.stored.begin(), store.stored.end(), memory.data + 4));
    EXPECT_EQ(store.tail.size(), 298u * 4);
    // What no buffer holds together has a data chunk beside the position-zero chunk.
    EXPECT_EQ(store.stored_out_of_band, n > mib) << n;
  }
  EXPECT_EQ(endpoint->stats().nomsg_calls, 4u);
}

TEST_P(Forms, ImpossibleCallsFailAloneAndAtOnce) {
  begin();
  Memory memory(*pd, 4096);
  TestCall far_too_long;
  far_too_long.body.resize(2 * mib);
  far_too_long.args = far_too_long.body;
  run(far_too_long);
  EXPECT_EQ(far_too_long.outcome, CallOutcome::not_sent);
  EXPECT_EQ(far_too_long.error.errno_value(), EMSGSIZE);
  TestCall odd;
  odd.body.resize(5);
  odd.args = odd.body;
  run(odd);
  EXPECT_EQ(odd.error.errno_value(), EINVAL);
  TestCall wrong_sum;
  make_store(wrong_sum, {memory.sge(0, 100)}, 101);
  run(wrong_sum);
  EXPECT_EQ(wrong_sum.error.errno_value(), EINVAL);
  TestCall outside;
  make_store(outside, {memory.sge(4000, 8000)}, 8000);
  run(outside);
  EXPECT_EQ(outside.outcome, CallOutcome::not_sent);
  EXPECT_EQ(outside.error.errno_value(), EINVAL) << outside.error.text();
  EXPECT_EQ(endpoint->stats().failed_marshal, 4u);
  TestCall fine;
  run(make_results(fine, 4, 4));
  EXPECT_EQ(fine.outcome, CallOutcome::replied);
}

TEST_P(Forms, RefusalsOfTheRpcLayer) {
  service.handler = [](std::unique_ptr<rpc::ServerCall> call) {
    call->reply(static_cast<rpc::AcceptStatus>(call->header.procedure), 0);
  };
  start();
  open_credits();
  for (uint32_t status = 1; status <= 5; status++) {
    TestCall call;
    call.procedure = status;
    run(call);
    EXPECT_EQ(call.outcome, CallOutcome::refused);
    EXPECT_EQ(call.error.origin(), ErrorOrigin::server);
    EXPECT_FALSE(call.error.text().empty());
  }
  EXPECT_TRUE(endpoint->up());
}

TEST_P(Forms, RemoteInvalidationOfSingleHandles) {
  begin();
  store.source = std::make_unique<Memory>(*pd, mib);
  store.source->fill(1);
  Memory into(*pd, mib);
  ASSERT_TRUE(pd->caps().remote_invalidate);
  check_fetch(into, {into.sge(0, 50'000)}, 50'000);
  EXPECT_EQ(endpoint->stats().remote_invalidations, 1u);
  EXPECT_EQ(endpoint->stats().local_fences, 0u);
  // Two handles: the responder cannot know which one, so both are fenced here.
  check_fetch(into, {into.sge(0, 50'000), into.sge(60'000, 50'000)}, 100'000);
  EXPECT_EQ(endpoint->stats().remote_invalidations, 1u);
  EXPECT_EQ(endpoint->stats().local_fences, 2u);
}

TEST_P(Forms, UrgentCallsGoFirst) {
  server_params.responder.credits = 1;
  begin();
  std::vector<uint32_t> order;
  TestCall calls[4];
  for (uint32_t i = 0; i < 4; i++) {
    make_results(calls[i], 4, 4).then = [&order, i](TestCall&) { order.push_back(i); };
    calls[i].urgent = i == 3;
    endpoint->submit(calls[i]);
  }
  endpoint->flush();
  EXPECT_EQ(endpoint->in_flight(), 4u);
  ASSERT_TRUE(turn_until([&] { return order.size() == 4; }));
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 3, 1, 2}));
  EXPECT_GT(endpoint->stats().credit_stalls, 0u);
}

// A call without memory for its long reply waits and does not hold up what is urgent.
TEST_P(Forms, AnEmptyPoolDelaysAndLosesNothing) {
  pool_params.bytes_max = 4u << 20;
  pool_params.slab_bytes = 2u << 20;
  begin();
  std::vector<mem::Buffer> taken;
  while (mem::Buffer b = pool->try_borrow(mib)) taken.push_back(std::move(b));
  ASSERT_FALSE(taken.empty());
  TestCall big, after, urgent;
  endpoint->submit(make_results(big, 60'000, 60'000));
  endpoint->submit(make_results(after, 4, 4));
  make_results(urgent, 4, 4).urgent = true;
  endpoint->submit(urgent);
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return urgent.done(); }));
  EXPECT_FALSE(big.done());
  taken.clear();
  ASSERT_TRUE(turn_until([&] { return big.done() && after.done(); }));
  EXPECT_EQ(big.outcome, CallOutcome::replied);
  EXPECT_EQ(after.outcome, CallOutcome::replied);
}

TEST_P(Forms, ResponderWithAnEmptyPoolDelaysAndLosesNothing) {
  server_params.pool.bytes_max = 4u << 20;
  server_params.pool.slab_bytes = 2u << 20;
  begin();
  Memory memory(*pd, mib);
  memory.fill(5);
  std::vector<std::unique_ptr<TestCall>> calls;
  int done = 0;
  for (int i = 0; i < 40; i++) {
    calls.push_back(std::make_unique<TestCall>());
    make_store(*calls.back(), {memory.sge(0, 400'000)}, 400'000).then = [&](TestCall&) { done++; };
    calls.push_back(std::make_unique<TestCall>());
    make_results(*calls.back(), 50'000, 50'000).then = [&](TestCall&) { done++; };
  }
  for (auto& call : calls) endpoint->submit(*call);
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return done == 80; }));
  for (auto& call : calls) EXPECT_EQ(call->outcome, CallOutcome::replied) << call->error.text();
  EXPECT_EQ(acceptor->pool_stats().bytes_used, 0u);
  EXPECT_EQ(pool->stats().bytes_used, 0u);
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
