// SPDX-License-Identifier: Apache-2.0
// Life and end of a queue pair, and what revocation does to it.
#include "rdma/verbs/queue_pair.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

namespace nfsrdma::rdma::verbs {
namespace {

// Each exposure may want a bind and an invalidation in the send queue beside the request that it is for.
uint32_t send_entries(const VerbsDevice& device, uint32_t send_depth) {
  uint32_t wanted = device.traits().windows ? send_depth * 3 : send_depth + 2;
  return std::min(wanted, device.traits().work_requests_max);
}

Error revocation_error() {
  return Error(EIO, ErrorOrigin::local, "memory that the connection was using was revoked");
}

}  // namespace

VerbsQueuePair::VerbsQueuePair(std::shared_ptr<VerbsDomain> domain, VerbsCompletionQueue& cq,
                               const QueuePairParams& params, ConnectionHandler& handler)
    : domain_(std::move(domain)),
      device_(domain_->device()),
      cq_(cq),
      handler_(handler),
      params_(params),
      send_entries_max_(send_entries(device_, params.send_depth)),
      sends_(send_entries_max_),
      receives_(params.receive_depth),
      exposures_(domain_->pd(), device_.traits().windows, params.send_depth) {
  params_.ird = std::min(params_.ird, device_.caps().ird_max);
  params_.ord = std::min(params_.ord, device_.caps().ord_max);
}

Result<std::unique_ptr<QueuePair>> VerbsQueuePair::create(std::shared_ptr<VerbsDomain> domain,
                                                          VerbsCompletionQueue& cq, const QueuePairParams& params,
                                                          ConnectionHandler& handler) {
  uint32_t most = domain->device().traits().work_requests_max;
  if (params.send_depth == 0 || params.receive_depth == 0 || params.send_depth > most || params.receive_depth > most)
    return Error(EINVAL, ErrorOrigin::usage, "queue pair: a depth of 0, or beyond what the device takes");
  std::unique_ptr<VerbsQueuePair> pair(new VerbsQueuePair(std::move(domain), cq, params, handler));
  auto seat = cq.seat(*pair, pair->device_, pair->send_entries_max_ + params.receive_depth);
  if (!seat) return std::move(seat).error();
  pair->seat_ = *seat;
  pair->domain_->users().add(*pair);
  return std::unique_ptr<QueuePair>(std::move(pair));
}

Result<std::unique_ptr<QueuePair>> VerbsQueuePair::adopt(std::shared_ptr<VerbsDomain> domain, VerbsCompletionQueue& cq,
                                                         const QueuePairParams& params, ConnectionHandler& handler,
                                                         CmId id, const CmEvent& request) {
  auto made = create(std::move(domain), cq, params, handler);
  if (!made) return made;
  auto* pair = static_cast<VerbsQueuePair*>(made->get());
  auto channel = cq.channel();
  if (!channel) return std::move(channel).error();
  pair->remote_ = address_of(rdma_get_peer_addr(id.get()));
  pair->local_ = address_of(rdma_get_local_addr(id.get()));
  if (id->verbs != pair->device_.context())
    return Error(EINVAL, ErrorOrigin::usage, "the request came by another device than the protection domain's");
  if (id->channel != (*channel)->get() && rdma_migrate_id(id.get(), (*channel)->get()) != 0)
    return call_error(pair->attempt(), "moving the request to its loop", errno);
  // Only now may events find the pair: those of before went to the listener's loop.
  id->context = static_cast<CmUser*>(pair);
  pair->id_ = std::move(id);
  pair->accepting_side_ = true;
  pair->private_data_.assign(request.data().begin(), request.data().end());
  pair->peer_ird_ = request.initiator_depth;
  pair->peer_ord_ = request.responder_resources;
  if (auto ok = pair->create_hardware(); !ok) return std::move(ok).error();
  return made;
}

VerbsQueuePair::~VerbsQueuePair() {
  domain_->users().remove(*this);
  if (was_established_ && phase_ == Phase::established) rdma_disconnect(id_.get());
  phase_ = Phase::ended;
  tear_hardware();
  id_.reset();
  if (seat_) cq_.unseat(*seat_, abandoned_);
  cq_.forget(*this);
}

// After this the device knows nothing of the pair any more. Completions that it had still made wait in the completion
// queue's ready ring.
void VerbsQueuePair::tear_hardware() {
  if (!qp_) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp_, &attr, IBV_QP_STATE);
  cq_.drain(*seat_->queue);
  if (job_) {
    // The call that it is in will fail, now that the queue pair is in the error state; then the rest goes.
    id_->context = nullptr;
    std::lock_guard lock(mutex_);
    abandoned_ = job_->abandon(id_, *seat_, *cq_.channel(), domain_);
    if (abandoned_) {
      qp_ = nullptr;
      return;
    }
  }
  {
    std::lock_guard lock(mutex_);
    exposures_.drop_all();  // first: rxe waits for a minute to destroy a queue pair that has windows
    rdma_destroy_qp(id_.get());
    qp_ = nullptr;
  }
  cq_.drain(*seat_->queue);
}

