// SPDX-License-Identifier: Apache-2.0
// A whole server in one object: an exported directory, its state, loops with their threads, and a listener. What
// nfsrdma-serve runs, and what tests and benchmarks embed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "rdma/provider.hpp"
#include "server/posix/posix_store.hpp"
#include "server/server.hpp"

namespace nfsrdma::rpcrdma {
class Acceptor;
class CqDriver;
}  // namespace nfsrdma::rpcrdma

namespace nfsrdma::server {

struct HostParams {
  base::SocketAddress address;        // port 0 = any
  std::string directory;
  std::string state_dir;              // "" = nothing survives a restart but kernel file handles
  bool read_only = false;
  bool async = false;
  ServerParams server;                // server_owner, instance and recorded clients are filled in
  uint32_t threads = 0;               // loops; 0 = one per core, at most 4
  uint32_t workers = 0;               // 0 = two per core, at least 4
  uint32_t spin_us = 0;
  uint64_t pool_bytes_max = 256u << 20;
  uint32_t connections_max = 1024;
};

class Host {
 public:
  // Serves when it returns. Errors in one line: directory, state directory, address.
  static Result<std::unique_ptr<Host>> start(std::shared_ptr<rdma::Provider> provider, const HostParams& params);
  // Ends every connection, lets what is under way finish, joins all threads. Not on one of its own threads.
  ~Host();

  base::SocketAddress local() const;
  NfsServer& server() { return *server_; }
  mem::PoolStats pool_stats() const;
  uint32_t connections() const;

 private:
  explicit Host(std::shared_ptr<rdma::Provider> provider);
  Result<void> open_store(const HostParams& params);
  Result<void> start_loops(const HostParams& params);

  std::shared_ptr<rdma::Provider> provider_;
  std::unique_ptr<Recovery> recovery_;
  std::unique_ptr<PosixStore> store_;
  std::unique_ptr<NfsServer> server_;
  std::vector<std::unique_ptr<io::IoThread>> loops_;
  std::vector<std::unique_ptr<rpcrdma::CqDriver>> drivers_;
  std::unique_ptr<rpcrdma::Acceptor> acceptor_;
};

}  // namespace nfsrdma::server
