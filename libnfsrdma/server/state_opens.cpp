// SPDX-License-Identifier: Apache-2.0
// Opens and stateids: RFC 8881, 8.2, 9.7 to 9.9, 18.2, 18.16, 18.18, 18.38, 18.48.
#include <algorithm>

#include "server/state.hpp"

namespace nfsrdma::server {
namespace {

void next_seqid(StateEntry& entry) {
  // 0 means "the newest" on the wire and is skipped (RFC 8881, 8.2.2).
  if (++entry.seqid == 0) entry.seqid = 1;
}

bool is_special(const Stateid& stateid) {
  return stateid == nfs4::anonymous_stateid || stateid == nfs4::bypass_stateid;
}

}  // namespace

FileState* State::known_file(const ObjectRef& object) {
  auto it = files_.find(object->handle());
  return it == files_.end() ? nullptr : it->second.get();
}

FileState& State::file_of(const ObjectRef& object) {
  auto [it, fresh] = files_.try_emplace(object->handle());
  if (fresh) {
    it->second = std::make_unique<FileState>();
    it->second->object = object;
  }
  return *it->second;
}

void State::drop_file_if_unused(FileState& file) {
  if (file.unused()) files_.erase(FileHandle(file.object->handle()));
}

Stateid State::stateid_of(const StateEntry& entry) const {
  Stateid stateid;
  stateid.seqid = entry.seqid;
  base::store_be(stateid.other.data(), instance_);
  base::store_be(stateid.other.data() + 4, entry.serial);
  return stateid;
}

StateEntry* State::entry_of(const Stateid& stateid, Status& status) {
  status = Status::bad_stateid;
  if (base::load_be<uint32_t>(stateid.other.data()) != instance_) {
    // Ours from before a restart, or nobody's: the instance of a special stateid is never a real one.
    if (!is_special(stateid) && !(stateid == nfs4::invalid_stateid)) status = Status::stale_stateid;
    return nullptr;
  }
  auto it = entries_.find(base::load_be<uint64_t>(stateid.other.data() + 4));
  if (it == entries_.end()) return nullptr;
  status = Status::ok;
  return it->second.get();
}

StateEntry* State::entry_for(const ClientRef& client, const ObjectRef* object, const Stateid& stateid,
                             Status& status) {
  StateEntry* entry = entry_of(stateid, status);
  if (!entry) return nullptr;
  if (&entry->client != client.get()) {
    status = Status::bad_stateid;
  } else if (entry->revoked) {
    status = entry->kind == StateKind::delegation ? Status::deleg_revoked : Status::expired;
  } else if (object && entry->file.object != *object) {
    status = Status::bad_stateid;
  } else if (stateid.seqid != 0 && stateid.seqid != entry->seqid) {
    // Seqids wrap: the signed distance tells past from future.
    bool older = static_cast<int32_t>(stateid.seqid - entry->seqid) < 0;
    status = older ? Status::old_stateid : Status::bad_stateid;
  }
  return status == Status::ok ? entry : nullptr;
}

OpenState* State::open_for(const ClientRef& client, const ObjectRef& object, const Stateid& stateid,
                           Status& status) {
  StateEntry* entry = entry_for(client, &object, stateid, status);
  if (!entry) return nullptr;
  if (entry->kind != StateKind::open) {
    status = Status::bad_stateid;
    return nullptr;
  }
  return static_cast<OpenState*>(entry);
}

Status State::share_conflict(const FileState& file, const OpenState* own, uint32_t access, uint32_t deny) const {
  for (const OpenState* other : file.opens) {
    if (other != own && ((access & other->deny) || (deny & other->access))) return Status::share_denied;
  }
  return Status::ok;
}

OpenState* State::find_open(OpenOwner& owner, const FileState& file) const {
  for (OpenState* open : owner.opens) {
    if (&open->file == &file) return open;
  }
  return nullptr;
}

// Reclaims belong into the grace period and come from clients that were recorded; everything else waits for its end
// (RFC 8881, 8.4.2.1).
Status State::grace_check(const Client& client, bool reclaim) {
  bool grace = grace_until_ns_ != 0;
  if (reclaim) {
    if (!grace || client.reclaim_complete) return Status::no_grace;
    return client.may_reclaim ? Status::ok : Status::reclaim_bad;
  }
  return grace || !client.reclaim_complete ? Status::grace : Status::ok;
}

Status State::may_open(const ClientRef& client, const ObjectRef& object, const OpenRequest& request) {
  Lock lock(mutex_);
  if (client->gone) return Status::delay;
  if (Status s = grace_check(*client, request.reclaim); s != Status::ok) return s;
  FileState* file = object ? known_file(object) : nullptr;
  if (!file) return Status::ok;
  bool writes = (request.access & nfs4::share::access_write) != 0 || request.deny != 0;
  if (Status s = break_locked(client.get(), *file, writes, 0); s != Status::ok) return s;
  auto owner = client->open_owners.find(request.owner);
  OpenState* own = owner == client->open_owners.end() ? nullptr : find_open(*owner->second, *file);
  return share_conflict(*file, own, request.access, request.deny);
}

Status State::open(const SessionRef& session, const ObjectRef& object, const OpenRequest& request, OpenDone& done) {
  Lock lock(mutex_);
  Client& client = *session->client;
  if (client.gone) return Status::delay;
  if (Status s = grace_check(client, request.reclaim); s != Status::ok) return s;
  uint64_t covered_by = 0;
  if (request.by_delegation) {
    Status status;
    StateEntry* entry = entry_for(session->client, &object, *request.by_delegation, status);
    if (!entry) return status;
    if (entry->kind != StateKind::delegation) return Status::bad_stateid;
    covered_by = entry->serial;
  }
  FileState& file = file_of(object);
  bool writes = (request.access & nfs4::share::access_write) != 0 || request.deny != 0;
  Status status = break_locked(&client, file, writes, covered_by);
  auto owner_it = client.open_owners.find(request.owner);
  OpenState* open = owner_it == client.open_owners.end() ? nullptr : find_open(*owner_it->second, file);
  if (status == Status::ok) status = share_conflict(file, open, request.access, request.deny);
  if (status == Status::ok && !open && client.opens >= params_.limits.opens_per_client) status = Status::resource;
  if (status != Status::ok) {
    drop_file_if_unused(file);
    return status;
  }
  if (!open) {
    if (owner_it == client.open_owners.end()) {
      auto owner = std::make_unique<OpenOwner>();
      owner->name = std::string(request.owner);
      owner_it = client.open_owners.emplace(owner->name, std::move(owner)).first;
    }
    open = &add_entry<OpenState>(client, file, *owner_it->second);
    open->owner.opens.push_back(open);
    file.opens.push_back(open);
    ++client.opens;
  } else {
    next_seqid(*open);
  }
  open->opener = request.opener;
  open->access |= request.access;
  open->deny |= request.deny;
  open->access_seen |= 1u << request.access;
  open->deny_seen |= 1u << request.deny;
  if (request.reader) open->reader = request.reader;
  if (request.writer) open->writer = request.writer;
  done.stateid = stateid_of(*open);
  grant(session, file, request, done.delegation);
  return Status::ok;
}

Status State::open_downgrade(const ClientRef& client, const ObjectRef& object, const Stateid& stateid,
                             uint32_t access, uint32_t deny, Stateid& result) {
  Lock lock(mutex_);
  Status status;
  OpenState* open = open_for(client, object, stateid, status);
  if (!open) return status;
  if ((access & ~open->access) || (deny & ~open->deny)) return Status::inval;
  // Only to what some earlier OPENs asked for together.
  uint32_t reachable_access = 0, reachable_deny = 0;
  for (uint32_t n = 0; n <= 3; ++n) {
    if ((open->access_seen >> n & 1) && (n & ~access) == 0) reachable_access |= n;
    if ((open->deny_seen >> n & 1) && (n & ~deny) == 0) reachable_deny |= n;
  }
  if (reachable_access != access || reachable_deny != deny) return Status::inval;
  open->access = access;
  open->deny = deny;
  for (uint32_t n = 0; n <= 3; ++n) {
    if (n & ~access) open->access_seen &= ~(1u << n);
    if (n & ~deny) open->deny_seen &= ~(1u << n);
  }
  if (!(access & nfs4::share::access_write)) open->writer.reset();
  if (!(access & nfs4::share::access_read)) open->reader.reset();
  next_seqid(*open);
  result = stateid_of(*open);
  return Status::ok;
}

void State::drop_lock_state(LockState& lock) {
  FileState& file = lock.file;
  Client& client = lock.client;
  LockOwner& owner = lock.owner;
  std::erase(file.lock_states, &lock);
  bool others = std::ranges::any_of(file.lock_states, [&owner](const LockState* l) { return &l->owner == &owner; });
  if (!others) file.locks.clear_all(&owner);
  --lock.open.lock_states;
  --client.locks;
  entries_.erase(lock.serial);
  if (--owner.states == 0) {
    auto it = client.lock_owners.find(owner.name);
    if (it != client.lock_owners.end()) client.lock_owners.erase(it);
  }
}

void State::drop_open(OpenState& open) {
  FileState& file = open.file;
  Client& client = open.client;
  OpenOwner& owner = open.owner;
  std::vector<LockState*> locks = file.lock_states;
  for (LockState* lock : locks) {
    if (&lock->open == &open) drop_lock_state(*lock);
  }
  std::erase(file.opens, &open);
  std::erase(owner.opens, &open);
  --client.opens;
  entries_.erase(open.serial);
  if (owner.opens.empty()) {
    auto it = client.open_owners.find(owner.name);
    if (it != client.open_owners.end()) client.open_owners.erase(it);
  }
  drop_file_if_unused(file);
}

Status State::close(const ClientRef& client, const ObjectRef& object, const Stateid& stateid) {
  Lock lock(mutex_);
  Status status;
  OpenState* open = open_for(client, object, stateid, status);
  if (!open) return status;
  drop_open(*open);
  return Status::ok;
}

// READ and WRITE with a special stateid (RFC 8881, 8.2.3 and 9.7): others' denials hold, except for READ with the
// bypass one.
Status State::special_access(FileState* file, const Stateid& stateid, Need need) {
  if (grace_until_ns_ != 0) return Status::grace;
  if (!file) return Status::ok;
  if (need == Need::read && stateid == nfs4::bypass_stateid) return Status::ok;
  uint32_t bit = need == Need::read ? nfs4::share::deny_read : nfs4::share::deny_write;
  for (const OpenState* open : file->opens) {
    if (open->deny & bit) return Status::locked;
  }
  return Status::ok;
}

Status State::data_access(const ClientRef& client, const ObjectRef& object, const Stateid& stateid, Need need,
                          DataAccess& access) {
  Lock lock(mutex_);
  if (is_special(stateid)) {
    FileState* file = known_file(object);
    if (Status s = special_access(file, stateid, need); s != Status::ok) return s;
    return file ? break_locked(client.get(), *file, need == Need::write, 0) : Status::ok;
  }
  Status status;
  StateEntry* entry = entry_for(client, &object, stateid, status);
  if (!entry) return status;
  if (entry->kind == StateKind::delegation) {
    auto* delegation = static_cast<DelegationState*>(entry);
    if (need == Need::write && !delegation->write) return Status::openmode;
    access.file = need == Need::write || !delegation->reader ? delegation->writer : delegation->reader;
    access.opener = delegation->opener;
    return access.file ? Status::ok : Status::openmode;
  }
  OpenState* open = entry->kind == StateKind::open ? static_cast<OpenState*>(entry)
                                                   : &static_cast<LockState*>(entry)->open;
  if (need == Need::write && !(open->access & nfs4::share::access_write)) return Status::openmode;
  // Who may write may read as well, where the file lets him: clients fill pages that they write in part.
  access.file = need == Need::write || !open->reader ? open->writer : open->reader;
  access.opener = open->opener;
  return access.file ? Status::ok : Status::openmode;
}

Status State::test_stateid(const ClientRef& client, const Stateid& stateid) {
  Lock lock(mutex_);
  if (is_special(stateid)) return Status::bad_stateid;
  Status status;
  entry_for(client, nullptr, stateid, status);
  return status;
}

Status State::free_stateid(const ClientRef& client, const Stateid& stateid) {
  Lock lock(mutex_);
  Status status;
  StateEntry* entry = entry_of(stateid, status);
  if (!entry) return status;
  if (&entry->client != client.get()) return Status::bad_stateid;
  if (entry->revoked) {
    --client->revoked;
    entries_.erase(entry->serial);  // its file may be forgotten already
    return Status::ok;
  }
  if (!entry_for(client, nullptr, stateid, status)) return status;
  if (entry->kind != StateKind::lock) return Status::locks_held;
  auto* lock_state = static_cast<LockState*>(entry);
  if (lock_state->file.locks.holds_any(&lock_state->owner)) return Status::locks_held;
  drop_lock_state(*lock_state);
  return Status::ok;
}

}  // namespace nfsrdma::server
