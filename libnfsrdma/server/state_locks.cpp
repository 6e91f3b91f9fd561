// SPDX-License-Identifier: Apache-2.0
// Byte-range locks: RFC 8881, 9.1 to 9.6, 18.10 to 18.12.
#include <algorithm>

#include "server/state.hpp"

namespace nfsrdma::server {
namespace {

// Offset and length as the wire has them to inclusive bounds.
Status range_of(uint64_t offset, uint64_t length, LockRange& range) {
  if (length == 0) return Status::inval;
  if (length != nfs4::length_to_end && length - 1 > UINT64_MAX - offset) return Status::inval;
  range.first = offset;
  range.last = length == nfs4::length_to_end ? UINT64_MAX : offset + length - 1;
  return Status::ok;
}

}  // namespace

void State::fill_conflict(const LockRange& range, LockConflict& conflict) const {
  conflict.offset = range.first;
  conflict.length = range.last == UINT64_MAX ? nfs4::length_to_end : range.last - range.first + 1;
  conflict.write = range.write;
  conflict.clientid = range.owner->client->id;
  conflict.owner = range.owner->name;
}

Status State::lock_state_for(const ClientRef& client, const ObjectRef& object, const LockRequest& request,
                             OpenState*& open, LockState*& lock) {
  Status status;
  lock = nullptr;
  if (!request.new_owner) {
    StateEntry* entry = entry_for(client, &object, request.stateid, status);
    if (!entry) return status;
    if (entry->kind != StateKind::lock) return Status::bad_stateid;
    lock = static_cast<LockState*>(entry);
    open = &lock->open;
    return Status::ok;
  }
  open = open_for(client, object, request.stateid, status);
  if (!open) return status;
  for (LockState* known : open->file.lock_states) {
    if (&known->open == open && known->owner.name == request.owner) lock = known;
  }
  return Status::ok;
}

Status State::lock(const ClientRef& client, const ObjectRef& object, const LockRequest& request, Stateid& result,
                   LockConflict& conflict) {
  LockRange range;
  if (Status s = range_of(request.offset, request.length, range); s != Status::ok) return s;
  range.write = request.write;
  Lock guard(mutex_);
  if (client->gone) return Status::delay;
  OpenState* open = nullptr;
  LockState* lock = nullptr;
  if (Status s = lock_state_for(client, object, request, open, lock); s != Status::ok) return s;
  if (Status s = grace_check(*client, request.reclaim); s != Status::ok) return s;
  uint32_t needed = request.write ? nfs4::share::access_write : nfs4::share::access_read;
  if (!(open->access & needed)) return Status::openmode;
  FileState& file = open->file;
  if (file.locks.size() >= params_.limits.lock_ranges_per_file) return Status::resource;
  if (!lock && client->locks >= params_.limits.locks_per_client) return Status::resource;
  std::string_view name = lock ? std::string_view(lock->owner.name) : request.owner;
  auto owner = client->lock_owners.find(name);
  range.owner = owner == client->lock_owners.end() ? nullptr : owner->second.get();
  if (const LockRange* other = file.locks.conflict(range)) {
    fill_conflict(*other, conflict);
    return Status::denied;
  }
  if (!range.owner) {
    auto fresh = std::make_unique<LockOwner>();
    fresh->client = client.get();
    fresh->name = std::string(name);
    range.owner = client->lock_owners.emplace(fresh->name, std::move(fresh)).first->second.get();
  }
  if (!lock) {
    lock = &add_lock_state(*client, file, *open, *range.owner);
  } else if (++lock->seqid == 0) {
    lock->seqid = 1;
  }
  file.locks.set(range);
  result = stateid_of(*lock);
  return Status::ok;
}

LockState& State::add_lock_state(Client& client, FileState& file, OpenState& open, LockOwner& owner) {
  LockState& added = add_entry<LockState>(client, file, open, owner);
  file.lock_states.push_back(&added);
  ++open.lock_states;
  ++owner.states;
  ++client.locks;
  return added;
}

Status State::test_lock(const ClientRef& client, const ObjectRef& object, const LockRequest& request,
                        LockConflict& conflict) {
  LockRange range;
  if (Status s = range_of(request.offset, request.length, range); s != Status::ok) return s;
  range.write = request.write;
  Lock guard(mutex_);
  if (grace_until_ns_ != 0) return Status::grace;
  FileState* file = known_file(object);
  if (!file) return Status::ok;
  auto owner = client->lock_owners.find(request.owner);
  range.owner = owner == client->lock_owners.end() ? nullptr : owner->second.get();
  const LockRange* other = file->locks.conflict(range);
  if (!other) return Status::ok;
  fill_conflict(*other, conflict);
  return Status::denied;
}

Status State::unlock(const ClientRef& client, const ObjectRef& object, const Stateid& stateid, uint64_t offset,
                     uint64_t length, Stateid& result) {
  LockRange range;
  if (Status s = range_of(offset, length, range); s != Status::ok) return s;
  Lock guard(mutex_);
  Status status;
  StateEntry* entry = entry_for(client, &object, stateid, status);
  if (!entry) return status;
  if (entry->kind != StateKind::lock) return Status::bad_stateid;
  auto* lock = static_cast<LockState*>(entry);
  lock->file.locks.clear(&lock->owner, range.first, range.last);
  if (++lock->seqid == 0) lock->seqid = 1;
  result = stateid_of(*lock);
  return Status::ok;
}

}  // namespace nfsrdma::server
