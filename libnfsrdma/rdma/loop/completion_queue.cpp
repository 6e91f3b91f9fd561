// SPDX-License-Identifier: Apache-2.0
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "rdma/loop/loop.hpp"

namespace nfsrdma::rdma::loop {

LoopCompletionQueue::LoopCompletionQueue(std::shared_ptr<Fabric> fabric, uint32_t entries)
    : fabric_(std::move(fabric)), entries_(entries), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

LoopCompletionQueue::~LoopCompletionQueue() { close(event_fd_); }

size_t LoopCompletionQueue::poll(TimeNs now_ns, std::span<Completion> out) {
  std::unique_lock lock(fabric_->mutex);
  if (armed_) {
    armed_ = false;
    uint64_t count;
    [[maybe_unused]] ssize_t n = read(event_fd_, &count, sizeof count);
  }
  expire(now_ns);
  while (!events_.empty()) {
    Event event = std::move(events_.front());
    events_.pop();
    lock.unlock();
    if (event.listener) event.listener->deliver(event);
    if (event.pair) event.pair->deliver(event);
    event.request.reset();  // one that nobody took rejects itself, which needs the mutex
    lock.lock();
  }
  size_t n = 0;
  for (; n < out.size() && !entries_.empty(); n++) {
    out[n] = entries_.front().completion;
    entries_.pop();
  }
  return n;
}

bool LoopCompletionQueue::arm() {
  std::lock_guard lock(fabric_->mutex);
  if (!entries_.empty() || !events_.empty()) return false;
  armed_ = true;
  return true;
}

TimeNs LoopCompletionQueue::deadline_ns() const {
  std::lock_guard lock(fabric_->mutex);
  TimeNs earliest = base::never_ns;
  for (const LoopQueuePair* pair : waiting_) {
    // A time-out counts from the first poll() that sees it.
    earliest = std::min(earliest, pair->deadline_ns() == base::never_ns ? 0 : pair->deadline_ns());
  }
  return earliest;
}

ProviderCounters LoopCompletionQueue::counters() const {
  std::lock_guard lock(fabric_->mutex);
  return counters_;
}

void LoopCompletionQueue::expire(TimeNs now_ns) {
  for (size_t i = 0; i < waiting_.size();) {
    if (waiting_[i]->expired(now_ns))
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    else
      i++;
  }
}

void LoopCompletionQueue::push(LoopQueuePair* owner, const Completion& completion) {
  entries_.push({owner, completion});
  wake();
}

void LoopCompletionQueue::push(Event event) {
  events_.push(std::move(event));
  wake();
}

void LoopCompletionQueue::forget(const LoopQueuePair* owner) {
  entries_.remove_if([&](const Entry& entry) { return entry.owner == owner; });
  events_.remove_if([&](const Event& event) { return event.pair == owner; });
}

void LoopCompletionQueue::forget(const LoopListener* owner) {
  // The requests reject themselves when they are destroyed, which needs the mutex: only unlink them here.
  for (size_t i = 0; i < events_.size(); i++)
    if (events_[i].listener == owner) events_[i].listener = nullptr;
}

void LoopCompletionQueue::watch(LoopQueuePair& pair) {
  waiting_.push_back(&pair);
  wake();
}

void LoopCompletionQueue::unwatch(LoopQueuePair& pair) { std::erase(waiting_, &pair); }

void LoopCompletionQueue::wake() {
  if (!armed_) return;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(event_fd_, &one, sizeof one);
}

}  // namespace nfsrdma::rdma::loop
