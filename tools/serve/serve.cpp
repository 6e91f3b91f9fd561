// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "program.hpp"
#include "rdma/providers.hpp"
#include "server/host.hpp"
#include "server/identity.hpp"

namespace nfsrdma::serve {
namespace {

constexpr uint16_t default_port = 20049;

Result<base::SocketAddress> listen_address(const std::string& text) {
  if (text.empty()) return Error(EINVAL, ErrorOrigin::usage, "--listen: the address is empty; ':PORT' is every address");
  if (text.find_first_not_of("0123456789") == text.npos)
    return Error(EINVAL, ErrorOrigin::usage, "--listen " + text + ": a port alone is written :" + text);
  std::string host = text;
  uint32_t port = default_port;
  size_t colon = text.rfind(':');
  bool has_port = colon != text.npos && (text.find(':') == colon || text[colon - 1] == ']');
  if (has_port) {
    host = text.substr(0, colon);
    const char* end_of_text = text.data() + text.size();
    auto [end, failed] = std::from_chars(text.data() + colon + 1, end_of_text, port);
    if (failed != std::errc() || end != end_of_text || port > UINT16_MAX) {
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

// Every object of the store that is in use holds a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Result<server::HostParams> host_params(const Options& options) {
  auto faults = server::parse_faults(options.fault);
  if (!faults) return faults.error();
  auto address = listen_address(options.listen);
  if (!address) return address.error();
  server::HostParams params;
  params.address = *address;
  params.directory = options.directory;
  params.state_dir = options.state_dir;
  params.read_only = options.read_only;
  params.async = options.async;
  params.threads = options.threads;
  params.workers = options.workers;
  params.spin_us = options.spin_us;
  params.pool_bytes_max = static_cast<uint64_t>(options.memory_mib) << 20;
  params.connections_max = options.connections_max;
  params.server.faults = std::move(*faults);
  params.server.root_squash = options.root_squash;
  server::StateParams& state = params.server.state;
  state.lease_ns = base::seconds(options.lease_s);
  state.grace_ns = base::seconds(options.grace_s ? options.grace_s : options.lease_s);
  state.delegations = options.delegations == "none"   ? server::Delegations::none
                      : options.delegations == "read" ? server::Delegations::read
                                                      : server::Delegations::write;
  state.limits.clients_max = options.clients_max;
  state.limits.sessions_max = options.sessions_max;
  state.limits.slots_max = options.slots;
  return params;
}

Result<void> announce(const server::Host& host, const Options& options) {
  if (!server::can_assume_identity()) {
    base::log(base::LogLevel::warn, "server", "not root: every file call is made as user %u, whoever the client's "
              "user is", geteuid());
  }
  std::printf("ready nfsrdma://%s/?provider=%s\n", host.local().text().c_str(), options.provider.c_str());
  int error = program::flush_stdout();
  if (error == 0) return {};
  return Error(error, ErrorOrigin::local, std::string("cannot say on stdout that clients can come: ") +
                                              std::strerror(error) + "; direct it elsewhere, as in >/dev/null");
}

void wait_for_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  int signal = 0;
  sigwait(&set, &signal);
}

}  // namespace

Result<void> serve(const Options& options) {
  auto params = host_params(options);
  if (!params) return params.error();
  auto provider = make_provider(options);
  if (!provider) return provider.error();
  raise_descriptor_limit();
  auto host = server::Host::start(std::move(*provider), *params);
  if (!host) {
    const Error& why = host.error();
    if (why.errno_value() != EADDRINUSE) return why;
    return Error(EADDRINUSE, ErrorOrigin::local, why.text() + ": end the other server, or choose another port (0 = any)");
  }
  if (auto announced = announce(**host, options); !announced) return announced;
  wait_for_signal();
  return {};
}

}  // namespace nfsrdma::serve
