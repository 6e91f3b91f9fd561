// SPDX-License-Identifier: Apache-2.0
// A server as this client holds it: client id, one session over several connections, its slots, lease and callbacks.
//
// Threads: run() may be used on every loop at once. Recovery, lease renewal and start run on the home loop (that of
// channel 0). What several loops share is guarded by one mutex, never held across a co_await.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "session/callback_service.hpp"
#include "session/channel.hpp"
#include "session/compound.hpp"
#include "session/identity.hpp"
#include "session/slot_pool.hpp"

namespace nfsrdma::session {

struct ServerParams {
  uint32_t nconnect = 1;
  uint32_t minor_version = 1;
  uint32_t request_bytes_max = (1u << 20) + 4096;   // whole RPC messages, asked of the server
  uint32_t response_bytes_max = (1u << 20) + 4096;
  uint32_t cached_response_bytes_max = 1104;        // small: old servers give more slots then
  uint32_t slots_wanted = 128;
  uint32_t retrans = 2;
  bool soft = false;                                // give up after (retrans + 1) answer time-outs
  int soft_errno = 5;                               // EIO, or ETIMEDOUT for softerr
  uint32_t credits_wanted = 128;
  ChannelParams channel;
  rpc::Credential credential;                       // for all client id operations: always the same one
  AuthSysText auth;                                 // the same identity, for the callback channel's security
};

// Told at start, step by step: name, ok, microseconds, what was found.
using StepObserver = std::function<void(const char*, bool, uint64_t, const std::string&)>;

struct ServerInfo {
  std::string implementation;
  uint32_t minor_version = 1;
  uint32_t request_bytes_max = 0, response_bytes_max = 0, cached_response_bytes_max = 0, operations_max = 0;
  uint32_t slots = 0;
  bool back_channel = false;
};

struct OpCounters {
  std::atomic<uint64_t> calls{0}, transmissions{0}, timeouts{0}, bytes_sent{0}, bytes_received{0}, response_ns{0},
      queue_ns{0}, execute_ns{0}, errors{0};
};

class Server final : public ChannelOwner {
 public:
  // loops: channel i lives on loops[i % size]. connector, loops and params' strings outlive the Server.
  Server(std::vector<io::IoLoop*> loops, Connector& connector, ClientIdentity identity, ServerParams params,
         base::Random& random);
  ~Server() override;

  // Home loop. Connects channel 0, NULL, EXCHANGE_ID, CREATE_SESSION, RECLAIM_COMPLETE, then the other connections.
  io::Task<Result<void>> start(StepObserver observer);
  // Home loop. DESTROY_SESSION, DESTROY_CLIENTID, all connections closed. No run() may be under way.
  io::Task<void> stop();

  // Any thread. Ends every connection and every run() with an error; stop() still has to follow.
  void cut_off(const Error& why);

  // Any loop. Sends the sealed compound with add_sequence() first, through loss of connections and of the session,
  // exactly once. Success: SEQUENCE was good and c.reader() stands behind it. The caller decodes the rest before its
  // next co_await. Errors: origin connection (given up: soft, shutting down), protocol (malformed reply), server (RPC
  // refusal, or SEQUENCE failed for good), and EIO with "fate unknown" for an exactly-once call whose session was lost.
  io::Task<Result<void>> run(Compound& c);
  // Any loop. The reply to c broke the protocol: the connection that it came by is not trusted any further.
  void replace_connection_of(const Compound& c, const Error& why);

  io::IoLoop& home() { return *loops_.front(); }
  ServerInfo info() const;
  // Moves whenever the server forgot our opens and locks: state of an older epoch is lost.
  uint64_t state_epoch() const { return state_epoch_.load(std::memory_order_acquire); }
  uint64_t client_id() const;
  // Lease time learnt from the server; renewal adapts.
  void set_lease(uint32_t lease_s);
  base::Random& random() { return random_; }

  const std::vector<std::unique_ptr<Channel>>& channels() const { return channels_; }
  const OpCounters& counters(nfs4::Op op) const { return counters_[static_cast<size_t>(op)]; }
  static constexpr size_t counted_ops = 80;
  uint64_t replays() const { return replays_.load(std::memory_order_relaxed); }
  uint64_t reconnects() const { return reconnects_.load(std::memory_order_relaxed); }
  uint64_t callbacks() const { return callback_service_.calls(); }
  CallbackService& callback_service() { return callback_service_; }

