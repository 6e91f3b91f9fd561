// SPDX-License-Identifier: Apache-2.0
// Delegations and their recall: RFC 8881, 10.2 to 10.5, 18.6, 20.2.
#include <algorithm>

#include "server/state.hpp"

namespace nfsrdma::server {
namespace {

constexpr TimeNs quiet_after_recall_ns = base::seconds(10);

Session* session_with_back_channel(const Client& client, ConnectionRef& connection) {
  for (const SessionRef& session : client.sessions) {
    // The one bound last: it is the likeliest to live.
    for (auto it = session->connections.rbegin(); it != session->connections.rend(); ++it) {
      if (!it->back) continue;
      connection = it->connection;
      return session.get();
    }
  }
  return nullptr;
}

}  // namespace

bool State::back_channel_ready(const Client& client) const {
  ConnectionRef connection;
  return callback_sender_ && !client.callback_fault && session_with_back_channel(client, connection) != nullptr;
}

// What is asked for, what we do, what others do with the file, and whether the client could be called back.
bool State::may_delegate(const Client& client, const FileState& file, const OpenRequest& request, bool& write) const {
  uint32_t want = request.want & nfs4::share::want_mask;
  if (want == nfs4::share::want_no_deleg || want == nfs4::share::want_cancel) return false;
  if (params_.delegations == Delegations::none || grace_until_ns_ != 0 || request.reclaim) return false;
  if (!back_channel_ready(client) || client.delegations.size() >= params_.limits.delegations_per_client) return false;
  if (file.recalled_ns != 0 && clock_.now_ns() < file.recalled_ns + quiet_after_recall_ns) return false;
  write = (request.access & nfs4::share::access_write) != 0;
  if (write && params_.delegations != Delegations::write) return false;
  for (const DelegationState* d : file.delegations) {
    if (&d->client == &client || d->write || write) return false;
  }
  for (const OpenState* open : file.opens) {
    // Our own writer is a conflict as well: a read delegation promises that nobody writes.
    if (&open->client != &client && (write || (open->access & nfs4::share::access_write))) return false;
    if (!write && (open->access & nfs4::share::access_write)) return false;
  }
  return true;
}

void State::give_delegation(Client& client, FileState& file, const OpenRequest& request, bool write,
                            nfs4::OpenDelegation& out) {
  // What the holder of a write delegation does looks like anybody's change from here: those are not watched.
  bool watched = !write && changes_ != nullptr;
  if (watched && !changes_->begin(file.object)) return;
  DelegationState& d = add_entry<DelegationState>(client, file, write);
  d.watched = watched;
  d.opener = request.opener;
  d.reader = request.reader;
  d.writer = request.writer;
  client.delegations.push_back(&d);
  file.delegations.push_back(&d);
  delegations_.fetch_add(1, std::memory_order_acq_rel);
  out.type = write ? nfs4::DelegationType::write : nfs4::DelegationType::read;
  out.stateid = stateid_of(d);
  out.space_limit.by = nfs4::SpaceLimitBy::size;
  out.space_limit.size_bytes = UINT64_MAX;
  // An empty list of permissions: every open still asks with ACCESS.
  out.permissions = {0, 0, 0, {}};
}

void State::grant(const SessionRef& session, FileState& file, const OpenRequest& request, nfs4::OpenDelegation& out) {
  using nfs4::DelegationType;
  out = {};
  Client& client = *session->client;
  if (request.reclaim && request.reclaim_delegation != DelegationType::none) {
    bool write = request.reclaim_delegation == DelegationType::write;
    give_delegation(client, file, request, write, out);
    // What was not ours to give any more is asked back at once.
    out.recall = params_.delegations == Delegations::none || (write && params_.delegations != Delegations::write);
    return;
  }
  bool write = false;
  if (may_delegate(client, file, request, write)) return give_delegation(client, file, request, write, out);
  if ((request.want & nfs4::share::want_mask) == nfs4::share::want_no_preference) return;
  out.type = DelegationType::none_ext;
  out.why = (request.want & nfs4::share::want_mask) == nfs4::share::want_no_deleg ? nfs4::WhyNoDelegation::not_wanted
            : (request.want & nfs4::share::want_mask) == nfs4::share::want_cancel ? nfs4::WhyNoDelegation::cancelled
                                                                                   : nfs4::WhyNoDelegation::contention;
}

void State::drop_delegation(DelegationState& d) {
  FileState& file = d.file;
  std::erase(d.client.delegations, &d);
  std::erase(file.delegations, &d);
  delegations_.fetch_sub(1, std::memory_order_acq_rel);
  if (d.watched) changes_->end(file.object);
  entries_.erase(d.serial);
  drop_file_if_unused(file);
}

// The entry stays, so that the client learns what became of its stateid, until FREE_STATEID.
void State::revoke(DelegationState& d) {
  FileState& file = d.file;
  std::erase(d.client.delegations, &d);
  std::erase(file.delegations, &d);
  delegations_.fetch_sub(1, std::memory_order_acq_rel);
  if (std::exchange(d.watched, false)) changes_->end(file.object);
  d.revoked = true;
  d.reader.reset();
  d.writer.reset();
  ++d.client.revoked;
  drop_file_if_unused(file);
}

// Into the queue of a session that can be called, or of any one, where it waits until a connection is bound.
void State::call(Client& client, CallbackRequest request) {
  if (client.sessions.empty()) return;
  ConnectionRef connection;
  Session* usable = session_with_back_channel(client, connection);
  SessionRef session = client.sessions.front();
  for (const SessionRef& s : client.sessions) {
    if (s.get() == usable) session = s;
  }
  request.id = ++callback_counter_;
  session->callbacks.push_back(std::move(request));
  if (usable && callback_sender_) callback_sender_->callbacks_waiting(session, connection->loop);
}

void State::recall(DelegationState& d) {
  if (d.recalled_ns != 0) return;
  d.recalled_ns = d.file.recalled_ns = clock_.now_ns();
  CallbackRequest request;
  request.serial = d.serial;
  request.stateid = stateid_of(d);
  request.handle = d.file.object->handle();
  call(d.client, std::move(request));
}

void State::call_everybody(CallbackKind kind) {
  Lock lock(mutex_);
  for (const auto& [id, client] : clients_) {
    ConnectionRef connection;
    Session* session = session_with_back_channel(*client, connection);
    if (!session || !session->callbacks.empty()) continue;
    if (kind == CallbackKind::recall) {
      for (DelegationState* d : client->delegations) recall(*d);
      continue;
    }
    CallbackRequest request;
    request.kind = kind;
    if (kind == CallbackKind::recall_slot) {
      session->replies.set_target(std::max(1u, session->replies.slots() / 2));
      request.target = session->replies.target_highest();
    }
    if (!client->open_owners.empty()) {
      request.handle = client->open_owners.begin()->second->opens[0]->file.object->handle();
    }
    if (!client->delegations.empty()) request.handle = client->delegations[0]->file.object->handle();
    if (!client->lock_owners.empty()) request.lock_owner = client->lock_owners.begin()->first;
    call(*client, std::move(request));
  }
}

Status State::break_locked(const Client* client, FileState& file, bool writes, uint64_t except_serial) {
  bool conflict = false;
  for (DelegationState* d : file.delegations) {
    if ((client && &d->client == client) || d->serial == except_serial) continue;
    if (!writes && !d->write) continue;
    conflict = true;
    recall(*d);
  }
  return conflict ? Status::delay : Status::ok;
}

Status State::break_delegations(const Client* client, const ObjectRef& object, bool writes) {
  Lock lock(mutex_);
  FileState* file = known_file(object);
  return file ? break_locked(client, *file, writes, 0) : Status::ok;
}

Status State::return_delegation(const ClientRef& client, const ObjectRef& object, const Stateid& stateid) {
  Lock lock(mutex_);
  Status status;
  StateEntry* entry = entry_for(client, &object, stateid, status);
  if (!entry) return status;
  if (entry->kind != StateKind::delegation) return Status::bad_stateid;
  drop_delegation(static_cast<DelegationState&>(*entry));
  return Status::ok;
}

std::optional<State::CallbackTurn> State::next_callback(const SessionRef& session) {
  Lock lock(mutex_);
  if (session->dead || session->callback_busy) return std::nullopt;
  // What was returned meanwhile need not be asked for.
  auto returned = [this](const CallbackRequest& r) { return r.serial != 0 && !entries_.contains(r.serial); };
  while (!session->callbacks.empty() && returned(session->callbacks.front())) session->callbacks.pop_front();
  if (session->callbacks.empty()) return std::nullopt;
  for (auto it = session->connections.rbegin(); it != session->connections.rend(); ++it) {
    if (!it->back) continue;
    session->callback_busy = true;
    CallbackTurn turn{session->callbacks.front(), it->connection, session->callback_program,
                      session->callback_sequence, session->callback_credential};
    return turn;
  }
  return std::nullopt;
}

void State::callback_done(const SessionRef& session, const CallbackRequest& request, std::optional<Status> status) {
  Lock lock(mutex_);
  session->callback_busy = false;
  if (session->dead) return;
  if (!status) {
    // Unanswered: the client may or may not have seen it, so it goes again with the same sequence id, once there is
    // a connection that works.
    session->client->callback_fault = true;
    return;
  }
  if (request.kind != CallbackKind::null && ++session->callback_sequence == 0) session->callback_sequence = 1;
  if (session->callbacks.empty() || session->callbacks.front().id != request.id) return;
  session->callbacks.pop_front();
  // delay: the client does not know the delegation yet, its OPEN is under way. It gets another chance at the next
  // conflict; else the lease decides.
  auto it = entries_.find(request.serial);
  if (*status == Status::delay && it != entries_.end() && it->second->kind == StateKind::delegation) {
    static_cast<DelegationState&>(*it->second).recalled_ns = 0;
  }
}

}  // namespace nfsrdma::server
