// SPDX-License-Identifier: Apache-2.0
// A client endpoint and a responder on one loop, one thread and one clock, joined by a provider in this
// process.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "rdma/providers.hpp"
#include "rpcrdma/endpoint.hpp"
#include "rpcrdma/responder.hpp"
#include "rpcrdma/responder_faults.hpp"

namespace nfsrdma::rpcrdma::testing {

using base::Bytes;
using base::ConstBytes;

// Registered memory of a caller.
struct Memory {
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::unique_ptr<rdma::Region> region;
  Memory(rdma::ProtectionDomain& pd, size_t n) : bytes((n + 4095) / 4096 * 4096) {
    data = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    rdma::MemoryRange range;
    range.address = data;
    range.length_bytes = bytes;
    region = std::move(*pd.register_memory(range));
  }
  ~Memory() {
    region.reset();
    munmap(data, bytes);
  }
  rdma::Sge sge(uint64_t offset, uint32_t length) { return {region.get(), offset, length}; }
  void fill(uint32_t seed) {
    for (size_t i = 0; i < bytes; i++) data[i] = pattern(seed, i);
  }
  // Index of the first of n bytes that is not the pattern (which starts at its byte `from`); n when all are
  // right.
  static size_t wrong_byte(const std::byte* at, size_t n, uint32_t seed, size_t from = 0) {
    for (size_t i = 0; i < n; i++)
      if (at[i] != pattern(seed, from + i)) return i;
    return n;
  }
  static std::byte pattern(uint32_t seed, size_t i) {
    return static_cast<std::byte>((i * 31 + i / 251 + seed * 7 + 1) & 0xff);
  }
};

// A call with memory for its parts, and what came of it.
struct TestCall : rpc::Call {
  std::vector<std::byte> body;
  std::vector<rdma::Sge> out_pieces, in_pieces;
  std::vector<std::byte> got;
  int completions = 0;
  std::function<void(TestCall&)> then;
  TestCall() {
    complete = [](rpc::Call& self) {
      TestCall& call = static_cast<TestCall&>(self);
      call.got.assign(call.results.begin(), call.results.end());
      call.completions++;
      if (call.then) call.then(call);
    };
  }
  bool done() const { return completions > 0; }
  void set_args(std::vector<uint32_t> words) {
    body.resize(words.size() * 4);
    for (size_t i = 0; i < words.size(); i++) base::store_be(body.data() + 4 * i, words[i]);
    args = body;
  }
  uint32_t word(size_t i) const { return base::load_be<uint32_t>(got.data() + 4 * i); }
};

// Answers every call by a function that the test sets.
struct TestService : rpc::Service {
  std::function<void(std::unique_ptr<rpc::ServerCall>)> handler;
  std::vector<rpc::ServerConnection*> connections;
  int disconnects = 0;
  uint64_t calls = 0;
  void on_connect(rpc::ServerConnection& c) override { connections.push_back(&c); }
  void on_call(std::unique_ptr<rpc::ServerCall> call) override {
    calls++;
    if (handler) return handler(std::move(call));
    call->reply(rpc::AcceptStatus::success, 0);
  }
  void on_disconnect(rpc::ServerConnection& c) override {
    std::erase(connections, &c);
    disconnects++;
  }
};

struct TestObserver : rpc::TransportObserver {
  int downs = 0;
  std::string why;
  int errno_value = 0;
  void on_down(const Error& e) override {
    downs++;
    why = e.text();
    errno_value = e.errno_value();
  }
};

struct TestReverse : rpc::ReverseHandler {
  std::function<uint32_t(ConstBytes, Bytes)> handler;
  int calls = 0;
  uint32_t on_reverse_call(ConstBytes message, Bytes reply) override {
    calls++;
    return handler ? handler(message, reply)
                   : rpc::encode_reply_header(reply, base::load_be<uint32_t>(message.data()),
                                              rpc::AcceptStatus::success);
  }
};

struct TestFaults : ResponderFaults {
  ConnectFault connect;
  std::deque<ReplyFault> replies;  // one per reply, then none
  ConnectFault on_connect() override { return connect; }
  ReplyFault on_reply(const rpc::ServerConnection&, const rpc::CallHeader&) override {
    if (replies.empty()) return {};
    ReplyFault f = replies.front();
    replies.pop_front();
    return f;
  }
};

// The parameter names the provider.
class Pair : public ::testing::TestWithParam<const char*> {
 protected:
  base::ManualClock clock;
  io::IoLoop loop{clock, {}};
  std::shared_ptr<rdma::Provider> provider = make_provider();
  std::unique_ptr<CqDriver> driver, server_driver;
  std::shared_ptr<rdma::Device> device;
  std::shared_ptr<rdma::ProtectionDomain> pd;
  std::unique_ptr<mem::BufferPool> pool;
  TestService service;
  TestFaults faults;
  TestObserver observer;
  TestReverse reverse;
  AcceptorParams server_params;
  EndpointParams client_params;
  mem::PoolParams pool_params;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Endpoint> endpoint;
  std::string connect_error;

