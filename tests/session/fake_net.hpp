// SPDX-License-Identifier: Apache-2.0
// Connections that exist on paper: a Connector whose transports hand each call to a FarEnd object. Timing is the
// loop's, and the clock is a test's own, so that a run is the same each time and a hang shows at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/loop.hpp"
#include "nfs4/session_ops.hpp"
#include "rpc/transport.hpp"
#include "session/connector.hpp"

namespace nfsrdma::session::test {

class FakeTransport;

// One transmission as the far end sees it.
struct Sent {
  FakeTransport* transport = nullptr;  // nullptr once the connection has ended
  rpc::Call* call = nullptr;           // nullptr once it was completed
  uint32_t connection = 0;             // 1, 2, ... in order of being made
  uint32_t procedure = 0;
  bool urgent = false;
  std::vector<std::byte> args;
  std::vector<nfs4::Op> ops;
  std::optional<nfs4::SequenceArgs> sequence;
  base::TimeNs at_ns = 0;

  bool has(nfs4::Op op) const { return std::ranges::find(ops, op) != ops.end(); }
  void reply(rpc::ConstBytes results);
  void fail(rpc::CallOutcome outcome, const char* why);
};
using SentRef = std::shared_ptr<Sent>;

class FarEnd {
 public:
  virtual ~FarEnd() = default;
  virtual void on_call(const SentRef& sent) = 0;
  virtual void on_gone(uint32_t connection) = 0;
};

class FakeNet final : public Connector {
 public:
  explicit FakeNet(FarEnd& far) : far_(far) {}
  io::Task<Result<std::unique_ptr<rpc::Transport>>> connect(io::IoLoop& loop, rpc::TransportObserver& observer,
                                                            rpc::ReverseHandler& reverse) override;

  std::optional<Error> refuse;          // connecting fails with this
  base::TimeNs connect_ns = 0;          // how long it takes
  uint32_t attempts = 0;
  uint32_t connections = 0;             // made so far
  std::vector<FakeTransport*> live;
  FakeTransport* find(uint32_t connection) const;
  FarEnd& far() { return far_; }

 private:
  FarEnd& far_;
};

class FakeTransport final : public rpc::Transport {
 public:
  FakeTransport(FakeNet& net, io::IoLoop& loop, rpc::TransportObserver& observer, rpc::ReverseHandler& reverse);
  ~FakeTransport() override;

  void submit(rpc::Call& call) override;
  void flush() override { flushes++; }
  bool up() const override { return state_ == State::up; }
  void drop(const Error& why) override;
  uint32_t credits_free() const override { return 64; }
  uint32_t credits_granted() const override { return 64; }
  uint32_t in_flight() const override { return static_cast<uint32_t>(pending_.size()); }
  const rpc::TransportStats& stats() const override { return stats_; }
  std::string describe() const override { return "fake " + std::to_string(connection); }
  bool is_rdma() const override { return true; }
  uint32_t reverse_bytes_max() const override { return 4068; }

  // A call of the server's; the answer as it came, empty for none.
  std::vector<std::byte> call_back(rpc::ConstBytes message);
  io::IoLoop& loop() { return loop_; }

  const uint32_t connection;
  uint32_t flushes = 0;
  // Calls are taken but not transmitted: credits are used up. They end as not_sent.
  bool stalled = false;

 private:
  enum class State { up, ending, down };
  friend struct Sent;
  void end();

  FakeNet& net_;
  io::IoLoop& loop_;
  rpc::TransportObserver& observer_;
  rpc::ReverseHandler& reverse_;
  State state_ = State::up;
  Error why_{0, ErrorOrigin::local};
  std::vector<SentRef> pending_;
  base::IntrusiveList<rpc::Call> queued_;
  io::Timer end_timer_;
  rpc::TransportStats stats_;
};

}  // namespace nfsrdma::session::test
