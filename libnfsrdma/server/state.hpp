// SPDX-License-Identifier: Apache-2.0
// Clients, sessions, opens, locks and delegations. One mutex guards all of it; nothing here blocks or does I/O, so
// any thread may call. Objects handed out as shared_ptr may be `gone` or `dead` by the time they are used again:
// every call checks.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/random.hpp"
#include "nfs4/state_ops.hpp"
#include "server/state_types.hpp"

namespace nfsrdma::server {

class CallbackSender;

struct StateLimits {
  uint32_t clients_max = 1024;
  uint32_t sessions_max = 2048;
  uint32_t sessions_per_client = 16;
  uint32_t connections_per_session = 64;
  uint32_t slots_max = 64;
  uint32_t operations_max = 64;
  uint32_t request_bytes_max = (1u << 20) + 4096;
  uint32_t response_bytes_max = (1u << 20) + 4096;
  uint32_t cached_bytes_max = 4096;
  uint32_t opens_per_client = 1u << 16;
  uint32_t locks_per_client = 1u << 16;
  uint32_t lock_ranges_per_file = 1u << 14;
  uint32_t delegations_per_client = 1u << 13;
};

enum class Delegations : uint8_t { none, read, write };

struct StateParams {
  StateLimits limits;
  TimeNs lease_ns = base::seconds(90);
  TimeNs grace_ns = base::seconds(90);
  Delegations delegations = Delegations::read;
  std::string server_owner;              // eir_server_owner.so_major_id and scope
  uint32_t instance = 0;                 // differs between two runs of the server
  std::set<std::string> recorded;        // owners of the clients that may reclaim
};

// What SEQUENCE found out.
struct SequenceStart {
  slots::Verdict verdict = slots::Verdict::fresh;
  SessionRef session;
  nfs4::SequenceResult result;
  uint32_t replayed_bytes = 0;           // replay: copied to the caller's space
};

struct OpenRequest {
  std::string_view owner;
  Caller opener;
  uint32_t access = 0;                   // share::access_*, without wants
  uint32_t deny = 0;
  uint32_t want = 0;                     // share::want_*
  OpenFileRef reader;                    // for what access asks
  OpenFileRef writer;
  bool reclaim = false;
  nfs4::DelegationType reclaim_delegation = nfs4::DelegationType::none;
  std::optional<Stateid> by_delegation;  // CLAIM_DELEGATE_CUR: this delegation covers the open
};
struct OpenDone {
  Stateid stateid;
  nfs4::OpenDelegation delegation;
};

struct LockRequest {
  bool new_owner = false;
  Stateid stateid;                       // open stateid with new_owner, else lock stateid
  std::string_view owner;
  bool write = false;
  bool reclaim = false;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct LockConflict {                    // of a denied lock; the name is a copy
  uint64_t offset = 0;
  uint64_t length = 0;
  bool write = false;
  ClientId clientid = 0;
  std::string owner;
};

// What a stateid lets its bearer do with the data of the current file.
struct DataAccess {
  OpenFileRef file;                      // empty: a special stateid, to be opened for this call
  Caller opener;
};

enum class Need : uint8_t { read, write };

class State {
 public:
  State(base::Clock& clock, base::Random& random, const StateParams& params);
  ~State();
  void set_callback_sender(CallbackSender* sender) { callback_sender_ = sender; }
  // Without one, delegations are given as if nobody but clients touched the files.
  void set_change_source(ChangeSource* source) { changes_ = source; }
  const StateParams& params() const { return params_; }

  // Client ids and sessions (state_clients.cpp, state_sessions.cpp). Views in results point into this object.
  Status exchange_id(const nfs4::ExchangeIdArgs& args, const Principal& principal, nfs4::ExchangeIdResult& result);
  Status create_session(const nfs4::CreateSessionArgs& args, const Principal& principal,
                        const ConnectionRef& connection, nfs4::CreateSessionResult& result);
  Status destroy_session(const SessionId& id);
  Status destroy_clientid(ClientId id);
  Status bind_connection(const nfs4::BindConnToSessionArgs& args, const ConnectionRef& connection,
                         nfs4::BindConnToSessionResult& result);
  Status backchannel_ctl(const SessionRef& session, const nfs4::BackchannelCtlArgs& args);
  void connection_gone(const Connection& connection);

