// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <future>
#include <thread>

#include "base/log.hpp"
#include "io/loop.hpp"
#include "io/task.hpp"
#include "rdma/providers.hpp"
#include "rpcrdma/responder.hpp"
#include "server/identity.hpp"
#include "server/posix/posix_store.hpp"
#include "server/server.hpp"

namespace nfsrdma::serve {
namespace {

constexpr uint16_t default_port = 20049;
constexpr uint32_t queue_entries = 4096;

void note(const std::string& text) { base::log_line(base::LogLevel::warn, "", text); }

Result<base::SocketAddress> listen_address(const std::string& text) {
  std::string host = text;
  uint32_t port = default_port;
  size_t colon = text.rfind(':');
  bool has_port = colon != text.npos && (text.find(':') == colon || text[colon - 1] == ']');
  if (has_port) {
    host = text.substr(0, colon);
    auto [end, failed] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
    if (failed != std::errc() || end != text.data() + text.size() || port > UINT16_MAX) {
      return Error(EINVAL, ErrorOrigin::usage, "--listen " + text + ": the port is not a number up to 65535");
    }
  }
  if (host.empty()) host = "0.0.0.0";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  auto address = base::SocketAddress::resolve(host, static_cast<uint16_t>(port));
  if (!address) return address.error().in("--listen " + text);
  return address;
}

Result<std::shared_ptr<rdma::Provider>> make_provider(const Options& options) {
  if (options.provider == "iwarp") {
    rdma::IwarpOptions iwarp;
    iwarp.crc = options.crc;
    iwarp.spin_us = options.spin_us;
    return rdma::make_iwarp_provider(iwarp);
  }
  if (options.provider == "tcp") {
    return Error(EPROTONOSUPPORT, ErrorOrigin::usage,
                 "--provider tcp: plain RPC over TCP is not served yet; use iwarp, which needs no RDMA device either");
  }
#ifdef NFSRDMA_HAVE_VERBS
  return rdma::make_verbs_provider(rdma::VerbsOptions{});
#else
  return Error(EPROTONOSUPPORT, ErrorOrigin::usage,
               "--provider verbs: this build has no verbs (rdma-core was missing); use iwarp");
#endif
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string server_name(const server::SipKey& key, const std::string& directory) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return base::text("nfsrdma-serve:%s:%016llx", host,
                    static_cast<unsigned long long>(server::siphash(key, base::bytes_of(directory))));
}

server::ServerParams server_params(const Options& options, const server::FaultPlan& faults) {
  server::ServerParams params;
  params.faults = faults;
  params.root_squash = options.root_squash;
  server::StateParams& state = params.state;
  state.lease_ns = base::seconds(options.lease_s);
  state.grace_ns = base::seconds(options.grace_s ? options.grace_s : options.lease_s);
  state.delegations = options.delegations == "none"   ? server::Delegations::none
                      : options.delegations == "read" ? server::Delegations::read
                                                      : server::Delegations::write;
  state.limits.clients_max = options.clients_max;
  state.limits.sessions_max = options.sessions_max;
  state.limits.slots_max = options.slots;
  state.instance = static_cast<uint32_t>(base::system_clock().wall_ns() >> 20) | 1;
  return params;
}

// Everything that serves, in the order in which it must be made; ends in the opposite one.
class Serving {
 public:
  Result<void> start(const Options& options);
  void announce(const Options& options) const;
  void stop();

 private:
  Result<void> open_store(const Options& options, const server::FaultPlan& faults);
  Result<void> start_loops(const Options& options);

