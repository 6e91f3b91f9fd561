// SPDX-License-Identifier: Apache-2.0
// A responder made by hand that answers with broken replies, seeded: whatever it sends, each call completes
// exactly once and a client always gets its next connection.
#include "tests/rpcrdma/pair.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

using rpc::CallOutcome;

class HostileResponder final : private rdma::ListenHandler, private rdma::ConnectionHandler {
 public:
  static constexpr uint32_t message_bytes = 16384;
  static constexpr uint32_t receives = 16;

  HostileResponder(rdma::Provider& provider, CqDriver& driver, uint64_t seed)
      : driver_(driver), random_(seed) {
    listener_ = std::move(*provider.listen(*base::SocketAddress::parse("127.0.0.1", 0), driver.cq(), *this));
  }
  base::SocketAddress local() const { return listener_->local(); }
  bool honest = false;
  int answers = 0;

 private:
  struct Receive : rdma::Work {
    HostileResponder* owner = nullptr;
    uint64_t offset = 0;
  };
  void on_request(std::unique_ptr<rdma::ConnectRequest> request) override {
    if (!memory_) {
      pd_ = *request->device()->create_protection_domain();
      memory_ = std::make_unique<Memory>(*pd_, size_t{message_bytes} * (receives + 1));
    }
    // The pair of the last connection has ended long ago; this is the provider's thread, but not that pair's
    // handler.
    next_ = std::move(request);
    accept_.set([this] { accept(); });
    driver_.loop().arm(accept_, 0);
  }
  void accept() {
    qp_.reset();
    driver_.forget(works_.data(), works_.data() + works_.size());
    auto request = std::move(next_);
    works_ = std::vector<Receive>(receives + 1);
    rdma::QueuePairParams params;
    params.ord = 4;
    qp_ = std::move(*request->create_queue_pair(*pd_, driver_.cq(), params, *this));
    for (uint32_t i = 0; i <= receives; i++) {
      works_[i].owner = this;
      works_[i].offset = uint64_t{i} * message_bytes;
      works_[i].complete = [](rdma::Work& self, const rdma::Completion& c) {
        Receive& r = static_cast<Receive&>(self);
        if (c.op == rdma::Opcode::receive && c.status == rdma::CompletionStatus::success)
          r.owner->on_message(r, c.length);
      };
      if (i < receives) post(works_[i]);
    }
    CmPrivateData ours;
    ours.send_bytes = ours.receive_bytes = 4096;
    auto data = ours.encode();
    (void)qp_->accept(data);
  }
  void on_established(const rdma::ConnectionInfo&) override {}
  void on_failed(const Error&) override {}
  void on_disconnected(const Error&) override {}
  void post(Receive& r) {
    rdma::ReceiveRequest request{r.id(), memory_->sge(r.offset, message_bytes)};
    (void)qp_->post_receive({&request, 1});
  }
  // The right answer: success, no results, every chunk unused; or by the reply chunk, which is then written.
  uint32_t right_answer(const Header& call, std::byte* out) {
    Header reply = call;
    reply.reads.clear();
    reply.credit = 8;
    const bool nomsg = call.has_reply_chunk && random_.below(2);
    reply.procedure = nomsg ? Procedure::nomsg : Procedure::msg;
    reply.has_reply_chunk = nomsg;
    reply.result_segments.clear();
    for (const Segment& s : call.result_segments) reply.result_segments.push_back(s);
    for (uint32_t i = 0; i < reply.result_segments.size(); i++) reply.result_segments[i].length = 0;
    std::byte* rpc_at = out + 8192;
    rpc::encode_reply_header({rpc_at, 24}, call.xid, rpc::AcceptStatus::success);
    if (nomsg) {
      Segment& s = reply.result_segments[call.reply_chunk.first];
      s.length = 24;
      rdma::Sge sge = memory_->sge(static_cast<uint64_t>(rpc_at - memory_->data), 24);
      rdma::SendRequest write;
      write.id = works_[receives].id();
      write.op = rdma::Opcode::write;
      write.sge = {&sge, 1};
      write.remote = {s.handle, s.offset};
      (void)qp_->post_send({&write, 1});
    } else {
      // A chunk that is not sent back must not leave its segments in the list.
      reply.result_segments.clear();
      for (const ChunkRange& w : call.write_chunks)
        for (Segment s : call.segments(w)) {
          s.length = 0;
          reply.result_segments.push_back(s);
        }
    }
    uint32_t n = encode(reply, {out, 4096});
    if (!nomsg) {
      std::memcpy(out + n, rpc_at, 24);
      n += 24;
    }
    return n;
  }
  void mutate(std::byte* out, uint32_t& n) {
    for (uint64_t k = 1 + random_.below(3); k > 0; k--) {
      const size_t word = random_.below(n / 4);
      switch (random_.below(4)) {
        case 0:
          base::store_be(out + 4 * word, static_cast<uint32_t>(random_.below(4)));
          break;
        case 1:
          base::store_be(out + 4 * word, static_cast<uint32_t>(random_.next()));
          break;
        case 2:
          out[random_.below(n)] ^= static_cast<std::byte>(1u << random_.below(8));
          break;
        default:
          n = static_cast<uint32_t>(std::max<uint64_t>(4, random_.below(n + 8)));
          break;
      }
      if (n < 8) return;
    }
  }
  void on_message(Receive& r, uint32_t length) {
    const ParseLimits limits{.read_segments_max = 40, .write_chunks_max = 4, .chunk_segments_max = 40};
    uint32_t body_at = 0;
    const bool understood =
        parse({memory_->data + r.offset, length}, limits, call_, body_at) == ParseStatus::ok;
    post(r);
    if (!understood || call_.procedure == Procedure::error) return;
    std::byte* out = memory_->data + works_[receives].offset;
    uint32_t n = right_answer(call_, out);
    if (!honest) mutate(out, n);
    rdma::Sge sge = memory_->sge(works_[receives].offset, n);
    rdma::SendRequest send;
    send.id = works_[receives].id();
    send.sge = {&sge, 1};
    if (!honest && random_.below(8) == 0) {
      send.op = rdma::Opcode::send_invalidate;
      send.invalidate_key = !call_.result_segments.empty() && random_.below(2)
                                ? call_.result_segments[0].handle
                                : static_cast<uint32_t>(random_.next());
    }
    (void)qp_->post_send({&send, 1});
    qp_->flush();
    answers++;
  }

