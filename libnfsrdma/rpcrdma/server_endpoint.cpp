// SPDX-License-Identifier: Apache-2.0
// Birth, end and shared bookkeeping of a responder connection.
#include "rpcrdma/server_endpoint.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::rpcrdma {
namespace {

// Posted bytes at which the doorbell does not wait for the batch's end.
constexpr uint64_t flush_bytes = 64 << 10;
// Receives beyond the credits: a client may use a credit before we saw our own Send complete.
constexpr uint32_t spare_receives = 8;
constexpr base::TimeNs retry_ns = base::ms(1);
constexpr uint32_t inline_bytes_least = 1024;

std::atomic<uint64_t> next_id{1};

ResponderParams sane(ResponderParams p) {
  p.credits = std::clamp(p.credits, 1u, 16384u);
  p.reverse_credits = std::clamp(p.reverse_credits, 1u, 64u);
  p.inline_bytes = std::clamp(p.inline_bytes, inline_bytes_least, inline_bytes_most) / 1024 * 1024;
  p.ord = std::max(p.ord, 1u);
  return p;
}

}  // namespace

ServerEndpoint::ServerEndpoint(Acceptor& acceptor, Acceptor::Shard& shard, const ResponderParams& params,
                               std::shared_ptr<rdma::ProtectionDomain> pd,
                               std::shared_ptr<mem::BufferPool> pool)
    : acceptor_(acceptor),
      shard_(shard),
      driver_(*shard.driver),
      loop_(driver_.loop()),
      params_(sane(params)),
      faults_(acceptor.faults_),
      pd_(std::move(pd)),
      pool_(std::move(pool)),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      reverse_credits_(params_.reverse_credits) {
  down_timer_.set([this] { finish(); });
  retry_timer_.set([this] {
    retry_waiting();
    flush_soon();
  });
}

ServerEndpoint::~ServerEndpoint() = default;

Result<void> ServerEndpoint::make_buffers() {
  const uint32_t receives = params_.credits + params_.reverse_credits + spare_receives;
  const uint32_t slots = receives + spare_receives;
  receive_bytes_ = std::max(params_.inline_bytes, params_.receive_bytes);
  const uint64_t send_at = uint64_t{receives} * receive_bytes_;
  const uint64_t reverse_at = send_at + uint64_t{slots} * params_.inline_bytes;
  zeros_at_ = reverse_at + uint64_t{params_.reverse_credits} * params_.inline_bytes;
  auto arena = Arena::create(*pd_, zeros_at_ + 64);
  if (!arena) return arena.error();
  arena_ = std::move(*arena);
  receives_ = std::vector<Receive>(receives);
  for (uint32_t i = 0; i < receives; i++) {
    receives_[i].endpoint = this;
    receives_[i].offset = uint64_t{i} * receive_bytes_;
    receives_[i].complete = [](rdma::Work& self, const rdma::Completion& c) {
      Receive& receive = static_cast<Receive&>(self);
      receive.endpoint->on_receive(receive, c);
    };
  }
  slots_ = std::vector<Slot>(slots);
  free_slots_.reserve(slots);
  for (uint32_t i = 0; i < slots; i++) {
    Slot& s = slots_[i];
    s.endpoint = this;
    s.offset = send_at + uint64_t{i} * params_.inline_bytes;
    s.complete = [](rdma::Work& self, const rdma::Completion& c) {
      Slot& slot = static_cast<Slot&>(self);
      slot.endpoint->on_send_done(slot, c);
    };
    s.transfer_done.slot = &s;
    s.transfer_done.complete = [](rdma::Work& self, const rdma::Completion& c) {
      Slot& slot = *static_cast<TransferDone&>(self).slot;
      slot.endpoint->on_transfer(slot, c);
    };
    s.delay.set([&s] { s.endpoint->answer(s); });
    free_slots_.push_back(&s);
  }
  reverse_calls_ = std::vector<ReverseCall>(params_.reverse_credits);
  for (uint32_t i = 0; i < reverse_calls_.size(); i++) {
    reverse_calls_[i].endpoint = this;
    reverse_calls_[i].offset = reverse_at + uint64_t{i} * params_.inline_bytes;
    reverse_calls_[i].complete = [](rdma::Work& self, const rdma::Completion&) {
      ReverseCall& call = static_cast<ReverseCall&>(self);
      call.sending = false;
      call.endpoint->sq_used_--;
    };
  }
  return {};
}

Result<void> ServerEndpoint::accept(std::unique_ptr<rdma::ConnectRequest> request, bool private_data) {
  remote_ = request->remote();
  CmPrivateData peer = CmPrivateData::decode(request->private_data());
  client_invalidation_ = peer.remote_invalidation && params_.invalidate;
  send_inline_bytes_ = std::min(params_.inline_bytes, peer.receive_bytes);
  if (auto ok = make_buffers(); !ok) return ok;
  rdma::QueuePairParams qp;
  // Room for an answer of every slot and a good number of Reads and Writes; more of those wait their turn.
  sq_depth_ = 2 * static_cast<uint32_t>(slots_.size()) + params_.reverse_credits + 64;
  qp.send_depth = sq_depth_;
  qp.receive_depth = static_cast<uint32_t>(receives_.size());
  qp.ird = 1;
  qp.ord = std::min({params_.ord, pd_->caps().ord_max, request->ird_offered()});
  auto pair = request->create_queue_pair(*pd_, driver_.cq(), qp, *this);
  if (!pair) return pair.error();
  qp_ = std::move(*pair);
  for (Receive& r : receives_) {
    rdma::ReceiveRequest receive{r.id(), arena_->sge(r.offset, receive_bytes_)};
    if (auto ok = qp_->post_receive({&receive, 1}); !ok) return ok;
  }
  CmPrivateData ours;
  ours.send_bytes = ours.receive_bytes = params_.inline_bytes;
  auto data = ours.encode();
  return qp_->accept(private_data ? base::ConstBytes(data) : base::ConstBytes());
}

