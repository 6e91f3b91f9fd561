// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "io/loop.hpp"
#include "nfsrdma/loop.hpp"

namespace nfsrdma::client {

// The public face of one IoThread.
class LoopHandle final : public Loop {
 public:
  LoopHandle(io::IoLoop& loop, uint32_t index);
  ~LoopHandle() override;
  io::IoLoop& io() { return loop_; }
  // Any other thread: no callback of watch() or post_after() comes after it returned; their captures are gone.
  void end();

  uint32_t index() const override { return index_; }
  void post(Callback<void()> f) override { loop_.post(std::move(f)); }
  void post_after(uint32_t delay_ms, Callback<void()> f) override;
  Result<void> watch(int fd, uint32_t epoll_events, Callback<void(uint32_t)> on_ready) override;
  void unwatch(int fd) override;

 private:
  struct Watch final : io::FdHandler {
    Callback<void(uint32_t)> on_ready_;
    void on_ready(uint32_t events) override { on_ready_(events); }
  };
  // The timer's own storage goes with its firing.
  struct Later : base::ListNode<> {
    Callback<void()> f;
    io::Timer timer;
  };
  void end_here();

  io::IoLoop& loop_;
  uint32_t index_;
  // Loop thread.
  std::map<int, std::unique_ptr<Watch>> watches_;
  base::IntrusiveList<Later> later_;
  bool ended_ = false;
};

}  // namespace nfsrdma::client
