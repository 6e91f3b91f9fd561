// SPDX-License-Identifier: Apache-2.0
#include "session/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.hpp"

namespace nfsrdma::session {

using base::LogLevel;

namespace {

// Which Exchange a completed call belongs to: the transport knows the Call only.
Channel::Exchange* exchange_of(rpc::Call& call) { return static_cast<Channel::Exchange*>(static_cast<Compound&>(call).owner); }

}  // namespace

Channel::Channel(ChannelOwner& owner, uint32_t index, io::IoLoop& loop, Connector& connector,
                 const ChannelParams& params)
    : owner_(owner), index_(index), loop_(loop), connector_(connector), params_(params) {
  answer_timer_.set([this] { on_answer_timeout(); });
  retry_timer_.set([this] { io::spawn(reconnect()); });
}

Channel::~Channel() = default;

bool Channel::Exchange::await_suspend(std::coroutine_handle<> h) {
  call.unsendable = false;
  if (!channel.transport_up()) {
    channel.up_.store(false, std::memory_order_release);
    call.outcome = rpc::CallOutcome::not_sent;
    call.error = Error(ENOTCONN, ErrorOrigin::connection, "the connection is down");
    return false;
  }
  handle = h;
  sent_at_ns = channel.loop_.now_ns();
  channel.waiting_answer_.push_back(*this);
  channel.load_.fetch_add(1, std::memory_order_relaxed);
  if (!channel.answer_timer_.armed()) channel.watch_answers();
  call.owner = this;
  call.complete = complete_exchange;
  submitting = true;
  channel.transport_->submit(call);
  submitting = false;
  if (completed) return false;
  channel.flush_soon();
  return true;
}

// Calls complete before on_down(): whoever continues here must not choose this connection again.
void Channel::complete_exchange(rpc::Call& call) {
  Exchange* e = exchange_of(call);
  Channel& channel = e->channel;
  e->unlink();
  if (!channel.transport_up())
    channel.up_.store(false, std::memory_order_release);
  else
    e->call.unsendable = call.outcome == rpc::CallOutcome::not_sent;
  channel.load_.fetch_sub(1, std::memory_order_relaxed);
  e->completed = true;
  if (!e->submitting) e->handle.resume();
}

// One doorbell for all that this turn of the loop submits.
void Channel::flush_soon() {
  if (flush_queued_) return;
  flush_queued_ = true;
  io::spawn([](Channel& self) -> io::Task<void> {
    co_await self.loop_.yield();
    self.flush_queued_ = false;
    if (self.transport_) self.transport_->flush();
  }(*this));
}

void Channel::watch_answers() {
  Exchange* oldest = waiting_answer_.front();
  if (oldest) loop_.arm(answer_timer_, oldest->sent_at_ns + params_.answer_timeout_ns);
}

void Channel::on_answer_timeout() {
  Exchange* oldest = waiting_answer_.front();
  if (!oldest) return;
  if (oldest->sent_at_ns + params_.answer_timeout_ns > loop_.now_ns()) return watch_answers();
  // Nothing is sent twice on a connection: silence replaces it, and the calls go again on the next one.
  if (transport_)
    transport_->drop(Error(ETIMEDOUT, ErrorOrigin::connection,
                           base::text("no answer within %llu ms",
                                      static_cast<unsigned long long>(params_.answer_timeout_ns / 1'000'000))));
}

io::Task<Result<void>> Channel::connect() {
  if (aborted_) co_return *aborted_;
  connecting_ = true;
  auto made = co_await connector_.connect(loop_, *this, owner_.reverse_handler());
  connecting_ = false;
  if (aborted_) co_return *aborted_;
  if (closing_) co_return Error(ECANCELED, ErrorOrigin::connection, "the mount is shutting down");
  if (!made) co_return made.error();
  transport_ = std::move(*made);
  connects_.fetch_add(1, std::memory_order_relaxed);
  co_return Result<void>{};
}

void Channel::usable() {
  if (!transport_up()) return;
  retry_delay_ns_ = 0;
  announced_ = true;
  up_.store(true, std::memory_order_release);
  owner_.on_channel_up(*this);
}

io::Task<Result<void>> Channel::open() {
  auto connected = co_await connect();
  if (!connected) co_return connected.error();
  auto bound = co_await owner_.bind(*this);
  if (!bound) {
    if (transport_) transport_->drop(bound.error());
    co_return bound.error();
  }
  usable();
  co_return Result<void>{};
}

void Channel::keep_open() {
  if (closing_ || aborted_) return;
  keep_open_ = true;
  if (!transport_) schedule_reconnect();
}

void Channel::replace(uint64_t connection, const Error& why) {
  if (transport_ && connects() == connection) transport_->drop(why);
}

void Channel::cut_off(const Error& why) {
  aborted_ = why;
  keep_open_ = false;
  loop_.cancel(retry_timer_);
  if (transport_) transport_->drop(why);
}

void Channel::on_down(const Error& why) {
  up_.store(false, std::memory_order_release);
  base::log(LogLevel::info, "session", "connection %u is down: %s", index_, why.text().c_str());
  // Not destroyed inside its own callback; the next turn does it.
  std::shared_ptr<rpc::Transport> old(std::move(transport_));
  loop_.post([old] {});
  if (std::exchange(announced_, false)) owner_.on_channel_down(*this, why);
  if (keep_open_ && !closing_) schedule_reconnect();
}

void Channel::schedule_reconnect() {
  if (retry_timer_.armed() || connecting_) return;
  retry_delay_ns_ = retry_delay_ns_ == 0 ? params_.retry_first_ns : std::min(retry_delay_ns_ * 2, params_.retry_max_ns);
  loop_.arm(retry_timer_, loop_.now_ns() + retry_delay_ns_);
}

io::Task<void> Channel::reconnect() {
  if (transport_up()) co_return;
  // The attempt before, or the end of its connection, may still be under way.
  if (reconnecting_ || transport_) co_return schedule_reconnect();
  reconnecting_ = true;
  auto opened = co_await open();
  reconnecting_ = false;
  if (closer_) co_return std::exchange(closer_, {}).resume();
  if (opened || !keep_open_) co_return;
  base::log(LogLevel::info, "session", "connection %u: reconnecting failed: %s", index_, opened.error().text().c_str());
  if (!transport_) schedule_reconnect();
}

io::Task<void> Channel::close() {
  closing_ = true;
  keep_open_ = false;
  loop_.cancel(retry_timer_);
  if (transport_) transport_->drop(Error(ECANCELED, ErrorOrigin::local, "the mount is shutting down"));
  struct UntilReconnected {
    Channel& self;
    bool await_ready() const noexcept { return !self.reconnecting_; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { self.closer_ = h; }
    void await_resume() const noexcept {}
  };
  co_await UntilReconnected{*this};
  // The transport's destruction was posted; let it happen before the channel goes.
  while (transport_) co_await loop_.yield();
  co_await loop_.sleep_for(0);
  loop_.cancel(answer_timer_);
}

io::Task<Channel::Report> Channel::report() {
  co_await loop_.enter();
  Report r;
  r.up = up();
  r.connects = connects();
  if (transport_) {
    r.rdma = transport_->is_rdma();
    r.path = transport_->describe();
    r.stats = transport_->stats();
    r.credits = transport_->credits_granted();
    r.in_flight = transport_->in_flight();
  }
  co_return r;
}

}  // namespace nfsrdma::session
