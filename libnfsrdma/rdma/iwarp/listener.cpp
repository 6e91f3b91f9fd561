// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/listener.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

constexpr TimeNs request_timeout_ns = base::seconds(5);
constexpr TimeNs accept_retry_ns = base::ms(100);
constexpr size_t handshakes_max = 256;

}  // namespace

Handshake::Handshake(IwarpCompletionQueue& cq, IwarpListener& listener, Socket socket)
    : Source(cq), listener_(listener), socket_(std::move(socket)), remote_(remote_address(socket_.fd())) {}

Handshake::~Handshake() {
  if (socket_) cq_.unwatch(socket_.fd());
}

Result<void> Handshake::start() {
  cq_.set_timer(*this, request_timeout_ns);
  return cq_.watch(socket_.fd(), *this);
}

bool Handshake::progress(TimeNs) {
  while (!done_) {
    base::Bytes space = reader_.space();
    ssize_t n = recv(socket_.fd(), space.data(), space.size(), 0);
    cq_.count().syscalls++;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) {
      give_up("it went away");
      return false;
    }
    switch (reader_.advance(static_cast<size_t>(n))) {
      case MpaReader::State::reading:
        break;
      case MpaReader::State::complete: {
        auto problem = request_problem(reader_.frame());
        if (problem) {
          send_rejection(socket_.fd(), reader_.frame(), {});
          give_up(*problem);
          break;
        }
        good_ = done_ = true;
        cq_.mark_event(*this);
        break;
      }
      case MpaReader::State::not_mpa:
      case MpaReader::State::malformed:
        give_up(reader_.problem());
        break;
    }
  }
  return false;
}

void Handshake::on_deadline(TimeNs) { give_up("no MPA Request came within 5 s"); }

void Handshake::give_up(const std::string& why) {
  base::log(base::LogLevel::info, "rdma", "iwarp connection from %s dropped: %s", remote_.text().c_str(),
            why.c_str());
  done_ = true;
  cq_.mark_event(*this);
}

void Handshake::deliver() {
  if (!good_) return listener_.finish(*this, nullptr);
  cq_.unwatch(socket_.fd());
  auto incoming = std::make_unique<IncomingConnection>();
  incoming->local = local_address(socket_.fd());
  incoming->remote = remote_;
  incoming->request = reader_.frame();
  incoming->socket = std::move(socket_);
  listener_.finish(*this, std::move(incoming));
}

IwarpListener::IwarpListener(const IwarpOptions& options, std::shared_ptr<Device> device,
                             IwarpCompletionQueue& cq, ListenHandler& handler, Socket socket)
    : Source(cq),
      options_(options),
      device_(std::move(device)),
      handler_(handler),
      socket_(std::move(socket)),
      address_(local_address(socket_.fd())) {}

IwarpListener::~IwarpListener() { cq_.unwatch(socket_.fd()); }

Result<void> IwarpListener::start() { return cq_.watch(socket_.fd(), *this); }

bool IwarpListener::progress(TimeNs) {
  for (;;) {
    Socket accepted(accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    cq_.count().syscalls++;
    if (!accepted) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return false;
      base::log(base::LogLevel::warn, "rdma", "cannot accept on %s: %s", address_.text().c_str(),
                strerror(errno));
      cq_.set_timer(*this, accept_retry_ns);  // out of descriptors: the edge is spent, so ask again
      return false;
    }
    if (handshakes_.size() >= handshakes_max) continue;
    tune_connected(accepted.fd(), options_.user_timeout_ns);
    auto handshake = std::make_unique<Handshake>(cq_, *this, std::move(accepted));
    if (handshake->start()) handshakes_.push_back(std::move(handshake));
  }
}

void IwarpListener::on_deadline(TimeNs) { cq_.mark_ready(*this); }

void IwarpListener::finish(Handshake& handshake, std::unique_ptr<IncomingConnection> incoming) {
  std::erase_if(handshakes_, [&](const std::unique_ptr<Handshake>& h) { return h.get() == &handshake; });
  if (incoming) handler_.on_request(std::make_unique<IwarpRequest>(options_, device_, std::move(*incoming)));
}

void send_rejection(int fd, const MpaFrame& request, base::ConstBytes private_data) {
  Depths none;
  MpaFrame reply = answer_request(request, {}, false, &none);
  reply.reject = true;
  reply.private_data.assign(private_data.begin(), private_data.end());
  std::vector<std::byte> frame = encode_mpa(reply);
  [[maybe_unused]] ssize_t n = send(fd, frame.data(), frame.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
}

IwarpRequest::~IwarpRequest() {
  if (incoming_.socket) reject({});
}

uint32_t IwarpRequest::ird_offered() const {
  const MpaFrame& request = incoming_.request;
  if (!request.enhanced || request.ird == depth_not_negotiated) return iwarp_caps().ord_max;
  return std::min<uint32_t>(request.ird, iwarp_caps().ord_max);
}

Result<std::unique_ptr<QueuePair>> IwarpRequest::create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                                   const QueuePairParams& params,
                                                                   ConnectionHandler& handler) {
  if (!incoming_.socket) return Error(EINVAL, ErrorOrigin::usage, "the request was answered already");
  auto pair = std::make_unique<IwarpQueuePair>(options_, static_cast<IwarpDomain&>(pd).users(),
                                               static_cast<IwarpCompletionQueue&>(cq), params, handler);
  pair->adopt(std::move(incoming_));
  return std::unique_ptr<QueuePair>(std::move(pair));
}

void IwarpRequest::reject(ConstBytes private_data) {
  if (!incoming_.socket) return;
  send_rejection(incoming_.socket.fd(), incoming_.request,
                 private_data.first(std::min(private_data.size(), consumer_private_bytes_max)));
  incoming_.socket.reset();
}

}  // namespace nfsrdma::rdma::iwarp
