// SPDX-License-Identifier: Apache-2.0
#include "client/loop_handle.hpp"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

namespace nfsrdma {
namespace {

// From the loop that turns on this thread to its public face.
std::mutex registry_mutex;
std::unordered_map<io::IoLoop*, Loop*>& registry() {
  static std::unordered_map<io::IoLoop*, Loop*> loops;
  return loops;
}

}  // namespace

Loop* Loop::current() {
  io::IoLoop* here = io::IoLoop::current();
  if (!here) return nullptr;
  std::lock_guard lock(registry_mutex);
  auto at = registry().find(here);
  return at == registry().end() ? nullptr : at->second;
}

namespace client {

LoopHandle::LoopHandle(io::IoLoop& loop, uint32_t index) : loop_(loop), index_(index) {
  std::lock_guard lock(registry_mutex);
  registry()[&loop_] = this;
}

LoopHandle::~LoopHandle() {
  std::lock_guard lock(registry_mutex);
  registry().erase(&loop_);
}

void LoopHandle::post_after(uint32_t delay_ms, Callback<void()> f) {
  auto* later = new Later;
  later->f = std::move(f);
  later->timer.set([later] {
    std::unique_ptr<Later> owned(later);
    owned->unlink();
    owned->f();
  });
  loop_.post([this, later, delay_ms] {
    if (ended_) return delete later;
    later_.push_back(*later);
    loop_.arm(later->timer, loop_.now_ns() + base::ms(delay_ms));
  });
}

void LoopHandle::end() {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  loop_.post([&] {
    end_here();
    std::lock_guard lock(mutex);
    done = true;
    ended.notify_one();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return done; });
}

void LoopHandle::end_here() {
  ended_ = true;
  for (auto& [fd, watch] : watches_) loop_.unwatch(fd, *watch);
  watches_.clear();
  while (Later* later = later_.pop_front()) delete later;
}

Result<void> LoopHandle::watch(int fd, uint32_t epoll_events, Callback<void(uint32_t)> on_ready) {
  if (ended_) return Error(ESHUTDOWN, ErrorOrigin::usage, "the mount was shut down");
  auto watch = std::make_unique<Watch>();
  watch->on_ready_ = std::move(on_ready);
  auto watched = loop_.watch(fd, epoll_events, *watch);
  if (watched) watches_[fd] = std::move(watch);
  return watched;
}

void LoopHandle::unwatch(int fd) {
  auto at = watches_.find(fd);
  if (at == watches_.end()) return;
  loop_.unwatch(fd, *at->second);
  // Its callback may be the one that is running: freed once this turn is over.
  std::shared_ptr<Watch> gone(std::move(at->second));
  watches_.erase(at);
  loop_.post([gone] {});
}

}  // namespace client
}  // namespace nfsrdma
