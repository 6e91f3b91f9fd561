// SPDX-License-Identifier: Apache-2.0
// Calls from the server to the client on the client's connection (RFC 8167).
#include "tests/rpcrdma/store_service.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

using rpc::CallOutcome;

class Reverse : public Pair {
 protected:
  struct Answer {
    bool ok = false;
    std::vector<std::byte> message;
    int errno_value = 0;
  };
  std::vector<Answer> answers;

  void begin() {
    start();
    open_credits();
  }
  std::vector<std::byte> message(uint32_t xid, uint32_t argument_bytes = 8) {
    std::vector<std::byte> m(40 + argument_bytes);
    rpc::encode_call_header(m, xid, rpc::callback_program, rpc::callback_version, 1, rpc::Credential::none());
    for (uint32_t i = 0; i < argument_bytes; i++) m[40 + i] = Memory::pattern(xid, i);
    return m;
  }
  Result<void> call(uint32_t xid, uint32_t argument_bytes = 8) {
    return service.connections[0]->call_back(message(xid, argument_bytes), [this](Result<ConstBytes> r) {
      Answer a;
      a.ok = r.ok();
      if (r)
        a.message.assign(r->begin(), r->end());
      else
        a.errno_value = r.error().errno_value();
      answers.push_back(std::move(a));
    });
  }
};
NFSRDMA_BOTH_PROVIDERS(Reverse);

TEST_P(Reverse, CallAndAnswer) {
  begin();
  std::vector<std::byte> seen;
  reverse.handler = [&](ConstBytes m, Bytes reply) {
    seen.assign(m.begin(), m.end());
    uint32_t n =
        rpc::encode_reply_header(reply, base::load_be<uint32_t>(m.data()), rpc::AcceptStatus::success);
    base::store_be(reply.data() + n, 0x12345678u);
    return n + 4;
  };
  ASSERT_TRUE(call(77));
  ASSERT_TRUE(turn_until([&] { return answers.size() == 1; }));
  EXPECT_EQ(seen, message(77));
  ASSERT_TRUE(answers[0].ok);
  ASSERT_EQ(answers[0].message.size(), 28u);
  EXPECT_EQ(base::load_be<uint32_t>(answers[0].message.data() + 24), 0x12345678u);
  EXPECT_EQ(endpoint->stats().reverse_calls, 1u);
  // The grant that the server asked for with the callback must not be taken for one of the other direction.
  EXPECT_EQ(endpoint->credits_granted(), 64u);
}

TEST_P(Reverse, LargestMessagesBothWays) {
  begin();
  const uint32_t most = service.connections[0]->reverse_bytes_max();
  EXPECT_EQ(most, 4068u);
  EXPECT_EQ(endpoint->reverse_bytes_max(), 4068u);
  reverse.handler = [&](ConstBytes m, Bytes reply) {
    EXPECT_EQ(m.size(), most);
    EXPECT_EQ(reply.size(), most);
    rpc::encode_reply_header(reply, base::load_be<uint32_t>(m.data()), rpc::AcceptStatus::success);
    return static_cast<uint32_t>(reply.size());
  };
  ASSERT_TRUE(call(1, most - 40));
  ASSERT_TRUE(turn_until([&] { return answers.size() == 1; }));
  EXPECT_EQ(answers[0].message.size(), most);
  EXPECT_EQ(call(2, most - 40 + 4).error().errno_value(), EMSGSIZE);
}

TEST_P(Reverse, CreditsOfTheOtherDirection) {
  client_params.reverse_credits = 3;
  begin();
  ASSERT_TRUE(call(1));
  EXPECT_EQ(call(2).error().errno_value(), ENOBUFS);  // one until the first answer
  ASSERT_TRUE(turn_until([&] { return answers.size() == 1; }));
  for (uint32_t xid = 10; xid < 13; xid++) ASSERT_TRUE(call(xid));
  EXPECT_EQ(call(13).error().errno_value(), ENOBUFS);
  ASSERT_TRUE(turn_until([&] { return answers.size() == 4; }));
  ASSERT_TRUE(call(14));
  EXPECT_EQ(call(14).error().errno_value(), EEXIST);
  ASSERT_TRUE(turn_until([&] { return answers.size() == 5; }));
  EXPECT_EQ(reverse.calls, 5);
}

// F15's burst: a hundred callbacks, beside calls of the other direction with the same xids.
TEST_P(Reverse, F15HundredCallbacksWhileCallsGoOn) {
  std::vector<std::unique_ptr<rpc::ServerCall>> held;
  begin();
  service.handler = [&](std::unique_ptr<rpc::ServerCall> c) { held.push_back(std::move(c)); };
  TestCall forward[60];
  for (TestCall& c : forward) endpoint->submit(make_results(c, 4, 4));
  endpoint->flush();
  ASSERT_TRUE(turn_until([&] { return held.size() == 60; }));
  uint32_t sent = 0;
  ASSERT_TRUE(turn_until([&] {
    while (sent < 100) {
      const uint32_t xid = sent < 60 ? held[sent]->header.xid : 5000 + sent;
      if (!call(xid)) break;
      sent++;
    }
    return answers.size() == 100;
  }));
  for (const Answer& a : answers) EXPECT_TRUE(a.ok);
  for (auto& c : held) c->reply(rpc::AcceptStatus::success, 0);
  ASSERT_TRUE(turn_until([&] { return forward[59].done(); }));
  for (TestCall& c : forward) EXPECT_EQ(c.outcome, CallOutcome::replied);
  EXPECT_EQ(endpoint->stats().bad_xids, 0u);
  EXPECT_TRUE(endpoint->up());
}

TEST_P(Reverse, UnansweredCallbackKeepsItsCreditOnly) {
  begin();
  reverse.handler = [](ConstBytes, Bytes) { return 0u; };
  ASSERT_TRUE(call(1));
  settle();
  EXPECT_TRUE(answers.empty());
  TestCall forward;
  run(make_results(forward, 4, 4));
  EXPECT_EQ(forward.outcome, CallOutcome::replied);
  service.connections[0]->drop(Error(ECONNABORTED, ErrorOrigin::local, "test"));
  ASSERT_TRUE(turn_until([&] { return answers.size() == 1; }));
  EXPECT_FALSE(answers[0].ok);
  EXPECT_EQ(answers[0].errno_value, ECONNABORTED);
}

TEST_P(Reverse, NobodyToAnswerIsProgramUnavailable) {
  make_drivers();
  serve();
  make_pd();
  client_params.remote = acceptor->local();
  io::spawn(connect(*driver, pd, *pool, client_params, observer, nullptr),
            [&](Result<std::unique_ptr<Endpoint>> r) { endpoint = std::move(*r); });
  ASSERT_TRUE(turn_until([&] { return endpoint && !service.connections.empty(); }));
  open_credits();  // an iWARP responder speaks only after the initiator did
  ASSERT_TRUE(call(9));
  ASSERT_TRUE(turn_until([&] { return answers.size() == 1; }));
  ASSERT_EQ(answers[0].message.size(), 24u);
  EXPECT_EQ(base::load_be<uint32_t>(answers[0].message.data() + 20), 1u);
}

TEST_P(Reverse, CallbackToAConnectionThatEnded) {
  begin();
  rpc::ServerConnection* connection = service.connections[0];
  connection->drop(Error(ECONNABORTED, ErrorOrigin::local, "test"));
  EXPECT_EQ(call(1).error().errno_value(), ENOTCONN);
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
