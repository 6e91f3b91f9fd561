// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/queue_pair.hpp"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/log.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

constexpr TimeNs linger_ns = base::seconds(1);
constexpr TimeNs nudge_after_ns = base::ms(100);
constexpr uint8_t nudges_max = 3;
// Reads of one socket before the others and the completions get their turn.
constexpr int reads_per_turn = 16;

QueuePairParams clamp(QueuePairParams params) {
  params.ird = std::min(params.ird, iwarp_caps().ird_max);
  params.ord = std::min(params.ord, iwarp_caps().ord_max);
  return params;
}

}  // namespace

IwarpQueuePair::IwarpQueuePair(const IwarpOptions& options, std::shared_ptr<MemoryUsers> users,
                               IwarpCompletionQueue& cq, const QueuePairParams& params,
                               ConnectionHandler& handler)
    : Source(cq),
      options_(options),
      users_(std::move(users)),
      handler_(handler),
      params_(clamp(params)),
      engine_(params_, *this, users_) {
  cq_.reserve(params_.send_depth + params_.receive_depth);
  users_->add(*this);
}

IwarpQueuePair::~IwarpQueuePair() {
  users_->remove(*this);
  if (socket_) cq_.unwatch(socket_.fd());
  cq_.forget(this);
}

// Whoever posts between the end and its event hears the cause here first.
Error IwarpQueuePair::ended() const {
  return Error(ENOTCONN, ErrorOrigin::connection,
               "the connection has ended: " + (end_reason_ ? end_reason_->text() : remote_.text()));
}

void IwarpQueuePair::quiesce() { std::lock_guard lock(cq_.touching()); }

Result<void> IwarpQueuePair::post_send(std::span<const SendRequest> requests) {
  if (phase_ < Phase::established)
    return Error(ENOTCONN, ErrorOrigin::connection, "the iwarp connection is not up yet");
  if (phase_ > Phase::established) return ended();
  return engine_.post_send(requests);
}

Result<void> IwarpQueuePair::post_receive(std::span<const ReceiveRequest> requests) {
  if (phase_ >= Phase::closing) return ended();
  return engine_.post_receive(requests);
}

Result<Exposure> IwarpQueuePair::expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) {
  if (phase_ >= Phase::closing) return ended();
  return engine_.expose(region, offset, length, purpose);
}

bool IwarpQueuePair::fence(const Exposure& exposure, uint64_t id) { return engine_.fence(exposure, id); }

void IwarpQueuePair::flush() {
  if (phase_ != Phase::established || !gate_open_) return;
  bool more;
  {
    std::lock_guard lock(cq_.touching());
    more = transmit();
  }
  if (more) cq_.mark_ready(*this);
}

void IwarpQueuePair::disconnect() {
  if (phase_ == Phase::connecting || phase_ == Phase::requested)
    return fail(
        Error(ECANCELED, ErrorOrigin::connection, "connecting to " + remote_.text() + " was cancelled"));
  if (phase_ != Phase::established) return;
  std::lock_guard lock(cq_.touching());
  end_stream(
      Error(ESHUTDOWN, ErrorOrigin::connection, "this side closed the connection to " + remote_.text()),
      true);
}

void IwarpQueuePair::on_socket(uint32_t events) {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) eof_near_ = true;
}

bool IwarpQueuePair::progress(TimeNs) {
  if (phase_ == Phase::connecting && writable_) start_request();
  if (phase_ == Phase::requested) read_reply();
  if (phase_ == Phase::established) {
    bool more = receive();
    if (phase_ == Phase::established && gate_open_) more |= transmit();
    if (phase_ == Phase::established) return more;
  }
  return phase_ == Phase::closing && progress_closing();
}

bool IwarpQueuePair::receive() {
  for (int turn = 0; readable_ && turn < reads_per_turn; turn++) {
    iovec iov[2];
    size_t pieces = engine_.plan_receive(iov);
    if (pieces == 0) break;
    size_t asked = iov[0].iov_len + (pieces == 2 ? iov[1].iov_len : 0);
    ssize_t n = readv(socket_.fd(), iov, static_cast<int>(pieces));
    cq_.count().syscalls++;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      readable_ = false;
      break;
    }
    if (n < 0) {
      end_stream(lost_error(errno, remote_, options_.user_timeout_ns), false);
      return false;
    }
    if (n == 0) {
      peer_closed();
      return false;
    }
    cq_.note_movement();
    if (static_cast<size_t>(n) < asked && !eof_near_) readable_ = false;
    if (!engine_.received(static_cast<size_t>(n))) break;
  }
  ProviderCounters& counters = cq_.count();
  const Receiver& receiver = engine_.receiver();
  counters.payload_direct_bytes +=
      receiver.direct_bytes() - std::exchange(direct_counted_, receiver.direct_bytes());
  counters.payload_copied_bytes +=
      receiver.copied_bytes() - std::exchange(copied_counted_, receiver.copied_bytes());
  if (engine_.failure()) {
    end_stream(engine_.failure()->error.in(remote_.text()), engine_.failure()->tell_peer);
    return false;
  }
  return readable_;
}

