// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/errors.hpp"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

// Reasons of a rejection on InfiniBand and RoCE (IBTA volume 1, section 12.6.7.2).
constexpr int reject_timeout = 4;
constexpr int reject_invalid_service = 8;
constexpr int reject_consumer = 28;

// "10.0.0.1:20049 through rxe0/1 from 10.0.0.2"
std::string where(const Attempt& attempt) {
  std::string text = "verbs: " + attempt.remote.text();
  if (attempt.device) text += " through " + attempt.device->label();
  if (attempt.local.valid()) text += " from " + attempt.local.host_text();
  return text;
}

Error failure(int error, const Attempt& attempt, const std::string& what) {
  return Error(error, ErrorOrigin::connection, where(attempt) + ": " + what);
}

bool same_host(const sockaddr* a, const SocketAddress& b) {
  if (!a || a->sa_family != b.family()) return false;
  if (a->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b.get())->sin_addr.s_addr;
  return memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                &reinterpret_cast<const sockaddr_in6*>(b.get())->sin6_addr, sizeof(in6_addr)) == 0;
}

std::string interface_of(const SocketAddress& address) {
  ifaddrs* list = nullptr;
  std::string name;
  if (getifaddrs(&list) != 0) return name;
  for (ifaddrs* i = list; i && name.empty(); i = i->ifa_next)
    if (same_host(i->ifa_addr, address)) name = i->ifa_name;
  freeifaddrs(list);
  return name;
}

Error no_listener(const Attempt& attempt) {
  return failure(ECONNREFUSED, attempt,
                 base::text("no listener: the host answers, but nothing listens on RDMA port %u there; is its RDMA "
                            "service on, at this port (on a Linux server: rpc.nfsd --rdma=20049)?",
                            attempt.remote.port()));
}

Error consumer_reject(const Attempt& attempt, const CmEvent& event) {
  // InfiniBand's rejections have a field of fixed size for private data, filled up with zeros.
  ConstBytes data = event.data();
  while (!data.empty() && data.back() == std::byte{0}) data = data.first(data.size() - 1);
  return failure(ECONNREFUSED, attempt,
                 base::text("rejected by the service that listens there (status %d%s); the server's log has its reason%s",
                            event.status, describe_private_data(data).c_str(),
                            attempt.device && attempt.device->iwarp
                                ? "; a TCP port that speaks no iWARP ends a connection in the same way"
                                : ""));
}

Error rejection(const Attempt& attempt, const CmEvent& event) {
  if (attempt.device && attempt.device->iwarp) return consumer_reject(attempt, event);
  if (event.status == reject_invalid_service) return no_listener(attempt);
  if (event.status == reject_consumer) return consumer_reject(attempt, event);
  if (event.status == reject_timeout)
    return failure(ETIMEDOUT, attempt, "the peer's connection manager gave the handshake up (time-out at the peer)");
  return failure(ECONNREFUSED, attempt,
                 base::text("rejected by the peer's connection manager, reason %d", event.status));
}

const char* stage_text(Stage stage) {
  switch (stage) {
    case Stage::address: return "nobody answered for the address on the local network (neighbour resolution)";
    case Stage::route: return "no path was found to the peer (route resolution; is a subnet manager running?)";
    case Stage::tcp: return "TCP got no answer; the host is down, or a firewall drops the port";
    case Stage::request:
      return "the host's RDMA connection manager did not answer; is RDMA on there, and are UDP port 4791 (RoCE) or "
             "the TCP port (iWARP) open in between?";
    case Stage::reply: return "the peer sent a request and then went silent";
  }
  return "";
}

}  // namespace

std::string device_names() {
  int n = 0;
  ibv_device** list = ibv_get_device_list(&n);
  std::string names;
  for (int i = 0; list && i < n; i++) names += (names.empty() ? "" : ", ") + std::string(ibv_get_device_name(list[i]));
  if (list) ibv_free_device_list(list);
  return names.empty() ? "none" : names;
}

namespace {

// Has this host an RDMA device behind a local address?
bool has_device(SocketAddress local) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(nullptr, &raw, nullptr, RDMA_PS_TCP) != 0) return false;
  CmId id(raw);
  local.set_port(0);
  return rdma_bind_addr(raw, local.get()) == 0 && raw->verbs;
}

struct Route {
  std::string interface;  // "eth1 (192.168.1.5)", "" when there is none
  bool device = false;
};

// Where the kernel would send packets for an address.
Route find_route(const SocketAddress& remote, const SocketAddress& local) {
  Route route;
  int fd = socket(remote.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return route;
  SocketAddress from = local;
  if (local.valid()) {
    from.set_port(0);
    if (bind(fd, from.get(), from.length()) != 0) from = {};
  }
  SocketAddress own;
  socklen_t length = sizeof own.storage;
  // Connecting a datagram socket sends nothing; it only asks the routing table.
  if (connect(fd, remote.get(), remote.length()) == 0 && getsockname(fd, own.get(), &length) == 0) {
    route.interface = interface_of(own) + " (" + own.host_text() + ")";
    route.device = has_device(own);
  }
  close(fd);
  return route;
}

}  // namespace