  std::shared_ptr<rdma::Provider> provider_;
  std::unique_ptr<server::Recovery> recovery_;
  std::unique_ptr<server::PosixStore> store_;
  std::unique_ptr<server::NfsServer> server_;
  std::vector<std::unique_ptr<io::IoThread>> loops_;
  std::vector<std::unique_ptr<rpcrdma::CqDriver>> drivers_;
  std::unique_ptr<rpcrdma::Acceptor> acceptor_;
};

Result<void> Serving::open_store(const Options& options, const server::FaultPlan& faults) {
  base::Random& random = base::system_random();
  server::SipKey key{random.next(), random.next()};
  if (!options.state_dir.empty()) {
    auto recovery = server::Recovery::open(options.state_dir, random);
    if (!recovery) return recovery.error();
    recovery_ = std::move(*recovery);
    key = recovery_->handle_key();
  } else if (geteuid() == 0) {
    key = server::key_of_machine(options.directory);
  }
  server::PosixParams posix;
  posix.directory = options.directory;
  posix.state_dir = options.state_dir;
  posix.handle_key = key;
  posix.read_only = options.read_only;
  posix.async = options.async;
  posix.worker_threads = options.workers ? options.workers : std::max(4u, 2 * std::thread::hardware_concurrency());
  posix.boot_verifier = base::system_clock().wall_ns();
  auto store = server::PosixStore::open(posix);
  if (!store) return store.error();
  store_ = std::move(*store);
  server::ServerParams params = server_params(options, faults);
  params.state.server_owner = server_name(key, options.directory);
  if (recovery_) params.state.recorded = recovery_->owners();
  if (!params.state.recorded.empty()) {
    note(base::text("grace period: waiting up to %u s for %zu clients to reclaim their files",
                    options.grace_s ? options.grace_s : options.lease_s, params.state.recorded.size()));
  }
  server_ = std::make_unique<server::NfsServer>(base::system_clock(), random, *store_, recovery_.get(), params);
  return {};
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

Result<void> Serving::start_loops(const Options& options) {
  auto address = listen_address(options.listen);
  if (!address) return address.error();
  uint32_t count = options.threads ? options.threads : std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
  for (uint32_t i = 0; i < count; ++i) {
    loops_.push_back(std::make_unique<io::IoThread>(base::system_clock(),
                                                    io::LoopParams{options.spin_us, base::text("io%u", i)}));
  }
  std::vector<rpcrdma::CqDriver*> drivers;
  for (auto& thread : loops_) {
    auto cq = provider_->create_completion_queue(queue_entries);
    if (!cq) return cq.error();
    run_on(thread->loop(), [&] {
      drivers_.push_back(std::make_unique<rpcrdma::CqDriver>(thread->loop(), std::move(*cq)));
    });
    drivers.push_back(drivers_.back().get());
  }
  rpcrdma::AcceptorParams params;
  params.address = *address;
  params.responder.credits = options.slots;
  params.pool.bytes_max = static_cast<uint64_t>(options.memory_mib) << 20;
  params.connections_max = options.connections_max;
  Result<void> outcome;
  run_on(loops_[0]->loop(), [&] {
    auto acceptor = rpcrdma::Acceptor::listen(provider_, params, drivers, *server_, server_->faults());
    if (!acceptor) {
      outcome = acceptor.error();
      return;
    }
    acceptor_ = std::move(*acceptor);
    server_->start_housekeeping(loops_[0]->loop());
  });
  return outcome;
}

Result<void> Serving::start(const Options& options) {
  auto faults = server::parse_faults(options.fault);
  if (!faults) return faults.error();
  auto provider = make_provider(options);
  if (!provider) return provider.error();
  provider_ = std::move(*provider);
  raise_descriptor_limit();
  if (auto opened = open_store(options, *faults); !opened) return opened;
  return start_loops(options);
}

void Serving::announce(const Options& options) const {
  if (!server::can_assume_identity()) {
    note(base::text("not root: every file call is made as user %u, whoever the client's user is", geteuid()));
  }
  std::printf("ready nfsrdma://%s/?provider=%s\n", acceptor_->local().text().c_str(), options.provider.c_str());
  std::fflush(stdout);
}

namespace {

io::Task<void> close_all(rpcrdma::Acceptor& acceptor, server::NfsServer& server, std::promise<void>& done) {
  co_await acceptor.close();
  co_await server.close();
  done.set_value();
}

}  // namespace

void Serving::stop() {
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

int wait_for_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  int signal = 0;
  sigwait(&set, &signal);
  return signal;
}

}  // namespace

Result<void> serve(const Options& options) {
  Serving serving;
  Result<void> started = serving.start(options);
  if (started) {
    serving.announce(options);
    wait_for_signal();
  }
  serving.stop();
  return started;
}

}  // namespace nfsrdma::serve
