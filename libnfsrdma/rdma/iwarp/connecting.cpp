// SPDX-License-Identifier: Apache-2.0
// Start-up of an iWARP queue pair: TCP, then MPA Request and Reply (RFC 5044 section 7.1, RFC 6581).
#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "rdma/iwarp/queue_pair.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

// A peer whose MSS is at least this is reached over loopback or jumbo frames by software: hardware that wants
// FPDUs aligned with packets does not stand behind it.
constexpr uint32_t large_segment_bytes = 8192;
// Linux siw may sleep over an FPDU that comes while it still switches its socket to data mode. A moment of
// silence after its Reply avoids nearly all of that; nudge() mends the rest.
constexpr TimeNs silence_after_reply_ns = base::ms(1);

// A few bytes on a fresh connection always fit into the socket buffer.
bool send_all(int fd, base::ConstBytes data) {
  return send(fd, data.data(), data.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(data.size());
}

Error not_mpa_error(const SocketAddress& remote, const std::string& found) {
  return Error(
      EPROTO, ErrorOrigin::connection,
      base::text("%s speaks TCP but not MPA: %s; provider=iwarp needs an iWARP server there (Linux siw, "
                 "iWARP NICs, nfsrdma-serve), an NFS server on plain TCP cannot be reached yet",
                 remote.text().c_str(), found.c_str()));
}

}  // namespace

Result<void> IwarpQueuePair::connect(const ConnectParams& params) {
  if (phase_ != Phase::idle || incoming_)
    return Error(EISCONN, ErrorOrigin::usage, "the queue pair is in use");
  if (!params.remote.valid()) return Error(EINVAL, ErrorOrigin::usage, "no address to connect to");
  if (params.private_data.size() > consumer_private_bytes_max)
    return Error(EINVAL, ErrorOrigin::usage,
                 base::text("%zu bytes of private data, at most %zu fit", params.private_data.size(),
                            consumer_private_bytes_max));
  initiator_ = true;
  remote_ = params.remote;
  source_ = params.local;
  timeout_ns_ = params.timeout_ns;
  private_data_.assign(params.private_data.begin(), params.private_data.end());
  depths_ = {std::max(params_.ird, 1u), params_.ord};
  build_request(2);
  if (auto ok = open_socket(); !ok) {
    fail(std::move(ok).error());
    return {};
  }
  cq_.set_timer(*this, timeout_ns_);
  return {};
}

Result<void> IwarpQueuePair::open_socket() {
  auto socket = open_connecting(remote_, source_, options_.user_timeout_ns);
  if (!socket) return std::move(socket).error();
  socket_ = std::move(*socket);
  readable_ = writable_ = eof_near_ = false;
  phase_ = Phase::connecting;
  return cq_.watch(socket_.fd(), *this);
}

void IwarpQueuePair::build_request(uint8_t revision) {
  revision_ = revision;
  MpaFrame request;
  request.revision = revision;
  request.crc = options_.crc;
  request.enhanced = request.ours = revision == 2;
  request.ird = static_cast<uint16_t>(depths_.ird);
  request.ord = static_cast<uint16_t>(depths_.ord);
  request.private_data = private_data_;
  request_ = encode_mpa(request);
}

// RFC 6581 section 9: a responder that knows only revision 1 says so by its rejection. Both sides then rely
// on their configured depths. The time-out goes on.
void IwarpQueuePair::retry_with_revision_1() {
  cq_.unwatch(socket_.fd());
  socket_.reset();
  reader_.reset();
  build_request(1);
  if (auto ok = open_socket(); !ok) fail(std::move(ok).error());
}

void IwarpQueuePair::start_request() {
  int e = 0;
  socklen_t n = sizeof e;
  getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &e, &n);
  if (e != 0) return fail(connect_error(e, remote_));
  local_ = local_address(socket_.fd());
  cq_.count().syscalls++;
  if (!send_all(socket_.fd(), request_)) return fail(connect_error(errno, remote_));
  reader_.emplace(true);
  phase_ = Phase::requested;
}

void IwarpQueuePair::read_reply() {
  while (readable_ && phase_ == Phase::requested) {
    base::Bytes space = reader_->space();
    ssize_t n = recv(socket_.fd(), space.data(), space.size(), 0);
    cq_.count().syscalls++;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      readable_ = false;
      return;
    }
    if (n < 0 && errno != ECONNRESET) return fail(lost_error(errno, remote_, options_.user_timeout_ns));
    if (n <= 0)
      return fail(
          Error(ECONNRESET, ErrorOrigin::connection,
                base::text("%s closed the connection during the MPA handshake: it refused the request, is "
                           "overloaded, or is not an iWARP server",
                           remote_.text().c_str())));
    switch (reader_->advance(static_cast<size_t>(n))) {
      case MpaReader::State::reading:
        break;
      case MpaReader::State::complete:
        judge(reader_->frame());
        break;
      case MpaReader::State::not_mpa:
        fail(not_mpa_error(remote_, reader_->problem()));
        break;
      case MpaReader::State::malformed:
        send_terminate_and_fail(terminate::bad_startup_frame,
                                Error(EPROTO, ErrorOrigin::protocol,
                                      "bad MPA Reply from " + remote_.text() + ": " + reader_->problem()));
        break;
    }
  }
}