void ServerEndpoint::on_established(const rdma::ConnectionInfo& info) {
  if (state_ != State::accepting) return;
  state_ = State::up;
  announced_ = true;
  source_untouched_ = info.source_untouched;
  base::log(base::LogLevel::info, "rpcrdma", "%s: connected (%s), inline %u, ord %u", remote_.text().c_str(),
            info.path.c_str(), send_inline_bytes_, info.ord);
  acceptor_.service_.on_connect(*this);
  take_backlog();
}

void ServerEndpoint::end_later(const Error& why) {
  if (state_ == State::ending || state_ == State::down) return;
  state_ = State::ending;
  why_ = why;
  base::log(base::LogLevel::info, "rpcrdma", "%s: connection ends: %s", remote_.text().c_str(),
            why.text().c_str());
  // Not inside the provider's poll(), where the pair may not be destroyed.
  loop_.arm(down_timer_, 0);
}

void ServerEndpoint::end_now(const Error& why) {
  loop_.cancel(down_timer_);
  why_ = why;
  finish();
}

void ServerEndpoint::finish() {
  if (qp_ && state_ != State::down) qp_->disconnect();
  state_ = State::down;
  qp_.reset();
  driver_.forget(receives_.data(), receives_.data() + receives_.size());
  driver_.forget(slots_.data(), slots_.data() + slots_.size());
  driver_.forget(reverse_calls_.data(), reverse_calls_.data() + reverse_calls_.size());
  BatchEnd::unlink();
  loop_.cancel(retry_timer_);
  end_reverse(why_);
  handles_++;  // holds this object until the service has been told
  for (Slot& slot : slots_) {
    loop_.cancel(slot.delay);
    if (slot.stage != Stage::free && slot.stage != Stage::serving) free_slot(slot);
  }
  if (announced_) acceptor_.service_.on_disconnect(*this);
  base::ListNode<>::unlink();
  acceptor_.gone(shard_);
  call_gone();
}

void ServerEndpoint::call_gone() {
  if (--handles_ == 0 && state_ == State::down) delete this;
}

ServerEndpoint::Slot* ServerEndpoint::take_slot() {
  if (free_slots_.empty()) return nullptr;
  Slot* slot = free_slots_.back();
  free_slots_.pop_back();
  slot->message_bytes = slot->pull_segment = slot->pull_done = slot->transfers = 0;
  slot->assembled = false;
  slot->sends_pending = 0;
  slot->results_bytes = slot->payload_bytes = slot->payload_position = 0;
  slot->data_chunks.clear();
  slot->payload.clear();
  slot->payload_transfer = slot->message_transfer = Transfer();
  slot->fault = {};
  slot->sends_left = 1;
  return slot;
}

void ServerEndpoint::free_slot(Slot& slot) {
  slot.unlink();
  slot.stage = Stage::free;
  if (slot.release) std::exchange(slot.release, {})();
  slot.message_buffer.reset();
  slot.data_buffer.reset();
  slot.results_buffer.reset();
  if (Receive* receive = std::exchange(slot.receive, nullptr)) repost(*receive);
  free_slots_.push_back(&slot);
}

void ServerEndpoint::repost(Receive& receive) {
  if (state_ != State::up) return;
  rdma::ReceiveRequest request{receive.id(), arena_->sge(receive.offset, receive_bytes_)};
  if (auto ok = qp_->post_receive({&request, 1}); !ok) end_later(ok.error());
}

bool ServerEndpoint::post(const rdma::SendRequest& request) {
  if (auto ok = qp_->post_send({&request, 1}); !ok) {
    end_later(ok.error());
    return false;
  }
  sq_used_++;
  for (const rdma::Sge& piece : request.sge) unflushed_bytes_ += piece.length;
  return true;
}

// The client shall work on the first answers of a batch while the others are made.
void ServerEndpoint::flush_if_much() {
  if (unflushed_bytes_ < flush_bytes) return;
  unflushed_bytes_ = 0;
  qp_->flush();
}

void ServerEndpoint::on_batch_end() {
  if (state_ != State::up) return;
  take_backlog();
  retry_waiting();
  while (Slot* slot = blocked_.front()) {
    slot->unlink();
    if (advance(*slot)) continue;
    slot->unlink();
    blocked_.push_front(*slot);
    break;
  }
  unflushed_bytes_ = 0;
  if (qp_) qp_->flush();
  if (!waiting_.empty() && !retry_timer_.armed()) loop_.arm(retry_timer_, loop_.now_ns() + retry_ns);
}

}  // namespace nfsrdma::rpcrdma
