// SPDX-License-Identifier: Apache-2.0
// rdma_connect() on a thread of its own, for the kernel's siw: it connects its TCP socket inside the call, for as
// long as TCP retries (two minutes towards a host that drops packets), and a loop must not wait. Asking by a TCP
// connection of our own first, whether somebody listens, is no way: siw takes the listener down when a connection is
// closed before its worker has seen it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "rdma/verbs/completion_queue.hpp"

namespace nfsrdma::rdma::verbs {

class ConnectJob {
 public:
  // The id stays the caller's until it calls abandon(). cq.wake() tells of the end. EAGAIN: no thread to be had.
  static Result<std::shared_ptr<ConnectJob>> start(rdma_cm_id* id, const rdma_conn_param& param,
                                                   base::ConstBytes private_data, VerbsCompletionQueue& cq);
  // True once rdma_connect() has returned, with its errno (0: it went through).
  bool finished(int* error);
  // Everything that the call still uses, to be given back when it returns. False: it has returned already, and
  // nothing was taken. The caller has put the queue pair into the error state.
  bool abandon(CmId& id, const Seat& seat, std::shared_ptr<CmChannel> channel, std::shared_ptr<VerbsDomain> domain);

 private:
  ConnectJob(rdma_cm_id* id, const rdma_conn_param& param, base::ConstBytes private_data, VerbsCompletionQueue& cq);
  void run();

  rdma_cm_id* id_;
  rdma_conn_param param_;
  std::vector<std::byte> private_data_;
  std::mutex mutex_;
  VerbsCompletionQueue* cq_;  // nullptr once abandoned
  bool finished_ = false;
  int error_ = 0;
  // Set by abandon(); given back in this order, last first.
  std::shared_ptr<VerbsDomain> domain_;
  std::shared_ptr<CmChannel> channel_;
  Seat seat_;
  CmId owned_;
};

}  // namespace nfsrdma::rdma::verbs
