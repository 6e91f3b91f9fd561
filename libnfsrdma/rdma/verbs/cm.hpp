// SPDX-License-Identifier: Apache-2.0
// The connection manager's events, read without blocking and copied, so that each is acknowledged at once:
// rdma_destroy_id() waits for events that are not, and would hang inside a handler.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <memory>
#include <optional>

#include "base/address.hpp"
#include "base/bytes.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::rdma::verbs {

struct CmEvent {
  rdma_cm_event_type type{};
  int status = 0;            // negative errno, or on InfiniBand and RoCE the reason of a rejection
  rdma_cm_id* id = nullptr;  // a connect request's new id, which is the receiver's to destroy
  uint32_t responder_resources = 0;  // Reads that the peer wants to have out towards us
  uint32_t initiator_depth = 0;      // Reads that the peer lets us have out
  size_t private_bytes = 0;
  std::array<std::byte, 256> private_data;
  base::ConstBytes data() const { return {private_data.data(), private_bytes}; }
};

// Who owns an rdma_cm_id, set as its context.
class CmUser {
 public:
  virtual void on_cm_event(const CmEvent& event) = 0;  // on the thread that reads the channel

 protected:
  ~CmUser() = default;
};

class CmChannel {
 public:
  // Opens the connection manager of this machine; the first call in the process also finds its devices.
  static Result<std::shared_ptr<CmChannel>> open();
  ~CmChannel();
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;

  int fd() const { return channel_->fd; }
  rdma_event_channel* get() const { return channel_; }
  // Reads and dispatches what is there; false when nothing was.
  bool dispatch();
  // One event, without dispatching it. EAGAIN: none there.
  Result<CmEvent> read(CmUser** user);

 private:
  explicit CmChannel(rdma_event_channel* channel) : channel_(channel) {}

  rdma_event_channel* channel_;
};

struct CmIdCloser {
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
// The queue pair of an id must be destroyed before the id.
using CmId = std::unique_ptr<rdma_cm_id, CmIdCloser>;

base::SocketAddress address_of(const sockaddr* from);

}  // namespace nfsrdma::rdma::verbs
