// SPDX-License-Identifier: Apache-2.0
// The iWARP completion queue: one epoll descriptor, the sockets of its queue pairs and listeners, their
// timers, and the completions. All progress happens inside poll(); there is no thread.
#pragma once

#include <mutex>
#include <vector>

#include "base/intrusive_list.hpp"
#include "rdma/provider.hpp"
#include "rdma/ring.hpp"

namespace nfsrdma::rdma::iwarp {

class IwarpCompletionQueue;

struct ReadyTag;
struct EventTag;

// A socket with what stands behind it. Destroyed only by the loop thread.
class Source : public base::ListNode<ReadyTag>, public base::ListNode<EventTag> {
 public:
  explicit Source(IwarpCompletionQueue& cq) : cq_(cq) {}
  // epoll reported these events: note them, do nothing else.
  virtual void on_socket(uint32_t events) = 0;
  // Moves bytes. True: there is more to do without waiting for the socket. Under the queue's mutex.
  virtual bool progress(TimeNs now_ns) = 0;
  virtual void on_deadline(TimeNs now_ns) = 0;  // under the queue's mutex
  virtual void deliver() = 0;                   // calls the consumer's handler; without the mutex

 protected:
  virtual ~Source();
  IwarpCompletionQueue& cq_;

 private:
  friend class IwarpCompletionQueue;
  TimeNs deadline_ = base::never_ns;
  bool deadline_relative_ = false;  // deadline_ counts from the next poll()
};

class IwarpCompletionQueue final : public CompletionQueue {
 public:
  static Result<std::unique_ptr<IwarpCompletionQueue>> create(uint32_t entries);
  ~IwarpCompletionQueue() override;
  size_t poll(TimeNs now_ns, std::span<Completion> out) override;
  bool arm() override;
  bool moved() const override { return moved_; }
  int fd() const override { return epoll_fd_; }
  TimeNs deadline_ns() const override { return next_deadline_; }
  ProviderCounters counters() const override { return counters_; }

  // Loop thread only.
  void note_movement() { moved_ = true; }
  Result<void> watch(int socket, Source& source);  // edge-triggered, in and out
  void unwatch(int socket);
  void mark_ready(Source& source);                  // progress() shall run
  void mark_event(Source& source);                  // deliver() shall run
  void set_timer(Source& source, TimeNs delay_ns);  // from the next poll() on; never_ns stops it
  void push(const void* owner, const Completion& completion) { entries_.push({owner, completion}); }
  void forget(const void* owner);
  void reserve(size_t more) { entries_.reserve(entries_.size() + more); }
  ProviderCounters& count() { return counters_; }
  // Held while bytes of registered memory are touched, so that a revocation elsewhere can wait for it.
  std::mutex& touching() { return touching_; }

 private:
  friend class Source;
  struct Entry {
    const void* owner = nullptr;
    Completion completion;
  };
  explicit IwarpCompletionQueue(int epoll_fd, uint32_t entries) : epoll_fd_(epoll_fd), entries_(entries) {}
  void collect_events();
  void run_ready(TimeNs now_ns);
  void run_timers(TimeNs now_ns);
  void deliver_events();
  void find_next_deadline();
  void drop(Source& source);

  int epoll_fd_;
  uint32_t polls_ = 0;
  bool moved_ = false;
  bool quiet_ = false;  // the last look at the descriptor found nothing
  std::mutex touching_;
  Ring<Entry> entries_;
  base::IntrusiveList<Source, ReadyTag> ready_;
  base::IntrusiveList<Source, EventTag> events_;
  std::vector<Source*> timed_;
  TimeNs next_deadline_ = base::never_ns;
  ProviderCounters counters_;
};

}  // namespace nfsrdma::rdma::iwarp
