// SPDX-License-Identifier: Apache-2.0
// Ways in which the server can be made to misbehave, for tests of clients. All behind one text:
//
//   delay=MS               every reply that late
//   drop=N                 every Nth compound is executed and never answered
//   disconnect=N           after every Nth compound the connection ends instead of the reply
//   refuse=OP[:STATUS]     the operation fails (number, or name as in "open"; status number, default 10004 NOTSUPP)
//   credits=A[/B/C...]     grants, one after the other, the last for ever
//   inline=BYTES           announced inline size
//   no_private_data        none in the connection's acceptance
//   restart=N              after every Nth compound the server forgets all state, as if restarted, and changes its
//                          write verifier; connections end
//   verifier=N             the write verifier changes after every Nth compound
//   callback=NAME          recall, recall_any, recall_slot, notify_lock, getattr or null: sent to each session that has
//                          a back channel, once a second
// Several are joined by commas.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "nfs4/constants.hpp"
#include "nfsrdma/error.hpp"
#include "rpcrdma/responder_faults.hpp"
#include "server/state_types.hpp"

namespace nfsrdma::server {

struct FaultPlan {
  uint32_t delay_ms = 0;
  uint32_t drop_every = 0;
  uint32_t disconnect_every = 0;
  uint32_t restart_every = 0;
  uint32_t verifier_every = 0;
  uint32_t inline_bytes = 0;
  bool private_data = true;
  std::vector<uint32_t> credits;
  struct Refusal {
    uint32_t op = 0;
    nfs4::Status status = nfs4::Status::notsupp;
  };
  std::vector<Refusal> refusals;
  std::string callback;
  bool any = false;
};

// EINVAL names the word that was not understood and lists what is.
Result<FaultPlan> parse_faults(std::string_view text);

class ServerFaults final : public rpcrdma::ResponderFaults {
 public:
  explicit ServerFaults(FaultPlan plan) : plan_(std::move(plan)) {}
  const FaultPlan& plan() const { return plan_; }

  // Any thread. ok: execute it.
  nfs4::Status on_op(uint32_t op) const;
  // After a compound was executed, on its loop.
  bool drops_reply();
  bool restarts() { return due(plan_.restart_every, restart_count_); }
  CallbackKind callback_kind() const;
  bool changes_verifier() { return due(plan_.verifier_every, verifier_count_); }

  rpcrdma::ConnectFault on_connect() override;
  rpcrdma::ReplyFault on_reply(const rpc::ServerConnection& connection, const rpc::CallHeader& call) override;

 private:
  static bool due(uint32_t every, std::atomic<uint32_t>& count) {
    return every != 0 && (count.fetch_add(1, std::memory_order_relaxed) + 1) % every == 0;
  }
  const FaultPlan plan_;
  std::atomic<uint32_t> drop_count_{0};
  std::atomic<uint32_t> disconnect_count_{0};
  std::atomic<uint32_t> restart_count_{0};
  std::atomic<uint32_t> verifier_count_{0};
  std::atomic<size_t> credit_count_{0};
};

}  // namespace nfsrdma::server
