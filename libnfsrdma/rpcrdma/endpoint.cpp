// SPDX-License-Identifier: Apache-2.0
// Queue, transmission and completion of calls.
#include "rpcrdma/endpoint.hpp"

#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::rpcrdma {
namespace {

// How soon a call that found no buffer or no key tries again when nothing else happens on the connection.
constexpr base::TimeNs stall_retry_ns = base::ms(1);

}  // namespace

void Endpoint::submit(rpc::Call& call) {
  call.results = {};
  call.data_placed = false;
  call.data_length = 0;
  call.error = Error(0, ErrorOrigin::local);
  if (state_ != State::up) {
    // A call submitted while the connection ends waits for the end, so that on_down is the last word.
    if (state_ == State::ending) {
      queue_.push_back(call);
      queued_++;
      return;
    }
    call.outcome = rpc::CallOutcome::not_sent;
    call.error = why_;
    call.complete(call);
    return;
  }
  (call.urgent ? urgent_ : queue_).push_back(call);
  queued_++;
  stats_.backlog_sum += queued_ - 1;
  stats_.queue_peak = std::max<uint64_t>(stats_.queue_peak, in_flight());
  if (credits_.free() == 0) stats_.credit_stalls++;
  pump();
}

void Endpoint::flush() {
  if (qp_ && state_ == State::up) qp_->flush();
}

uint32_t Endpoint::credits_free() const {
  if (state_ != State::up) return 0;
  uint32_t free = credits_.free();
  return free > queued_ ? free - queued_ : 0;
}

void Endpoint::pump() {
  if (pumping_) return;
  pumping_ = true;
  while (state_ == State::up && credits_.free() > 0) {
    // What waits for memory must not hold up a lease renewal.
    rpc::Call* call = urgent_.pop_front();
    if (!call && !stall_timer_.armed()) call = queue_.pop_front();
    if (!call) break;
    queued_--;
    if (!transmit(*call)) break;
  }
  pumping_ = false;
}

// False: it went back to the head of its queue, for want of a buffer or a key.
bool Endpoint::transmit(rpc::Call& call) {
  uint32_t index = free_slots_[free_at_];
  free_at_ = (free_at_ + 1) % free_slots_.size();
  free_count_--;
  CallSlot& slot = slots_[index];
  credits_.take();
  slot.call = &call;
  slot.xid = slot.generation++ << index_bits_ | index;
  slot.transmitted = slot.send_pending = slot.answered = false;
  slot.fenced = 0;
  slot.exposure_count = slot.write_count = slot.reply_chunk_bytes = 0;
  active_ns_ = loop_.now_ns();
  switch (marshal(slot)) {
    case Marshal::ready:
      stats_.sends++;
      stats_.in_flight_sum += credits_.used();
      break;
    case Marshal::wait:
      release(slot);
      (call.urgent ? urgent_ : queue_).push_front(call);
      queued_++;
      loop_.arm(stall_timer_, loop_.now_ns() + stall_retry_ns);
      return false;
    case Marshal::failed:
      stats_.failed_marshal++;
      fence_all(slot);
      answered(slot, rpc::CallOutcome::not_sent);
      finish_if_done(slot);
      break;
  }
  return true;
}

void Endpoint::answered(CallSlot& slot, rpc::CallOutcome outcome) {
  slot.answered = true;
  slot.call->outcome = outcome;
}

void Endpoint::fence_all(CallSlot& slot) {
  for (uint32_t i = 0; i < slot.exposure_count; i++) {
    if (slot.fenced >> i & 1) continue;
    slot.fenced |= uint64_t{1} << i;
    stats_.local_fences++;
    if (!qp_->fence(slot.exposures[i], slot.fence_done.id())) slot.fences_pending++;
  }
}

void Endpoint::on_fenced(CallSlot& slot) {
  if (slot.fences_pending > 0) slot.fences_pending--;
  finish_if_done(slot);
}

void Endpoint::finish_if_done(CallSlot& slot) {
  if (!slot.call || !slot.answered || slot.send_pending || slot.fences_pending > 0) return;
  rpc::Call& call = *slot.call;
  if (call.in.length_max > 0 && call.data_length > 0 && call.outcome == rpc::CallOutcome::replied) {
    uint32_t left = call.data_length;
    for (const rdma::Sge& piece : call.in.pieces) {
      uint32_t n = std::min(left, piece.length);
      if (n == 0) continue;
      left -= n;
      if (auto ok = piece.region->make_visible(piece.offset, n); !ok) {
        call.outcome = rpc::CallOutcome::bad_reply;
        call.error = ok.error().in("payload was placed but cannot be made visible");
        fail(call.error);
        break;
      }
    }
  }
  slot.call = nullptr;  // this xid is answered: a second reply to it is an unknown one
  call.complete(call);
  release(slot);
  pump();
  driver_.at_batch_end(*this);
}

// Receives come back before the credit does: a call never goes out without one for its reply.
void Endpoint::release(CallSlot& slot) {
  slot.call = nullptr;
  slot.call_buffer.reset();
  slot.reply_buffer.reset();
  if (Receive* receive = std::exchange(slot.held, nullptr)) repost(*receive);
  free_slots_[(free_at_ + free_count_) % free_slots_.size()] = slot.index;
  free_count_++;
  credits_.give_back();
  if (state_ == State::up && stall_timer_.armed()) loop_.cancel(stall_timer_);
}

void Endpoint::repost(Receive& receive) {
  if (state_ != State::up) return;
  rdma::ReceiveRequest request{receive.id(), arena_->sge(receive.offset, receive_bytes_)};
  if (auto ok = qp_->post_receive({&request, 1}); !ok) fail_softly(ok.error());
}

uint32_t Endpoint::reverse_bytes_max() const {
  return std::min({send_inline_bytes_, receive_inline_bytes_, 4096u}) - header_bytes_min;
}

const rpc::TransportStats& Endpoint::stats() const {
  stats_.idle_time_s = credits_.used() ? 0 : (loop_.now_ns() - active_ns_) / 1'000'000'000;
  return stats_;
}

std::string Endpoint::describe() const {
  return base::text("rdma %s %s inline %u/%u credits %u", path_.c_str(), params_.remote.text().c_str(),
                    send_inline_bytes_, receive_inline_bytes_, credits_.granted());
}

}  // namespace nfsrdma::rpcrdma
