// SPDX-License-Identifier: Apache-2.0
// The responder against a client that writes its own bytes: what must be answered how, and what must not
// hurt.
#include "tests/rpcrdma/random_header.hpp"
#include "tests/rpcrdma/raw_peer.hpp"
#include "tests/rpcrdma/store_service.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

class Responder : public Pair {
 protected:
  StoreService store;
  std::unique_ptr<RawPeer> peer;
  Header answer;
  uint32_t body_at = 0;

  void begin(bool invalidation = false) {
    service.handler = std::ref(store);
    make_drivers();
    serve();
    make_pd();
    CmPrivateData data;
    data.send_bytes = data.receive_bytes = 4096;
    data.remote_invalidation = invalidation;
    auto bytes = data.encode();
    peer = std::make_unique<RawPeer>(*driver, pd, acceptor->local(), bytes);
    ASSERT_TRUE(turn_until([&] { return peer->connected() || peer->ended(); }));
    ASSERT_TRUE(peer->connected());
  }
  void TearDown() override {
    peer.reset();
    Pair::TearDown();
  }
  static std::vector<std::byte> call_message(uint32_t xid, std::vector<uint32_t> args) {
    std::vector<std::byte> m(40 + args.size() * 4);
    rpc::encode_call_header(m, xid, rpc::nfs_program, rpc::nfs_version, 1, rpc::Credential::none());
    for (size_t i = 0; i < args.size(); i++) base::store_be(m.data() + 40 + 4 * i, args[i]);
    return m;
  }
  static std::vector<std::byte> join(const Header& h, ConstBytes body) {
    std::vector<std::byte> m(encoded_bytes(h));
    encode(h, m);
    m.insert(m.end(), body.begin(), body.end());
    return m;
  }
  // Sends and waits for one answer, which it parses.
  void ask(ConstBytes message) {
    peer->got.clear();
    peer->invalidated.clear();
    peer->send(message);
    ASSERT_TRUE(turn_until([&] { return !peer->got.empty() || peer->ended(); }));
    ASSERT_FALSE(peer->got.empty());
    const ParseLimits limits{.read_segments_max = 300, .write_chunks_max = 300, .chunk_segments_max = 300};
    ASSERT_EQ(parse(peer->got[0], limits, answer, body_at), ParseStatus::ok);
  }
  void expect_error(ConstBytes message, ErrorCode code) {
    ask(message);
    EXPECT_EQ(answer.procedure, Procedure::error);
    EXPECT_EQ(answer.error, code);
    EXPECT_EQ(answer.xid, base::load_be<uint32_t>(message.data()));
    EXPECT_EQ(answer.credit, 64u);
    expect_alive();
  }
  void expect_alive() {
    Header h;
    h.xid = 0xabc;
    ask(join(h, call_message(0xabc, {op_echo, 5})));
    EXPECT_EQ(answer.procedure, Procedure::msg);
    EXPECT_EQ(peer->got[0].size(), 28u + 24 + 8);
  }
  Segment expose(Memory& m, uint64_t offset, uint32_t length, rdma::Purpose purpose) {
    auto e = peer->qp().expose(*m.region, offset, length, purpose);
    EXPECT_TRUE(e);
    return {e->key, e->length, e->base};
  }
  static std::vector<std::byte> words(std::initializer_list<uint32_t> list) {
    std::vector<std::byte> out(list.size() * 4);
    size_t at = 0;
    for (uint32_t w : list) {
      base::store_be(out.data() + at, w);
      at += 4;
    }
    return out;
  }
};
NFSRDMA_BOTH_PROVIDERS(Responder);

TEST_P(Responder, OtherVersionsGetErrVers) {
  begin();
  expect_error(words({5, 2, 1, 0, 0, 0, 0}), ErrorCode::version);
  expect_error(words({6, 0, 1, 0}), ErrorCode::version);
}

TEST_P(Responder, UnknownProceduresGetErrChunk) {
  begin();
  expect_error(words({5, 1, 1, 2, 0, 0, 0}), ErrorCode::chunk);
  expect_error(words({5, 1, 1, 99, 0, 0, 0}), ErrorCode::chunk);
}

TEST_P(Responder, DoneErrorAndScrapsAreDropped) {
  begin();
  peer->send(words({5, 1, 1, 3, 0, 0, 0}));
  settle();
  peer->send(words({5, 1, 1, 4, 2}));
  settle();
  peer->send(words({5, 1, 1}));
  settle();
  // An answer to a callback that was never sent.
  peer->send(words({5, 1, 1, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0}));
  settle();
  EXPECT_TRUE(peer->got.empty());
  expect_alive();
  EXPECT_EQ(service.calls, 1u);
}

