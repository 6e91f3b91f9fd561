// SPDX-License-Identifier: Apache-2.0
// Reads a capture of NFS over RDMA over iWARP back into RPC messages: pcap, Ethernet, IPv4, TCP, MPA, DDP,
// RDMAP and RPC-over-RDMA, all written for this purpose and independent of the product's own layers, so that
// a mistake there cannot hide itself here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nfsrdma::capture {

using Buffer = std::vector<std::byte>;

// One RPC message, as its RPC-over-RDMA header says it travelled.
struct RpcMessage {
  uint32_t connection = 0;   // counted in order of appearance
  bool from_client = false;  // the side that opened the connection
  uint32_t xid = 0;
  Buffer bytes;  // the RPC message; without the data that went by read or write chunk
  // Data that went by RDMA: a call's read chunk or a reply's write chunk, gathered from the captured
  // segments.
  std::optional<Buffer> data;
  uint32_t data_position = 0;  // of a read chunk, in the RPC message
  bool by_chunk = false;       // the message itself went by RDMA (RDMA_NOMSG)
  bool is_call() const;
};

struct Capture {
  std::vector<RpcMessage> messages;  // in the order of their Sends
  uint32_t connections = 0;
  uint32_t fpdus = 0;
  std::vector<std::string> complaints;  // whatever the file holds that the layers do not explain
};

Capture read_capture(const std::string& path);

}  // namespace nfsrdma::capture