 private:
  // What an answer at SEQUENCE level, or its absence, means for the request.
  enum class Verdict : uint8_t {
    done,          // c.reader() stands behind a good SEQUENCE
    resend_same,   // the same request again on the same slot, a little later
    resend_new,    // not executed, or harmless: a new request
    session_lost,  // recover, then decide
    failed,        // error says why
  };
  struct Judgement {
    Verdict verdict = Verdict::done;
    base::TimeNs wait_ns = 0;       // before sending again
    bool maybe_executed = false;    // a transmission was lost, the server may have done it
    bool answered = false;          // SEQUENCE was good: what the reply says, and nothing else, has happened
    Error error{0, ErrorOrigin::local};
  };
  // Counts a coroutine of ours that nobody awaits; stop() waits for them.
  struct Background {
    std::atomic<uint32_t>& count;
    explicit Background(Server& s) : count(s.background_) { count.fetch_add(1); }
    ~Background() { count.fetch_sub(1); }
  };
  struct WaitChannel;
  struct WaitRecovery;

  // ChannelOwner
  io::Task<Result<void>> bind(Channel& channel) override;
  void on_channel_up(Channel& channel) override;
  void on_channel_down(Channel& channel, const Error& why) override;
  rpc::ReverseHandler& reverse_handler() override { return callback_service_; }

  io::Task<Result<void>> run_to_end(Compound& c);
  io::Task<Judgement> run_on_slot(Compound& c, SlotLease lease, base::TimeNs deadline_ns);
  io::Task<bool> transmit(Compound& c, base::TimeNs deadline_ns);
  base::TimeNs deadline_of(const Compound& c, base::TimeNs now_ns) const;
  Error given_up(const Compound& c) const;
  void leave_slot(const SlotLease& lease, bool maybe_executed);
  io::Task<void> settle_slot(SlotLease lease);
  Channel* choose_channel();
  bool may_wait_for_channel() const;
  Judgement judge(Compound& c, const SlotLease& lease, bool maybe_executed);
  Judgement judge_sequence_failure(nfs4::Status status, Compound& c, const SlotLease& lease, bool maybe_executed);
  Judgement judge_unanswered(Compound& c, const SlotLease& lease, bool maybe_executed);
  void renewed(base::TimeNs sent_at_ns);
  void on_sequence_flags(uint32_t flags);
  void count(const Compound& c, base::TimeNs begin_ns, bool failed);
  void count_timeout(const Compound& c);

  io::Task<Result<void>> send_null();
  io::Task<Result<bool>> exchange_id();            // true: a client id that the server had confirmed before
  io::Task<Result<void>> create_session();
  io::Task<Result<void>> reclaim_complete();
  io::Task<Result<void>> destroy_session(nfs4::SessionId session);
  io::Task<void> destroy_old_session(nfs4::SessionId session);
  io::Task<Result<void>> call_unsequenced(Compound& c);
  io::Task<Result<void>> open_other_channels();
  io::Task<Result<void>> bind_channel(Channel& channel);
  void lose_session(uint64_t generation);
  io::Task<void> recover();
  io::Task<Result<void>> rebuild_session();
  io::Task<void> restore_back_channel();
  void arm_lease();
  io::Task<void> renew_lease();
  void wake_everybody();
  io::Task<void> say_goodbye();

  std::vector<io::IoLoop*> loops_;
  Connector& connector_;
  ClientIdentity identity_;
  ServerParams params_;
  base::Random& random_;
  SlotPool slots_;
  CallbackService callback_service_;
  std::vector<std::unique_ptr<Channel>> channels_;

  mutable std::mutex mutex_;
  Waiters channel_waiters_;          // guarded: coroutines waiting for any channel
  uint64_t client_id_ = 0;           // guarded
  nfs4::SessionId session_id_{};     // guarded
  ServerInfo info_;                  // guarded
  uint32_t create_sequence_ = 0;     // home loop
  bool reclaim_due_ = false;         // home loop: RECLAIM_COMPLETE is still to be said under this client id
  Waiters recovery_waiters_;         // guarded
  bool recovering_ = false;          // guarded
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> state_epoch_{1};
  std::atomic<uint64_t> replays_{0}, reconnects_{0};
  std::atomic<uint32_t> flags_seen_{0};
  bool restoring_ = false;           // home loop: restore_back_channel() is under way
  std::atomic<base::TimeNs> renewed_at_ns_{0};
  std::atomic<uint32_t> lease_s_{90};
  std::atomic<uint32_t> background_{0};  // coroutines of ours that stop() must wait for
  io::Timer lease_timer_;
  std::array<OpCounters, counted_ops> counters_;
};

}  // namespace nfsrdma::session
