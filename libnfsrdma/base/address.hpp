// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "nfsrdma/error.hpp"

namespace nfsrdma::base {

// An IPv4 or IPv6 address and port.
struct SocketAddress {
  sockaddr_storage storage{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  socklen_t length() const { return storage.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  sa_family_t family() const { return storage.ss_family; }
  bool valid() const { return family() == AF_INET || family() == AF_INET6; }
  uint16_t port() const;
  void set_port(uint16_t port);
  bool is_loopback() const;
  std::string host_text() const;  // "10.0.2.15", "fe80::1%eth0"
  std::string text() const;       // "10.0.2.15:20049", "[::1]:20049"

  // Numeric addresses only ("10.0.0.1", "::1", "[::1]"): never asks a name server.
  static Result<SocketAddress> parse(std::string_view host, uint16_t port);
  // getaddrinfo: blocks as long as the resolver does; control threads only. EHOSTUNREACH-like errors name the host.
  static Result<SocketAddress> resolve(const std::string& host, uint16_t port);
};

}  // namespace nfsrdma::base
