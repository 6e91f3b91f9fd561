// SPDX-License-Identifier: Apache-2.0
// From an address or a request to an established connection, one connection manager event after the other.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

// 4.096 us * 2^17 = 0.54 s, waited for once and with each retry: 3.8 s until a dead peer is noticed (adapters may round
// up, to four times that). The default follows the path's packet life time and can be a minute.
constexpr uint8_t ack_timeout_exponent = 17;
// The field's largest value, 7, will not do: with it F12_SilentPeer* in verbs_test waits in vain on rxe.
constexpr uint8_t retries = 6;
// Both ends keep credits, so a missing Receive is a fault or a very short race: few tries, and a short wait between
// them. The default of the timer (0) means 655 ms; 8 means 0.16 ms.
constexpr uint8_t receiver_not_ready_retries = 3;
constexpr uint8_t receiver_not_ready_timer = 8;
constexpr TimeNs accept_timeout_ns = base::seconds(10);
constexpr uint32_t private_data_accept_max = 196;

int milliseconds(TimeNs ns) { return static_cast<int>(std::clamp<TimeNs>(ns / 1'000'000, 1, 60'000)); }

}  // namespace

Attempt VerbsQueuePair::attempt() const {
  Attempt attempt;
  attempt.remote = remote_;
  attempt.local = local_;
  attempt.device = &device_.traits();
  return attempt;
}

Result<void> VerbsQueuePair::connect(const ConnectParams& params) {
  if (phase_ == Phase::ending) return {};  // by a revocation; the handler hears of it
  if (phase_ == Phase::ended) return ended_error();
  if (phase_ != Phase::idle || accepting_side_) return Error(EISCONN, ErrorOrigin::usage, "connect() was called twice");
  if (params.private_data.size() > device_.traits().private_data_max)
    return Error(EINVAL, ErrorOrigin::usage,
                 base::text("%zu bytes of private data: %s takes %u", params.private_data.size(),
                            device_.traits().name.c_str(), device_.traits().private_data_max));
  remote_ = params.remote;
  private_data_.assign(params.private_data.begin(), params.private_data.end());
  connect_timeout_ns_ = params.timeout_ns;
  auto started = start_resolving(params);
  if (!started) {
    id_.reset();
    return started;
  }
  phase_ = Phase::resolving_address;
  connect_deadline_ns_ = now_ns() + params.timeout_ns;
  cq_.call_at(connect_deadline_ns_);
  return {};
}

Result<void> VerbsQueuePair::start_resolving(const ConnectParams& params) {
  auto channel = cq_.channel();
  if (!channel) return std::move(channel).error();
  rdma_cm_id* id = nullptr;
  if (rdma_create_id((*channel)->get(), &id, static_cast<CmUser*>(this), RDMA_PS_TCP) != 0)
    return call_error(attempt(), "rdma_create_id", errno);
  id_.reset(id);
  SocketAddress source = params.local.valid() ? params.local : device_.source();
  if (source.valid()) source.set_port(params.local.valid() ? params.local.port() : 0);
  if (rdma_resolve_addr(id, source.valid() ? source.get() : nullptr, remote_.get(), milliseconds(params.timeout_ns)) !=
      0) {
    Attempt failed{remote_, source, nullptr};
    return address_error(failed, errno);
  }
  return {};
}

Result<void> VerbsQueuePair::create_hardware() {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = seat_->queue->cq;
  attr.cap.max_send_wr = send_entries_max_;
  attr.cap.max_recv_wr = params_.receive_depth;
  attr.cap.max_send_sge = device_.caps().send_sge_max;
  attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  if (rdma_create_qp(id_.get(), domain_->pd(), &attr) != 0)
    return call_error(attempt(), base::text("a queue pair of %u and %u requests", send_entries_max_,
                                            params_.receive_depth).c_str(), errno);
  if (!device_.traits().iwarp) {
    uint8_t exponent = ack_timeout_exponent;
    // Kernels before 5.1 do not know the option; then the default holds.
    rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof exponent);
  }
  std::lock_guard lock(mutex_);
  qp_ = id_->qp;
  std::vector<ReceiveRequest> early = std::move(early_receives_);
  early_receives_.clear();
  return push_receives(early);
}

Result<void> VerbsQueuePair::accept(ConstBytes private_data) {
  if (accepting_side_ && phase_ == Phase::ending) return {};  // the peer gave up, or a Receive failed: on_failed follows
  if (accepting_side_ && phase_ == Phase::ended) return ended_error();
  if (!accepting_side_ || phase_ != Phase::idle) return Error(EINVAL, ErrorOrigin::usage, "no request to accept");
  if (private_data.size() > private_data_accept_max)
    return Error(EINVAL, ErrorOrigin::usage, "private data of an accept is at most 196 bytes");
  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = static_cast<uint8_t>(std::min(params_.ird, peer_ord_));
  param.initiator_depth = static_cast<uint8_t>(std::min(params_.ord, peer_ird_));
  param.rnr_retry_count = receiver_not_ready_retries;
  param.flow_control = 1;
  if (rdma_accept(id_.get(), &param) != 0) {
    int error = errno;
    end(call_error(attempt(), "accepting (the peer may have given up)", error));
    return {};
  }
  phase_ = Phase::accepting;
  connect_timeout_ns_ = accept_timeout_ns;
  connect_deadline_ns_ = now_ns() + accept_timeout_ns;
  cq_.call_at(connect_deadline_ns_);
  return {};
}

void VerbsQueuePair::on_address_resolved() {
  local_ = address_of(rdma_get_local_addr(id_.get()));
  if (id_->verbs != device_.context()) return end(other_device_error(attempt(), id_->verbs));
  if (auto ok = create_hardware(); !ok) return end(ok.error());
  phase_ = Phase::resolving_route;
  if (rdma_resolve_route(id_.get(), milliseconds(connect_timeout_ns_)) != 0)
    end(call_error(attempt(), "route resolution", errno));
}

void VerbsQueuePair::start_connecting() {
  phase_ = Phase::connecting;
  rdma_conn_param param{};
  param.private_data = private_data_.data();
  param.private_data_len = static_cast<uint8_t>(private_data_.size());
  param.responder_resources = static_cast<uint8_t>(params_.ird);
  param.initiator_depth = static_cast<uint8_t>(params_.ord);
  param.retry_count = retries;
  param.rnr_retry_count = receiver_not_ready_retries;
  param.flow_control = 1;
  if (device_.traits().siw) {
    auto job = ConnectJob::start(id_.get(), param, private_data_, cq_);
    if (!job) return end(call_error(attempt(), "starting a thread that connects", job.error().errno_value()));
    job_ = *job;
    return;
  }
  if (rdma_connect(id_.get(), &param) == 0) return;
  int error = errno;
  end(device_.traits().iwarp ? tcp_error(attempt(), error) : call_error(attempt(), "rdma_connect", error));
}

void VerbsQueuePair::look_at_job() {
  int error = 0;
  if (!job_->finished(&error)) return;
  job_.reset();
  if (error != 0) end(tcp_error(attempt(), error));
}

void VerbsQueuePair::on_cm_event(const CmEvent& event) {
  if (phase_ == Phase::ending || phase_ == Phase::ended) return;
  if (phase_ == Phase::established) {
    switch (event.type) {
      case RDMA_CM_EVENT_DISCONNECTED:
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_DEVICE_REMOVAL:
      case RDMA_CM_EVENT_ADDR_CHANGE: return end(disconnect_error(attempt(), event));
      default: return;
    }
  }
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: return on_address_resolved();
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return start_connecting();
    case RDMA_CM_EVENT_ESTABLISHED: return on_established(event);
    case RDMA_CM_EVENT_DISCONNECTED:
      return end(Error(ECONNRESET, ErrorOrigin::connection,
                       "verbs: " + remote_.text() + ": the peer closed the connection before it was established"));
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: return;
    default:
      return end(event_error(attempt(), accepting_side_                        ? Stage::reply
                                        : phase_ == Phase::resolving_address ? Stage::address
                                                                             : Stage::request, event));
  }
}

