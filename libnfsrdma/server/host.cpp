// SPDX-License-Identifier: Apache-2.0
#include "server/host.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>

#include "base/log.hpp"
#include "rpcrdma/responder.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t queue_entries = 4096;

std::string server_name(const SipKey& key, const std::string& directory) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return base::text("nfsrdma-serve:%s:%016llx", host,
                    static_cast<unsigned long long>(siphash(key, base::bytes_of(directory))));
}

// Runs f on a loop's thread and waits for it.
template <class F>
void run_on(io::IoLoop& loop, F f) {
  std::promise<void> done;
  loop.post([&] {
    f();
    done.set_value();
  });
  done.get_future().wait();
}

io::Task<void> close_all(rpcrdma::Acceptor& acceptor, NfsServer& server, std::promise<void>& done) {
  co_await acceptor.close();
  co_await server.close();
  done.set_value();
}

}  // namespace

Host::Host(std::shared_ptr<rdma::Provider> provider) : provider_(std::move(provider)) {}

Result<std::unique_ptr<Host>> Host::start(std::shared_ptr<rdma::Provider> provider, const HostParams& params) {
  std::unique_ptr<Host> host(new Host(std::move(provider)));
  if (auto opened = host->open_store(params); !opened) return opened.error();
  if (auto started = host->start_loops(params); !started) return started.error();
  return host;
}

Result<void> Host::open_store(const HostParams& params) {
  base::Random& random = base::system_random();
  SipKey key{random.next(), random.next()};
  if (!params.state_dir.empty()) {
    auto recovery = Recovery::open(params.state_dir, random);
    if (!recovery) return recovery.error();
    recovery_ = std::move(*recovery);
    key = recovery_->handle_key();
  } else if (geteuid() == 0) {
    key = key_of_machine(params.directory);
  }
  PosixParams posix;
  posix.directory = params.directory;
  posix.state_dir = params.state_dir;
  posix.handle_key = key;
  posix.read_only = params.read_only;
  posix.async = params.async;
  posix.worker_threads = params.workers ? params.workers : std::max(4u, 2 * std::thread::hardware_concurrency());
  posix.boot_verifier = base::system_clock().wall_ns();
  auto store = PosixStore::open(posix);
  if (!store) return store.error();
  store_ = std::move(*store);
  ServerParams server = params.server;
  server.state.server_owner = server_name(key, params.directory);
  server.state.instance = static_cast<uint32_t>(base::system_clock().wall_ns() >> 20) | 1;
  if (recovery_) server.state.recorded = recovery_->owners();
  if (!server.state.recorded.empty()) {
    base::log(base::LogLevel::warn, "server", "grace period: %zu clients may reclaim their files for up to %llu s",
              server.state.recorded.size(),
              static_cast<unsigned long long>(server.state.grace_ns / base::seconds(1)));
  }
  server_ = std::make_unique<NfsServer>(base::system_clock(), random, *store_, recovery_.get(), server);
  return {};
}

Result<void> Host::start_loops(const HostParams& params) {
  uint32_t count = params.threads ? params.threads : std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
  std::vector<rpcrdma::CqDriver*> drivers;
  for (uint32_t i = 0; i < count; ++i) {
    auto thread = io::IoThread::start(base::system_clock(), io::LoopParams{params.spin_us, base::text("io%u", i)});
    if (!thread) return thread.error();
    loops_.push_back(std::move(*thread));
    auto cq = provider_->create_completion_queue(queue_entries);
    if (!cq) return cq.error();
    io::IoLoop& loop = loops_.back()->loop();
    run_on(loop, [&] { drivers_.push_back(std::make_unique<rpcrdma::CqDriver>(loop, std::move(*cq))); });
    drivers.push_back(drivers_.back().get());
  }
  rpcrdma::AcceptorParams acceptor;
  acceptor.address = params.address;
  acceptor.responder.credits = params.server.state.limits.slots_max;
  acceptor.pool.bytes_max = params.pool_bytes_max;
  acceptor.connections_max = params.connections_max;
  Result<void> outcome;
  run_on(loops_[0]->loop(), [&] {
    auto listening = rpcrdma::Acceptor::listen(provider_, acceptor, drivers, *server_, server_->faults());
    if (!listening) {
      outcome = listening.error();
      return;
    }
    acceptor_ = std::move(*listening);
    server_->start_housekeeping(loops_[0]->loop());
  });
  return outcome;
}

Host::~Host() {
  if (acceptor_) {
    std::promise<void> done;
    loops_[0]->loop().post([&] { io::spawn(close_all(*acceptor_, *server_, done)); });
    done.get_future().wait();
    run_on(loops_[0]->loop(), [&] { acceptor_.reset(); });
  }
  for (size_t i = 0; i < drivers_.size(); ++i) {
    run_on(loops_[i]->loop(), [&] { drivers_[i].reset(); });
  }
  loops_.clear();
}

base::SocketAddress Host::local() const { return acceptor_->local(); }

mem::PoolStats Host::pool_stats() const { return acceptor_->pool_stats(); }

uint32_t Host::connections() const { return acceptor_->connections(); }

}  // namespace nfsrdma::server
