// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "record.hpp"
#include "report.hpp"
#include "session.hpp"
#include "show.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

struct Row {
  std::string name;
  Entry entry;
  std::string link_target;
};

// A directory's entries by name, or the one thing that is not a directory.
Result<std::vector<Row>> rows_of(const Call& call, Session& session, const Target& target) {
  auto entry = session.resolve(target.path, !call.directory_itself);
  if (!entry) return entry.error();
  std::vector<Row> rows;
  if (entry->attributes.type != NodeType::directory || call.directory_itself) {
    std::string name = last_name(target.path);
    rows.push_back({name.empty() ? "/" : name, *entry, {}});
    return rows;
  }
  auto entries = read_all(session, entry->node);
  if (!entries) return entries.error();
  for (DirectoryEntry& child : *entries)
    rows.push_back({std::move(child.name), {child.node, child.attributes}, {}});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  const Node directory = entry->node;
  for (Row& row : rows) {
    if (row.entry.attributes.type != NodeType::none || !(call.long_list || call.json)) continue;
    // Gone since, or not for us to see: the name is shown all the same.
    if (auto found = session.mount().lookup(directory, row.name, session.who())) row.entry = *found;
  }
  return rows;
}

void print_long(const std::vector<Row>& rows) {
  int links = 1, user = 1, group = 1, size = 1;
  auto widen = [](int& width, size_t length) { width = std::max(width, static_cast<int>(length)); };
  for (const Row& row : rows) {
    const Attributes& a = row.entry.attributes;
    widen(links, std::to_string(a.links).size());
    widen(user, user_name(a.uid).size());
    widen(group, group_name(a.gid).size());
    widen(size, std::to_string(a.size_bytes).size());
  }
  for (const Row& row : rows) {
    const Attributes& a = row.entry.attributes;
    std::printf("%s %*u %-*s %-*s %*s %s ", mode_text(a).c_str(), links, a.links, user,
                user_name(a.uid).c_str(), group, group_name(a.gid).c_str(), size,
                std::to_string(a.size_bytes).c_str(), list_time(a.mtime).c_str());
    std::fputs(for_stdout(row.name).c_str(), stdout);
    if (!row.link_target.empty()) std::printf(" -> %s", for_stdout(row.link_target).c_str());
    std::fputc('\n', stdout);
  }
}

void print_rows(const Call& call, const std::vector<Row>& rows) {
  if (call.long_list) return print_long(rows);
  for (const Row& row : rows) std::printf("%s\n", for_stdout(row.name).c_str());
}

Record record_of(const Row& row) {
  Record record;
  add_text(record, "name", row.name);
  add_attributes(record, row.entry.attributes);
  if (!row.link_target.empty()) add_text(record, "target", row.link_target);
  return record;
}

}  // namespace

int run_ls(const Call& call) {
  int code = exit_done;
  std::vector<Record> records;
  for (const std::string& url : call.many) {
    auto target = parse_target(call, url);
    if (!target) return report(call, url, target.error());
    auto session = Session::open(*target);
    if (!session) return report(call, url, session.error());
    auto rows = rows_of(call, *session, *target);
    if (!rows) {
      code = report(call, url, rows.error());
      continue;
    }
    if (call.long_list || call.json) {
      for (Row& row : *rows) {
        if (row.entry.attributes.type != NodeType::symlink) continue;
        auto link = session->mount().read_link(row.entry.node, session->who());
        if (link) row.link_target = *link;
      }
    }
    if (call.json) {
      for (const Row& row : *rows) records.push_back(record_of(row));
      continue;
    }
    if (call.many.size() > 1)
      std::printf("%s%s:\n", &url == &call.many[0] ? "" : "\n", for_stdout(url).c_str());
    print_rows(call, *rows);
  }
  if (call.json) print_json(records);
  return finish_stdout(call, code);
}

}  // namespace cli
