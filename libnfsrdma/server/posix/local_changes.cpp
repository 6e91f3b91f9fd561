// SPDX-License-Identifier: Apache-2.0
#include "server/posix/local_changes.hpp"

#include <sys/epoll.h>
#include <sys/inotify.h>

#include <array>
#include <cstdio>
#include <vector>

#include "base/log.hpp"
#include "server/posix/object.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t events_wanted = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_CLOSE_WRITE;

}  // namespace

LocalChanges::LocalChanges(std::function<void(const ObjectRef&)> changed)
    : changed_(std::move(changed)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

LocalChanges::~LocalChanges() = default;

void LocalChanges::start(io::IoLoop& loop) {
  loop_ = &loop;
  if (auto watched = loop.watch(inotify_.get(), EPOLLIN, *this); !watched) {
    base::log(base::LogLevel::warn, "server", "local changes will not be noticed: %s", watched.error().text().c_str());
  }
}

void LocalChanges::stop() {
  if (loop_) loop_->unwatch(inotify_.get(), *this);
  loop_ = nullptr;
}

bool LocalChanges::begin(const ObjectRef& object) {
  std::lock_guard lock(mutex_);
  Watched& w = by_object_[object.get()];
  if (w.users++ > 0) return true;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", posix(object).path_fd.get());
  w.watch = inotify_add_watch(inotify_.get(), path, events_wanted);
  if (w.watch < 0) {
    // The user's limit of watches: no delegation then.
    by_object_.erase(object.get());
    return false;
  }
  w.object = object;
  by_watch_[w.watch] = object.get();
  return true;
}

void LocalChanges::end(const ObjectRef& object) {
  std::lock_guard lock(mutex_);
  auto it = by_object_.find(object.get());
  if (it == by_object_.end() || --it->second.users > 0) return;
  inotify_rm_watch(inotify_.get(), it->second.watch);
  by_watch_.erase(it->second.watch);
  by_object_.erase(it);
}

void LocalChanges::on_ready(uint32_t) {
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (ssize_t n; (n = read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
    for (size_t at = 0; at + sizeof(inotify_event) <= static_cast<size_t>(n);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof *event + event->len;
      if (event->mask & IN_Q_OVERFLOW) {
        // Some changes were not told: everything may have changed.
        std::vector<int> all;
        {
          std::lock_guard lock(mutex_);
          for (const auto& [watch, object] : by_watch_) all.push_back(watch);
        }
        for (int watch : all) changed_at(watch);
      } else if (!(event->mask & IN_IGNORED)) {
        changed_at(event->wd);
      }
    }
  }
}

void LocalChanges::changed_at(int watch) {
  ObjectRef object;
  {
    std::lock_guard lock(mutex_);
    auto it = by_watch_.find(watch);
    if (it == by_watch_.end()) return;
    object = by_object_.find(it->second)->second.object;
  }
  changed_(object);
}

}  // namespace nfsrdma::server
