// SPDX-License-Identifier: Apache-2.0
// Snapshots of a mount: info() and stats().
#include "client/mount_impl.hpp"

namespace nfsrdma {
namespace {

ConnectionStats to_public(const session::Channel::Report& r) {
  const rpc::TransportStats& s = r.stats;
  ConnectionStats c;
  c.rdma = r.rdma;
  c.up = r.up;
  c.path = r.path;
  c.bind_count = s.bind_count;
  c.connect_count = r.connects;
  c.connect_time_ms = s.connect_time_ms;
  c.idle_time_s = s.idle_time_s;
  c.sends = s.sends;
  c.receives = s.receives;
  c.bad_xids = s.bad_xids;
  c.in_flight_sum = s.in_flight_sum;
  c.backlog_sum = s.backlog_sum;
  c.read_chunks = s.read_segments;
  c.write_chunks = s.write_segments;
  c.reply_chunks = s.reply_segments;
  c.rdma_request_bytes = s.total_rdma_request_bytes;
  c.rdma_reply_bytes = s.total_rdma_reply_bytes;
  c.pullup_bytes = s.pullup_bytes;
  c.fixup_bytes = s.fixup_bytes;
  c.hardway_register = s.hardway_register;
  c.failed_marshal = s.failed_marshal;
  c.bad_replies = s.bad_replies;
  c.nomsg_calls = s.nomsg_calls;
  c.local_invalidates = s.local_fences;
  c.credits_granted = r.credits;
  c.in_flight = r.in_flight;
  c.credit_stalls = s.credit_stalls;
  c.reverse_calls = s.reverse_calls;
  c.remote_invalidations = s.remote_invalidations;
  return c;
}

OperationStats to_public(nfs4::Op op, const session::OpCounters& n) {
  auto get = [](const std::atomic<uint64_t>& v) { return v.load(std::memory_order_relaxed); };
  OperationStats o;
  o.name = nfs4::to_string(op);
  o.calls = get(n.calls);
  o.transmissions = get(n.transmissions);
  o.timeouts = get(n.timeouts);
  o.bytes_sent = get(n.bytes_sent);
  o.bytes_received = get(n.bytes_received);
  o.queue_ms = get(n.queue_ns) / 1'000'000;
  o.response_ms = get(n.response_ns) / 1'000'000;
  o.execute_ms = get(n.execute_ns) / 1'000'000;
  o.errors = get(n.errors);
  return o;
}

}  // namespace

MountInfo Mount::Impl::info() {
  MountInfo m;
  if (!server_) return m;
  session::ServerInfo s = server_->info();
  m.server = options_.host;
  m.address = address_.text();
  m.export_path = root_path_;
  m.implementation = s.implementation;
  m.minor_version = s.minor_version;
  m.rsize_bytes = rsize_;
  m.wsize_bytes = wsize_;
  m.lease_s = lease_s_;
  m.slots = s.slots;
  m.name_bytes_max = name_bytes_max_;
  m.file_size_max = file_size_max_;
  m.pool_bytes_max = options_.pool_bytes;
  if (!io::IoLoop::current()) {
    Stats now = stats();
    for (const ConnectionStats& c : now.connections) m.paths.push_back(c.path);
  }
  return m;
}

// What belongs to a loop is read on that loop.
io::Task<Result<Stats>> Mount::Impl::collect_stats() {
  io::IoLoop* from = io::IoLoop::current();
  session::ServerInfo s = server_->info();
  Stats out;
  out.server = options_.host;
  out.export_path = root_path_;
  out.server_address = address_.text();
  out.implementation = s.implementation;
  out.minor_version = s.minor_version;
  out.nconnect = options_.nconnect;
  out.rsize_bytes = rsize_;
  out.wsize_bytes = wsize_;
  out.lease_s = lease_s_;
  out.slots = s.slots;
  out.age_s = (base::system_clock().now_ns() - connected_at_ns_) / 1'000'000'000;
  out.options = options_;
  out.read_bytes = bytes.read.load();
  out.write_bytes = bytes.written.load();
  out.direct_read_bytes = bytes.direct_read.load();
  out.direct_write_bytes = bytes.direct_written.load();
  out.bounced_bytes = bytes.bounced.load();
  out.commits_resent = bytes.commits_resent.load();
  mem::PoolStats pool_now = pool().stats();
  out.pool_bytes_max = pool_now.bytes_max;
  out.pool_bytes_registered = pool_now.bytes_registered;
  out.pool_bytes_used = pool_now.bytes_used;
  out.reconnects = server_->reconnects();
  out.replays = server_->replays();
  out.callbacks = server_->callbacks();
  for (auto& channel : server_->channels()) {
    session::Channel::Report r = co_await channel->report();
    out.connections.push_back(to_public(r));
  }
  for (auto& thread : threads_) {
    co_await thread->loop().enter();
    out.payload_copied_bytes += fabric_->counters(thread->loop()).payload_copied_bytes;
  }
  for (size_t op = 0; op < session::Server::counted_ops; op++) {
    const session::OpCounters& n = server_->counters(static_cast<nfs4::Op>(op));
    if (n.calls.load(std::memory_order_relaxed)) out.operations.push_back(to_public(static_cast<nfs4::Op>(op), n));
  }
  co_await from->enter();
  co_return out;
}

Stats Mount::Impl::stats() {
  auto taken = wait<Stats>([this] { return collect_stats(); });
  return taken ? std::move(*taken) : Stats{};
}

}  // namespace nfsrdma
