// SPDX-License-Identifier: Apache-2.0
// Joins a CompletionQueue to an IoLoop: polls it every turn and runs the Work behind each completion. One per
// loop; all endpoints of that loop share it. Everything here belongs to the loop thread.
//
//   auto cq = provider->create_completion_queue(1024);
//   rpcrdma::CqDriver driver(loop, std::move(*cq));   // must outlive every endpoint made with it
#pragma once

#include <array>
#include <memory>

#include "base/intrusive_list.hpp"
#include "io/loop.hpp"
#include "rdma/provider.hpp"

namespace nfsrdma::rpcrdma {

// Something that gathers requests while completions are handled and pushes them out once afterwards.
struct BatchEnd : base::ListNode<BatchEnd> {
  virtual void on_batch_end() = 0;

 protected:
  ~BatchEnd() { unlink(); }
};

class CqDriver final : public io::Pollable {
 public:
  // May be made on another thread while the loop is not turning yet; else on the loop thread.
  CqDriver(io::IoLoop& loop, std::unique_ptr<rdma::CompletionQueue> cq);
  ~CqDriver() override;
  CqDriver(const CqDriver&) = delete;
  CqDriver& operator=(const CqDriver&) = delete;

  rdma::CompletionQueue& cq() { return *cq_; }
  io::IoLoop& loop() { return loop_; }

  bool poll(io::TimeNs now_ns) override;
  bool arm() override { return cq_->arm(); }
  int fd() const override { return cq_->fd(); }
  io::TimeNs deadline_ns() const override { return cq_->deadline_ns(); }

  // Runs target.on_batch_end() once, after the completions at hand; at once when none are being handled.
  void at_batch_end(BatchEnd& target);
  // Drops completions at hand whose Work lies in [begin, end). To be called after a queue pair was destroyed
  // and before the memory of its Works goes.
  void forget(const void* begin, const void* end);

 private:
  static constexpr size_t batch = 32;
  io::IoLoop& loop_;
  std::unique_ptr<rdma::CompletionQueue> cq_;
  std::array<rdma::Completion, batch> completions_;
  size_t at_ = 0;
  size_t count_ = 0;
  bool running_ = false;
  base::IntrusiveList<BatchEnd, BatchEnd> ends_;
};

}  // namespace nfsrdma::rpcrdma
