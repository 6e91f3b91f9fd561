// SPDX-License-Identifier: Apache-2.0
// Client ids (RFC 8881, 18.35), leases and the grace period.
#include <algorithm>

#include "base/log.hpp"
#include "server/state.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t exchange_flags_known =
    nfs4::exchange_flag::supp_moved_refer | nfs4::exchange_flag::supp_moved_migr |
    nfs4::exchange_flag::bind_princ_stateid | nfs4::exchange_flag::use_non_pnfs | nfs4::exchange_flag::use_pnfs_mds |
    nfs4::exchange_flag::use_pnfs_ds | nfs4::exchange_flag::upd_confirmed_rec_a;
constexpr TimeNs limit_pause_ns = base::seconds(10);

}  // namespace

State::State(base::Clock& clock, base::Random& random, const StateParams& params)
    : clock_(clock),
      random_(random),
      params_(params),
      instance_(params.instance),
      recorded_(params.recorded),
      awaited_(params.recorded),
      limit_said_ns_(clock.now_ns() - limit_pause_ns) {
  if (!awaited_.empty()) grace_until_ns_ = clock_.now_ns() + params_.grace_ns;
}

State::~State() {
  Lock lock(mutex_);
  while (!clients_.empty()) drop_client(clients_.begin()->second);
}

ClientRef State::client_of(ClientId id) {
  auto it = clients_.find(id);
  return it == clients_.end() ? ClientRef() : it->second;
}

ClientRef State::find_owner(std::string_view owner, bool confirmed) {
  for (const auto& [id, client] : clients_) {
    if (client->confirmed == confirmed && client->owner == owner) return client;
  }
  return {};
}

ClientRef State::add_client(const nfs4::ExchangeIdArgs& args, const Principal& principal) {
  auto client = std::make_shared<Client>();
  client->id = static_cast<ClientId>(instance_) << 32 | ++client_counter_;
  client->owner = std::string(base::text_of(args.client_owner.owner));
  client->verifier = args.client_owner.verifier;
  client->principal = principal;
  client->may_reclaim = recorded_.contains(client->owner);
  client->renewed_ns = clock_.now_ns();
  clients_.emplace(client->id, client);
  return client;
}

// Not once a request: a client that is refused comes again and again.
void State::say_limit(const char* what, uint32_t limit) {
  TimeNs now = clock_.now_ns();
  if (now < limit_said_ns_ + limit_pause_ns) return;
  limit_said_ns_ = now;
  base::log(base::LogLevel::warn, "server", "refused: %u %s are the limit", limit, what);
}

// Makes room by forgetting who announced itself and never came back, the one that did so first.
bool State::drop_unconfirmed() {
  ClientRef oldest;
  for (const auto& [id, client] : clients_) {
    if (!client->confirmed && (!oldest || client->renewed_ns < oldest->renewed_ns)) oldest = client;
  }
  if (oldest) drop_client(oldest);
  return oldest != nullptr;
}

void State::fill_exchange_result(const Client& client, nfs4::ExchangeIdResult& result) const {
  result.clientid = client.id;
  result.sequenceid = client.session_sequence + 1;
  result.flags = nfs4::exchange_flag::use_non_pnfs | (client.confirmed ? nfs4::exchange_flag::confirmed_r : 0);
  result.state_protect.how = nfs4::StateProtect::none;
  result.server_owner = {0, base::bytes_of(params_.server_owner)};
  result.server_scope = base::bytes_of(params_.server_owner);
}

Status State::exchange_id(const nfs4::ExchangeIdArgs& args, const Principal& principal,
                          nfs4::ExchangeIdResult& result) {
  if (args.flags & ~exchange_flags_known) return Status::inval;
  if (args.state_protect.how == nfs4::StateProtect::ssv) return Status::encr_alg_unsupp;
  if (args.state_protect.how != nfs4::StateProtect::none) return Status::inval;
  bool update = (args.flags & nfs4::exchange_flag::upd_confirmed_rec_a) != 0;
  Lock lock(mutex_);
  std::string_view owner = base::text_of(args.client_owner.owner);
  ClientRef confirmed = find_owner(owner, true);
  ClientRef client;
  if (update) {
    if (!confirmed) return Status::noent;
    if (!(confirmed->principal == principal)) return Status::perm;
    if (confirmed->verifier != args.client_owner.verifier) return Status::not_same;
    client = confirmed;
  } else if (confirmed && confirmed->principal == principal && confirmed->verifier == args.client_owner.verifier) {
    client = confirmed;
  } else {
    if (confirmed && !(confirmed->principal == principal) && (has_state(*confirmed) || !confirmed->sessions.empty())) {
      return Status::clid_inuse;
    }
    if (ClientRef unconfirmed = find_owner(owner, false)) drop_client(unconfirmed);
    if (clients_.size() >= params_.limits.clients_max && !drop_unconfirmed()) {
      say_limit("clients", params_.limits.clients_max);
      return Status::delay;
    }
    client = add_client(args, principal);
  }
  fill_exchange_result(*client, result);
  return Status::ok;
}

