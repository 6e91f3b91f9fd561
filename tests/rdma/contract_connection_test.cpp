// SPDX-License-Identifier: Apache-2.0
// Contract: connecting, being refused, and ending.
#include <errno.h>
#include <poll.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {
namespace {

class Connecting : public ContractTest {
 protected:
  static std::vector<std::byte> bytes(size_t n, uint8_t seed) {
    std::vector<std::byte> v(n);
    for (size_t i = 0; i < n; i++) v[i] = pattern(seed, i);
    return v;
  }
  void start_client(const SocketAddress& to, TimeNs timeout_ns = base::seconds(10)) {
    auto qp = client_.pd->create_queue_pair(*client_.cq, default_params(), client_.handler);
    ASSERT_TRUE(qp.ok()) << qp.error().text();
    client_.qp = std::move(*qp);
    ConnectParams params;
    params.remote = to;
    params.private_data = client_private_;
    params.timeout_ns = timeout_ns;
    ASSERT_TRUE(client_.qp->connect(params).ok());
  }
};

TEST_P(Connecting, PrivateDataBothWays) {
  for (size_t n : {size_t{0}, size_t{1}, size_t{8}, size_t{56}, size_t{196}}) {
    SCOPED_TRACE(n);
    client_.handler = Handler{};
    server_.handler = Handler{};
    client_.qp.reset();
    server_.qp.reset();
    client_private_ = bytes(std::min(n, GetParam().private_data_max), 1);
    server_private_ = bytes(n, 2);
    std::vector<std::byte> seen;
    accepting_.act = [&](std::unique_ptr<ConnectRequest> request) {
      seen.assign(request->private_data().begin(), request->private_data().end());
      EXPECT_TRUE(request->remote().valid());
      EXPECT_EQ(request->ird_offered(), 8u);
      auto qp = request->create_queue_pair(*server_.pd, *server_.cq, server_params_, server_.handler);
      ASSERT_TRUE(qp.ok());
      server_.qp = std::move(*qp);
      EXPECT_TRUE(server_.qp->accept(server_private_).ok());
    };
    connect_pair();
    // Verbs pads private data with zeros to the size of its message.
    ASSERT_GE(seen.size(), client_private_.size());
    seen.resize(client_private_.size());
    EXPECT_EQ(seen, client_private_);
    ASSERT_GE(client_.handler.peer_private.size(), n);
    client_.handler.peer_private.resize(n);
    EXPECT_EQ(client_.handler.peer_private, server_private_);
    EXPECT_FALSE(client_.handler.path.empty());
  }
}

TEST_P(Connecting, DepthsAreAgreed) {
  QueuePairParams client = default_params(), server = default_params();
  client.ird = 5;
  client.ord = 3;
  server.ird = 7;
  server.ord = 9;
  connect_pair(client, server);
  EXPECT_LE(server_.handler.ord, 5u);
  EXPECT_GE(server_.handler.ord, 1u);
  EXPECT_LE(client_.handler.ord, 3u);
}

TEST_P(Connecting, ClosedPortIsRefused) {
  if (!GetParam().can_refuse) GTEST_SKIP() << "the connection manager of this provider tells otherwise";
  listen();
  SocketAddress closed = listener_->local();
  listener_.reset();
  start_client(closed);
  ASSERT_TRUE(until([&] { return client_.handler.failed.has_value(); }));
  EXPECT_EQ(client_.handler.failed->errno_value(), ECONNREFUSED);
  EXPECT_NE(client_.handler.failed->text().find(std::to_string(closed.port())), std::string::npos)
      << client_.handler.failed->text();
  EXPECT_FALSE(client_.handler.established);
  EXPECT_EQ(client_.handler.failed_calls, 1);
}

TEST_P(Connecting, PostedReceivesAreFlushedWhenConnectingFails) {
  if (!GetParam().can_refuse) GTEST_SKIP() << "the connection manager of this provider tells otherwise";
  listen();
  SocketAddress closed = listener_->local();
  listener_.reset();
  Memory inbox(*client_.pd, 4096);
  auto qp = client_.pd->create_queue_pair(*client_.cq, default_params(), client_.handler);
  ASSERT_TRUE(qp.ok());
  client_.qp = std::move(*qp);
  ASSERT_TRUE(receive(client_, 5, inbox, 0, 64).ok());
  EXPECT_EQ(send(client_, 6, inbox, 0, 64).error().errno_value(), ENOTCONN);
  ConnectParams params;
  params.remote = closed;
  ASSERT_TRUE(client_.qp->connect(params).ok());
  ASSERT_TRUE(until([&] { return client_.handler.failed && client_.find(5); }));
  EXPECT_EQ(client_.find(5)->status, CompletionStatus::flushed);
  client_.qp.reset();
}

TEST_P(Connecting, RejectionCarriesPrivateData) {
  accepting_.act = [&](std::unique_ptr<ConnectRequest> request) {
    request->reject(base::bytes_of("no room here"));
  };
  listen();
  start_client(listener_->local());
  ASSERT_TRUE(until([&] { return client_.handler.failed.has_value(); }));
  EXPECT_EQ(client_.handler.failed->errno_value(), ECONNREFUSED);
  EXPECT_NE(client_.handler.failed->text().find("reject"), std::string::npos) << client_.handler.failed->text();
  EXPECT_NE(client_.handler.failed->text().find("no room here"), std::string::npos)
      << client_.handler.failed->text();
}

TEST_P(Connecting, DroppedRequestIsARejection) {
  accepting_.act = [](std::unique_ptr<ConnectRequest> request) { request.reset(); };
  listen();
  start_client(listener_->local());
  ASSERT_TRUE(until([&] { return client_.handler.failed.has_value(); }));
  EXPECT_EQ(client_.handler.failed->errno_value(), ECONNREFUSED);
}

TEST_P(Connecting, NoAnswerTimesOut) {
  std::unique_ptr<ConnectRequest> kept;
  accepting_.act = [&](std::unique_ptr<ConnectRequest> request) { kept = std::move(request); };
  listen();
  start_client(listener_->local(), base::ms(200));
  EXPECT_NE(client_.cq->deadline_ns(), base::never_ns);
  ASSERT_TRUE(until([&] { return client_.handler.failed.has_value(); }));
  EXPECT_EQ(client_.handler.failed->errno_value(), ETIMEDOUT) << client_.handler.failed->text();
  // The late answer finds nobody.
  if (kept) {
    auto qp = kept->create_queue_pair(*server_.pd, *server_.cq, default_params(), server_.handler);
    if (qp) {
      server_.qp = std::move(*qp);
      (void)server_.qp->accept({});
      until([&] { return server_.handler.failed || server_.handler.disconnected; });
      EXPECT_TRUE(server_.handler.failed || server_.handler.disconnected);
    }
  }
  kept.reset();
}

TEST_P(Connecting, CancelledWhileConnecting) {
  std::unique_ptr<ConnectRequest> kept;
  accepting_.act = [&](std::unique_ptr<ConnectRequest> request) { kept = std::move(request); };
  listen();
  start_client(listener_->local());
  until([&] { return kept != nullptr; });
  client_.qp->disconnect();
  ASSERT_TRUE(until([&] { return client_.handler.failed || client_.handler.disconnected; }));
  kept.reset();
}

TEST_P(Connecting, DestroyedWhileConnecting) {
  std::unique_ptr<ConnectRequest> kept;
  accepting_.act = [&](std::unique_ptr<ConnectRequest> request) { kept = std::move(request); };
  listen();
  start_client(listener_->local());
  until([&] { return kept != nullptr; });
  client_.qp.reset();
  settle();
  kept.reset();
  settle();
  EXPECT_FALSE(client_.handler.failed || client_.handler.established);
}

TEST_P(Connecting, OrderlyEnd) {
  connect_pair();
  open_both_ways();
  server_.qp->disconnect();
  ASSERT_TRUE(both_down());
  EXPECT_EQ(client_.handler.disconnected_calls, 1);
  EXPECT_EQ(server_.handler.disconnected_calls, 1);
  EXPECT_FALSE(client_.handler.disconnected->text().empty());
}

TEST_P(Connecting, PeerDestroyedIsNoticed) {
  connect_pair();
  open_both_ways();
  server_.qp.reset();
  ASSERT_TRUE(until([&] { return client_.handler.disconnected.has_value(); }));
}

TEST_P(Connecting, ListenerCanGoWhilePairsLive) {
  connect_pair();
  listener_.reset();
  open_both_ways();
}

TEST_P(Connecting, PortInUse) {
  listen();
  auto second = provider_->listen(listener_->local(), *server_.cq, accepting_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().errno_value(), EADDRINUSE);
  EXPECT_NE(second.error().text().find(std::to_string(listener_->local().port())), std::string::npos);
}

TEST_P(Connecting, ManyPairsOnOneQueue) {
  constexpr size_t n = 12;
  std::vector<std::unique_ptr<QueuePair>> servers;
  std::vector<std::unique_ptr<Handler>> handlers;
  accepting_.act = [&](std::unique_ptr<ConnectRequest> request) {
    handlers.push_back(std::make_unique<Handler>());
    auto qp = request->create_queue_pair(*server_.pd, *server_.cq, default_params(), *handlers.back());
    ASSERT_TRUE(qp.ok());
    servers.push_back(std::move(*qp));
    EXPECT_TRUE(servers.back()->accept({}).ok());
  };
  listen();
  Memory out(*client_.pd, n * 64), in(*server_.pd, n * 64);
  out.fill(1);
  std::vector<std::unique_ptr<QueuePair>> clients;
  std::vector<Handler> client_handlers(n);
  for (size_t i = 0; i < n; i++) {
    auto qp = client_.pd->create_queue_pair(*client_.cq, default_params(), client_handlers[i]);
    ASSERT_TRUE(qp.ok());
    clients.push_back(std::move(*qp));
    ConnectParams params;
    params.remote = listener_->local();
    ASSERT_TRUE(clients.back()->connect(params).ok());
  }
  ASSERT_TRUE(until([&] {
    for (const Handler& h : client_handlers)
      if (!h.established) return false;
    return servers.size() == n;
  }));
  for (size_t i = 0; i < n; i++) {
    ReceiveRequest receive;
    receive.id = i;
    receive.sge = {in.get(), i * 64, 64};
    ASSERT_TRUE(servers[i]->post_receive({&receive, 1}).ok());
  }
  for (size_t i = 0; i < n; i++) {
    SendRequest request;
    Sge piece{out.get(), i * 64, 64};
    request.id = 100 + i;
    request.sge = {&piece, 1};
    ASSERT_TRUE(clients[i]->post_send({&request, 1}).ok());
    clients[i]->flush();
  }
  ASSERT_TRUE(until([&] { return server_.seen.size() == n && client_.seen.size() == n; }));
  clients.clear();
  ASSERT_TRUE(until([&] {
    for (auto& h : handlers)
      if (!h->disconnected) return false;
    return true;
  }));
  servers.clear();
}

// The listener's thread hands the request to the thread whose queue shall own the pair.
TEST_P(Connecting, RequestMovesToAnotherThread) {
  auto cq = provider_->create_completion_queue(64);
  ASSERT_TRUE(cq.ok());
  std::mutex mutex;
  std::unique_ptr<ConnectRequest> handed;  // guarded by mutex
  std::atomic<bool> stop{false}, served{false};
  accepting_.act = [&](std::unique_ptr<ConnectRequest> request) {
    std::lock_guard lock(mutex);
    handed = std::move(request);
  };
  listen();
  Memory in(*server_.pd, 4096), out(*client_.pd, 4096);
  out.fill(3);
  std::thread owner([&] {
    Handler handler;
    std::unique_ptr<QueuePair> qp;
    while (!stop) {
      {
        std::lock_guard lock(mutex);
        if (auto request = std::move(handed)) {
          auto made = request->create_queue_pair(*server_.pd, **cq, default_params(), handler);
          if (!made) break;
          qp = std::move(*made);
          ReceiveRequest receive;
          receive.sge = {in.get(), 0, 4096};
          if (!qp->post_receive({&receive, 1}) || !qp->accept({})) break;
        }
      }
      Completion c[4];
      if ((*cq)->poll(base::system_clock().now_ns(), c) > 0 && c[0].status == CompletionStatus::success)
        served = in.has(3, 0, 1000);
    }
    qp.reset();
  });
  start_client(listener_->local());
  EXPECT_TRUE(until([&] { return client_.handler.established; }));
  EXPECT_TRUE(send(client_, 1, out, 0, 1000).ok());
  EXPECT_TRUE(until([&] { return served.load(); }));
  stop = true;
  owner.join();
}

// The descriptor wakes a sleeper: with one thread per end, neither spins.
TEST_P(Connecting, SleepersAreWoken) {
  connect_pair();
  Memory out(*client_.pd, 4096), in(*client_.pd, 4096), s_out(*server_.pd, 4096), s_in(*server_.pd, 4096);
  constexpr int rounds = 50;
  auto wait_for = [](End& end, uint64_t id) {
    for (int turn = 0; turn < 10'000 && !end.find(id); turn++) {
      Completion c[16];
      size_t n = end.cq->poll(base::system_clock().now_ns(), c);
      end.seen.insert(end.seen.end(), c, c + n);
      if (n > 0 || !end.cq->arm()) continue;
      TimeNs now = base::system_clock().now_ns(), until = end.cq->deadline_ns();
      int ms = until == base::never_ns ? 5000 : until <= now ? 0 : static_cast<int>((until - now) / 1'000'000 + 1);
      pollfd p{end.cq->fd(), POLLIN, 0};
      ::poll(&p, 1, ms);
    }
    return end.find(id) != nullptr;
  };
  for (uint64_t i = 0; i < 8; i++) ASSERT_TRUE(receive(server_, 1000 + i, s_in, 0, 64).ok());
  bool server_good = true;
  std::thread server([&] {
    for (uint64_t i = 0; i < rounds && server_good; i++) {
      server_good &= wait_for(server_, 1000 + i);
      if (i + 8 < rounds) server_good &= receive(server_, 1000 + i + 8, s_in, 0, 64).ok();
      server_good &= send(server_, 5000 + i, s_out, 0, 64, false).ok();
    }
  });
  bool client_good = true;
  for (uint64_t i = 0; i < rounds && client_good; i++) {
    client_good &= receive(client_, 2000 + i, in, 0, 64).ok();
    client_good &= send(client_, 3000 + i, out, 0, 64, false).ok();
    client_good &= wait_for(client_, 2000 + i);
  }
  server.join();
  EXPECT_TRUE(client_good);
  EXPECT_TRUE(server_good);
}

INSTANTIATE_TEST_SUITE_P(Contract, Connecting, testing::ValuesIn(contract_providers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nfsrdma::rdma::contract
