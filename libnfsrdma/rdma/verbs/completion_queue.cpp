// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/completion_queue.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "rdma/verbs/work_id.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

// While the loop spins, connection events and descriptors are looked at this often; the hardware queues each time.
constexpr TimeNs gather_every_ns = base::us(100);
constexpr int poll_batch = 32;

}  // namespace

Result<std::shared_ptr<HardwareQueue>> HardwareQueue::create(VerbsDevice& device, uint32_t entries) {
  std::shared_ptr<HardwareQueue> queue(new HardwareQueue);
  queue->context = device.context();
  queue->channel_ = ibv_create_comp_channel(device.context());
  int flags = queue->channel_ ? fcntl(queue->channel_->fd, F_GETFL) : -1;
  if (flags >= 0 && fcntl(queue->channel_->fd, F_SETFL, flags | O_NONBLOCK) == 0)
    queue->cq = ibv_create_cq(device.context(), static_cast<int>(entries), queue.get(), queue->channel_, 0);
  if (!queue->cq)
    return Error(errno, ErrorOrigin::local,
                 base::text("%s gives no completion queue of %u entries: %s", device.traits().name.c_str(), entries,
                            strerror(errno)));
  queue->entries = static_cast<uint32_t>(queue->cq->cqe);
  return queue;
}

HardwareQueue::~HardwareQueue() {
  if (cq) ibv_destroy_cq(cq);
  if (channel_) ibv_destroy_comp_channel(channel_);
}

void HardwareQueue::on_readable() {
  ibv_cq* which = nullptr;
  void* context_value = nullptr;
  while (ibv_get_cq_event(channel_, &which, &context_value) == 0) {
    ibv_ack_cq_events(which, 1);
    armed_ = false;
  }
}

bool HardwareQueue::arm() {
  if (!armed_) armed_ = ibv_req_notify_cq(cq, 0) == 0;
  return armed_;
}

Result<std::unique_ptr<CompletionQueue>> VerbsCompletionQueue::create(uint32_t entries) {
  int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::unique_ptr<VerbsCompletionQueue> made(new VerbsCompletionQueue(entries, epoll_fd, event_fd));
  made->wake_source_.queue = made.get();
  made->cm_source_.queue = made.get();
  if (epoll_fd < 0 || event_fd < 0 || !made->watch(event_fd, made->wake_source_, EPOLLIN))
    return Error(errno, ErrorOrigin::local, base::text("no descriptor for a completion queue: %s", strerror(errno)));
  return std::unique_ptr<CompletionQueue>(std::move(made));
}

VerbsCompletionQueue::~VerbsCompletionQueue() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
  if (event_fd_ >= 0) close(event_fd_);
}

bool VerbsCompletionQueue::watch(int fd, EventSource& source, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &source;
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void VerbsCompletionQueue::unwatch(int fd) { epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr); }

void VerbsCompletionQueue::wake() {
  attention_.store(true, std::memory_order_release);
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(event_fd_, &one, sizeof one);
}

void VerbsCompletionQueue::WakeSource::on_readable() {
  uint64_t count;
  [[maybe_unused]] ssize_t n = read(queue->event_fd_, &count, sizeof count);
}

Result<std::shared_ptr<CmChannel>> VerbsCompletionQueue::channel() {
  if (channel_) return channel_;
  auto opened = CmChannel::open();
  if (!opened) return opened;
  if (!watch((*opened)->fd(), cm_source_, EPOLLIN))
    return Error(errno, ErrorOrigin::local, base::text("connection manager: %s", strerror(errno)));
  channel_ = *opened;
  return channel_;
}

Result<Seat> VerbsCompletionQueue::seat(VerbsQueuePair& pair, VerbsDevice& device, uint32_t completions_max) {
  Seat seat;
  seat.reserved = completions_max;
  for (auto& queue : hardware_)
    if (queue->context == device.context() && queue->entries - queue->reserved >= completions_max)
      seat.queue = queue;
  if (!seat.queue) {
    uint32_t entries = std::max(completions_max, std::min(entries_, device.traits().completions_max));
    auto made = HardwareQueue::create(device, entries);
    if (!made) return std::move(made).error();
    if (!watch((*made)->fd(), **made, EPOLLIN))
      return Error(errno, ErrorOrigin::local, base::text("completion channel: %s", strerror(errno)));
    seat.queue = *made;
    hardware_.push_back(seat.queue);
  }
  size_t slot = 0;
  while (slot < slots_.size() && slots_[slot].pair) slot++;
  if (slot > WorkId::slot_max) return Error(ENOBUFS, ErrorOrigin::local, "too many queue pairs on one loop");
  if (slot == slots_.size()) slots_.emplace_back();
  slots_[slot].pair = &pair;
  seat.slot = static_cast<uint16_t>(slot);
  seat.generation = ++slots_[slot].generation;
  seat.queue->reserved += completions_max;
  return seat;
}

