// SPDX-License-Identifier: Apache-2.0
// The back channel: sends what State wants clients to hear, one call at a time for each session.
#pragma once

#include "base/clock.hpp"
#include "server/state.hpp"

namespace nfsrdma::server {

class Callbacks final : public CallbackSender {
 public:
  // answer_ns: how long a client may take, knfsd's tenth of a lease.
  Callbacks(State& state, TimeNs answer_ns) : state_(state), answer_ns_(answer_ns) {}
  void callbacks_waiting(const SessionRef& session, io::IoLoop& loop) override;

 private:
  struct Exchange;
  void send_next(const SessionRef& session);
  void start(const SessionRef& session, State::CallbackTurn turn);
  static std::optional<Status> outcome_of(const Result<base::ConstBytes>& reply, uint32_t xid,
                                          CallbackKind kind);

  State& state_;
  const TimeNs answer_ns_;
  std::atomic<uint32_t> next_xid_{1};
};

}  // namespace nfsrdma::server
