// SPDX-License-Identifier: Apache-2.0
#include "io/loop.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/log.hpp"
#include "base/no_thread.hpp"

namespace nfsrdma::io {
namespace {

thread_local IoLoop* current_loop = nullptr;

struct CurrentLoop {
  IoLoop* before = current_loop;
  explicit CurrentLoop(IoLoop* loop) { current_loop = loop; }
  ~CurrentLoop() { current_loop = before; }
};

}  // namespace

Timer::~Timer() {
  if (armed()) loop_->cancel(*this);
}

IoLoop::IoLoop(base::Clock& clock, const LoopParams& params)
    : clock_(clock), name_(params.name), spin_ns_(base::us(params.spin_us)) {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ >= 0) event_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd_ < 0) unusable_ = errno;
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = nullptr;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, event_fd_, &e);
}

IoLoop::~IoLoop() {
  // What was posted is never dropped silently: callables own buffers and promises.
  CurrentLoop mark(this);
  while (run_posted() || run_ready()) {
  }
  for (Timer* timer : heap_) timer->index_ = Timer::unarmed;
  close(event_fd_);
  close(epoll_fd_);
}

IoLoop* IoLoop::current() { return current_loop; }

void IoLoop::post(Callback<void()> f) {
  {
    std::lock_guard lock(post_mutex_);
    posted_.push_back(std::move(f));
    posted_any_.store(true, std::memory_order_seq_cst);
  }
  if (sleeping_.load(std::memory_order_seq_cst)) {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t n = write(event_fd_, &one, sizeof one);
  }
}

void IoLoop::defer(std::coroutine_handle<> h) { ready_.push_back(h); }

void IoLoop::stop() {
  stop_.store(true, std::memory_order_release);
  post([] {});
}

bool IoLoop::run_posted() {
  if (!posted_any_.load(std::memory_order_acquire)) return false;
  {
    std::lock_guard lock(post_mutex_);
    executing_.swap(posted_);
    posted_any_.store(false, std::memory_order_release);
  }
  for (Callback<void()>& f : executing_) f();
  executing_.clear();
  return true;
}

bool IoLoop::run_ready() {
  if (ready_.empty()) return false;
  running_.swap(ready_);
  for (std::coroutine_handle<> h : running_) h.resume();
  running_.clear();
  return true;
}

void IoLoop::heap_place(size_t index, Timer* timer) {
  heap_[index] = timer;
  timer->index_ = index;
}

void IoLoop::heap_up(size_t index) {
  Timer* timer = heap_[index];
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (heap_[parent]->deadline_ns_ <= timer->deadline_ns_) break;
    heap_place(index, heap_[parent]);
    index = parent;
  }
  heap_place(index, timer);
}

void IoLoop::heap_down(size_t index) {
  Timer* timer = heap_[index];
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->deadline_ns_ < heap_[child]->deadline_ns_) child++;
    if (timer->deadline_ns_ <= heap_[child]->deadline_ns_) break;
    heap_place(index, heap_[child]);
    index = child;
  }
  heap_place(index, timer);
}

void IoLoop::arm(Timer& timer, TimeNs deadline_ns) {
  if (timer.armed()) timer.loop_->cancel(timer);
  timer.loop_ = this;
  timer.deadline_ns_ = deadline_ns;
  heap_.push_back(&timer);
  heap_up(heap_.size() - 1);
}

void IoLoop::cancel(Timer& timer) {
  if (!timer.armed()) return;
  size_t index = timer.index_;
  Timer* last = heap_.back();
  heap_.pop_back();
  timer.index_ = Timer::unarmed;
  if (last == &timer) return;
  heap_place(index, last);
  heap_up(index);
  heap_down(last->index_);
}

bool IoLoop::run_timers(TimeNs now) {
  bool any = false;
  while (!heap_.empty() && heap_.front()->deadline_ns_ <= now) {
    Timer* timer = heap_.front();
    cancel(*timer);
    timer->fire_();  // may re-arm or destroy the timer: not touched afterwards
    any = true;
  }
  return any;
}

void IoLoop::add(Pollable& source) {
  sources_.push_back(&source);
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = nullptr;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, source.fd(), &e);
}