bool IwarpQueuePair::transmit() {
  while (writable_) {
    std::span<iovec> iov = engine_.plan_send();
    if (engine_.failure()) {
      end_stream(engine_.failure()->error.in(remote_.text()), true);
      return true;
    }
    if (iov.empty()) break;
    msghdr message{};
    message.msg_iov = iov.data();
    message.msg_iovlen = iov.size();
    ssize_t n = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
    cq_.count().syscalls++;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      writable_ = false;
      break;
    }
    if (n < 0 && errno == EFAULT) {
      end_stream(Error(EFAULT, ErrorOrigin::local,
                       "connection to " + remote_.text() +
                           " given up: memory to be sent is gone (a mapped file was truncated)"),
                 false);
      return true;
    }
    if (n < 0) {
      // What the peer had to say, a Terminate perhaps, may still be unread: it tells more than EPIPE.
      readable_ = eof_near_ = true;
      writable_ = false;
      return true;
    }
    cq_.note_movement();
    engine_.sent(static_cast<size_t>(n));
  }
  if (initiator_ && nudges_ == 0 && engine_.bytes_sent() > 0 && !engine_.heard()) {
    nudges_ = 1;
    cq_.set_timer(*this, nudge_after_ns);
  }
  return writable_ && engine_.has_output();
}

void IwarpQueuePair::on_deadline(TimeNs) {
  if (phase_ == Phase::connecting || phase_ == Phase::requested) return time_out();
  if (phase_ == Phase::closing) return close_now();
  if (phase_ != Phase::established) return;
  if (!gate_open_) {
    gate_open_ = true;
    engine_.open_gate();
    cq_.mark_ready(*this);
  } else {
    nudge();
  }
}

// Linux siw can lose the wake-up for the first FPDU; any further byte mends it. A zero-length RDMA Write is
// the one message that means nothing.
void IwarpQueuePair::nudge() {
  if (engine_.heard() || nudges_ > nudges_max) return;
  engine_.post_empty_write();
  cq_.set_timer(*this, nudge_after_ns << nudges_);
  nudges_++;
  cq_.mark_ready(*this);
}

void IwarpQueuePair::peer_closed() {
  if (engine_.receive_at_boundary())
    return end_stream(Error(ECONNRESET, ErrorOrigin::connection, remote_.text() + " closed the connection"),
                      false);
  end_stream(Error(ECONNRESET, ErrorOrigin::connection,
                   remote_.text() + " closed the connection in the middle of a message"),
             false);
}

void IwarpQueuePair::end_stream(Error why, bool linger) {
  tail_ = engine_.finish();
  tail_sent_ = 0;
  end_reason_ = std::move(why);
  phase_ = Phase::closing;
  if (!linger) return close_now();
  cq_.set_timer(*this, linger_ns);
  cq_.mark_ready(*this);
}

// Sends what is left, says that nothing more comes, and waits for the peer to do the same.
bool IwarpQueuePair::progress_closing() {
  while (writable_ && tail_sent_ < tail_.size()) {
    ssize_t n = send(socket_.fd(), tail_.data() + tail_sent_, tail_.size() - tail_sent_, MSG_NOSIGNAL);
    cq_.count().syscalls++;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) {
      close_now();
      return false;
    }
    if (n < 0)
      writable_ = false;
    else
      tail_sent_ += static_cast<size_t>(n);
  }
  if (tail_sent_ == tail_.size() && !std::exchange(shut_, true)) shutdown(socket_.fd(), SHUT_WR);
  std::byte scratch[4096];
  for (int turn = 0; readable_ && turn < reads_per_turn; turn++) {
    ssize_t n = recv(socket_.fd(), scratch, sizeof scratch, 0);
    cq_.count().syscalls++;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && errno == EAGAIN) {
      readable_ = false;
      return false;
    }
    close_now();
    return false;
  }
  return readable_;
}

void IwarpQueuePair::close_now() {
  phase_ = Phase::ended;
  if (socket_) cq_.unwatch(socket_.fd());
  socket_.reset();
  cq_.set_timer(*this, base::never_ns);
  tail_.clear();
  tell_disconnected_ = end_reason_;
  cq_.mark_event(*this);
}

void IwarpQueuePair::deliver() {
  if (std::exchange(tell_established_, false)) {
    ConnectionInfo info;
    info.private_data = peer_private_;
    info.ird = depths_.ird;
    info.ord = depths_.ord;
    info.local = local_;
    info.remote = remote_;
    info.source_untouched = !engine_.crc();
    info.path = path_;
    handler_.on_established(info);
  }
  if (auto why = std::exchange(tell_failed_, std::nullopt)) handler_.on_failed(*why);
  if (auto why = std::exchange(tell_disconnected_, std::nullopt)) handler_.on_disconnected(*why);
}

}  // namespace nfsrdma::rdma::iwarp