  Status begin_sequence(const nfs4::SequenceArgs& args, uint64_t fingerprint, const ConnectionRef& connection,
                        uint32_t op_count, base::Bytes replay_space, SequenceStart& start);
  void finish_sequence(const SessionRef& session, uint32_t slot, base::ConstBytes reply, bool keep);

  // RECLAIM_COMPLETE. complete_already, or ok: then the caller records `owner` durably before it answers.
  Status reclaim_complete(const ClientRef& client, bool one_fs, std::string& owner);
  void recorded(const std::string& owner);
  // Does a live client of this name count on its record?
  bool is_recorded(const std::string& owner);
  bool in_grace();

  // Opens (state_opens.cpp).
  // Would open() be refused now? Starts recalls; for what must be known before a file is created or truncated, with
  // an empty object in the first case.
  Status may_open(const ClientRef& client, const ObjectRef& object, const OpenRequest& request);
  Status open(const SessionRef& session, const ObjectRef& object, const OpenRequest& request, OpenDone& done);
  Status open_downgrade(const ClientRef& client, const ObjectRef& object, const Stateid& stateid, uint32_t access,
                        uint32_t deny, Stateid& result);
  Status close(const ClientRef& client, const ObjectRef& object, const Stateid& stateid);
  Status data_access(const ClientRef& client, const ObjectRef& object, const Stateid& stateid, Need need,
                     DataAccess& access);
  Status test_stateid(const ClientRef& client, const Stateid& stateid);
  Status free_stateid(const ClientRef& client, const Stateid& stateid);

  // Locks (state_locks.cpp).
  Status lock(const ClientRef& client, const ObjectRef& object, const LockRequest& request, Stateid& result,
              LockConflict& conflict);
  Status test_lock(const ClientRef& client, const ObjectRef& object, const LockRequest& request,
                   LockConflict& conflict);
  Status unlock(const ClientRef& client, const ObjectRef& object, const Stateid& stateid, uint64_t offset,
                uint64_t length, Stateid& result);

  // Delegations (state_delegations.cpp).
  Status return_delegation(const ClientRef& client, const ObjectRef& object, const Stateid& stateid);
  // Before something happens to the object that others' delegations forbid: delay while they are being recalled.
  // client may be empty (a change from outside): then everybody's go.
  Status break_delegations(const Client* client, const ObjectRef& object, bool writes);
  bool any_delegations() const { return delegations_.load(std::memory_order_acquire) > 0; }
  // Outcome of a callback. ok or a status of the client's; nullopt: no answer in time, or the connection was lost.
  void callback_done(const SessionRef& session, const CallbackRequest& request, std::optional<Status> status);
  // The next thing to send for a session, and over which connection; empty when there is nothing or nowhere.
  struct CallbackTurn {
    CallbackRequest request;
    ConnectionRef connection;
    uint32_t program = 0;
    uint32_t sequence = 0;
    rpc::Credential credential;
  };
  std::optional<CallbackTurn> next_callback(const SessionRef& session);

  // About once a second: expires leases, revokes what was recalled in vain, ends grace. Owners whose record must
  // go are returned.
  std::vector<std::string> tick();
  // For tests of clients: as if the server had been started again, with every client recorded that had come that far.
  void restart();
  // For tests of clients: sends a callback of this kind to every session that has a back channel.
  void call_everybody(CallbackKind kind);

  struct Counts {
    size_t clients = 0, sessions = 0, opens = 0, locks = 0, delegations = 0, files = 0;
  };
  Counts counts();

 private:
  using Lock = std::lock_guard<std::mutex>;

  // state_clients.cpp
  ClientRef client_of(ClientId id);
  ClientRef find_owner(std::string_view owner, bool confirmed);
  ClientRef add_client(const nfs4::ExchangeIdArgs& args, const Principal& principal);
  void drop_client(const ClientRef& client);
  bool drop_unconfirmed();
  void say_limit(const char* what, uint32_t limit);
  void drop_session(const SessionRef& session);
  bool has_state(const Client& client) const { return client.opens + client.locks > 0 || !client.delegations.empty(); }
  void fill_exchange_result(const Client& client, nfs4::ExchangeIdResult& result) const;
  void end_grace_if_done();

