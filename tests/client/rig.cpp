// SPDX-License-Identifier: Apache-2.0
#include "rig.hpp"

#include <sys/stat.h>

#include <fstream>

#include "client/mount_impl.hpp"

namespace nfsrdma::client::test {

TempDir::TempDir() {
  std::string path = std::filesystem::temp_directory_path() / "nfsrdma-client-test-XXXXXX";
  path_ = mkdtemp(path.data());
  chmod(path_.c_str(), 0755);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempDir::write(const std::string& name, std::span<const std::byte> bytes) const {
  std::ofstream file(path(name), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> TempDir::read(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> random_bytes(size_t n, uint64_t seed) {
  std::vector<std::byte> bytes(n);
  base::SeededRandom random(seed);
  random.fill(bytes);
  return bytes;
}

Rig::Rig(const RigParams& params, Options options) : options_(std::move(options)) {
  provider_ = params.way == Way::loop ? rdma::make_loop_provider() : rdma::make_iwarp_provider({});
  client_provider_ = params.client_provider ? params.client_provider : provider_;
  server::HostParams host;
  host.address = *base::SocketAddress::parse("127.0.0.1", 0);
  host.directory = dir_.path();
  host.threads = params.server_threads;
  host.workers = 2;
  host.pool_bytes_max = 64u << 20;
  host.server.root_squash = false;
  host.server.faults = *server::parse_faults(params.faults);
  auto started = server::Host::start(provider_, host);
  if (!started) {
    ADD_FAILURE() << started.error().text();
    return;
  }
  host_ = std::move(*started);
  options_.host = "127.0.0.1";
  options_.port = host_->local().port();
  options_.provider = ProviderKind::iwarp;
  if (!params.connect) return;
  auto mounted = connect(options_);
  if (mounted)
    mount_ = std::move(*mounted);
  else
    ADD_FAILURE() << mounted.error().text();
}

Rig::~Rig() { mount_.reset(); }

Result<std::unique_ptr<Mount>> Rig::connect(const Options& options) {
  auto impl = std::make_unique<Mount::Impl>(options);
  impl->use_provider(client_provider_);
  auto connected = impl->connect(nullptr);
  if (!connected) return connected.error();
  return std::make_unique<Mount>(std::move(impl));
}

File Rig::open(const std::string& name, uint32_t flags) {
  auto opened = mount_->create(mount_->root(), name, flags, 0644, who());
  if (!opened) {
    ADD_FAILURE() << opened.error().text();
    return {};
  }
  return opened->file;
}

}  // namespace nfsrdma::client::test