Error address_error(const Attempt& attempt, int error) {
  std::string devices = device_names();
  if (devices == "none")
    return failure(ENODEV, attempt,
                   "this machine has no RDMA device; use provider=iwarp towards an iWARP server");
  if (error == EADDRNOTAVAIL)
    return failure(error, attempt, "the source address (srcaddr=) belongs to no interface of this host");
  Route route = find_route(attempt.remote, attempt.local);
  const char* interface = route.interface.c_str();
  if (route.interface.empty())
    return failure(error == ENODEV ? ENETUNREACH : error, attempt,
                   "unreachable: this host has no route to the address; check address and routing table");
  // Asked first, because a neighbour that is looked for through an interface without a device may time out instead.
  if (error == ENODEV || !route.device)
    return failure(ENODEV, attempt,
                   base::text("no RDMA device for the route: it leaves by %s, which has none (RDMA devices here: %s); "
                              "give the address of an interface that has one (srcaddr=), or use provider=iwarp "
                              "towards an iWARP server",
                              interface, devices.c_str()));
  if (error == ETIMEDOUT || error == EHOSTUNREACH)
    return failure(error, attempt, base::text("unreachable by %s: %s", interface, stage_text(Stage::address)));
  return failure(error, attempt,
                 base::text("address resolution by %s failed: %s (RDMA devices here: %s)", interface, strerror(error),
                            devices.c_str()));
}

Error event_error(const Attempt& attempt, Stage stage, const CmEvent& event) {
  int error = event.status < 0 ? -event.status : EIO;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR: return address_error(attempt, error);
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return failure(error == EIO ? EHOSTUNREACH : error, attempt,
                     base::text("unreachable: %s: %s", stage_text(Stage::route), strerror(error)));
    case RDMA_CM_EVENT_REJECTED: return rejection(attempt, event);
    case RDMA_CM_EVENT_UNREACHABLE:
      return failure(error == EIO ? ETIMEDOUT : error, attempt,
                     base::text("no answer: %s", stage_text(stage == Stage::reply ? stage : Stage::request)));
    case RDMA_CM_EVENT_CONNECT_ERROR:
      if (attempt.device && attempt.device->iwarp)
        return failure(error, attempt,
                       base::text("the TCP port takes connections, but the handshake (MPA) failed: %s; is this the "
                                  "server's RDMA port (20049), and does it speak iWARP? RoCE and TCP ports do not",
                                  strerror(error)));
      return failure(error, attempt, base::text("the connection could not be set up: %s", strerror(error)));
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return failure(ENODEV, attempt, "the RDMA device was removed");
    default:
      return failure(error, attempt, base::text("unexpected %s, status %d", rdma_event_str(event.type), event.status));
  }
}

Error call_error(const Attempt& attempt, const char* what, int error) {
  error = std::abs(error);  // siw's driver gives some as the kernel does
  return failure(error, attempt, base::text("%s failed: %s", what, strerror(error)));
}

Error tcp_error(const Attempt& attempt, int error) {
  if (error == ECONNREFUSED) return no_listener(attempt);
  if (error == ETIMEDOUT) return failure(error, attempt, base::text("no answer: %s", stage_text(Stage::tcp)));
  return failure(error, attempt, base::text("unreachable: %s", strerror(error)));
}

Error timeout_error(const Attempt& attempt, Stage stage, TimeNs after_ns) {
  return failure(ETIMEDOUT, attempt,
                 base::text("no connection within %.1f s: %s", static_cast<double>(after_ns) / 1e9, stage_text(stage)));
}

Error other_device_error(const Attempt& attempt, ibv_context* other) {
  std::string now = other ? ibv_get_device_name(other->device) : "no RDMA device";
  // The same name is another device still, when a driver was loaded anew.
  if (attempt.device && now == attempt.device->name) now += " (added anew)";
  return failure(EHOSTUNREACH, attempt, "the route leaves by " + now + " now: connect to the server afresh (mount again)");
}

Error ended_error() { return Error(ENOTCONN, ErrorOrigin::connection, "the verbs connection has ended"); }

Error disconnect_error(const Attempt& attempt, const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_UNREACHABLE:
      return failure(event.status < 0 ? -event.status : ETIMEDOUT, attempt,
                     "the peer became unreachable (its hardware address changed)");
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return failure(ENODEV, attempt, "the RDMA device was removed");
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return failure(ENETDOWN, attempt, "the address moved away from the RDMA device");
    default: return failure(ECONNRESET, attempt, "the peer closed the connection");
  }
}

Error completion_error(const Attempt& attempt, const ibv_wc& wc) {
  std::string text = base::text("%s (vendor code 0x%x)", ibv_wc_status_str(wc.status), wc.vendor_err);
  switch (wc.status) {
    case IBV_WC_RETRY_EXC_ERR:
      return failure(ETIMEDOUT, attempt,
                     base::text("the peer does not answer: %s; the link or the peer is down, or, when short messages "
                                "pass and long ones do not, the MTU of the path (%u on this device) does not reach "
                                "from end to end",
                                text.c_str(), attempt.device ? attempt.device->mtu_bytes : 0));
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return failure(EPROTO, attempt, "the peer has no Receive posted: it does not keep its own credits: " + text);
    case IBV_WC_LOC_LEN_ERR:
      return failure(EMSGSIZE, attempt, "a message was longer than its Receive, or data longer than its sink: " + text);
    case IBV_WC_WR_FLUSH_ERR: return failure(ECONNRESET, attempt, "the connection broke");
    default: return failure(EIO, attempt, text);
  }
}

}  // namespace nfsrdma::rdma::verbs
