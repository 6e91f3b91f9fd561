// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <charconv>

#include "files.hpp"
#include "record.hpp"
#include "report.hpp"
#include "session.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

// Every directory of the path that is not there; those that are there are passed through.
Result<Entry> make_parents(Session& session, const std::string& path, uint32_t mode) {
  auto entry = session.resolve("/");
  std::string walked = "/";
  for (size_t at = 0; entry && at < path.size();) {
    size_t slash = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, slash - at);
    at = slash + 1;
    if (name.empty()) continue;
    const Node parent = entry->node;
    walked = join(walked, name);
    entry = session.resolve(walked);
    if (!entry && entry.error().errno_value() == ENOENT) {
      entry = session.mount().make_directory(parent, name, mode, session.who());
      if (!entry && entry.error().errno_value() == EEXIST)
        entry = session.resolve(walked);  // somebody was faster
    }
    if (entry && entry->attributes.type != NodeType::directory)
      return Error(ENOTDIR, ErrorOrigin::server, "\"" + walked + "\" is not a directory");
  }
  return entry;
}

}  // namespace

int run_mkdir(const Call& call) {
  uint32_t mode = 0777 & ~process_umask();
  if (!call.mode.empty()) {
    const char* end = call.mode.data() + call.mode.size();
    auto [stopped, fault] = std::from_chars(call.mode.data(), end, mode, 8);
    if (fault != std::errc{} || stopped != end || mode > 07777)
      return usage(call.command, "-m takes an octal mode, as in -m 0755, not \"" + call.mode + "\"");
  }
  int code = exit_done;
  std::vector<Record> records;
  for (const std::string& url : call.many) {
    auto target = parse_target(call, url);
    if (!target) return report(call, url, target.error());
    auto session = Session::open(*target);
    if (!session) return report(call, url, session.error());
    Result<Entry> made = Error(0, ErrorOrigin::local);
    if (call.parents) {
      made = make_parents(*session, target->path, mode);
    } else {
      auto place = session->place(target->path);
      made = place ? session->mount().make_directory(place->parent, place->name, mode, session->who())
                   : place.error();
    }
    if (!made) {
      code = report(call, url, made.error());
      continue;
    }
    Record record;
    add_text(record, "path", target->path);
    add_attributes(record, made->attributes);
    records.push_back(std::move(record));
  }
  if (call.json) print_json(records);
  return finish_stdout(call, code);
}

}  // namespace cli