void IwarpQueuePair::judge(const MpaFrame& reply) {
  if (reply.reject && reply.revision == 1 && revision_ == 2) return retry_with_revision_1();
  if (reply.reject)
    return fail(
        Error(ECONNREFUSED, ErrorOrigin::connection,
              base::text("%s rejected the connection%s: an iWARP listener is there, but its consumer does "
                         "not want us",
                         remote_.text().c_str(), describe_private_data(reply.private_data).c_str())));
  bool too_deep = false;
  auto depths = judge_reply(reply, depths_, &too_deep);
  if (!depths) {
    Error why = depths.error().in("bad MPA Reply from " + remote_.text());
    return send_terminate_and_fail(too_deep ? terminate::insufficient_ird : terminate::bad_startup_frame,
                                   std::move(why));
  }
  peer_private_ = reply.private_data;
  establish(*depths, options_.crc || reply.crc, reply.ours, true);
}

Result<void> IwarpQueuePair::accept(ConstBytes private_data) {
  if (phase_ != Phase::idle || !incoming_) return Error(EINVAL, ErrorOrigin::usage, "no request to accept");
  if (private_data.size() > consumer_private_bytes_max)
    return Error(EINVAL, ErrorOrigin::usage, "private data is too long");
  IncomingConnection incoming = std::move(*incoming_);
  incoming_.reset();
  socket_ = std::move(incoming.socket);
  local_ = incoming.local;
  remote_ = incoming.remote;
  Depths agreed;
  MpaFrame reply = answer_request(incoming.request, {params_.ird, params_.ord}, options_.crc, &agreed);
  reply.private_data.assign(private_data.begin(), private_data.end());
  peer_private_ = std::move(incoming.request.private_data);
  if (auto ok = cq_.watch(socket_.fd(), *this); !ok) return ok;
  cq_.count().syscalls++;
  if (!send_all(socket_.fd(), encode_mpa(reply))) {
    fail(lost_error(errno, remote_, options_.user_timeout_ns));
    return {};
  }
  establish(agreed, reply.crc, incoming.request.ours, false);
  return {};
}

void IwarpQueuePair::establish(const Depths& depths, bool crc, bool peer_ours, bool initiator) {
  const uint32_t mss = segment_bytes(socket_.fd());
  const bool large = options_.fpdu_large || peer_ours || mss >= large_segment_bytes;
  StreamParams stream;
  stream.crc = crc;
  stream.ird = depths.ird;
  stream.ord = depths.ord;
  if (!large) stream.fpdu_bytes = mss;
  gate_open_ = !initiator || peer_ours;
  stream.may_send = initiator && gate_open_;
  engine_.start(stream);
  depths_ = depths;
  if (peer_ours) nudges_ = 255;
  cq_.set_timer(*this, gate_open_ ? base::never_ns : silence_after_reply_ns);
  request_.clear();
  reader_.reset();
  path_ = base::text("iwarp tcp mss %u fpdu %s crc %s", mss, large ? "64k" : "mss", crc ? "on" : "off");
  phase_ = Phase::established;
  tell_established_ = true;
  cq_.mark_event(*this);
}

void IwarpQueuePair::send_terminate_and_fail(const TerminateCode& code, Error why) {
  // Best effort: the peer may not even speak FPDUs yet.
  send_all(socket_.fd(), encode_terminate(code, {}, false));
  fail(std::move(why));
}

void IwarpQueuePair::fail(Error why) {
  phase_ = Phase::ended;
  engine_.finish();
  if (socket_) cq_.unwatch(socket_.fd());
  socket_.reset();
  cq_.set_timer(*this, base::never_ns);
  tell_failed_ = std::move(why);
  cq_.mark_event(*this);
}

void IwarpQueuePair::time_out() {
  if (phase_ == Phase::connecting) return fail(connect_error(ETIMEDOUT, remote_));
  fail(
      Error(ETIMEDOUT, ErrorOrigin::connection,
            base::text(
                "%s took the TCP connection but sent %s MPA Reply within %llu s: not an iWARP server, or one "
                "that hangs",
                remote_.text().c_str(), reader_ && reader_->have_bytes() ? "only part of an" : "no",
                static_cast<unsigned long long>(timeout_ns_ / base::seconds(1)))));
}

}  // namespace nfsrdma::rdma::iwarp