  // state_sessions.cpp
  SessionRef session_of(const SessionId& id);
  Status check_channels(const nfs4::CreateSessionArgs& args) const;
  nfs4::ChannelAttrs fore_attributes(const nfs4::ChannelAttrs& wanted) const;
  nfs4::ChannelAttrs back_attributes(const nfs4::ChannelAttrs& wanted) const;
  bool bind(Session& session, const ConnectionRef& connection, bool back);
  uint32_t status_flags(const Client& client) const;

  // state_opens.cpp
  FileState& file_of(const ObjectRef& object);
  FileState* known_file(const ObjectRef& object);
  void drop_file_if_unused(FileState& file);
  template <class T, class... Args>
  T& add_entry(Args&&... args) {
    auto entry = std::make_unique<T>(std::forward<Args>(args)...);
    T& added = *entry;
    added.serial = ++serial_counter_;
    entries_.emplace(added.serial, std::move(entry));
    return added;
  }
  Stateid stateid_of(const StateEntry& entry) const;
  StateEntry* entry_of(const Stateid& stateid, Status& status);
  StateEntry* entry_for(const ClientRef& client, const ObjectRef* object, const Stateid& stateid, Status& status);
  OpenState* open_for(const ClientRef& client, const ObjectRef& object, const Stateid& stateid, Status& status);
  Status share_conflict(const FileState& file, const OpenState* own, uint32_t access, uint32_t deny) const;
  OpenState* find_open(OpenOwner& owner, const FileState& file) const;
  void drop_open(OpenState& open);
  void drop_lock_state(LockState& lock);
  Status grace_check(const Client& client, bool reclaim);
  Status special_access(FileState* file, const Stateid& stateid, Need need);

  // state_locks.cpp
  Status lock_state_for(const ClientRef& client, const ObjectRef& object, const LockRequest& request,
                        OpenState*& open, LockState*& lock);
  LockState& add_lock_state(Client& client, FileState& file, OpenState& open, LockOwner& owner);
  void fill_conflict(const LockRange& range, LockConflict& conflict) const;

  // state_delegations.cpp
  Status break_locked(const Client* client, FileState& file, bool writes, uint64_t except_serial);
  void recall(DelegationState& delegation);
  void call(Client& client, CallbackRequest request);
  void drop_delegation(DelegationState& delegation);
  void revoke(DelegationState& delegation);
  void grant(const SessionRef& session, FileState& file, const OpenRequest& request, nfs4::OpenDelegation& out);
  bool back_channel_ready(const Client& client) const;
  void give_delegation(Client& client, FileState& file, const OpenRequest& request, bool write,
                       nfs4::OpenDelegation& out);
  bool may_delegate(const Client& client, const FileState& file, const OpenRequest& request, bool& write) const;

  base::Clock& clock_;
  base::Random& random_;
  const StateParams params_;
  CallbackSender* callback_sender_ = nullptr;
  ChangeSource* changes_ = nullptr;

  std::atomic<uint32_t> delegations_{0};

  std::mutex mutex_;  // guards everything below
  std::unordered_map<ClientId, ClientRef> clients_;
  struct SessionIdHash {
    size_t operator()(const SessionId& id) const;
  };
  std::unordered_map<SessionId, SessionRef, SessionIdHash> sessions_;
  std::unordered_map<FileHandle, std::unique_ptr<FileState>> files_;
  std::unordered_map<uint64_t, std::unique_ptr<StateEntry>> entries_;
  uint32_t instance_;                      // params_.instance, but for restart()
  std::set<std::string> recorded_;         // may reclaim
  std::set<std::string> awaited_;          // recorded clients that have not finished reclaiming
  std::vector<std::string> unrecord_;
  TimeNs grace_until_ns_ = 0;
  TimeNs limit_said_ns_;
  uint32_t client_counter_ = 0;
  uint32_t session_counter_ = 0;
  uint64_t serial_counter_ = 0;
  uint64_t callback_counter_ = 0;
};

// Where State hands over that a session has something to call. Called with State's mutex held: must only post.
class CallbackSender {
 public:
  virtual ~CallbackSender() = default;
  virtual void callbacks_waiting(const SessionRef& session, io::IoLoop& loop) = 0;
};

}  // namespace nfsrdma::server
