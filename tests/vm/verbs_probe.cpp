// SPDX-License-Identifier: Apache-2.0
// Connects once by the verbs provider and says how it went, for the cases in this folder:
//   verbs_probe ADDRESS PORT [--device=NAME] [--source=ADDRESS] [--ird=N] [--timeout-ms=N] [--register=BYTES] [--fork]
//               [--then=ADDRESS,FILE]
// stdout: "ok device=... path=... ird=N ord=N private=HEX" or "error ERRNO TEXT"; exit 0 or 3.
// --register: registers that much memory first. --fork: goes to the background like a daemon in between, with the
// provider made before and the device met after. --then: instead of connecting says "met DEVICE", waits for FILE, asks
// for the device that leads to ADDRESS as well, and then registers memory on the first one.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rdma/providers.hpp"

namespace nfsrdma::rdma {
namespace {

struct Options {
  ResolveParams resolve;
  uint32_t ird = 16;
  TimeNs timeout_ns = base::seconds(5);
  size_t register_bytes = 0;
  bool fork = false;
  SocketAddress then;
  std::string then_file;
};

struct Handler final : ConnectionHandler {
  std::optional<Error> failed;
  std::string established;
  void on_established(const ConnectionInfo& info) override {
    established = " path=[" + info.path + "] ird=" + std::to_string(info.ird) + " ord=" + std::to_string(info.ord) +
                  " local=" + info.local.text() + " private=";
    for (std::byte b : info.private_data) {
      char hex[3];
      snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(b));
      established += hex;
    }
  }
  void on_failed(const Error& why) override { failed = why; }
  void on_disconnected(const Error& why) override { failed = why; }
};

int fail(const Error& error) {
  printf("error %d %s\n", error.errno_value(), error.text().c_str());
  return 3;
}

// Sleeps as a loop does, so that a missing wake-up shows as a hang.
void run(CompletionQueue& cq, const Handler& handler) {
  for (;;) {
    Completion out[16];
    size_t n = cq.poll(base::system_clock().now_ns(), out);
    if (handler.failed || !handler.established.empty()) return;
    if (n > 0 || !cq.arm()) continue;
    TimeNs now = base::system_clock().now_ns(), until = cq.deadline_ns();
    int ms = until == base::never_ns ? -1 : until <= now ? 0 : static_cast<int>((until - now) / 1'000'000 + 1);
    pollfd p{cq.fd(), POLLIN, 0};
    poll(&p, 1, ms);
  }
}

int outlive(Provider& provider, const Options& options, Device& first, ProtectionDomain& pd) {
  printf("met %s\n", first.describe().c_str());
  fflush(stdout);
  while (access(options.then_file.c_str(), F_OK) != 0) poll(nullptr, 0, 20);
  ResolveParams params = options.resolve;
  params.remote = options.then;
  auto second = provider.resolve(params);
  if (!second) return fail(second.error());
  static char page[4096] alignas(4096);
  MemoryRange range;
  range.address = page;
  range.length_bytes = sizeof page;
  auto region = pd.register_memory(range);
  if (!region) return fail(region.error());
  printf("ok then=[%s]\n", (*second)->describe().c_str());
  return 0;
}

int probe(Provider& provider, const Options& options) {
  auto device = provider.resolve(options.resolve);
  if (!device) return fail(device.error());
  auto pd = (*device)->create_protection_domain();
  if (!pd) return fail(pd.error());
  if (options.then.valid()) return outlive(provider, options, **device, **pd);
  std::unique_ptr<Region> region;
  void* memory = options.register_bytes ? aligned_alloc(4096, options.register_bytes) : nullptr;
  if (memory) {
    MemoryRange range;
    range.address = memory;
    range.length_bytes = options.register_bytes;
    auto registered = (*pd)->register_memory(range);
    if (!registered) return fail(registered.error());
    region = std::move(*registered);
  }
  auto cq = provider.create_completion_queue(256);
  if (!cq) return fail(cq.error());
  Handler handler;
  QueuePairParams params;
  params.send_depth = params.receive_depth = 32;
  params.ird = options.ird;
  auto pair = (*pd)->create_queue_pair(**cq, params, handler);
  if (!pair) return fail(pair.error());
  // RFC 8797: version 1, 4096 bytes each way.
  const uint8_t private_data[8] = {0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3};
  ConnectParams connect;
  connect.remote = options.resolve.remote;
  connect.local = options.resolve.local;
  connect.private_data = std::as_bytes(std::span(private_data));
  connect.timeout_ns = options.timeout_ns;
  if (auto started = (*pair)->connect(connect); !started) return fail(started.error());
  run(**cq, handler);
  if (handler.failed) return fail(*handler.failed);
  printf("ok device=[%s]%s\n", (*device)->describe().c_str(), handler.established.c_str());
  (*pair)->disconnect();
  Completion out[64];
  for (int i = 0; i < 100 && !handler.failed; i++) (*cq)->poll(base::system_clock().now_ns(), out);
  return 0;
}

std::optional<Options> parse(int argc, char** argv) {
  if (argc < 3) return std::nullopt;
  Options options;
  auto remote = SocketAddress::parse(argv[1], static_cast<uint16_t>(strtoul(argv[2], nullptr, 10)));
  if (!remote) return std::nullopt;
  options.resolve.remote = *remote;
  for (int i = 3; i < argc; i++) {
    std::string word = argv[i];
    std::string value = word.substr(std::min(word.size(), word.find('=') + 1));
    if (word.starts_with("--device=")) options.resolve.device_name = value;
    if (word.starts_with("--source="))
      if (auto source = SocketAddress::parse(value, 0)) options.resolve.local = *source;
    if (word.starts_with("--ird=")) options.ird = static_cast<uint32_t>(strtoul(value.c_str(), nullptr, 10));
    if (word.starts_with("--timeout-ms=")) options.timeout_ns = base::ms(strtoul(value.c_str(), nullptr, 10));
    if (word.starts_with("--register=")) options.register_bytes = strtoul(value.c_str(), nullptr, 10);
    if (word == "--fork") options.fork = true;
    if (word.starts_with("--then=")) {
      size_t comma = std::min(value.find(','), value.size() - 1);
      if (auto then = SocketAddress::parse(value.substr(0, comma), 0)) options.then = *then;
      options.then_file = value.substr(comma + 1);
    }
  }
  options.resolve.timeout_ns = options.timeout_ns;
  return options;
}

}  // namespace
}  // namespace nfsrdma::rdma

int main(int argc, char** argv) {
  auto options = nfsrdma::rdma::parse(argc, argv);
  if (!options) {
    fprintf(stderr, "usage: verbs_probe ADDRESS PORT [options]\n");
    return 2;
  }
  auto provider = nfsrdma::rdma::make_verbs_provider({});
  if (!options->fork) return nfsrdma::rdma::probe(*provider, *options);
  pid_t child = fork();
  if (child == 0) {
    int rc = nfsrdma::rdma::probe(*provider, *options);
    fflush(stdout);
    _exit(rc);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
