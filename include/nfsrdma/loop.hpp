// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nfsrdma/callback.hpp"
#include "nfsrdma/error.hpp"
#include "nfsrdma/export.hpp"

namespace nfsrdma {

// One of a mount's io threads. Calls made on it are sent, completed and answered on it, without a thread change.
class NFSRDMA_API Loop {
 public:
  virtual ~Loop() = default;
  // The loop whose thread this is, or nullptr.
  static Loop* current();
  virtual uint32_t index() const = 0;
  // Any thread: f runs on the loop, in order of posting. Whatever it captures must be freeable there.
  virtual void post(Callback<void()> f) = 0;
  // Any thread: f runs on the loop once, not before delay_ms have passed.
  virtual void post_after(uint32_t delay_ms, Callback<void()> f) = 0;
  // Loop thread (or through post): on_ready(epoll events) is called on the loop while fd is ready, level-triggered
  // unless EPOLLET is asked for. epoll_events as epoll_ctl(2), e.g. EPOLLIN | EPOLLEXCLUSIVE.
  virtual Result<void> watch(int fd, uint32_t epoll_events, Callback<void(uint32_t)> on_ready) = 0;
  // Loop thread: no call comes after it returned.
  virtual void unwatch(int fd) = 0;
};

}  // namespace nfsrdma
