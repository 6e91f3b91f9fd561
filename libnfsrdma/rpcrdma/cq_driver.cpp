// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/cq_driver.hpp"

namespace nfsrdma::rpcrdma {

CqDriver::CqDriver(io::IoLoop& loop, std::unique_ptr<rdma::CompletionQueue> cq)
    : loop_(loop), cq_(std::move(cq)) {
  loop_.add(*this);
}

CqDriver::~CqDriver() { loop_.remove(*this); }

bool CqDriver::poll(io::TimeNs now_ns) {
  bool any = false;
  // Bounded, so that a busy peer cannot keep the timers of this loop waiting.
  for (int round = 0; round < 8; round++) {
    running_ = true;
    count_ = cq_->poll(now_ns, completions_);
    for (at_ = 0; at_ < count_;) {
      rdma::Completion c = completions_[at_++];
      if (c.id) rdma::Work::run(c);
    }
    running_ = false;
    any |= count_ != 0 || !ends_.empty();
    while (BatchEnd* target = ends_.pop_front()) target->on_batch_end();
    if (count_ < batch) break;
  }
  at_ = count_ = 0;
  return any || cq_->moved();
}

void CqDriver::at_batch_end(BatchEnd& target) {
  if (!running_) return target.on_batch_end();
  if (!target.linked()) ends_.push_back(target);
}

void CqDriver::forget(const void* begin, const void* end) {
  const uint64_t low = reinterpret_cast<uint64_t>(begin), high = reinterpret_cast<uint64_t>(end);
  for (size_t i = at_; i < count_; i++)
    if (completions_[i].id >= low && completions_[i].id < high) completions_[i].id = 0;
}

}  // namespace nfsrdma::rpcrdma
