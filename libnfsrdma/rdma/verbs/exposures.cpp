// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/exposures.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

constexpr uint32_t resting_min = 32;

}  // namespace

Result<uint32_t> Exposures::take(const VerbsRegion& region) {
  // An entry rests before it is used again, for its key has only 256 different values.
  if (free_.empty() || entries_.size() < std::min(entries_max_, resting_min)) {
    if (entries_.size() >= entries_max_)
      return Error(ENOBUFS, ErrorOrigin::local, base::text("all %u exposures of the queue pair are taken", entries_max_));
    ibv_mw* window = windows_ ? ibv_alloc_mw(pd_, IBV_MW_TYPE_2) : nullptr;
    if (windows_ && !window)
      return Error(ENOBUFS, ErrorOrigin::local, base::text("the device gives no memory window: %s", strerror(errno)));
    free_.push(static_cast<uint32_t>(entries_.size()));
    entries_.push_back({window, nullptr, window ? window->rkey : 0, State::free});
  }
  uint32_t index = free_.front();
  free_.pop();
  Entry& entry = entries_[index];
  entry.region = &region;
  entry.state = State::live;
  // The low byte changes with each use: a key that the peer kept from an earlier exposure does not fit.
  entry.key = windows_ ? ibv_inc_rkey(entry.window->rkey) : region.rkey();
  if (windows_) bound_++;
  return index;
}

Exposures::Entry* Exposures::find(const Exposure& exposure) {
  if (exposure.token >= entries_.size()) return nullptr;
  Entry& entry = entries_[exposure.token];
  return entry.state == State::live && entry.key == exposure.key ? &entry : nullptr;
}

void Exposures::invalidated(uint32_t key) {
  for (uint32_t i = 0; i < entries_.size(); i++)
    if (entries_[i].state == State::live && entries_[i].key == key) return release(i);
}

void Exposures::start_fence(uint32_t index) { entries_[index].state = State::fencing; }

void Exposures::release(uint32_t index) {
  if (index >= entries_.size()) return;  // dropped in the meantime
  Entry& entry = entries_[index];
  if (entry.state == State::free) return;
  entry.state = State::free;
  entry.region = nullptr;
  if (windows_) {
    entry.window->rkey = entry.key;  // posted requests read it: not earlier than the bind has gone
    bound_--;
  }
  free_.push(index);
}

bool Exposures::names_revoked() const {
  for (const Entry& entry : entries_)
    if (entry.region && entry.region->revoked()) return true;
  return false;
}

void Exposures::drop_all() {
  for (Entry& entry : entries_) {
    if (!entry.window) continue;
    if (int error = ibv_dealloc_mw(entry.window))
      base::log(base::LogLevel::error, "rdma", "a memory window cannot be given back: %s", strerror(error));
  }
  entries_.clear();
  free_.clear();
  bound_ = 0;
}

}  // namespace nfsrdma::rdma::verbs
