// SPDX-License-Identifier: Apache-2.0
// The layout of /proc/self/mountstats, which nfs-utils' mountstats and nfsiostat and people's scripts read.
#include <algorithm>
#include <initializer_list>

#include "base/log.hpp"
#include "nfsrdma/stats.hpp"

namespace nfsrdma {
namespace {

constexpr uint64_t page_bytes = 4096;

// White space and backslashes as octal escapes, like the kernel's; other control characters too.
std::string mangled(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (u <= 0x20 || u == 0x7f || c == '\\')
      out += base::text("\\%03o", u);
    else
      out += c;
  }
  return out;
}

// The same for text between quotation marks in a list with commas.
std::string mangled_in_list(std::string_view text) {
  std::string out = mangled(text);
  std::replace(out.begin(), out.end(), ',', ';');
  std::replace(out.begin(), out.end(), '\'', '"');
  return out;
}

std::string numbers(std::initializer_list<uint64_t> values) {
  std::string out;
  for (uint64_t v : values) {
    if (!out.empty()) out += ' ';
    out += std::to_string(v);
  }
  return out;
}

uint64_t calls_of(const Stats& stats, std::initializer_list<std::string_view> names) {
  uint64_t calls = 0;
  for (const OperationStats& op : stats.operations)
    if (std::find(names.begin(), names.end(), op.name) != names.end()) calls += op.calls;
  return calls;
}

std::string option_text(const Stats& stats) {
  const Options& o = stats.options;
  auto has = [&](std::string_view word) {
    return std::find(o.mount_words.begin(), o.mount_words.end(), word) != o.mount_words.end();
  };
  std::string out = o.read_only ? "ro" : "rw";
  if (o.sync_writes) out += ",sync";
  if (has("noatime")) out += ",noatime";
  if (has("nodiratime")) out += ",nodiratime";
  out += base::text(",vers=4.%u,rsize=%u,wsize=%u,namlen=255", stats.minor_version, stats.rsize_bytes,
                    stats.wsize_bytes);
  if (o.noac)
    out += ",acregmin=0,acregmax=0,acdirmin=0,acdirmax=0";
  else
    out += base::text(",acregmin=%u,acregmax=%u,acdirmin=%u,acdirmax=%u", o.acregmin_s, o.acregmax_s,
                      o.acdirmin_s, o.acdirmax_s);
  out += o.retry_policy == RetryPolicy::hard   ? ",hard"
         : o.retry_policy == RetryPolicy::soft ? ",soft"
                                               : ",softerr";
  if (!o.close_to_open) out += ",nocto";
  if (o.noac) out += ",noac";
  if (o.rdirplus == Switch::off) out += ",nordirplus";
  out += o.protocol == Protocol::tcp ? ",proto=tcp" : ",proto=rdma";
  if (stats.nconnect > 1) out += base::text(",nconnect=%u", stats.nconnect);
  if (o.effective_port() != 2049) out += base::text(",port=%u", unsigned{o.effective_port()});
  out += base::text(",timeo=%u,retrans=%u,sec=sys,clientaddr=0.0.0.0", o.timeo_ds, o.retrans);
  if (o.lookup_cache == LookupCache::none) out += ",lookupcache=none";
  if (o.lookup_cache == LookupCache::positive) out += ",lookupcache=pos";
  return out + ",local_lock=none";
}

// The kernel counts these where its page cache is entered; the nearest call to the server stands for each.
std::string event_text(const Stats& stats) {
  auto calls = [&](std::initializer_list<std::string_view> names) { return calls_of(stats, names); };
  const uint64_t reads = calls({"READ"}), writes = calls({"WRITE"}), commits = calls({"COMMIT"});
  return numbers({calls({"GETATTR"}),
                  0,
                  0,
                  0,
                  calls({"OPEN", "OPEN_NOATTR"}),
                  calls({"LOOKUP", "LOOKUP_ROOT"}),
                  calls({"ACCESS"}),
                  0,
                  0,
                  reads,
                  0,
                  writes,
                  calls({"READDIR"}),
                  calls({"SETATTR"}),
                  commits,
                  commits,
                  calls({"LOCK", "LOCKU"}),
                  calls({"CLOSE"}),
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0});
}

std::string byte_text(const Stats& stats) {
  const uint64_t reads = stats.read_bytes, writes = stats.write_bytes;
  const uint64_t direct_reads = std::min(stats.direct_read_bytes, reads);
  const uint64_t direct_writes = std::min(stats.direct_write_bytes, writes);
  return numbers({reads - direct_reads, writes - direct_writes, direct_reads, direct_writes, reads, writes,
                  reads / page_bytes, writes / page_bytes});
}

// Every client procedure in the kernel's order: programs that read per-op lines expect those with zeros too.
constexpr std::string_view procedures[] = {"NULL",
                                           "READ",
                                           "WRITE",
                                           "COMMIT",
                                           "OPEN",
                                           "OPEN_CONFIRM",
                                           "OPEN_NOATTR",
                                           "OPEN_DOWNGRADE",
                                           "CLOSE",
                                           "SETATTR",
                                           "FSINFO",
                                           "RENEW",
                                           "SETCLIENTID",
                                           "SETCLIENTID_CONFIRM",
                                           "LOCK",
                                           "LOCKT",
                                           "LOCKU",
                                           "ACCESS",
                                           "GETATTR",
                                           "LOOKUP",
                                           "LOOKUP_ROOT",
                                           "REMOVE",
                                           "RENAME",
                                           "LINK",
                                           "SYMLINK",
                                           "CREATE",
                                           "PATHCONF",
                                           "STATFS",
                                           "READLINK",
                                           "READDIR",
                                           "SERVER_CAPS",
                                           "DELEGRETURN",
                                           "GETACL",
                                           "SETACL",
                                           "FS_LOCATIONS",
                                           "RELEASE_LOCKOWNER",
                                           "SECINFO",
                                           "FSID_PRESENT",
                                           "EXCHANGE_ID",
                                           "CREATE_SESSION",
                                           "DESTROY_SESSION",
                                           "SEQUENCE",
                                           "GET_LEASE_TIME",
                                           "RECLAIM_COMPLETE",
                                           "LAYOUTGET",
                                           "GETDEVICEINFO",
                                           "LAYOUTCOMMIT",
                                           "LAYOUTRETURN",
                                           "SECINFO_NO_NAME",
                                           "TEST_STATEID",
                                           "FREE_STATEID",
                                           "GETDEVICELIST",
                                           "BIND_CONN_TO_SESSION",
                                           "DESTROY_CLIENTID",
                                           "SEEK",
                                           "ALLOCATE",
                                           "DEALLOCATE",
                                           "LAYOUTSTATS",
                                           "CLONE",
                                           "COPY",
                                           "OFFLOAD_CANCEL",
                                           "LOOKUPP",
                                           "LAYOUTERROR",
                                           "COPY_NOTIFY",
                                           "GETXATTR",
                                           "SETXATTR",
                                           "LISTXATTRS",
                                           "REMOVEXATTR",
                                           "READ_PLUS"};

void add(OperationStats& sum, const OperationStats& op) {
  sum.calls += op.calls;
  sum.transmissions += op.transmissions;
  sum.timeouts += op.timeouts;
  sum.bytes_sent += op.bytes_sent;
  sum.bytes_received += op.bytes_received;
  sum.queue_ms += op.queue_ms;
  sum.response_ms += op.response_ms;
  sum.execute_ms += op.execute_ms;
  sum.errors += op.errors;
}

// The kernel's procedures, then ours that it does not have; each name once.
std::vector<OperationStats> operations_in_order(const Stats& stats) {
  std::vector<OperationStats> all;
  for (std::string_view name : procedures) all.push_back({.name = std::string(name)});
  for (const OperationStats& op : stats.operations) {
    auto same =
        std::find_if(all.begin(), all.end(), [&](const OperationStats& o) { return o.name == op.name; });
    if (same == all.end())
      all.push_back(op);
    else
      add(*same, op);
  }
  return all;
}

std::string operation_text(const OperationStats& op) {
  return base::text("\t%12s: ", mangled(op.name).c_str()) +
         numbers({op.calls, op.transmissions, op.timeouts, op.bytes_sent, op.bytes_received, op.queue_ms,
                  op.response_ms, op.execute_ms, op.errors}) +
         "\n";
}

}  // namespace