  static std::shared_ptr<rdma::Provider> make_provider() {
    return std::string(GetParam()) == "loop" ? rdma::make_loop_provider() : rdma::make_iwarp_provider({});
  }
  void make_drivers() {
    driver = std::make_unique<CqDriver>(loop, std::move(*provider->create_completion_queue(1024)));
    server_driver = std::make_unique<CqDriver>(loop, std::move(*provider->create_completion_queue(1024)));
  }
  void serve() {
    server_params.address = *base::SocketAddress::parse("127.0.0.1", 0);
    CqDriver* drivers[] = {server_driver.get()};
    auto a = Acceptor::listen(provider, server_params, drivers, service, &faults);
    ASSERT_TRUE(a) << a.error().text();
    acceptor = std::move(*a);
  }
  // Server and client, connected.
  void start() {
    make_drivers();
    serve();
    connect_client();
    ASSERT_TRUE(endpoint) << connect_error;
  }
  void make_pd() {
    rdma::ResolveParams to;
    to.remote = *base::SocketAddress::parse("127.0.0.1", 1);
    device = *provider->resolve(to);
    pd = *device->create_protection_domain();
    pool = std::make_unique<mem::BufferPool>(pd, pool_params);
  }
  void connect_client() {
    if (!pd) make_pd();
    client_params.remote = acceptor->local();
    bool over = false;
    io::spawn(connect(*driver, pd, *pool, client_params, observer, &reverse),
              [&](Result<std::unique_ptr<Endpoint>> r) {
                if (r)
                  endpoint = std::move(*r);
                else
                  connect_error = r.error().text();
                over = true;
              });
    ASSERT_TRUE(turn_until([&] { return over; }));
  }
  // Turns the loop; moves the clock when nothing happened.
  bool turn_until(const std::function<bool()>& reached, int turns_max = 20000) {
    for (int i = 0; i < turns_max; i++) {
      if (reached()) return true;
      if (!loop.turn(0)) clock.advance(base::us(100));
    }
    return reached();
  }
  void settle() {
    for (int idle = 0, i = 0; idle < 4 && i < 20000; i++) idle = loop.turn(0) ? 0 : idle + 1;
  }
  void run(TestCall& call) {
    endpoint->submit(call);
    endpoint->flush();
    ASSERT_TRUE(turn_until([&] { return call.done(); }));
    ASSERT_EQ(call.completions, 1);
  }
  void open_credits() {
    TestCall null;
    null.procedure = rpc::procedure_null;
    auto handler = std::exchange(service.handler, {});
    run(null);
    ASSERT_EQ(null.outcome, rpc::CallOutcome::replied) << null.error.text();
    service.handler = std::move(handler);
  }
  void TearDown() override {
    endpoint.reset();
    if (acceptor) {
      bool closed = false;
      io::spawn([](Acceptor& a, bool& flag) -> io::Task<void> {
        co_await a.close();
        flag = true;
      }(*acceptor, closed));
      EXPECT_TRUE(turn_until([&] { return closed; }));
    }
    acceptor.reset();
    driver.reset();
    server_driver.reset();
  }
};

#define NFSRDMA_BOTH_PROVIDERS(Suite)                                       \
  INSTANTIATE_TEST_SUITE_P(Over, Suite, ::testing::Values("loop", "iwarp"), \
                           [](const auto& p) { return std::string(p.param); })

}  // namespace nfsrdma::rpcrdma::testing
