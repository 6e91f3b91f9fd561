// SPDX-License-Identifier: Apache-2.0
// TCP sockets as iWARP wants them, and the words for what went wrong with them.
#pragma once

#include "base/address.hpp"
#include "base/clock.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::rdma::iwarp {

using base::SocketAddress;
using base::TimeNs;

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Socket() { reset(-1); }
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

Result<Socket> open_listening(const SocketAddress& address);
// Non-blocking, connecting. local may be invalid.
Result<Socket> open_connecting(const SocketAddress& remote, const SocketAddress& local,
                               TimeNs user_timeout_ns);
// For an accepted one.
void tune_connected(int fd, TimeNs user_timeout_ns);

SocketAddress local_address(int fd);
SocketAddress remote_address(int fd);
uint32_t segment_bytes(int fd);  // effective MSS

// One line: what TCP said about connecting to remote, and what to do.
Error connect_error(int errno_value, const SocketAddress& remote);
// About a connection that was up.
Error lost_error(int errno_value, const SocketAddress& remote, TimeNs user_timeout_ns);

}  // namespace nfsrdma::rdma::iwarp