void VerbsQueuePair::on_established(const CmEvent& event) {
  phase_ = Phase::established;
  was_established_ = true;
  connect_deadline_ns_ = base::never_ns;
  local_ = address_of(rdma_get_local_addr(id_.get()));
  tune();
  ConnectionInfo info;
  if (accepting_side_) {
    info.private_data = private_data_;
    info.ird = std::min(params_.ird, peer_ord_);
    info.ord = std::min(params_.ord, peer_ird_);
  } else {
    // In the answer siw tells its own two depths, where the others tell the peer's.
    bool own = device_.traits().siw;
    info.private_data = event.data();
    info.ird = std::min(params_.ird, own ? event.initiator_depth : event.responder_resources);
    info.ord = std::min(params_.ord, own ? event.responder_resources : event.initiator_depth);
  }
  {
    std::lock_guard lock(mutex_);
    ord_ = info.ord;
  }
  info.local = local_;
  info.remote = remote_;
  info.path = path_text();
  handler_.on_established(info);
  for (const Completion& completion : held_) cq_.push(*this, completion);
  held_.clear();
  if (broken_) end(*broken_);
}

// The connection manager leaves the receiver-not-ready timer at 0, which is its longest.
void VerbsQueuePair::tune() {
  if (device_.traits().iwarp) return;
  ibv_qp_attr attr{};
  attr.min_rnr_timer = receiver_not_ready_timer;
  if (int error = ibv_modify_qp(qp_, &attr, IBV_QP_MIN_RNR_TIMER))
    base::log(base::LogLevel::warn, "rdma", "%s: the receiver-not-ready timer stays at its default: %s",
              device_.traits().label().c_str(), strerror(error));
}

