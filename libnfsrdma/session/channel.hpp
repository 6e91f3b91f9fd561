// SPDX-License-Identifier: Apache-2.0
// One of the session's nconnect connections: connects, binds itself to the session, carries compounds, comes back
// after a loss. Lives on one loop; up() and load() may be asked anywhere.
#pragma once

#include <atomic>
#include <coroutine>
#include <memory>
#include <optional>

#include "io/loop.hpp"
#include "io/sync.hpp"
#include "io/task.hpp"
#include "rpc/transport.hpp"
#include "session/compound.hpp"
#include "session/connector.hpp"

namespace nfsrdma::session {

class Channel;

// What a channel asks of the session that owns it. Called on the channel's loop.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  // Makes the fresh connection part of the session (BIND_CONN_TO_SESSION), before others may use it.
  virtual io::Task<Result<void>> bind(Channel& channel) = 0;
  virtual void on_channel_up(Channel& channel) = 0;
  virtual void on_channel_down(Channel& channel, const Error& why) = 0;
  virtual rpc::ReverseHandler& reverse_handler() = 0;
};

struct ChannelParams {
  using TimeNs = base::TimeNs;
  TimeNs answer_timeout_ns = base::seconds(60);   // timeo: an older unanswered call replaces the connection
  TimeNs retry_first_ns = base::ms(100);          // reconnect delay, doubled up to retry_max
  TimeNs retry_max_ns = base::seconds(15);
};

class Channel final : public rpc::TransportObserver {
 public:
  Channel(ChannelOwner& owner, uint32_t index, io::IoLoop& loop, Connector& connector, const ChannelParams& params);
  ~Channel() override;

  uint32_t index() const { return index_; }
  io::IoLoop& loop() { return loop_; }
  bool up() const { return up_.load(std::memory_order_acquire); }
  // Calls sent and waiting here; for choosing among channels.
  uint32_t load() const { return load_.load(std::memory_order_relaxed); }

  // Loop thread. Connects without binding; the caller (session start) uses exchange() on it and then says usable().
  io::Task<Result<void>> connect();
  void usable();
  // Loop thread. Connects and binds; the first attempt's error, no retry.
  io::Task<Result<void>> open();
  // Loop thread. From now on a loss is followed by reconnecting until close(); so is one that has happened already.
  void keep_open();
  // Loop thread. Ends the connection and what is under way; calls complete.
  io::Task<void> close();
  // Loop thread. Ends the connection of which connects() was `connection`, if it is still that one.
  void replace(uint64_t connection, const Error& why);
  // Loop thread. Ends the connection, or the attempt at one, for good: no other follows.
  void cut_off(const Error& why);

  // co_await channel.exchange(compound): submits and continues on the channel's loop when the call has completed. Loop
  // thread. The connection may be down: then the outcome is not_sent, and up() false by the time that it is told.
  struct Exchange : base::ListNode<> {
    Channel& channel;
    Compound& call;
    std::coroutine_handle<> handle{};
    base::TimeNs sent_at_ns = 0;
    Exchange(Channel& ch, Compound& c) : channel(ch), call(c) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h);
    void await_resume() const noexcept {}
    bool completed = false;
    bool submitting = false;
  };
  Exchange exchange(Compound& call) { return Exchange(*this, call); }

  rpc::Transport* transport() { return transport_.get(); }  // loop thread; may be nullptr
  // A snapshot for statistics; any thread.
  struct Report {
    bool up = false;
    bool rdma = true;
    std::string path;
    rpc::TransportStats stats;
    uint32_t credits = 0, in_flight = 0;
    uint64_t connects = 0;
  };
  io::Task<Report> report();
  uint64_t connects() const { return connects_.load(std::memory_order_relaxed); }

 private:
  void on_down(const Error& why) override;
  void schedule_reconnect();
  io::Task<void> reconnect();
  void watch_answers();
  void on_answer_timeout();
  void flush_soon();
  static void complete_exchange(rpc::Call& call);
  bool transport_up() const { return transport_ && transport_->up(); }

  ChannelOwner& owner_;
  uint32_t index_;
  io::IoLoop& loop_;
  Connector& connector_;
  ChannelParams params_;
  std::unique_ptr<rpc::Transport> transport_;
  base::IntrusiveList<Exchange> waiting_answer_;
  io::Timer answer_timer_;
  io::Timer retry_timer_;
  base::TimeNs retry_delay_ns_ = 0;
  bool keep_open_ = false;
  bool closing_ = false;
  bool connecting_ = false;
  bool reconnecting_ = false;
  bool announced_ = false;  // the owner was told that it is up
  bool flush_queued_ = false;
  std::optional<Error> aborted_;
  std::coroutine_handle<> closer_;  // waits for the end of reconnect()
  std::atomic<bool> up_{false};
  std::atomic<uint32_t> load_{0};
  std::atomic<uint64_t> connects_{0};
};

}  // namespace nfsrdma::session