  CqDriver& driver_;
  base::SeededRandom random_;
  Header call_;
  std::shared_ptr<rdma::ProtectionDomain> pd_;
  std::unique_ptr<Memory> memory_;
  std::vector<Receive> works_;
  std::unique_ptr<rdma::ConnectRequest> next_;
  io::Timer accept_;
  std::unique_ptr<rdma::Listener> listener_;
  std::unique_ptr<rdma::QueuePair> qp_;
};

class Hostile : public Pair {};
NFSRDMA_BOTH_PROVIDERS(Hostile);

TEST_P(Hostile, F4RandomRepliesNeverHurt) {
  make_drivers();
  make_pd();
  auto responder = std::make_unique<HostileResponder>(*provider, *server_driver, 77);
  client_params.remote = responder->local();
  Memory memory(*pd, 1u << 20);
  memory.fill(9);
  int outcomes[7] = {}, connections = 0;
  auto ensure_connection = [&] {
    if (endpoint && endpoint->up()) return;
    endpoint.reset();
    io::spawn(connect(*driver, pd, *pool, client_params, observer, &reverse),
              [&](Result<std::unique_ptr<Endpoint>> r) {
                if (r) endpoint = std::move(*r);
              });
    ASSERT_TRUE(turn_until([&] { return endpoint != nullptr; }));
    connections++;
  };
  for (int i = 0; i < 700; i++) {
    ensure_connection();
    TestCall calls[2];
    for (TestCall& call : calls) {
      call.set_args({1, 2, 3});
      call.results_bytes_max = i % 3 == 0 ? 9000 : 100;
      call.in_pieces = {memory.sge(0, 5000), memory.sge(8000, 5000)};
      if (i % 2) call.in = {call.in_pieces, 10'000};
      endpoint->submit(call);
    }
    endpoint->flush();
    auto all = [&] { return calls[0].done() && calls[1].done(); };
    settle();
    // An answer under a foreign xid leaves the call without one: the layer above would time out.
    if (!all()) endpoint->drop(Error(ETIMEDOUT, ErrorOrigin::connection, "time-out"));
    ASSERT_TRUE(turn_until(all)) << i;
    for (TestCall& call : calls) {
      ASSERT_EQ(call.completions, 1);
      outcomes[static_cast<int>(call.outcome)]++;
    }
  }
  EXPECT_GT(outcomes[static_cast<int>(CallOutcome::replied)], 30);
  EXPECT_GT(outcomes[static_cast<int>(CallOutcome::bad_reply)], 200);
  EXPECT_GT(outcomes[static_cast<int>(CallOutcome::lost)], 30);
  EXPECT_GT(connections, 200);
  ASSERT_EQ(Memory::wrong_byte(memory.data, memory.bytes, 9), memory.bytes);
  EXPECT_EQ(pool->stats().bytes_used, 0u);
  // And an honest one is served as if nothing had been.
  responder->honest = true;
  endpoint.reset();
  ensure_connection();
  TestCall call;
  call.set_args({1, 2, 3});
  run(call);
  EXPECT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
  endpoint.reset();
  responder.reset();
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
