// SPDX-License-Identifier: Apache-2.0
// What the server remembers of its clients. Everything here is guarded by State's mutex, except what says otherwise.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "nfs4/lock_ops.hpp"
#include "nfs4/session_ops.hpp"
#include "rpc/message.hpp"
#include "server/connection.hpp"
#include "server/lock_ranges.hpp"
#include "server/store.hpp"
#include "slots/reply_cache.hpp"

namespace nfsrdma::server {

using base::TimeNs;
using nfs4::ClientId;
using nfs4::SessionId;
using nfs4::Stateid;

struct Client;
struct FileState;
struct OpenState;

// Who sent a call, before squashing: the owner of a client id.
struct Principal {
  rpc::AuthFlavor flavor = rpc::AuthFlavor::none;
  uint32_t uid = 0;
  uint32_t gid = 0;
  bool operator==(const Principal&) const = default;
};

enum class StateKind : uint8_t { open, lock, delegation };

// Anything that has a stateid.
struct StateEntry {
  StateEntry(StateKind k, Client& c, FileState& f) : kind(k), client(c), file(f) {}
  virtual ~StateEntry() = default;
  const StateKind kind;
  uint64_t serial = 0;
  uint32_t seqid = 1;
  bool revoked = false;
  Client& client;
  FileState& file;
};

// open_owner4 of a client.
struct OpenOwner {
  std::string name;
  std::vector<OpenState*> opens;
};

struct OpenState final : StateEntry {
  OpenState(Client& c, FileState& f, OpenOwner& o) : StateEntry(StateKind::open, c, f), owner(o) {}
  OpenOwner& owner;
  Caller opener;
  uint32_t access = 0;
  uint32_t deny = 0;
  // Bit n: there was an OPEN with access (deny) n; OPEN_DOWNGRADE may only go back to unions of those.
  uint32_t access_seen = 0;
  uint32_t deny_seen = 0;
  OpenFileRef reader;
  OpenFileRef writer;
  uint32_t lock_states = 0;
};

// lock_owner4 of a client.
struct LockOwner {
  Client* client = nullptr;
  std::string name;
  uint32_t states = 0;  // LockStates that name it
};

struct LockState final : StateEntry {
  LockState(Client& c, FileState& f, OpenState& o, LockOwner& l)
      : StateEntry(StateKind::lock, c, f), open(o), owner(l) {}
  OpenState& open;
  LockOwner& owner;
};

struct DelegationState final : StateEntry {
  DelegationState(Client& c, FileState& f, bool w) : StateEntry(StateKind::delegation, c, f), write(w) {}
  const bool write;
  Caller opener;
  OpenFileRef reader;
  OpenFileRef writer;
  TimeNs recalled_ns = 0;  // 0 = not recalled
  bool watched = false;    // a ChangeSource tells of changes
};

// A file that anybody has open, locked or delegated.
struct FileState {
  ObjectRef object;
  std::vector<OpenState*> opens;
  std::vector<LockState*> lock_states;
  std::vector<DelegationState*> delegations;
  LockRanges locks;
  TimeNs recalled_ns = 0;  // of the last recall: no new delegation for a while
  bool unused() const { return opens.empty() && lock_states.empty() && delegations.empty(); }
};

enum class CallbackKind : uint8_t { null, recall, recall_any, recall_slot, notify_lock, getattr };

// A call to a client that waits for its turn in the back channel.
struct CallbackRequest {
  CallbackKind kind = CallbackKind::recall;
  uint64_t id = 0;
  uint64_t serial = 0;     // recall: of the delegation, 0 otherwise
  Stateid stateid;         // recall
  FileHandle handle;       // recall, notify_lock, getattr
  std::string lock_owner;  // notify_lock
  uint32_t target = 0;     // recall_slot: highest slot to use
};

struct Session {
  Session(std::shared_ptr<Client> c, uint32_t slots, uint32_t cached_bytes_max)
      : client(std::move(c)), replies(slots, cached_bytes_max) {}
  SessionId id{};
  const std::shared_ptr<Client> client;
  slots::ReplyCache replies;
  nfs4::ChannelAttrs fore;
  nfs4::ChannelAttrs back;
  bool dead = false;

  struct Binding {
    ConnectionRef connection;
    bool back = false;
  };
  std::vector<Binding> connections;

  // Back channel: one call at a time, on slot 0.
  uint32_t callback_program = 0;
  rpc::Credential callback_credential;
  uint32_t callback_sequence = 1;
  bool callback_busy = false;
  std::deque<CallbackRequest> callbacks;
};
using SessionRef = std::shared_ptr<Session>;

struct Client {
  ClientId id = 0;
  std::string owner;
  Verifier verifier{};
  Principal principal;
  bool confirmed = false;
  bool gone = false;              // expired, destroyed or replaced: nothing may be added any more
  bool reclaim_complete = false;
  bool may_reclaim = false;       // it was recorded before the restart
  bool callback_fault = false;    // a callback was not answered since the back channel was set up
  TimeNs renewed_ns = 0;
  uint32_t session_sequence = 0;  // of the last CREATE_SESSION that was executed
  nfs4::CreateSessionResult last_session;
  std::vector<SessionRef> sessions;
  std::map<std::string, std::unique_ptr<OpenOwner>, std::less<>> open_owners;
  std::map<std::string, std::unique_ptr<LockOwner>, std::less<>> lock_owners;
  std::vector<DelegationState*> delegations;
  uint32_t opens = 0;
  uint32_t locks = 0;             // LockStates
  uint32_t revoked = 0;           // revoked delegations not yet freed
};
using ClientRef = std::shared_ptr<Client>;

}  // namespace nfsrdma::server
