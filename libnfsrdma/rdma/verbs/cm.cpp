// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/cm.hpp"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/log.hpp"

namespace nfsrdma::rdma::verbs {

namespace {

// Without this a fork on a kernel before 5.12 takes registered memory away from the device: the process goes on in a
// copy of what it writes to. Kernels that copy for the child instead are left as they are.
void prepare_for_fork() {
  static std::once_flag once;
  std::call_once(once, [] {
    int error = ibv_fork_init();
    if (error != 0 && ibv_is_fork_initialized() == IBV_FORK_DISABLED)
      base::log(base::LogLevel::warn, "rdma", "registered memory would suffer from a fork of this process: %s",
                strerror(error));
  });
}

}  // namespace

Result<std::shared_ptr<CmChannel>> CmChannel::open() {
  prepare_for_fork();
  rdma_event_channel* channel = rdma_create_event_channel();
  if (!channel) {
    int error = errno;
    int devices = 0;
    ibv_device** list = ibv_get_device_list(&devices);
    if (list) ibv_free_device_list(list);
    if (devices == 0)
      return Error(ENODEV, ErrorOrigin::connection,
                   "provider=verbs: this machine has no RDMA device (ibv_devices lists none); use provider=iwarp "
                   "towards an iWARP server");
    return Error(error, ErrorOrigin::connection,
                 base::text("provider=verbs: the RDMA connection manager cannot be opened: %s; /dev/infiniband/rdma_cm "
                            "must be there and readable (modprobe rdma_ucm; in a container pass /dev/infiniband)",
                            strerror(error)));
  }
  std::shared_ptr<CmChannel> made(new CmChannel(channel));
  int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return Error(errno, ErrorOrigin::local, base::text("connection manager: %s", strerror(errno)));
  return made;
}

CmChannel::~CmChannel() { rdma_destroy_event_channel(channel_); }

Result<CmEvent> CmChannel::read(CmUser** user) {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(channel_, &raw) != 0)
    return Error(errno, ErrorOrigin::local, base::text("connection manager: %s", strerror(errno)));
  CmEvent event;
  event.type = raw->event;
  event.status = raw->status;
  event.id = raw->id;
  if (raw->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    // The new id inherits the listener's context; until a queue pair takes it, its events are nobody's.
    *user = static_cast<CmUser*>(raw->listen_id->context);
    raw->id->context = nullptr;
  } else {
    *user = static_cast<CmUser*>(raw->id->context);
  }
  event.responder_resources = raw->param.conn.responder_resources;
  event.initiator_depth = raw->param.conn.initiator_depth;
  if (raw->param.conn.private_data) {
    event.private_bytes = std::min<size_t>(raw->param.conn.private_data_len, event.private_data.size());
    std::memcpy(event.private_data.data(), raw->param.conn.private_data, event.private_bytes);
  }
  rdma_ack_cm_event(raw);
  return event;
}

bool CmChannel::dispatch() {
  bool any = false;
  for (;;) {
    CmUser* user = nullptr;
    auto event = read(&user);
    if (!event) return any;
    any = true;
    if (user) user->on_cm_event(*event);
  }
}

base::SocketAddress address_of(const sockaddr* from) {
  base::SocketAddress address;
  if (from->sa_family == AF_INET) std::memcpy(&address.storage, from, sizeof(sockaddr_in));
  if (from->sa_family == AF_INET6) std::memcpy(&address.storage, from, sizeof(sockaddr_in6));
  return address;
}

}  // namespace nfsrdma::rdma::verbs
