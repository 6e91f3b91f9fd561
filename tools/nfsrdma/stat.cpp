// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstdio>

#include "record.hpp"
#include "report.hpp"
#include "session.hpp"
#include "show.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

void print_text(const std::string& path, const std::string& link_target, const Attributes& a,
                uint32_t block_bytes) {
  std::printf("  File: %s%s%s\n", for_stdout(path).c_str(), link_target.empty() ? "" : " -> ",
              for_stdout(link_target).c_str());
  const std::string type =
      a.type == NodeType::regular && a.size_bytes == 0 ? "regular empty file" : type_name(a.type);
  std::printf("  Size: %-15" PRIu64 "\tBlocks: %-10" PRIu64 " IO Block: %-6u %s\n", a.size_bytes,
              (a.used_bytes + 511) / 512, block_bytes, type.c_str());
  std::printf("Device: %" PRIx64 ":%" PRIx64 "\tInode: %-11" PRIu64 " Links: %u", a.fsid_major, a.fsid_minor,
              a.fileid, a.links);
  if (a.type == NodeType::block || a.type == NodeType::character)
    std::printf("     Device type: %u,%u", a.rdev_major, a.rdev_minor);
  std::printf("\nAccess: (%s/%s)  Uid: (%5u/%8s)   Gid: (%5u/%8s)\n", octal_mode(a.mode).c_str(),
              mode_text(a).c_str(), a.uid, user_name(a.uid).c_str(), a.gid, group_name(a.gid).c_str());
  std::printf("Access: %s\nModify: %s\nChange: %s\n", local_time(a.atime).c_str(),
              local_time(a.mtime).c_str(), local_time(a.ctime).c_str());
}

}  // namespace

int run_stat(const Call& call) {
  int code = exit_done;
  std::vector<Record> records;
  for (const std::string& url : call.many) {
    auto target = parse_target(call, url);
    if (!target) return report(call, url, target.error());
    auto session = Session::open(*target);
    if (!session) return report(call, url, session.error());
    auto entry = session->resolve(target->path, call.follow);
    if (!entry) {
      code = report(call, url, entry.error());
      continue;
    }
    std::string link_target;
    if (entry->attributes.type == NodeType::symlink)
      if (auto link = session->mount().read_link(entry->node, session->who())) link_target = *link;
    if (!call.json) {
      print_text(target->path, link_target, entry->attributes, session->mount().info().rsize_bytes);
      continue;
    }
    Record record;
    add_text(record, "path", target->path);
    add_attributes(record, entry->attributes);
    record.emplace_back("change", entry->attributes.change);
    if (!link_target.empty()) add_text(record, "target", link_target);
    records.push_back(std::move(record));
  }
  if (call.json) print_json(records);
  return finish_stdout(call, code);
}

}  // namespace cli
