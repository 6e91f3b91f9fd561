// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/completion_queue.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

constexpr int events_at_once = 64;
// While some sockets are known to have work, the others are asked about every so many polls.
constexpr uint32_t polls_between_collects = 8;

}  // namespace

Source::~Source() { cq_.drop(*this); }

Result<std::unique_ptr<IwarpCompletionQueue>> IwarpCompletionQueue::create(uint32_t entries) {
  int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    return Error(error, ErrorOrigin::local, base::text("epoll_create1: %s", strerror(error)));
  }
  return std::unique_ptr<IwarpCompletionQueue>(new IwarpCompletionQueue(fd, entries));
}

IwarpCompletionQueue::~IwarpCompletionQueue() { close(epoll_fd_); }

size_t IwarpCompletionQueue::poll(TimeNs now_ns, std::span<Completion> out) {
  moved_ = false;
  deliver_events();
  // Who does not take completions as fast as they come gets no more bytes either.
  if (entries_.size() < out.size()) {
    if (ready_.empty() || ++polls_ % polls_between_collects == 0) collect_events();
    if (!ready_.empty()) run_ready(now_ns);
    if (next_deadline_ != base::never_ns) run_timers(now_ns);
    deliver_events();
  }
  size_t n = std::min(out.size(), entries_.size());
  for (size_t i = 0; i < n; i++, entries_.pop()) out[i] = entries_.front().completion;
  return n;
}

bool IwarpCompletionQueue::arm() {
  if (!entries_.empty() || !ready_.empty() || !events_.empty()) return false;
  // An edge that comes after a fruitless look makes the descriptor readable, and whoever sleeps on it wakes.
  if (quiet_) return true;
  collect_events();  // takes edges that a read has overtaken out of the descriptor, so that it sleeps well
  return ready_.empty();
}

void IwarpCompletionQueue::collect_events() {
  epoll_event events[events_at_once];
  int n = epoll_wait(epoll_fd_, events, events_at_once, 0);
  counters_.syscalls++;
  quiet_ = n == 0;
  for (int i = 0; i < n; i++) {
    Source& source = *static_cast<Source*>(events[i].data.ptr);
    source.on_socket(events[i].events);
    mark_ready(source);
  }
}

void IwarpCompletionQueue::run_ready(TimeNs now_ns) {
  std::lock_guard lock(touching_);
  quiet_ = false;
  base::IntrusiveList<Source, ReadyTag> turn;
  turn.splice_back(ready_);
  while (Source* source = turn.pop_front())
    if (source->progress(now_ns)) mark_ready(*source);
}

void IwarpCompletionQueue::run_timers(TimeNs now_ns) {
  for (Source* source : timed_) {
    if (!source->deadline_relative_) continue;
    source->deadline_relative_ = false;
    source->deadline_ += now_ns;
  }
  find_next_deadline();
  if (now_ns < next_deadline_) return;
  std::lock_guard lock(touching_);
  for (size_t i = 0; i < timed_.size();) {
    Source* source = timed_[i];
    if (source->deadline_relative_ || now_ns < source->deadline_) {
      i++;
      continue;
    }
    source->deadline_ = base::never_ns;
    timed_[i] = timed_.back();
    timed_.pop_back();
    source->on_deadline(now_ns);  // may set a new one, which goes to the end
  }
  find_next_deadline();
}

void IwarpCompletionQueue::find_next_deadline() {
  next_deadline_ = base::never_ns;
  for (const Source* source : timed_)
    next_deadline_ = std::min(next_deadline_, source->deadline_relative_ ? 0 : source->deadline_);
}

void IwarpCompletionQueue::set_timer(Source& source, TimeNs delay_ns) {
  if (source.deadline_ == base::never_ns && delay_ns != base::never_ns) timed_.push_back(&source);
  if (source.deadline_ != base::never_ns && delay_ns == base::never_ns) std::erase(timed_, &source);
  source.deadline_ = delay_ns;
  source.deadline_relative_ = delay_ns != base::never_ns;
  find_next_deadline();
}

void IwarpCompletionQueue::deliver_events() {
  while (Source* source = events_.pop_front()) {
    moved_ = true;
    source->deliver();
  }
}

Result<void> IwarpCompletionQueue::watch(int socket, Source& source) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &source;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, socket, &event) == 0) return {};
  int error = errno;
  return Error(error, ErrorOrigin::local, base::text("cannot watch a socket: %s", strerror(error)));
}

void IwarpCompletionQueue::unwatch(int socket) { epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, socket, nullptr); }

void IwarpCompletionQueue::mark_ready(Source& source) {
  if (!static_cast<base::ListNode<ReadyTag>&>(source).linked()) ready_.push_back(source);
}

void IwarpCompletionQueue::mark_event(Source& source) {
  if (!static_cast<base::ListNode<EventTag>&>(source).linked()) events_.push_back(source);
}

void IwarpCompletionQueue::forget(const void* owner) {
  entries_.remove_if([&](const Entry& entry) { return entry.owner == owner; });
}

void IwarpCompletionQueue::drop(Source& source) {
  static_cast<base::ListNode<ReadyTag>&>(source).unlink();
  static_cast<base::ListNode<EventTag>&>(source).unlink();
  set_timer(source, base::never_ns);
}

}  // namespace nfsrdma::rdma::iwarp
