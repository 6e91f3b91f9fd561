// SPDX-License-Identifier: Apache-2.0
// One loop's completions and connection events. It stands over one or more hardware queues per device, each with a
// channel of its own; an epoll descriptor joins them with the connection manager's events.
//
// All members but wake() belong to the loop thread.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <vector>

#include "rdma/ring.hpp"
#include "rdma/verbs/cm.hpp"
#include "rdma/verbs/device.hpp"

namespace nfsrdma::rdma::verbs {

class VerbsQueuePair;

// What an epoll event points to.
class EventSource {
 public:
  virtual void on_readable() = 0;

 protected:
  ~EventSource() = default;
};

// A hardware completion queue and the channel that tells of it.
class HardwareQueue final : public EventSource {
 public:
  static Result<std::shared_ptr<HardwareQueue>> create(VerbsDevice& device, uint32_t entries);
  ~HardwareQueue();
  void on_readable() override;
  // Asks for an event at the next completion; false if the device refuses (then poll again).
  bool arm();
  int fd() const { return channel_->fd; }

  ibv_context* context = nullptr;
  ibv_cq* cq = nullptr;
  uint32_t entries = 0;
  std::atomic<uint32_t> reserved{0};  // by queue pairs, so that the queue can never overrun

 private:
  HardwareQueue() = default;
  ibv_comp_channel* channel_ = nullptr;
  bool armed_ = false;
};

// A queue pair's place in a completion queue. wr_id names slot and generation, so that a completion of a queue pair
// that has gone finds nobody.
struct Seat {
  std::shared_ptr<HardwareQueue> queue;
  uint16_t slot = 0;
  uint16_t generation = 0;
  uint32_t reserved = 0;
};

class VerbsCompletionQueue final : public CompletionQueue {
 public:
  static Result<std::unique_ptr<CompletionQueue>> create(uint32_t entries);
  ~VerbsCompletionQueue() override;
  size_t poll(TimeNs now_ns, std::span<Completion> out) override;
  bool arm() override;
  int fd() const override { return epoll_fd_; }
  TimeNs deadline_ns() const override;
  ProviderCounters counters() const override { return {}; }

  // The connection manager's channel, opened by the first connect() or listen().
  Result<std::shared_ptr<CmChannel>> channel();
  Result<Seat> seat(VerbsQueuePair& pair, VerbsDevice& device, uint32_t completions_max);
  // keep_reserved: completions of the queue pair may still come, its hardware lives on for a while.
  void unseat(const Seat& seat, bool keep_reserved);
  // Takes what the hardware queue holds into the ready ring, so that a queue pair can be destroyed with no
  // completion of it left behind.
  void drain(HardwareQueue& queue);
  void push(VerbsQueuePair& owner, const Completion& completion) { ready_.push({&owner, completion}); }
  // The queue pair wants its step() called in the next poll().
  void call_soon(VerbsQueuePair& pair);
  void forget(VerbsQueuePair& pair);  // nothing of it is delivered or called any more
  void look_for_events() { cm_ready_ = channel_ != nullptr; }
  void call_at(TimeNs when_ns);  // all queue pairs' on_timer() is called then
  bool watch(int fd, EventSource& source, uint32_t events);
  void unwatch(int fd);
  void wake();  // any thread

 private:
  VerbsCompletionQueue(uint32_t entries, int epoll_fd, int event_fd)
      : entries_(entries), epoll_fd_(epoll_fd), event_fd_(event_fd) {}
  bool gather();
  void run_timers(TimeNs now_ns);
  void run_steps();
  struct Ready {
    VerbsQueuePair* owner = nullptr;
    Completion completion;
  };
  bool poll_hardware(HardwareQueue& queue);

  struct Slot {
    VerbsQueuePair* pair = nullptr;
    uint16_t generation = 0;
  };
  struct WakeSource final : EventSource {
    VerbsCompletionQueue* queue = nullptr;
    void on_readable() override;
  };
  struct CmSource final : EventSource {
    VerbsCompletionQueue* queue = nullptr;
    void on_readable() override { queue->cm_ready_ = true; }
  };

  uint32_t entries_;
  int epoll_fd_;
  int event_fd_;
  WakeSource wake_source_;
  CmSource cm_source_;
  std::shared_ptr<CmChannel> channel_;
  std::vector<std::shared_ptr<HardwareQueue>> hardware_;
  std::vector<Slot> slots_;
  std::vector<VerbsQueuePair*> soon_;
  Ring<Ready> ready_;
  TimeNs gathered_ns_ = 0;
  TimeNs next_timer_ns_ = base::never_ns;
  bool cm_ready_ = false;
  std::atomic<bool> attention_{false};
};

}  // namespace nfsrdma::rdma::verbs