Status State::destroy_clientid(ClientId id) {
  Lock lock(mutex_);
  ClientRef client = client_of(id);
  if (!client) return Status::stale_clientid;
  if (!client->sessions.empty() || has_state(*client)) return Status::clientid_busy;
  unrecord_.push_back(client->owner);
  drop_client(client);
  return Status::ok;
}

void State::drop_session(const SessionRef& session) {
  session->dead = true;
  session->connections.clear();
  session->callbacks.clear();
  sessions_.erase(session->id);
  std::erase(session->client->sessions, session);
}

void State::drop_client(const ClientRef& ref) {
  ClientRef client = ref;
  client->gone = true;
  while (!client->sessions.empty()) drop_session(SessionRef(client->sessions.back()));
  while (!client->delegations.empty()) drop_delegation(*client->delegations.back());
  for (auto& [name, owner] : client->open_owners) {
    std::vector<OpenState*> opens = owner->opens;
    for (OpenState* open : opens) {
      // Not drop_open(): it would take the owner away from under the loop.
      std::vector<LockState*> locks = open->file.lock_states;
      for (LockState* lock : locks) {
        if (&lock->open == open) drop_lock_state(*lock);
      }
      FileState& file = open->file;
      std::erase(file.opens, open);
      --client->opens;
      entries_.erase(open->serial);
      drop_file_if_unused(file);
    }
  }
  client->open_owners.clear();
  client->lock_owners.clear();
  // Revoked delegations are nobody's but still have entries.
  std::erase_if(entries_, [&client](const auto& e) { return &e.second->client == client.get(); });
  clients_.erase(client->id);
}

Status State::reclaim_complete(const ClientRef& client, bool one_fs, std::string& owner) {
  Lock lock(mutex_);
  if (client->gone) return Status::delay;
  if (one_fs) return Status::ok;
  if (client->reclaim_complete) return Status::complete_already;
  client->reclaim_complete = true;
  owner = client->owner;
  return Status::ok;
}

void State::recorded(const std::string& owner) {
  Lock lock(mutex_);
  awaited_.erase(owner);
  end_grace_if_done();
}

bool State::is_recorded(const std::string& owner) {
  Lock lock(mutex_);
  ClientRef client = find_owner(owner, true);
  return client && client->reclaim_complete;
}

bool State::in_grace() {
  Lock lock(mutex_);
  return grace_until_ns_ != 0;
}

void State::end_grace_if_done() {
  if (grace_until_ns_ == 0) return;
  if (!awaited_.empty() && clock_.now_ns() < grace_until_ns_) return;
  grace_until_ns_ = 0;
  // Who did not come back in time may not come back with old state after the next restart either.
  for (const std::string& owner : awaited_) {
    ClientRef client = find_owner(owner, true);
    if (!client || !client->reclaim_complete) unrecord_.push_back(owner);
  }
  awaited_.clear();
}

std::vector<std::string> State::tick() {
  Lock lock(mutex_);
  TimeNs now = clock_.now_ns();
  std::vector<ClientRef> expired;
  for (const auto& [id, client] : clients_) {
    if (now > client->renewed_ns + params_.lease_ns) expired.push_back(client);
  }
  for (const ClientRef& client : expired) {
    if (client->confirmed) unrecord_.push_back(client->owner);
    drop_client(client);
  }
  std::vector<DelegationState*> late;
  for (const auto& [id, client] : clients_) {
    for (DelegationState* d : client->delegations) {
      if (d->recalled_ns != 0 && now > d->recalled_ns + params_.lease_ns) late.push_back(d);
    }
  }
  for (DelegationState* d : late) revoke(*d);
  end_grace_if_done();
  return std::exchange(unrecord_, {});
}

void State::restart() {
  Lock lock(mutex_);
  recorded_.clear();
  while (!clients_.empty()) {
    ClientRef client = clients_.begin()->second;
    if (client->confirmed && client->reclaim_complete) recorded_.insert(client->owner);
    drop_client(client);
  }
  instance_ += 2;
  awaited_ = recorded_;
  grace_until_ns_ = awaited_.empty() ? 0 : clock_.now_ns() + params_.grace_ns;
}

State::Counts State::counts() {
  Lock lock(mutex_);
  Counts c;
  c.clients = clients_.size();
  c.sessions = sessions_.size();
  c.files = files_.size();
  for (const auto& [id, client] : clients_) {
    c.opens += client->opens;
    c.locks += client->locks;
    c.delegations += client->delegations.size();
  }
  return c;
}

}  // namespace nfsrdma::server
