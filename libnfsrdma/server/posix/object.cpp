// SPDX-License-Identifier: Apache-2.0
#include "server/posix/object.hpp"

#include "server/posix/object_cache.hpp"

namespace nfsrdma::server {

PosixObject::~PosixObject() {
  if (touched_.load(std::memory_order_acquire)) ++change_.extra;
  cache_.forget(handle(), change_);
}

void PosixObject::recall_change(const ChangeMemory& memory) { change_ = memory; }

uint64_t PosixObject::change_for(uint64_t ctime_ns) {
  std::lock_guard lock(change_mutex_);
  bool touched = touched_.exchange(false, std::memory_order_acq_rel);
  if (ctime_ns != change_.ctime_ns) {
    change_ = {ctime_ns, 0};
  } else if (touched) {
    ++change_.extra;
  }
  return change_.ctime_ns + change_.extra;
}

}  // namespace nfsrdma::server
