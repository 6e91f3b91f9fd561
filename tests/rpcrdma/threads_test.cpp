// SPDX-License-Identifier: Apache-2.0
// Loops on threads of their own: one acceptor spreads connections over them, clients run on another.
#include <condition_variable>
#include <map>
#include <mutex>

#include "tests/rpcrdma/pair.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

// A thread with a loop and a completion queue on it.
struct Lane {
  io::IoThread thread{base::system_clock(), {}};
  std::unique_ptr<CqDriver> driver;
  explicit Lane(rdma::Provider& provider) {
    auto cq = std::move(*provider.create_completion_queue(1024));
    on([&] { driver = std::make_unique<CqDriver>(thread.loop(), std::move(cq)); });
  }
  ~Lane() {
    on([&] { driver.reset(); });
  }
  // Runs f on the lane's thread and waits for it.
  template <class F>
  void on(F f) {
    Gate gate;
    F* p = &f;
    thread.loop().post([p, &gate] {
      (*p)();
      gate.open();
    });
    gate.wait();
  }
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool opened = false;
    void open() {
      std::lock_guard lock(mutex);
      opened = true;
      changed.notify_all();
    }
    void wait() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return opened; });
    }
  };
};

// Thread safe; remembers on which threads it was called. A third of the calls is answered by another thread's
// hand.
struct SpreadService : rpc::Service {
  std::mutex mutex;
  std::map<const io::IoLoop*, int> calls_by_loop;
  int connects = 0, disconnects = 0;
  void on_connect(rpc::ServerConnection&) override {
    std::lock_guard lock(mutex);
    connects++;
  }
  void on_call(std::unique_ptr<rpc::ServerCall> call) override {
    io::IoLoop* loop = io::IoLoop::current();
    int n;
    {
      std::lock_guard lock(mutex);
      n = calls_by_loop[loop]++;
    }
    if (n % 3) return answer(*call);
    loop->post([c = std::move(call)] { answer(*c); });
  }
  void on_disconnect(rpc::ServerConnection&) override {
    std::lock_guard lock(mutex);
    disconnects++;
  }
  static void answer(rpc::ServerCall& call) {
    const size_t n = std::min(call.args.size(), call.results_space().size());
    std::copy_n(call.args.begin(), n, call.results_space().begin());
    call.reply(rpc::AcceptStatus::success, static_cast<uint32_t>(n));
  }
};

class Threads : public ::testing::TestWithParam<const char*> {};
NFSRDMA_BOTH_PROVIDERS(Threads);

TEST_P(Threads, ConnectionsAreSpreadAndServed) {
  constexpr int connections = 6, calls_each = 300;
  auto provider =
      std::string(GetParam()) == "loop" ? rdma::make_loop_provider() : rdma::make_iwarp_provider({});
  Lane first(*provider), second(*provider), client(*provider);
  SpreadService service;
  AcceptorParams params;
  params.address = *base::SocketAddress::parse("127.0.0.1", 0);
  CqDriver* drivers[] = {first.driver.get(), second.driver.get()};
  std::unique_ptr<Acceptor> acceptor;
  first.on([&] { acceptor = std::move(*Acceptor::listen(provider, params, drivers, service)); });

  rdma::ResolveParams to;
  to.remote = acceptor->local();
  auto device = *provider->resolve(to);
  auto pd = *device->create_protection_domain();
  mem::BufferPool pool(pd, {});
  TestObserver observer;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::deque<TestCall> calls(connections * calls_each);
  std::atomic<int> done{0};
  Lane::Gate all;
  client.on([&] {
    for (int i = 0; i < connections; i++) {
      EndpointParams p;
      p.remote = acceptor->local();
      io::spawn(connect(*client.driver, pd, pool, p, observer, nullptr),
                [&, i](Result<std::unique_ptr<Endpoint>> r) {
                  ASSERT_TRUE(r) << r.error().text();
                  endpoints.push_back(std::move(*r));
                  for (int k = 0; k < calls_each; k++) {
                    TestCall& call = calls[static_cast<size_t>(i * calls_each + k)];
                    std::vector<uint32_t> words(k % 5 == 0 ? 3000 : 2, static_cast<uint32_t>(i * 1000 + k));
                    call.set_args(words);
                    call.results_bytes_max = static_cast<uint32_t>(words.size() * 4);
                    call.then = [&](TestCall&) {
                      if (++done == connections * calls_each) all.open();
                    };
                    endpoints.back()->submit(call);
                  }
                  endpoints.back()->flush();
                });
    }
  });
  all.wait();
  for (TestCall& call : calls) {
    EXPECT_EQ(call.outcome, rpc::CallOutcome::replied) << call.error.text();
    EXPECT_EQ(call.got, call.body);
  }
  EXPECT_EQ(acceptor->connections(), static_cast<uint32_t>(connections));
  EXPECT_EQ(service.calls_by_loop.size(), 2u);
  // The responder goes first: the clients hear of it.
  Lane::Gate closed;
  first.on([&] {
    io::spawn([](Acceptor& a, Lane::Gate& gate) -> io::Task<void> {
      co_await a.close();
      gate.open();
    }(*acceptor, closed));
  });
  closed.wait();
  EXPECT_EQ(acceptor->connections(), 0u);
  EXPECT_EQ(service.connects, connections);
  EXPECT_EQ(service.disconnects, connections);
  client.on([&] { endpoints.clear(); });
  first.on([&] { acceptor.reset(); });
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
