// SPDX-License-Identifier: Apache-2.0
// Birth and end of an Endpoint.
#include <bit>
#include <cerrno>

#include "base/log.hpp"
#include "base/random.hpp"
#include "rpcrdma/endpoint.hpp"

namespace nfsrdma::rpcrdma {
namespace {

constexpr uint32_t credits_most = 16384;
constexpr uint32_t inline_bytes_least = 1024;

EndpointParams sane(EndpointParams p) {
  p.credits = std::clamp(p.credits, 1u, credits_most);
  p.reverse_credits = std::clamp(p.reverse_credits, 1u, 1024u);
  p.inline_bytes = std::clamp(p.inline_bytes, inline_bytes_least, inline_bytes_most) / 1024 * 1024;
  p.ird = std::max(p.ird, 1u);
  return p;
}

// A callback's answer may still be on its way out when the next callback arrives: twice the credits never
// runs dry.
uint32_t reverse_reply_count(const EndpointParams& p) { return 2 * p.reverse_credits; }

}  // namespace

Endpoint::Endpoint(CqDriver& driver, std::shared_ptr<rdma::ProtectionDomain> pd, mem::BufferPool& pool,
                   const EndpointParams& params, rpc::TransportObserver& observer,
                   rpc::ReverseHandler* reverse)
    : driver_(driver),
      loop_(driver.loop()),
      pd_(std::move(pd)),
      pool_(pool),
      params_(sane(params)),
      observer_(observer),
      reverse_(reverse),
      credits_(params_.credits) {
  receive_bytes_ = std::max(params_.receive_bytes, 2 * params_.inline_bytes);
  reply_chunk_bytes_max_ = params_.reply_chunk_bytes_max;
  index_bits_ = static_cast<uint32_t>(std::bit_width(params_.credits - 1));
  event_timer_.set([this] { connected_.set(state_ == State::up ? Result<void>() : Result<void>(why_)); });
  down_timer_.set([this] { finish_down(); });
  stall_timer_.set([this] {
    pump();
    flush();
  });
}

Endpoint::~Endpoint() {
  if (state_ == State::up)
    why_ = Error(ECONNABORTED, ErrorOrigin::local, "the connection was closed by this side");
  release_all();
}

Result<void> Endpoint::make_buffers() {
  const uint32_t receives = params_.credits + params_.reverse_credits;
  const uint64_t send_at = uint64_t{receives} * receive_bytes_;
  const uint64_t reverse_at = send_at + uint64_t{params_.credits} * params_.inline_bytes;
  auto arena =
      Arena::create(*pd_, reverse_at + uint64_t{reverse_reply_count(params_)} * params_.inline_bytes);
  if (!arena) return arena.error();
  arena_ = std::move(*arena);
  receives_.resize(receives);
  for (uint32_t i = 0; i < receives; i++) {
    Receive& r = receives_[i];
    r.endpoint = this;
    r.offset = uint64_t{i} * receive_bytes_;
    r.complete = [](rdma::Work& self, const rdma::Completion& c) {
      Receive& receive = static_cast<Receive&>(self);
      receive.endpoint->on_receive(receive, c);
    };
  }
  slots_ = std::vector<CallSlot>(params_.credits);
  free_slots_.resize(params_.credits);
  free_count_ = params_.credits;
  for (uint32_t i = 0; i < params_.credits; i++) {
    CallSlot& s = slots_[i];
    s.endpoint = this;
    s.index = free_slots_[i] = i;
    s.generation = static_cast<uint32_t>(base::system_random().next());
    s.offset = send_at + uint64_t{i} * params_.inline_bytes;
    s.complete = [](rdma::Work& self, const rdma::Completion& c) {
      CallSlot& slot = static_cast<CallSlot&>(self);
      slot.endpoint->on_send_done(slot, c);
    };
    s.fence_done.slot = &s;
    s.fence_done.complete = [](rdma::Work& self, const rdma::Completion&) {
      CallSlot& slot = *static_cast<FenceDone&>(self).slot;
      slot.endpoint->on_fenced(slot);
    };
  }
  reverse_replies_.resize(reverse_reply_count(params_));
  for (uint32_t i = 0; i < reverse_replies_.size(); i++) {
    ReverseReply& r = reverse_replies_[i];
    r.endpoint = this;
    r.offset = reverse_at + uint64_t{i} * params_.inline_bytes;
    r.complete = [](rdma::Work& self, const rdma::Completion&) {
      static_cast<ReverseReply&>(self).busy = false;
    };
  }
  return {};
}

Result<void> Endpoint::start() {
  started_ns_ = active_ns_ = loop_.now_ns();
  if (auto ok = make_buffers(); !ok) return ok;
  rdma::QueuePairParams qp;
  qp.send_depth = params_.credits + static_cast<uint32_t>(reverse_replies_.size());
  qp.receive_depth = static_cast<uint32_t>(receives_.size());
  qp.ird = params_.ird;
  qp.ord = 0;
  auto pair = pd_->create_queue_pair(driver_.cq(), qp, *this);
  if (!pair) return pair.error();
  qp_ = std::move(*pair);
  for (Receive& r : receives_) {
    rdma::ReceiveRequest request{r.id(), arena_->sge(r.offset, receive_bytes_)};
    if (auto ok = qp_->post_receive({&request, 1}); !ok) return ok;
  }
  CmPrivateData ours;
  ours.remote_invalidation = pd_->caps().remote_invalidate;
  ours.send_bytes = ours.receive_bytes = params_.inline_bytes;
  auto data = ours.encode();
  rdma::ConnectParams c;
  c.remote = params_.remote;
  c.local = params_.local;
  c.timeout_ns = params_.timeout_ns;
  if (params_.announce) c.private_data = data;
  return qp_->connect(c);
}

void Endpoint::on_established(const rdma::ConnectionInfo& info) {
  CmPrivateData peer = CmPrivateData::decode(info.private_data);
  send_inline_bytes_ = std::min(params_.inline_bytes, peer.receive_bytes);
  // A peer that was told nothing sends no more than the default.
  receive_inline_bytes_ =
      std::min(params_.announce ? params_.inline_bytes : inline_bytes_unknown_peer, peer.send_bytes);
  path_ = info.path;
  state_ = State::up;
  active_ns_ = loop_.now_ns();
  stats_.connect_count = stats_.bind_count = 1;
  stats_.connect_time_ms = (active_ns_ - started_ns_) / 1'000'000;
  // Nobody is resumed inside the provider's poll(): who waits may destroy the pair.
  loop_.arm(event_timer_, 0);
}

void Endpoint::on_failed(const Error& why) {
  why_ = why;
  state_ = State::down;
  loop_.arm(event_timer_, 0);
}

void Endpoint::on_disconnected(const Error& why) {
  if (state_ == State::ending && why_is_soft_) why_ = why;
  fail(why);
}

void Endpoint::fail_softly(const Error& why) {
  if (state_ == State::up) why_is_soft_ = true;
  fail(why);
}

void Endpoint::fail(const Error& why) {
  if (state_ != State::up) return;
  state_ = State::ending;
  why_ = why;
  base::log(base::LogLevel::info, "rpcrdma", "%s: connection ends: %s", params_.remote.text().c_str(),
            why.text().c_str());
  loop_.arm(down_timer_, 0);
}

void Endpoint::drop(const Error& why) { fail(why); }

void Endpoint::finish_down() {
  release_all();
  if (handed_over_) observer_.on_down(why_);
}

// After this no peer can reach any memory that a call named, and no call is left.
void Endpoint::release_all() {
  if (qp_ && state_ != State::down) qp_->disconnect();
  state_ = State::down;
  qp_.reset();
  driver_.forget(receives_.data(), receives_.data() + receives_.size());
  driver_.forget(slots_.data(), slots_.data() + slots_.size());
  driver_.forget(reverse_replies_.data(), reverse_replies_.data() + reverse_replies_.size());
  unlink();
  loop_.cancel(stall_timer_);
  for (CallSlot& slot : slots_) {
    if (!slot.call) continue;
    slot.send_pending = false;
    slot.fences_pending = 0;
    slot.fenced = ~uint64_t{0};
    if (!slot.answered) {
      slot.call->error = why_;
      answered(slot, slot.transmitted ? rpc::CallOutcome::lost : rpc::CallOutcome::not_sent);
    }
    finish_if_done(slot);
  }
  for (base::IntrusiveList<rpc::Call>* list : {&urgent_, &queue_}) {
    while (rpc::Call* call = list->pop_front()) {
      queued_--;
      call->outcome = rpc::CallOutcome::not_sent;
      call->error = why_;
      call->complete(*call);
    }
  }
}

io::Task<Result<std::unique_ptr<Endpoint>>> connect(CqDriver& driver,
                                                    std::shared_ptr<rdma::ProtectionDomain> pd,
                                                    mem::BufferPool& pool, EndpointParams params,
                                                    rpc::TransportObserver& observer,
                                                    rpc::ReverseHandler* reverse) {
  co_await driver.loop().enter();
  std::unique_ptr<Endpoint> endpoint(new Endpoint(driver, std::move(pd), pool, params, observer, reverse));
  if (auto ok = endpoint->start(); !ok) co_return ok.error();
  if (auto ok = co_await endpoint->connected_; !ok) co_return ok.error();
  if (!endpoint->up()) co_return endpoint->why_;
  endpoint->handed_over_ = true;
  co_return std::move(endpoint);
}

}  // namespace nfsrdma::rpcrdma