TEST_P(Responder, BrokenListsGetErrChunk) {
  begin();
  Header h;
  h.xid = 5;
  const auto call = call_message(5, {op_echo, 1});
  const Segment s{1, 100, 0};
  auto position = [&](uint32_t p) {
    h.clear();
    h.xid = 5;
    h.reads.push_back({p, s});
    return join(h, call);
  };
  for (uint32_t p : {1u, 2u, 3u, 41u, 4u, 36u, 1000u, 0xfffffffcu}) {
    SCOPED_TRACE(p);
    // Positions that are odd, in the RPC header, behind the end. Reads of unknown keys would end the
    // connection, so the ones that are refused only after the Read have real memory.
    Memory m(*pd, 4096);
    h.clear();
    h.xid = 5;
    h.reads.push_back({p, expose(m, 0, 100, rdma::Purpose::read_source)});
    expect_error(join(h, call), ErrorCode::chunk);
  }
  expect_error(position(0), ErrorCode::chunk);  // RDMA_MSG with a position-zero chunk
  h.clear();
  h.xid = 5;
  h.procedure = Procedure::nomsg;
  expect_error(join(h, {}), ErrorCode::chunk);  // RDMA_NOMSG without one
  h.reads.push_back({0, {1, 0xffffffff, 0}});   // longer than any message
  expect_error(join(h, {}), ErrorCode::chunk);
  h.clear();
  h.xid = 5;
  for (int i = 0; i < 3; i++) h.reads.push_back({48, {1, 0x7fffffff, 0}});
  expect_error(join(h, call), ErrorCode::chunk);
  for (uint32_t count : {300u, 100'000u, 0xffffffffu})
    expect_error(words({5, 1, 1, 0, 0, 1, count, 1, 2, 3, 4, 0, 0}), ErrorCode::chunk);
}

// Any header, any cut of it. Messages that are no RPC calls, and chunks of keys that do not exist, end the
// connection; nothing else may, and the responder lives on.
TEST_P(Responder, TruncatedAndRandomCallsNeverHurt) {
  begin();
  service.handler = [](std::unique_ptr<rpc::ServerCall> call) { call->reply(rpc::AcceptStatus::success, 0); };
  base::SeededRandom random(21);
  Header h;
  int connections = 1, answered = 0;
  for (int i = 0; i < 600; i++) {
    make_random_header(random, 4, h);
    if (i % 3 == 0) h.reads.clear();
    auto m = join(h, call_message(h.xid, {op_echo, static_cast<uint32_t>(random.next())}));
    if (i % 2) m.resize(1 + random.below(m.size()));
    peer->send(m);
    settle();
    answered += static_cast<int>(peer->got.size());
    peer->got.clear();
    if (!peer->ended()) continue;
    peer.reset();
    peer = std::make_unique<RawPeer>(*driver, pd, acceptor->local(), ConstBytes());
    ASSERT_TRUE(turn_until([&] { return peer->connected(); }));
    connections++;
  }
  EXPECT_GT(connections, 10);
  EXPECT_GT(answered, 100);
  service.handler = std::ref(store);
  expect_alive();
  settle();
  EXPECT_EQ(acceptor->connections(), 1u);
  EXPECT_EQ(acceptor->pool_stats().bytes_used, 0u);
}

TEST_P(Responder, RpcMessagesThatMakeNoSense) {
  begin();
  Header h;
  h.xid = 5;
  auto bad_version = call_message(5, {});
  base::store_be(bad_version.data() + 8, 3u);
  ask(join(h, bad_version));
  ASSERT_EQ(peer->got[0].size(), 28u + 24);
  EXPECT_EQ(base::load_be<uint32_t>(peer->got[0].data() + 28 + 8), 1u);   // denied
  EXPECT_EQ(base::load_be<uint32_t>(peer->got[0].data() + 28 + 12), 0u);  // RPC_MISMATCH
  auto bad_credential = call_message(5, {});
  base::store_be(bad_credential.data() + 24, 1u);  // AUTH_SYS with an empty body
  ask(join(h, bad_credential));
  ASSERT_EQ(peer->got[0].size(), 28u + 20);
  EXPECT_EQ(base::load_be<uint32_t>(peer->got[0].data() + 28 + 12), 1u);  // AUTH_ERROR
  EXPECT_EQ(base::load_be<uint32_t>(peer->got[0].data() + 28 + 16), 1u);  // bad credential
  expect_alive();
  peer->send(join(h, words({5, 7, 7})));
  ASSERT_TRUE(turn_until([&] { return peer->ended(); }));
  EXPECT_EQ(service.disconnects, 1);
}

TEST_P(Responder, ReadOfAForeignKeyEndsTheConnection) {
  begin();
  Header h;
  h.xid = 5;
  h.reads.push_back({48, {0x1234, 100, 0}});
  peer->send(join(h, call_message(5, {op_store, 100})));
  ASSERT_TRUE(turn_until([&] { return peer->ended(); }));
  ASSERT_TRUE(turn_until([&] { return service.disconnects == 1; }));
  EXPECT_EQ(service.calls, 0u);
  EXPECT_EQ(acceptor->pool_stats().bytes_used, 0u);
}

// The payload of one WRITE in many segments, in any order with another chunk's, padded and not.
TEST_P(Responder, MultiSegmentReadChunks) {
  begin();
  Memory m(*pd, 65536);
  m.fill(5);
  for (uint32_t pad : {0u, 1u}) {
    Header h;
    h.xid = 5;
    uint32_t at = 0;
    for (uint32_t length : {1u, 1000u, 3u, 4097u, 2u}) {
      h.reads.push_back({48, expose(m, at, length, rdma::Purpose::read_source)});
      at += length;
    }
    const uint32_t n = at;
    if (pad) h.reads.push_back({48, expose(m, at, base::pad4(n), rdma::Purpose::read_source)});
    ask(join(h, call_message(5, {op_store, n, trailer})));
    EXPECT_EQ(answer.procedure, Procedure::msg);
    ASSERT_EQ(store.stored.size(), n);
    EXPECT_TRUE(std::equal(store.stored.begin(), store.stored.end(), m.data));
    EXPECT_EQ(store.tail.size(), 4u);
  }
}

// Two data chunks: the message is put together again, pads included, whatever the order of the list.
TEST_P(Responder, SeveralReadChunksAreJoined) {
  begin();
  Memory m(*pd, 65536);
  m.fill(5);
  std::vector<std::byte> seen;
  service.handler = [&](std::unique_ptr<rpc::ServerCall> call) {
    seen.assign(call->args.begin(), call->args.end());
    EXPECT_EQ(call->data.length, 0u);
    call->reply(rpc::AcceptStatus::success, 0);
  };
  // Arguments: 7, length 5, 5 bytes, 8, length 2002, 2002 bytes, 9.
  const uint32_t first_at = 40 + 8, second_at = first_at + 8 + 8;
  Header h;
  h.xid = 5;
  h.reads.push_back({second_at, expose(m, 100, 2000, rdma::Purpose::read_source)});
  h.reads.push_back({first_at, expose(m, 0, 5, rdma::Purpose::read_source)});
  h.reads.push_back({second_at, expose(m, 2100, 2, rdma::Purpose::read_source)});
  ask(join(h, call_message(5, {7, 5, 8, 2002, 9})));
  EXPECT_EQ(answer.procedure, Procedure::msg);
  std::vector<std::byte> expected = words({7, 5});
  auto add = [&](const std::byte* p, size_t n) {
    expected.insert(expected.end(), p, p + n);
    expected.resize((expected.size() + 3) / 4 * 4);
  };
  add(m.data, 5);
  auto middle = words({8, 2002});
  add(middle.data(), 8);
  add(m.data + 100, 2002);
  auto end = words({9});
  add(end.data(), 4);
  EXPECT_EQ(seen, expected);
}

TEST_P(Responder, ReplyChunkAndWriteChunksOfManySegments) {
  begin();
  store.source = std::make_unique<Memory>(*pd, 65536);
  store.source->fill(1);
  store.source_cut = 777;
  Memory m(*pd, 65536);
  m.fill(9);
  Header h;
  h.xid = 5;
  // An empty chunk keeps its place; the second takes the payload; the third stays unused.
  auto add_chunk = [&](std::initializer_list<uint32_t> lengths, ChunkRange& chunk, uint64_t at) {
    chunk = {h.result_segments.size(), static_cast<uint32_t>(lengths.size())};
    for (uint32_t length : lengths) {
      h.result_segments.push_back(expose(m, at, length, rdma::Purpose::write_target));
      at += length;
    }
  };
  ChunkRange chunk;
  h.write_chunks.push_back({0, 0});
  add_chunk({100, 5000, 1, 3000}, chunk, 0);
  h.write_chunks.push_back(chunk);
  add_chunk({64}, chunk, 20'000);
  h.write_chunks.push_back(chunk);
  h.has_reply_chunk = true;
  add_chunk({10, 30, 4000}, h.reply_chunk, 30'000);
  ask(join(h, call_message(5, {op_fetch, 5102})));
  EXPECT_EQ(answer.procedure, Procedure::nomsg);
  ASSERT_EQ(answer.write_chunks.size(), 3u);
  EXPECT_EQ(answer.write_chunks[0].count, 0u);
  const uint32_t written[] = {100, 5000, 1, 1};
  for (uint32_t i = 0; i < 4; i++) EXPECT_EQ(answer.segments(answer.write_chunks[1])[i].length, written[i]);
  EXPECT_EQ(answer.segments(answer.write_chunks[2])[0].length, 0u);
  const uint32_t replied[] = {10, 22, 0};
  ASSERT_TRUE(answer.has_reply_chunk);
  for (uint32_t i = 0; i < 3; i++) EXPECT_EQ(answer.segments(answer.reply_chunk)[i].length, replied[i]);
  for (uint32_t i = 0; i < 5102; i++) ASSERT_EQ(m.data[i], Memory::pattern(1, i));
  ASSERT_EQ(m.data[5102], Memory::pattern(9, 5102));
  uint32_t results_at = 0;
  ASSERT_TRUE(rpc::decode_reply_header({m.data + 30'000, 32}, 5, results_at));
  EXPECT_EQ(base::load_be<uint32_t>(m.data + 30'000 + 24), 5102u);
}

// Linux offers its listings a reply chunk of three odd segments.
TEST_P(Responder, ReplyChunkOfOddSegments) {
  begin();
  Memory m(*pd, 131072);
  Header h;
  h.xid = 5;
  for (auto [at, length] : {std::pair{0u, 104u}, {104u, 65448u}, {65552u, 4u}})
    h.result_segments.push_back(expose(m, at, length, rdma::Purpose::write_target));
  h.has_reply_chunk = true;
  h.reply_chunk = {0, 3};
  ask(join(h, call_message(5, {op_results, 65532})));
  EXPECT_EQ(answer.procedure, Procedure::nomsg);
  EXPECT_EQ(answer.segments(answer.reply_chunk)[2].length, 4u);
  ASSERT_EQ(Memory::wrong_byte(m.data + 24, 65532, 3), 65532u);
  ask(join(h, call_message(5, {op_results, 65536})));
  EXPECT_EQ(answer.procedure, Procedure::error);
}

TEST_P(Responder, InvalidatesOnlyWhatIsBeyondDoubt) {
  begin(true);
  store.source = std::make_unique<Memory>(*pd, 65536);
  Memory m(*pd, 65536);
  Header h;
  h.xid = 5;
  Segment one = expose(m, 0, 4096, rdma::Purpose::write_target);
  h.result_segments.push_back(one);
  h.write_chunks.push_back({0, 1});
  ask(join(h, call_message(5, {op_fetch, 100})));
  EXPECT_EQ(peer->invalidated[0], one.handle);
  h.result_segments[0] = expose(m, 0, 4096, rdma::Purpose::write_target);
  h.result_segments.push_back(expose(m, 8192, 4096, rdma::Purpose::write_target));
  h.write_chunks[0] = {0, 2};
  ask(join(h, call_message(5, {op_fetch, 100})));
  EXPECT_EQ(peer->invalidated[0], 0u);
  h.clear();
  h.xid = 5;
  ask(join(h, call_message(5, {op_echo, 100})));
  EXPECT_EQ(peer->invalidated[0], 0u);
}

TEST_P(Responder, NeverInvalidatesUnasked) {
  begin(false);
  store.source = std::make_unique<Memory>(*pd, 65536);
  Memory m(*pd, 65536);
  Header h;
  h.xid = 5;
  h.result_segments.push_back(expose(m, 0, 4096, rdma::Purpose::write_target));
  h.write_chunks.push_back({0, 1});
  ask(join(h, call_message(5, {op_fetch, 100})));
  EXPECT_EQ(peer->invalidated[0], 0u);
}

// A call in the service's hands when its connection and then the whole responder goes.
TEST_P(Responder, AbandonedCallsAreHarmless) {
  begin();
  std::vector<std::unique_ptr<rpc::ServerCall>> held;
  service.handler = [&](std::unique_ptr<rpc::ServerCall> call) { held.push_back(std::move(call)); };
  Header h;
  h.xid = 5;
  for (uint32_t i = 0; i < 3; i++) {
    peer->send(join(h, call_message(5, {op_echo, i})));
    ASSERT_TRUE(turn_until([&] { return held.size() == i + 1; }));
  }
  held.erase(held.begin());  // without an answer: the client waits for ever, the Receive is back
  peer.reset();
  ASSERT_TRUE(turn_until([&] { return service.disconnects == 1; }));
  EXPECT_EQ(base::load_be<uint32_t>(held[1]->args.data() + 4), 2u);  // still readable
  held[0]->reply(rpc::AcceptStatus::success, 0);
  held.clear();
  EXPECT_EQ(acceptor->connections(), 0u);
}

class LoopResponder : public Responder {};
INSTANTIATE_TEST_SUITE_P(Over, LoopResponder, ::testing::Values("loop"));

TEST_P(LoopResponder, ClientWithoutReadsIsRefused) {
  service.handler = std::ref(store);
  make_drivers();
  serve();
  make_pd();
  peer = std::make_unique<RawPeer>(*driver, pd, acceptor->local(), ConstBytes(), 0);
  ASSERT_TRUE(turn_until([&] { return peer->ended() || peer->connected(); }));
  EXPECT_TRUE(peer->ended());
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
