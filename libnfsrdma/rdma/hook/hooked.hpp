// SPDX-License-Identifier: Apache-2.0
// Decorators around any provider: every object is wrapped, and a Hook sees requests, completions and
// connection events of one completion queue. Regions are not wrapped.
//
// Requests travel under ids of our own, each the address of a Record, so that a completion leads back to its
// request. All are posted signaled; what the consumer posted unsignaled is swallowed when it succeeds.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "base/intrusive_list.hpp"
#include "rdma/provider.hpp"
#include "rdma/ring.hpp"

namespace nfsrdma::rdma::hook {

class HookedQueuePair;
class HookedCompletionQueue;

struct Record {
  HookedQueuePair* owner = nullptr;
  uint64_t id = 0;
  Opcode op = Opcode::send;
  bool signaled = true;
  Sge sge;  // receive: where it goes
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual void on_send(HookedQueuePair&, const SendRequest&) {}
  virtual void on_receive(HookedQueuePair&, const ReceiveRequest&) {}
  virtual void on_expose(HookedQueuePair&, const Exposure&, Purpose) {}
  virtual void on_fence(HookedQueuePair&, const Exposure&) {}
  // "established", "failed", "disconnected", "destroyed"
  virtual void on_event(HookedQueuePair&, const char* /*what*/, const std::string& /*text*/) {}
  // May change the completion (its id is the consumer's already). Returns when to hand it out; 0: now.
  virtual TimeNs on_completion(HookedQueuePair&, const Record&, Completion&, TimeNs /*now_ns*/) { return 0; }
};

using HookMaker = std::function<std::unique_ptr<Hook>()>;  // called once per completion queue, under a lock

class HookedCompletionQueue final : public CompletionQueue {
 public:
  HookedCompletionQueue(std::unique_ptr<CompletionQueue> inner, std::unique_ptr<Hook> hook)
      : inner_(std::move(inner)), hook_(std::move(hook)) {}
  size_t poll(TimeNs now_ns, std::span<Completion> out) override;
  bool arm() override;
  bool moved() const override { return inner_->moved(); }
  int fd() const override { return inner_->fd(); }
  TimeNs deadline_ns() const override;
  ProviderCounters counters() const override { return inner_->counters(); }

  CompletionQueue& inner() { return *inner_; }
  Hook& hook() { return *hook_; }
  void forget(const HookedQueuePair& owner);

 private:
  struct Held {
    const HookedQueuePair* owner = nullptr;
    TimeNs due = 0;
    Completion completion;
  };
  void take(Completion completion, TimeNs now_ns);
  size_t hand_out(TimeNs now_ns, std::span<Completion> out);

  std::unique_ptr<CompletionQueue> inner_;
  std::unique_ptr<Hook> hook_;
  std::vector<Held> held_;  // in the order in which they came
  TimeNs last_poll_ns_ = 0;
};

class HookedQueuePair final : public QueuePair, private ConnectionHandler {
 public:
  HookedQueuePair(HookedCompletionQueue& cq, const QueuePairParams& params, ConnectionHandler& handler);
  ~HookedQueuePair() override;
  Result<void> connect(const ConnectParams& params) override { return inner_->connect(params); }
  Result<void> accept(ConstBytes private_data) override { return inner_->accept(private_data); }
  void disconnect() override { inner_->disconnect(); }
  Result<void> post_send(std::span<const SendRequest> requests) override;
  Result<void> post_receive(std::span<const ReceiveRequest> requests) override;
  void flush() override { inner_->flush(); }
  Result<Exposure> expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) override;
  bool fence(const Exposure& exposure, uint64_t id) override;

  void adopt(std::unique_ptr<QueuePair> inner) { inner_ = std::move(inner); }
  ConnectionHandler& inner_handler() { return *this; }
  uint64_t number() const { return number_; }
  void release(Record& record) { free_.push_back(&record); }

 private:
  void on_established(const ConnectionInfo& info) override;
  void on_failed(const Error& why) override;
  void on_disconnected(const Error& why) override;
  Record& record(uint64_t id, Opcode op, bool signaled);

  HookedCompletionQueue& cq_;
  ConnectionHandler& handler_;
  QueuePairParams params_;
  uint64_t number_;
  std::vector<std::unique_ptr<Record>> records_;
  std::vector<Record*> free_;
  std::vector<SendRequest> sends_;        // scratch of post_send
  std::vector<ReceiveRequest> receives_;  // scratch of post_receive
  std::unique_ptr<QueuePair> inner_;      // last member: goes first, while its handler still lives
};

std::shared_ptr<Provider> make_hooked_provider(std::shared_ptr<Provider> inner, HookMaker make_hook);

}  // namespace nfsrdma::rdma::hook
