// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nfsrdma/export.hpp"
#include "nfsrdma/options.hpp"

namespace nfsrdma {

// Counters of one connection, in the order and meaning of the kernel's `xprt: rdma` line of /proc/self/mountstats.
struct ConnectionStats {
  bool rdma = true;
  bool up = false;
  std::string path;      // "iwarp 127.0.0.1:20049 inline 4096/4096 credits 64 crc off ..."
  uint64_t source_port = 0, bind_count = 0, connect_count = 0, connect_time_ms = 0, idle_time_s = 0;
  uint64_t sends = 0, receives = 0, bad_xids = 0;
  uint64_t in_flight_sum = 0, backlog_sum = 0;  // calls in flight and waiting, summed at each send
  uint64_t read_chunks = 0, write_chunks = 0, reply_chunks = 0;
  uint64_t rdma_request_bytes = 0, rdma_reply_bytes = 0, pullup_bytes = 0, fixup_bytes = 0, hardway_register = 0;
  uint64_t failed_marshal = 0, bad_replies = 0, nomsg_calls = 0;
  uint64_t recovered_mrs = 0, orphaned_mrs = 0, allocated_mrs = 0, local_invalidates = 0, empty_sendctx = 0;
  uint64_t reply_waits_for_send = 0;
  uint64_t credits_granted = 0, in_flight = 0, credit_stalls = 0, reverse_calls = 0, remote_invalidations = 0;
};

// One operation (compound, named by its main operation), as the per-op lines of mountstats.
struct OperationStats {
  std::string name;
  uint64_t calls = 0, transmissions = 0, timeouts = 0, bytes_sent = 0, bytes_received = 0;
  uint64_t queue_ms = 0, response_ms = 0, execute_ms = 0, errors = 0;
};

struct Stats {
  // identity
  std::string server, export_path, server_address, implementation;
  uint32_t minor_version = 1, nconnect = 1, rsize_bytes = 0, wsize_bytes = 0, lease_s = 0, slots = 0;
  uint64_t age_s = 0;
  Options options;
  // bytes by the way they went: direct = placed in the caller's memory, bounced = through the pool
  uint64_t read_bytes = 0, write_bytes = 0, direct_read_bytes = 0, direct_write_bytes = 0, bounced_bytes = 0;
  uint64_t payload_copied_bytes = 0;  // copied in user space by the provider (see Caps::host_copy_free)
  // memory
  uint64_t pool_bytes_max = 0, pool_bytes_registered = 0, pool_bytes_used = 0;
  // recovery
  uint64_t reconnects = 0, replays = 0, commits_resent = 0, callbacks = 0;
  std::vector<ConnectionStats> connections;
  std::vector<OperationStats> operations;
};

// Renderers, any thread. What comes from the server is escaped, so that it makes no line or column of its own.
// The text of /proc/self/mountstats for one mount: `device SERVER:PATH mounted on DIR with fstype nfs4 statvers=1.1`...
NFSRDMA_API std::string render_mountstats(const Stats& stats, const std::string& mount_point);
// One JSON object with every counter; "schema" is raised when a name changes its meaning. No newline.
NFSRDMA_API std::string render_json(const Stats& stats);
// "xprt:\trdma " and 27 numbers, or "xprt:\ttcp " and 13, in the kernel's order; without tab in front and newline.
NFSRDMA_API std::string render_xprt_line(const ConnectionStats& connection);

}  // namespace nfsrdma
