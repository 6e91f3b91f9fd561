// SPDX-License-Identifier: Apache-2.0
#include "server/posix/object.hpp"

#include "server/posix/object_cache.hpp"

namespace nfsrdma::server {

PosixObject::~PosixObject() {
  if (touched_.load(std::memory_order_acquire)) ++change_.extra;
  cache_.forget(handle(), change_);
}

void PosixObject::recall_change(const ChangeMemory& memory) { change_ = memory; }

bool PosixObject::begin_in_place() {
  std::lock_guard lock(in_place_mutex_);
  if (truncations_ > 0) return false;
  ++in_place_;
  return true;
}

void PosixObject::end_in_place() {
  std::lock_guard lock(in_place_mutex_);
  if (--in_place_ == 0 && truncations_ > 0) in_place_ended_.notify_all();
}

void PosixObject::hold_in_place() {
  constexpr std::chrono::seconds patience(5);
  std::unique_lock lock(in_place_mutex_);
  ++truncations_;
  in_place_ended_.wait_for(lock, patience, [this] { return in_place_ == 0; });
}

void PosixObject::resume_in_place() {
  std::lock_guard lock(in_place_mutex_);
  --truncations_;
}

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