void VerbsCompletionQueue::unseat(const Seat& seat, bool keep_reserved) {
  if (!keep_reserved) seat.queue->reserved -= seat.reserved;
  slots_[seat.slot].pair = nullptr;
}

void VerbsCompletionQueue::call_soon(VerbsQueuePair& pair) {
  if (std::find(soon_.begin(), soon_.end(), &pair) == soon_.end()) soon_.push_back(&pair);
}

void VerbsCompletionQueue::forget(VerbsQueuePair& pair) {
  std::erase(soon_, &pair);
  ready_.remove_if([&](const Ready& ready) { return ready.owner == &pair; });
}

void VerbsCompletionQueue::call_at(TimeNs when_ns) { next_timer_ns_ = std::min(next_timer_ns_, when_ns); }

TimeNs VerbsCompletionQueue::deadline_ns() const { return soon_.empty() ? next_timer_ns_ : 0; }

// Looks at every descriptor once; true when something was there.
bool VerbsCompletionQueue::gather() {
  epoll_event events[16];
  int n = epoll_wait(epoll_fd_, events, 16, 0);
  for (int i = 0; i < n; i++) static_cast<EventSource*>(events[i].data.ptr)->on_readable();
  return n > 0;
}

void VerbsCompletionQueue::run_timers(TimeNs now_ns) {
  if (now_ns < next_timer_ns_) return;
  next_timer_ns_ = base::never_ns;
  for (size_t i = 0; i < slots_.size(); i++)
    if (slots_[i].pair) slots_[i].pair->on_timer(now_ns);
}

void VerbsCompletionQueue::run_steps() {
  if (attention_.exchange(false, std::memory_order_acq_rel))
    for (size_t i = 0; i < slots_.size(); i++)
      if (slots_[i].pair) call_soon(*slots_[i].pair);
  // A step may ask for another one; that waits for the next poll().
  for (size_t n = soon_.size(); n > 0 && !soon_.empty(); n--) {
    VerbsQueuePair* pair = soon_.front();
    soon_.erase(soon_.begin());
    pair->step();
  }
}

// Takes a batch; false when there was no more than that.
bool VerbsCompletionQueue::poll_hardware(HardwareQueue& queue) {
  ibv_wc batch[poll_batch];
  int got = ibv_poll_cq(queue.cq, poll_batch, batch);
  for (int i = 0; i < got; i++) {
    WorkId work(batch[i].wr_id);
    if (work.slot() >= slots_.size()) continue;
    Slot& slot = slots_[work.slot()];
    if (slot.pair && slot.generation == work.generation()) slot.pair->translate(batch[i]);
  }
  return got == poll_batch;
}

void VerbsCompletionQueue::drain(HardwareQueue& queue) {
  while (poll_hardware(queue)) {
  }
}

size_t VerbsCompletionQueue::poll(TimeNs now_ns, std::span<Completion> out) {
  if (now_ns - gathered_ns_ >= gather_every_ns) {
    gathered_ns_ = now_ns;
    gather();
  }
  if (cm_ready_) {
    cm_ready_ = false;
    channel_->dispatch();
  }
  run_timers(now_ns);
  run_steps();
  for (auto& queue : hardware_)
    while (ready_.size() < out.size() && poll_hardware(*queue)) {
    }
  size_t n = 0;
  for (; n < out.size() && !ready_.empty(); ready_.pop()) out[n++] = ready_.front().completion;
  return n;
}

bool VerbsCompletionQueue::arm() {
  bool armed = true;
  for (auto& queue : hardware_) armed &= queue->arm();
  // A completion that came before the request for an event causes none: look again now that it is asked for.
  for (auto& queue : hardware_) drain(*queue);
  bool something = gather();
  return armed && !something && ready_.empty() && soon_.empty() && !cm_ready_ &&
         !attention_.load(std::memory_order_acquire);
}

}  // namespace nfsrdma::rdma::verbs
