// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "record.hpp"
#include "report.hpp"
#include "session.hpp"
#include "show.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

void line(const char* name, const std::string& value) {
  std::printf("%-16s %s\n", name, for_stdout(value).c_str());
}

Record record_of(const MountInfo& info, const Stats& stats, const FileSystemStats* space) {
  Record record{{"server", info.server}, {"address", info.address}};
  add_text(record, "path", info.export_path);
  add_text(record, "implementation", info.implementation);
  record.emplace_back("version", "4." + std::to_string(info.minor_version));
  record.emplace_back("rsize_bytes", uint64_t{info.rsize_bytes});
  record.emplace_back("wsize_bytes", uint64_t{info.wsize_bytes});
  record.emplace_back("lease_s", uint64_t{info.lease_s});
  record.emplace_back("slots", uint64_t{info.slots});
  record.emplace_back("name_bytes_max", uint64_t{info.name_bytes_max});
  record.emplace_back("file_size_max", info.file_size_max);
  record.emplace_back("pool_bytes_max", info.pool_bytes_max);
  record.emplace_back("pool_bytes_registered", stats.pool_bytes_registered);
  record.emplace_back("connections", info.paths);
  if (space) {
    record.emplace_back("total_bytes", space->total_bytes);
    record.emplace_back("available_bytes", space->available_bytes);
  }
  return record;
}

void print_text(const MountInfo& info, const Stats& stats, const FileSystemStats* space) {
  line("server", info.server + " (" + info.address + ")");
  line("path", info.export_path);
  if (!info.implementation.empty()) line("implementation", info.implementation);
  line("version", "4." + std::to_string(info.minor_version));
  line("rsize", std::to_string(info.rsize_bytes));
  line("wsize", std::to_string(info.wsize_bytes));
  line("session", std::to_string(info.slots) + " slots, lease " + std::to_string(info.lease_s) + " s");
  line("name length", std::to_string(info.name_bytes_max) + " bytes at most");
  line("file size", size_text(info.file_size_max) + " at most");
  line("pool", size_text(info.pool_bytes_max) + " of registered buffers at most, " +
                   size_text(stats.pool_bytes_registered) + " now");
  if (space)
    line("space", size_text(space->total_bytes) + ", " + size_text(space->available_bytes) + " available");
  for (size_t i = 0; i < info.paths.size(); ++i)
    line(("connection " + std::to_string(i)).c_str(), info.paths[i]);
}

}  // namespace

int run_info(const Call& call) {
  auto target = parse_target(call, call.first);
  if (!target) return report(call, call.first, target.error());
  auto session = Session::open(*target);
  if (!session) return report(call, call.first, session.error());
  auto entry = session->resolve(target->path);
  if (!entry) return report(call, call.first, entry.error());
  MountInfo info = session->mount().info();
  info.export_path = target->path;
  auto space = session->mount().file_system_stats(entry->node, session->who());
  const Stats stats = session->mount().stats();
  if (call.json)
    print_json(record_of(info, stats, space ? &*space : nullptr));
  else
    print_text(info, stats, space ? &*space : nullptr);
  return finish_stdout(call, exit_done);
}

}  // namespace cli
