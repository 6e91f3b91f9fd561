// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/socket.hpp"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

constexpr int backlog = 128;

void set_option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); }

Error system_error(int errno_value, const std::string& what) {
  return Error(errno_value, ErrorOrigin::local, what + ": " + strerror(errno_value));
}

Result<Socket> open_stream(sa_family_t family) {
  Socket s(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s) return system_error(errno, "cannot make a TCP socket");
  return s;
}

}  // namespace

void Socket::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

Result<Socket> open_listening(const SocketAddress& address) {
  auto s = open_stream(address.family());
  if (!s) return s;
  set_option(s->fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) set_option(s->fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (bind(s->fd(), address.get(), address.length()) != 0 || listen(s->fd(), backlog) != 0)
    return system_error(errno, "cannot listen on " + address.text());
  return s;
}

Result<Socket> open_connecting(const SocketAddress& remote, const SocketAddress& local,
                               TimeNs user_timeout_ns) {
  auto s = open_stream(remote.family());
  if (!s) return s;
  if (local.valid() && bind(s->fd(), local.get(), local.length()) != 0)
    return Error(errno, ErrorOrigin::connection,
                 "cannot use the source address " + local.host_text() + ": " + std::strerror(errno) +
                     "; srcaddr= takes an address of this host, of the family that the server's has");
  tune_connected(s->fd(), user_timeout_ns);
  if (connect(s->fd(), remote.get(), remote.length()) != 0 && errno != EINPROGRESS)
    return connect_error(errno, remote);
  return s;
}

void tune_connected(int fd, TimeNs user_timeout_ns) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  const int ms = static_cast<int>(std::min<TimeNs>(user_timeout_ns / base::ms(1), 1'000'000'000));
  const int s = std::max(1, ms / 1000);
  // Unanswered data ends the connection after the timeout; on an idle one probes do the same.
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, s / 3));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, s / 6));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

SocketAddress local_address(int fd) {
  SocketAddress a;
  socklen_t n = sizeof a.storage;
  getsockname(fd, a.get(), &n);
  return a;
}

SocketAddress remote_address(int fd) {
  SocketAddress a;
  socklen_t n = sizeof a.storage;
  getpeername(fd, a.get(), &n);
  return a;
}

uint32_t segment_bytes(int fd) {
  int mss = 0;
  socklen_t n = sizeof mss;
  if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &n) != 0) return 536;
  return static_cast<uint32_t>(std::max(mss, 256));
}

Error connect_error(int e, const SocketAddress& remote) {
  const std::string host = remote.host_text();
  switch (e) {
    case ECONNREFUSED:
      return Error(
          e, ErrorOrigin::connection,
          base::text("TCP port %u of %s refused: normal for a healthy RoCE or InfiniBand server, whose port "
                     "is not a TCP port; provider=iwarp reaches iWARP servers only (Linux siw, iWARP NICs, "
                     "nfsrdma-serve); reach others by provider=verbs, or start the server",
                     remote.port(), host.c_str()));
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Error(
          e, ErrorOrigin::connection,
          base::text("%s is unreachable from here: check the address, the route and the link", host.c_str()));
    case ETIMEDOUT:
      return Error(
          e, ErrorOrigin::connection,
          base::text("TCP port %u of %s does not answer: the host is down, or a firewall drops the packets",
                     remote.port(), host.c_str()));
    default:
      return Error(
          e, ErrorOrigin::connection,
          base::text("cannot connect to TCP port %u of %s: %s", remote.port(), host.c_str(), strerror(e)));
  }
}

Error lost_error(int e, const SocketAddress& remote, TimeNs user_timeout_ns) {
  if (e == ETIMEDOUT || e == EHOSTUNREACH || e == ENETUNREACH)
    return Error(e, ErrorOrigin::connection,
                 base::text("%s did not answer for %llu s: connection given up", remote.text().c_str(),
                            static_cast<unsigned long long>(user_timeout_ns / base::seconds(1))));
  return Error(e, ErrorOrigin::connection,
               base::text("connection to %s lost: %s", remote.text().c_str(), strerror(e)));
}

}  // namespace nfsrdma::rdma::iwarp