// The path as the connection manager chose it: nothing of it is ours to pick, so it is read back for people.
std::string VerbsQueuePair::path_text() const {
  const DeviceTraits& device = device_.traits();
  if (device.iwarp) return device.label() + " iWARP" + (device.siw ? " (siw)" : "");
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (ibv_query_qp(qp_, &attr, IBV_QP_AV | IBV_QP_PATH_MTU, &init) != 0) return device.label() + " " + device.link;
  std::string text = device.label();
  ibv_gid_entry gid{};
  if (attr.ah_attr.is_global &&
      ibv_query_gid_ex(device_.context(), device.port, attr.ah_attr.grh.sgid_index, &gid, 0) == 0) {
    const char* kind = gid.gid_type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
                       : gid.gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                              : "InfiniBand";
    text += base::text(" gid %u %s", attr.ah_attr.grh.sgid_index, kind);
  } else {
    text += " " + device.link;
  }
  return text + base::text(" mtu %u", attr.path_mtu >= IBV_MTU_256 ? 128u << attr.path_mtu : 0);
}

void VerbsQueuePair::on_timer(TimeNs now_ns) {
  if (now_ns >= connect_deadline_ns_) {
    Stage stage = accepting_side_                        ? Stage::reply
                  : phase_ == Phase::resolving_address ? Stage::address
                  : phase_ == Phase::resolving_route   ? Stage::route
                  : job_                               ? Stage::tcp
                                                       : Stage::request;
    return end(timeout_error(attempt(), stage, connect_timeout_ns_));
  }
  if (now_ns >= flush_deadline_ns_)
    return end(Error(ECONNRESET, ErrorOrigin::connection, "verbs: " + remote_.text() + ": the connection broke"));
  if (now_ns >= nudge_ns_) nudge();
  cq_.call_at(std::min({connect_deadline_ns_, flush_deadline_ns_, nudge_ns_}));
}

}  // namespace nfsrdma::rdma::verbs