void IoLoop::remove(Pollable& source) {
  std::erase(sources_, &source);
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, source.fd(), nullptr);
}

Result<void> IoLoop::watch(int fd, uint32_t epoll_events, FdHandler& handler) {
  epoll_event e{};
  e.events = epoll_events;
  e.data.ptr = &handler;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &e) != 0) {
    int code = errno;
    return Error(code, ErrorOrigin::local, base::text("watching descriptor %d: errno %d", fd, code));
  }
  watched_++;
  return {};
}

void IoLoop::unwatch(int fd, FdHandler& handler) {
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr) == 0) watched_--;
  // It may be among those that are being told at this moment.
  for (size_t i = 0; i < dispatching_count_; i++)
    if (dispatching_[i].data.ptr == &handler) dispatching_[i].data.ptr = nullptr;
}

bool IoLoop::run_sources(TimeNs now) {
  bool any = false;
  for (size_t i = 0; i < sources_.size(); i++) any |= sources_[i]->poll(now);
  return any;
}

bool IoLoop::run_epoll(int timeout_ms) {
  std::array<epoll_event, 32> events;
  int n = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), timeout_ms);
  bool any = false;
  dispatching_ = events.data();
  dispatching_count_ = static_cast<size_t>(std::max(n, 0));
  for (int i = 0; i < n; i++) {
    auto* handler = static_cast<FdHandler*>(events[static_cast<size_t>(i)].data.ptr);
    if (!handler) continue;  // a source or the event descriptor: seen by the next poll
    handler->on_ready(events[static_cast<size_t>(i)].events);
    any = true;
  }
  dispatching_count_ = 0;
  return any;
}

TimeNs IoLoop::next_deadline_ns() const {
  TimeNs next = heap_.empty() ? base::never_ns : heap_.front()->deadline_ns_;
  for (Pollable* source : sources_) next = std::min(next, source->deadline_ns());
  return next;
}

void IoLoop::sleep(TimeNs now, TimeNs until) {
  sleeping_.store(true, std::memory_order_seq_cst);
  bool quiet = !posted_any_.load(std::memory_order_seq_cst);
  for (Pollable* source : sources_) quiet = source->arm() && quiet;
  if (quiet) {
    until = std::min(until, next_deadline_ns());
    int timeout_ms = -1;
    if (until != base::never_ns)
      timeout_ms = until <= now ? 0 : static_cast<int>(std::min<uint64_t>((until - now + 999'999) / 1'000'000, 1u << 30));
    run_epoll(timeout_ms);
  }
  sleeping_.store(false, std::memory_order_seq_cst);
  uint64_t drained;
  while (read(event_fd_, &drained, sizeof drained) > 0) {
  }
}

bool IoLoop::turn(TimeNs sleep_until_ns) {
  CurrentLoop mark(this);
  TimeNs now = clock_.now_ns();
  bool any = run_posted();
  any |= run_sources(now);
  any |= run_timers(now);
  any |= run_ready();
  if (any) {
    last_work_ns_ = now;
    if (watched_) run_epoll(0);
    return true;
  }
  if (now < last_work_ns_ + spin_ns_) return watched_ ? run_epoll(0) : false;
  if (sleep_until_ns > now) sleep(now, sleep_until_ns);
  return false;
}

void IoLoop::run() {
  while (!stopped()) turn(base::never_ns);
  CurrentLoop mark(this);
  while (run_posted() || run_ready()) {
  }
}

IoThread::IoThread(base::Clock& clock, const LoopParams& params) : loop_(clock, params) {
  if (loop_.unusable()) return;  // nothing could wake the thread, and so nothing could end it
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), loop_.name().substr(0, 15).c_str());
    loop_.run();
  });
}

Result<std::unique_ptr<IoThread>> IoThread::start(base::Clock& clock, const LoopParams& params) try {
  auto thread = std::make_unique<IoThread>(clock, params);
  if (int why = thread->loop_.unusable())
    return Error(why, ErrorOrigin::local, base::text("cannot make the descriptors of an io thread: %s", strerror(why)));
  return thread;
} catch (const std::system_error& failed) {
  return base::no_thread(failed);
}

IoThread::~IoThread() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace nfsrdma::io
