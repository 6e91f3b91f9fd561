// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/connect_job.hpp"

#include <errno.h>

#include <system_error>
#include <thread>

namespace nfsrdma::rdma::verbs {

ConnectJob::ConnectJob(rdma_cm_id* id, const rdma_conn_param& param, base::ConstBytes private_data,
                       VerbsCompletionQueue& cq)
    : id_(id), param_(param), private_data_(private_data.begin(), private_data.end()), cq_(&cq) {
  param_.private_data = private_data_.data();
}

Result<std::shared_ptr<ConnectJob>> ConnectJob::start(rdma_cm_id* id, const rdma_conn_param& param,
                                                      base::ConstBytes private_data, VerbsCompletionQueue& cq) {
  std::shared_ptr<ConnectJob> job(new ConnectJob(id, param, private_data, cq));
  try {
    std::thread([job] { job->run(); }).detach();
  } catch (const std::system_error& error) {
    return Error(error.code().value(), ErrorOrigin::local, "no thread to be had");
  }
  return job;
}

void ConnectJob::run() {
  int error = rdma_connect(id_, &param_) == 0 ? 0 : errno;
  std::lock_guard lock(mutex_);
  finished_ = true;
  error_ = error;
  if (cq_) return cq_->wake();
  rdma_destroy_qp(owned_.get());
  owned_.reset();
  seat_.queue->reserved -= seat_.reserved;
  seat_.queue.reset();
  channel_.reset();
  domain_.reset();
}

bool ConnectJob::finished(int* error) {
  std::lock_guard lock(mutex_);
  *error = error_;
  return finished_;
}

bool ConnectJob::abandon(CmId& id, const Seat& seat, std::shared_ptr<CmChannel> channel,
                         std::shared_ptr<VerbsDomain> domain) {
  std::lock_guard lock(mutex_);
  if (finished_) return false;
  cq_ = nullptr;
  owned_ = std::move(id);
  seat_ = seat;
  channel_ = std::move(channel);
  domain_ = std::move(domain);
  return true;
}

}  // namespace nfsrdma::rdma::verbs
