// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "rdma/loop/loop.hpp"

namespace nfsrdma::rdma::loop {
namespace {

const Caps loop_caps = [] {
  Caps caps;
  caps.ird_max = 128;
  caps.ord_max = 128;
  caps.remote_invalidate = true;
  caps.keys_per_exposure = true;
  return caps;
}();

Error ended_error() { return Error(ENOTCONN, ErrorOrigin::connection, "the loop connection has ended"); }

}  // namespace

const Caps& LoopDomain::caps() const { return loop_caps; }

Result<std::unique_ptr<Region>> LoopDomain::register_memory(const MemoryRange& range) {
  return register_host_memory(users_, range);
}

Result<std::unique_ptr<QueuePair>> LoopDomain::create_queue_pair(CompletionQueue& cq,
                                                                 const QueuePairParams& params,
                                                                 ConnectionHandler& handler) {
  return std::unique_ptr<QueuePair>(std::make_unique<LoopQueuePair>(
      fabric_, users_, static_cast<LoopCompletionQueue&>(cq), params, handler));
}

LoopQueuePair::LoopQueuePair(std::shared_ptr<Fabric> fabric, std::shared_ptr<MemoryUsers> users,
                             LoopCompletionQueue& cq, const QueuePairParams& params,
                             ConnectionHandler& handler)
    : fabric_(std::move(fabric)),
      users_(std::move(users)),
      cq_(cq),
      handler_(handler),
      params_(params),
      sends_(params.send_depth),
      receives_(params.receive_depth) {
  params_.ird = std::min(params_.ird, loop_caps.ird_max);
  params_.ord = std::min(params_.ord, loop_caps.ord_max);
  users_->add(*this);
}

LoopQueuePair::~LoopQueuePair() {
  users_->remove(*this);
  std::lock_guard lock(fabric_->mutex);
  if (LoopQueuePair* client = handshake_ ? std::exchange(handshake_->client, nullptr) : nullptr;
      client && client != this) {
    client->cq_.unwatch(*client);
    client->fail(Error(ECONNREFUSED, ErrorOrigin::connection, "the listener gave the connection up"));
  }
  cq_.unwatch(*this);
  phase_ = Phase::ended;
  if (peer_) {
    peer_->peer_ = nullptr;
    peer_->end(Error(ECONNRESET, ErrorOrigin::connection, "the peer closed the loop connection"));
  }
  cq_.forget(this);
}

void LoopQueuePair::quiesce() { std::lock_guard lock(fabric_->mutex); }

Result<void> LoopQueuePair::connect(const ConnectParams& params) {
  std::lock_guard lock(fabric_->mutex);
  if (phase_ != Phase::idle) return Error(EISCONN, ErrorOrigin::usage, "connect() was called twice");
  if (params.private_data.size() > private_data_bytes_max)
    return Error(EINVAL, ErrorOrigin::usage, "private data is too long");
  phase_ = Phase::connecting;
  timeout_ = params.timeout_ns;
  auto found = fabric_->listeners.find(params.remote.port());
  if (found == fabric_->listeners.end()) {
    fail(Error(ECONNREFUSED, ErrorOrigin::connection,
               base::text("nobody listens on loop port %u; provider=loop", params.remote.port())));
    return {};
  }
  handshake_ = std::make_shared<Handshake>();
  handshake_->client = this;
  handshake_->private_data.assign(params.private_data.begin(), params.private_data.end());
  handshake_->ird = params_.ird;
  handshake_->ord = params_.ord;
  handshake_->client_address = params.local.valid() ? params.local : params.remote;
  handshake_->server_address = params.remote;
  Event event;
  event.kind = Event::Kind::request;
  event.listener = found->second;
  event.request = std::make_unique<LoopRequest>(fabric_, handshake_);
  found->second->cq().push(std::move(event));
  cq_.watch(*this);
  return {};
}

Result<void> LoopQueuePair::accept(ConstBytes private_data) {
  std::lock_guard lock(fabric_->mutex);
  if (phase_ != Phase::idle || !handshake_) return Error(EINVAL, ErrorOrigin::usage, "no request to accept");
  if (private_data.size() > private_data_bytes_max)
    return Error(EINVAL, ErrorOrigin::usage, "private data is too long");
  LoopQueuePair* client = handshake_->client;
  phase_ = Phase::connecting;
  if (!client) {
    fail(
        Error(ECONNABORTED, ErrorOrigin::connection, "the client went away before its request was accepted"));
    return {};
  }
  ird_ = std::min(params_.ird, handshake_->ord);
  ord_ = std::min(params_.ord, handshake_->ird);
  client->ird_ = ord_;
  client->ord_ = ird_;
  client->cq_.unwatch(*client);
  std::shared_ptr<Handshake> handshake = std::move(handshake_);
  client->handshake_.reset();
  become_established(*client, handshake->private_data, handshake->server_address, handshake->client_address);
  client->become_established(*this, private_data, handshake->client_address, handshake->server_address);
  return {};
}

void LoopQueuePair::become_established(LoopQueuePair& peer, ConstBytes peer_data, const SocketAddress& local,
                                       const SocketAddress& remote) {
  peer_ = &peer;
  peer_data_.assign(peer_data.begin(), peer_data.end());
  local_ = local;
  remote_ = remote;
  deadline_ = base::never_ns;
  phase_ = Phase::established;
  Event event;
  event.pair = this;
  cq_.push(std::move(event));
}

void LoopQueuePair::fail(Error why) {
  phase_ = Phase::ended;
  handshake_.reset();
  flush_all();
  Event event;
  event.kind = Event::Kind::failed;
  event.pair = this;
  event.why = std::move(why);
  cq_.push(std::move(event));
}

bool LoopQueuePair::expired(TimeNs now_ns) {
  if (deadline_ == base::never_ns) deadline_ = now_ns + timeout_;
  if (now_ns < deadline_) return false;
  if (handshake_) handshake_->client = nullptr;
  fail(Error(ETIMEDOUT, ErrorOrigin::connection, "the loop listener did not answer the connection in time"));
  return true;
}

void LoopQueuePair::disconnect() {
  std::lock_guard lock(fabric_->mutex);
  if (phase_ == Phase::connecting && handshake_) {
    handshake_->client = nullptr;
    cq_.unwatch(*this);
    fail(Error(ECANCELED, ErrorOrigin::connection, "connecting was cancelled"));
  }
  if (phase_ != Phase::established) return;
  end(Error(ESHUTDOWN, ErrorOrigin::connection, "this side closed the connection"));
}

void LoopQueuePair::end(const Error& why) {
  if (phase_ != Phase::established) return;
  phase_ = Phase::ended;
  flush_all();
  if (LoopQueuePair* peer = std::exchange(peer_, nullptr)) {
    peer->peer_ = nullptr;
    peer->end(Error(ECONNRESET, ErrorOrigin::connection, "the peer ended the loop connection"));
  }
  Event event;
  event.kind = Event::Kind::disconnected;
  event.pair = this;
  event.why = why;
  cq_.push(std::move(event));
}

void LoopQueuePair::flush_all() {
  for (; !sends_.empty(); sends_.pop()) complete(sends_.front(), CompletionStatus::flushed);
  for (; !receives_.empty(); receives_.pop())
    cq_.push(this, {receives_.front().id, Opcode::receive, CompletionStatus::flushed, false, 0, 0});
}

void LoopQueuePair::deliver(Event& event) {
  switch (event.kind) {
    case Event::Kind::established: {
      ConnectionInfo info;
      info.private_data = peer_data_;
      info.ird = ird_;
      info.ord = ord_;
      info.local = local_;
      info.remote = remote_;
      info.path = "loop";
      handler_.on_established(info);
      break;
    }
    case Event::Kind::failed:
      handler_.on_failed(*event.why);
      break;
    case Event::Kind::disconnected:
      handler_.on_disconnected(*event.why);
      break;
    case Event::Kind::request:
      break;
  }
}

Result<void> LoopQueuePair::post_receive(std::span<const ReceiveRequest> requests) {
  std::lock_guard lock(fabric_->mutex);
  if (phase_ == Phase::ended) return ended_error();
  if (receives_.size() + requests.size() > params_.receive_depth)
    return Error(ENOBUFS, ErrorOrigin::local, "more Receives than receive_depth");
  for (const ReceiveRequest& request : requests)
    if (auto ok = check_pieces({&request.sge, 1}); !ok) return ok;
  for (const ReceiveRequest& request : requests) receives_.push(request);
  return {};
}

Result<void> LoopQueuePair::post_send(std::span<const SendRequest> requests) {
  std::lock_guard lock(fabric_->mutex);
  if (phase_ != Phase::established) return ended_error();
  if (sends_.size() + requests.size() > params_.send_depth)
    return Error(ENOBUFS, ErrorOrigin::local, "more requests than send_depth");
  for (const SendRequest& request : requests) {
    size_t pieces_max = request.op == Opcode::read ? loop_caps.read_sge_max : loop_caps.send_sge_max;
    if (request.sge.size() > pieces_max)
      return Error(EINVAL, ErrorOrigin::local, "too many pieces in a request");
    if (auto ok = check_pieces(request.sge); !ok) return ok;
  }
  for (const SendRequest& request : requests) {
    Posted& posted = sends_.push({request, {}, 0});
    std::copy(request.sge.begin(), request.sge.end(), posted.pieces.begin());
    for (const Sge& piece : request.sge) posted.length += piece.length;
    posted.request.sge = std::span<const Sge>(posted.pieces.data(), request.sge.size());
  }
  return {};
}

void LoopQueuePair::flush() {
  std::lock_guard lock(fabric_->mutex);
  run_queue();
}

void LoopQueuePair::run_queue() {
  while (phase_ == Phase::established && !sends_.empty()) {
    Posted posted = sends_.front();
    posted.request.sge = std::span<const Sge>(posted.pieces.data(), posted.request.sge.size());
    sends_.pop();
    Refusal refusal = execute(posted);
    if (refusal.local != CompletionStatus::success || posted.request.signaled)
      complete(posted, refusal.local);
    if (refusal.local != CompletionStatus::success)
      end(Error(refusal.local == CompletionStatus::protection_error ? EIO : EREMOTEIO, ErrorOrigin::protocol,
                base::text("loop connection ended: %s", refusal.text)));
  }
}

LoopQueuePair::Refusal LoopQueuePair::execute(Posted& posted) {
  if (!check_pieces(posted.request.sge))
    return {CompletionStatus::protection_error, "local memory was revoked"};
  if (posted.request.op == Opcode::send || posted.request.op == Opcode::send_invalidate)
    return execute_send(posted);
  return execute_tagged(posted);
}

LoopQueuePair::Refusal LoopQueuePair::execute_send(Posted& posted) {
  if (peer_->receives_.empty()) return {CompletionStatus::rnr_exceeded, "the peer had no Receive posted"};
  ReceiveRequest receive = peer_->receives_.front();
  peer_->receives_.pop();
  Completion completion{receive.id, Opcode::receive, CompletionStatus::success, false, posted.length, 0};
  Refusal refusal;
  if (posted.length > receive.sge.length) {
    completion.status = CompletionStatus::length_error;
    refusal = {CompletionStatus::remote_error, "the message was longer than the peer's Receive"};
  } else if (!check_pieces({&receive.sge, 1})) {
    completion.status = CompletionStatus::protection_error;
    refusal = {CompletionStatus::remote_error, "the peer's Receive memory was revoked"};
  } else if (posted.request.op == Opcode::send_invalidate) {
    KeyEntry* entry = peer_->keys_.lookup(posted.request.invalidate_key);
    if (entry && entry->live) {
      completion.invalidated = true;
      completion.invalidated_key = entry->key;
      peer_->keys_.release(*entry);
    } else {
      completion.status = CompletionStatus::flushed;
      refusal = {CompletionStatus::remote_access, "the key to invalidate is not the peer's"};
    }
  }
  if (completion.status == CompletionStatus::success) {
    uint64_t at = receive.sge.offset;
    for (const Sge& piece : posted.request.sge) {
      if (piece.length)
        std::memcpy(receive.sge.region->host() + at, piece.region->host() + piece.offset, piece.length);
      at += piece.length;
    }
  }
  peer_->cq_.push(peer_, completion);
  return refusal;
}

LoopQueuePair::Refusal LoopQueuePair::execute_tagged(Posted& posted) {
  const bool reads = posted.request.op == Opcode::read;
  if (reads && ord_ == 0) return {CompletionStatus::remote_error, "the peer takes no Reads (IRD 0)"};
  if (posted.length == 0) return {};
  KeyEntry* entry = nullptr;
  KeyVerdict verdict = peer_->keys_.find(posted.request.remote.key, posted.request.remote.base, posted.length,
                                         reads ? Purpose::read_source : Purpose::write_target, &entry);
  if (verdict != KeyVerdict::ok)
    return {CompletionStatus::remote_access, "the peer's memory is not reachable so"};
  std::byte* remote = entry->at(posted.request.remote.base);
  for (const Sge& piece : posted.request.sge) {
    if (piece.length == 0) continue;
    std::byte* local = piece.region->host() + piece.offset;
    if (reads)
      std::memmove(local, remote, piece.length);
    else
      std::memmove(remote, local, piece.length);
    remote += piece.length;
  }
  (reads ? cq_ : peer_->cq_).count_direct(posted.length);
  return {};
}

void LoopQueuePair::complete(const Posted& posted, CompletionStatus status) {
  cq_.push(this, {posted.request.id, posted.request.op, status, false, posted.length, 0});
}

Result<Exposure> LoopQueuePair::expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) {
  std::lock_guard lock(fabric_->mutex);
  if (purpose != Purpose::read_source && purpose != Purpose::write_target)
    return Error(EINVAL, ErrorOrigin::local, "only read sources and write targets can be exposed");
  if (length > loop_caps.segment_bytes_max) return Error(EINVAL, ErrorOrigin::local, "exposure too long");
  return keys_.add(static_cast<HostRegion&>(region), offset, length, purpose);
}

bool LoopQueuePair::fence(const Exposure& exposure, uint64_t) {
  std::lock_guard lock(fabric_->mutex);
  if (KeyEntry* entry = keys_.lookup(exposure.key)) keys_.release(*entry);
  return true;
}

}  // namespace nfsrdma::rdma::loop