std::string render_xprt_line(const ConnectionStats& c) {
  if (!c.rdma)
    return "xprt:\ttcp " + numbers({c.source_port, c.bind_count, c.connect_count, c.connect_time_ms / 1000,
                                    c.idle_time_s, c.sends, c.receives, c.bad_xids, c.in_flight_sum,
                                    c.backlog_sum, c.credits_granted, 0, 0});
  return "xprt:\trdma " + numbers({c.source_port,
                                   c.bind_count,
                                   c.connect_count,
                                   c.connect_time_ms / 1000,
                                   c.idle_time_s,
                                   c.sends,
                                   c.receives,
                                   c.bad_xids,
                                   c.in_flight_sum,
                                   c.backlog_sum,
                                   c.read_chunks,
                                   c.write_chunks,
                                   c.reply_chunks,
                                   c.rdma_request_bytes,
                                   c.rdma_reply_bytes,
                                   c.pullup_bytes,
                                   c.fixup_bytes,
                                   c.hardway_register,
                                   c.failed_marshal,
                                   c.bad_replies,
                                   c.nomsg_calls,
                                   c.recovered_mrs,
                                   c.orphaned_mrs,
                                   c.allocated_mrs,
                                   c.local_invalidates,
                                   c.empty_sendctx,
                                   c.reply_waits_for_send});
}

std::string render_mountstats(const Stats& stats, const std::string& mount_point) {
  const std::string path = stats.export_path.empty() ? "/" : stats.export_path;
  const bool brackets = stats.server.find(':') != std::string::npos && !stats.server.starts_with('[');
  const std::string server = brackets ? "[" + stats.server + "]" : stats.server;
  std::string out = "device " + mangled(server + ":" + path) + " mounted on " + mangled(mount_point) +
                    " with fstype nfs4 statvers=1.1\n";
  out += "\topts:\t" + option_text(stats) + "\n";
  out += "\tage:\t" + std::to_string(stats.age_s) + "\n";
  if (!stats.implementation.empty())
    out += "\timpl_id:\tname='" + mangled_in_list(stats.implementation) + "',domain='',date='0,0'\n";
  out += base::text("\tcaps:\tcaps=0x0,wtmult=512,dtsize=%u,bsize=0,namlen=255\n", stats.rsize_bytes);
  out += base::text(
      "\tnfsv4:\tbm0=0x0,bm1=0x0,bm2=0x0,acl=0x0,sessions,pnfs=not configured,lease_time=%u,"
      "lease_expired=0\n",
      stats.lease_s);
  out += "\tsec:\tflavor=1,pseudoflavor=1\n";
  out += "\tevents:\t" + event_text(stats) + "\n";
  out += "\tbytes:\t" + byte_text(stats) + "\n";
  out += "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n";
  for (const ConnectionStats& connection : stats.connections)
    out += "\t" + render_xprt_line(connection) + "\n";
  out += "\tper-op statistics\n";
  for (const OperationStats& op : operations_in_order(stats)) out += operation_text(op);
  return out;
}

}  // namespace nfsrdma
