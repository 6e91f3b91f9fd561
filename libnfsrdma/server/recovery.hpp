// SPDX-License-Identifier: Apache-2.0
// What survives a restart in the state directory: the key of file handles and the clients that may reclaim.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "base/random.hpp"
#include "io/task.hpp"
#include "nfsrdma/error.hpp"
#include "server/siphash.hpp"
#include "server/workers.hpp"

namespace nfsrdma::server {

class Recovery {
 public:
  // Makes the directory where it is missing, and holds it under a lock: two servers must not share one. EBUSY then.
  static Result<std::unique_ptr<Recovery>> open(const std::string& directory, base::Random& random);
  ~Recovery();

  const SipKey& handle_key() const { return key_; }
  // The owners recorded by earlier runs.
  std::set<std::string> owners() const;

  // Durable when the task is done; comes back on a thread of its own.
  io::Task<void> add(const std::string& owner);
  io::Task<void> remove(std::string owner);

 private:
  explicit Recovery(std::string directory) : directory_(std::move(directory)), workers_(1) {}
  Result<void> load_key(base::Random& random);
  void load_owners();
  std::string path_of(const std::string& owner) const;
  void sync_directory();

  std::string directory_;
  int lock_fd_ = -1;
  SipKey key_;
  mutable std::mutex mutex_;
  std::set<std::string> owners_;  // guarded by mutex_
  WorkerPool workers_;
};

// For a server without a state directory: a key that only this machine and directory have, and that is the same after
// a restart. Forged handles fail against a key that no client can know.
SipKey key_of_machine(const std::string& directory);

}  // namespace nfsrdma::server
