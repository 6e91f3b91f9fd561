// SPDX-License-Identifier: Apache-2.0
#include "base/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>

namespace nfsrdma::base {
namespace {

Result<SocketAddress> look_up(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  // "20049" and "10.1" are addresses to getaddrinfo, of which nobody thinks: 0.0.78.81 and 10.0.0.1.
  in_addr four;
  if (inet_aton(host.c_str(), &four) && inet_pton(AF_INET, host.c_str(), &four) != 1)
    return Error(EINVAL, ErrorOrigin::connection,
                 "\"" + host + "\" is neither a name nor an IPv4 address, which has four decimal numbers");
  addrinfo* found = nullptr;
  int rc = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (rc != 0)
    return Error(rc == EAI_AGAIN ? EAGAIN : ENOENT, ErrorOrigin::connection,
                 "host name \"" + host + "\" does not resolve (" + gai_strerror(rc) +
                     "); check the name or give a numeric address");
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  address.set_port(port);
  return address;
}

}  // namespace

uint16_t SocketAddress::port() const {
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24) == 127;
}

std::string SocketAddress::host_text() const {
  char host[NI_MAXHOST] = "";
  getnameinfo(get(), length(), host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::string SocketAddress::text() const {
  std::string host = host_text();
  return (family() == AF_INET6 ? "[" + host + "]" : host) + ":" + std::to_string(port());
}

Result<SocketAddress> SocketAddress::parse(std::string_view host, uint16_t port) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return look_up(std::string(host), port, AI_NUMERICHOST);
}

Result<SocketAddress> SocketAddress::resolve(const std::string& host, uint16_t port) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return look_up(host.substr(1, host.size() - 2), port, 0);
  return look_up(host, port, 0);
}

}  // namespace nfsrdma::base