void VerbsQueuePair::disconnect() {
  switch (phase_) {
    case Phase::established:
      flush();
      end(Error(ESHUTDOWN, ErrorOrigin::connection, "this side closed the connection"));
      break;
    case Phase::resolving_address:
    case Phase::resolving_route:
    case Phase::connecting:
    case Phase::accepting:
      end(Error(ECANCELED, ErrorOrigin::connection, "connecting was cancelled"));
      break;
    case Phase::idle:
    case Phase::ending:
    case Phase::ended: break;
  }
}

// Ends the pair in the next poll(): never inside a call or a handler of its owner.
void VerbsQueuePair::end(Error why) {
  if (phase_ == Phase::ending || phase_ == Phase::ended) return;
  phase_ = Phase::ending;
  why_ = std::move(why);
  connect_deadline_ns_ = flush_deadline_ns_ = nudge_ns_ = base::never_ns;
  cq_.call_soon(*this);
}

// Also when another cause was seen first: a queue pair that is put into the error state makes flushes, and siw closes
// its TCP connection, which comes back as "disconnected" (ECONNRESET). The revocation is what it comes from.
void VerbsQueuePair::finish_end() {
  if (torn()) why_ = revocation_error();
  if (id_ && was_established_) rdma_disconnect(id_.get());
  tear_hardware();
  id_.reset();
  phase_ = Phase::ended;
  for (const Completion& completion : held_) cq_.push(*this, completion);
  held_.clear();
  flush_everything();
  if (was_established_)
    handler_.on_disconnected(*why_);
  else
    handler_.on_failed(*why_);
}

void VerbsQueuePair::flush_everything() {
  std::lock_guard lock(mutex_);
  for (; !sends_.empty(); sends_.pop()) {
    SendEntry& entry = sends_.front();
    if (!entry.done) entry.status = CompletionStatus::flushed;
    retire(entry);
  }
  for (; !receives_.empty(); receives_.pop())
    cq_.push(*this, {receives_.front().id, Opcode::receive, CompletionStatus::flushed, false, 0, 0});
  for (const ReceiveRequest& request : early_receives_)
    cq_.push(*this, {request.id, Opcode::receive, CompletionStatus::flushed, false, 0, 0});
  early_receives_.clear();
  batch_size_ = 0;
}

void VerbsQueuePair::step() {
  if (torn()) end(revocation_error());
  if (phase_ == Phase::ending) return finish_end();
  if (job_) look_at_job();
  if (phase_ == Phase::established) flush();
}

bool VerbsQueuePair::torn() {
  std::lock_guard lock(mutex_);
  return torn_;
}

bool VerbsQueuePair::uses_revoked() const {
  auto* self = const_cast<VerbsQueuePair*>(this);
  for (size_t i = 0; i < sends_.size(); i++)
    for (const VerbsRegion* region : self->sends_[i].regions)
      if (region && region->revoked()) return true;
  for (size_t i = 0; i < receives_.size(); i++)
    if (self->receives_[i].region && self->receives_[i].region->revoked()) return true;
  for (const ReceiveRequest& request : early_receives_)
    if (request.sge.region && static_cast<VerbsRegion*>(request.sge.region)->revoked()) return true;
  return exposures_.names_revoked();
}

void VerbsQueuePair::quiesce() {
  {
    std::lock_guard lock(mutex_);
    if (torn_ || !uses_revoked()) return;
    torn_ = true;
    if (qp_) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_ERR;
      ibv_modify_qp(qp_, &attr, IBV_QP_STATE);
    }
    exposures_.drop_all();
  }
  cq_.wake();
}

Result<std::unique_ptr<QueuePair>> VerbsDomain::create_queue_pair(CompletionQueue& cq, const QueuePairParams& params,
                                                                  ConnectionHandler& handler) {
  return VerbsQueuePair::create(self(), static_cast<VerbsCompletionQueue&>(cq), params, handler);
}

}  // namespace nfsrdma::rdma::verbs
