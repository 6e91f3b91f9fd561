// SPDX-License-Identifier: Apache-2.0
#include "rdma/hook/hooked.hpp"

#include <errno.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace nfsrdma::rdma::hook {

size_t HookedCompletionQueue::poll(TimeNs now_ns, std::span<Completion> out) {
  std::array<Completion, 64> came;
  last_poll_ns_ = now_ns;
  // Room for what comes is made by handing out first: nothing is polled that nobody takes.
  size_t n = hand_out(now_ns, out);
  size_t wanted = std::min(came.size(), out.size() - n);
  size_t got = inner_->poll(now_ns, std::span(came).first(wanted));
  for (size_t i = 0; i < got; i++) take(came[i], now_ns);
  return n + hand_out(now_ns, out.subspan(n));
}

bool HookedCompletionQueue::arm() {
  for (const Held& held : held_)
    if (held.due <= last_poll_ns_) return false;
  return inner_->arm();
}

void HookedCompletionQueue::take(Completion completion, TimeNs now_ns) {
  Record& record = *reinterpret_cast<Record*>(completion.id);
  HookedQueuePair& owner = *record.owner;
  completion.id = record.id;
  TimeNs due = hook_->on_completion(owner, record, completion, now_ns);
  bool wanted = record.signaled || completion.status != CompletionStatus::success;
  owner.release(record);
  if (wanted) held_.push_back({&owner, due, completion});
}

// What is due, in order per queue pair: behind one that waits, the later ones of its pair wait too.
size_t HookedCompletionQueue::hand_out(TimeNs now_ns, std::span<Completion> out) {
  size_t n = 0;
  size_t kept = 0;
  for (size_t i = 0; i < held_.size(); i++) {
    bool blocked = n == out.size() || held_[i].due > now_ns;
    for (size_t k = 0; k < kept && !blocked; k++) blocked = held_[k].owner == held_[i].owner;
    if (blocked)
      held_[kept++] = held_[i];
    else
      out[n++] = held_[i].completion;
  }
  held_.resize(kept);
  return n;
}

TimeNs HookedCompletionQueue::deadline_ns() const {
  TimeNs earliest = inner_->deadline_ns();
  for (const Held& held : held_) earliest = std::min(earliest, held.due);
  return earliest;
}

void HookedCompletionQueue::forget(const HookedQueuePair& owner) {
  std::erase_if(held_, [&](const Held& held) { return held.owner == &owner; });
}

HookedQueuePair::HookedQueuePair(HookedCompletionQueue& cq, const QueuePairParams& params,
                                 ConnectionHandler& handler)
    : cq_(cq), handler_(handler), params_(params) {
  static std::atomic<uint64_t> numbers{0};
  number_ = ++numbers;
  sends_.reserve(params.send_depth);
  receives_.reserve(params.receive_depth);
}

HookedQueuePair::~HookedQueuePair() {
  cq_.hook().on_event(*this, "destroyed", "");
  cq_.forget(*this);
}

Record& HookedQueuePair::record(uint64_t id, Opcode op, bool signaled) {
  if (free_.empty()) {
    records_.push_back(std::make_unique<Record>());
    free_.reserve(records_.capacity());
    free_.push_back(records_.back().get());
  }
  Record& r = *free_.back();
  free_.pop_back();
  r = Record{this, id, op, signaled, {}};
  return r;
}

Result<void> HookedQueuePair::post_send(std::span<const SendRequest> requests) {
  sends_.assign(requests.begin(), requests.end());
  for (SendRequest& request : sends_) {
    cq_.hook().on_send(*this, request);
    request.id = reinterpret_cast<uint64_t>(&record(request.id, request.op, request.signaled));
    request.signaled = true;
  }
  auto posted = inner_->post_send(sends_);
  if (!posted)
    for (SendRequest& request : sends_) release(*reinterpret_cast<Record*>(request.id));
  return posted;
}

Result<void> HookedQueuePair::post_receive(std::span<const ReceiveRequest> requests) {
  receives_.assign(requests.begin(), requests.end());
  for (ReceiveRequest& request : receives_) {
    cq_.hook().on_receive(*this, request);
    Record& r = record(request.id, Opcode::receive, true);
    r.sge = request.sge;
    request.id = reinterpret_cast<uint64_t>(&r);
  }
  auto posted = inner_->post_receive(receives_);
  if (!posted)
    for (ReceiveRequest& request : receives_) release(*reinterpret_cast<Record*>(request.id));
  return posted;
}

Result<Exposure> HookedQueuePair::expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) {
  auto exposure = inner_->expose(region, offset, length, purpose);
  if (exposure) cq_.hook().on_expose(*this, *exposure, purpose);
  return exposure;
}

bool HookedQueuePair::fence(const Exposure& exposure, uint64_t id) {
  cq_.hook().on_fence(*this, exposure);
  Record& r = record(id, Opcode::fence, true);
  if (!inner_->fence(exposure, reinterpret_cast<uint64_t>(&r))) return false;
  release(r);
  return true;
}

void HookedQueuePair::on_established(const ConnectionInfo& info) {
  cq_.hook().on_event(*this, "established", info.path);
  handler_.on_established(info);
}

void HookedQueuePair::on_failed(const Error& why) {
  cq_.hook().on_event(*this, "failed", why.text());
  handler_.on_failed(why);
}

void HookedQueuePair::on_disconnected(const Error& why) {
  cq_.hook().on_event(*this, "disconnected", why.text());
  handler_.on_disconnected(why);
}

}  // namespace nfsrdma::rdma::hook
