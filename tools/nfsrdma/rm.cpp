// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "record.hpp"
#include "report.hpp"
#include "session.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

constexpr unsigned depth_max = 512;

struct Remove {
  const Call& call;
  Session& session;
  uint64_t removed = 0;
  int code = exit_done;

  void fail(const std::string& path, const Error& error) { code = report(call, path, error); }
};

void remove_name(Remove& run, const Place& place, const std::string& shown) {
  auto removed = run.session.mount().remove(place.parent, place.name, run.session.who());
  if (!removed) return run.fail(shown, removed.error());
  ++run.removed;
}

// Symbolic links are removed, never followed.
void remove_tree(Remove& run, const Place& place, const Entry& entry, const std::string& shown,
                 unsigned depth) {
  if (entry.attributes.type != NodeType::directory) return remove_name(run, place, shown);
  if (depth > depth_max)
    return run.fail(shown, Error(ELOOP, ErrorOrigin::local, "more directories deep than are removed"));
  auto entries = read_all(run.session, entry.node);
  if (!entries) return run.fail(shown, entries.error());
  for (const DirectoryEntry& child : *entries) {
    Entry found{child.node, child.attributes};
    if (!found.node || found.attributes.type == NodeType::none) {
      auto looked_up = run.session.mount().lookup(entry.node, child.name, run.session.who());
      if (!looked_up) {
        run.fail(join(shown, child.name), looked_up.error());
        continue;
      }
      found = *looked_up;
    }
    remove_tree(run, Place{entry.node, child.name}, found, join(shown, child.name), depth + 1);
  }
  remove_name(run, place, shown);
}

void remove_one(Remove& run, const Target& target, const std::string& url) {
  auto place = run.session.place(target.path);
  if (!place) {
    if (run.call.force && place.error().errno_value() == ENOENT) return;
    return run.fail(url, place.error().errno_value() == EEXIST
                             ? Error(EBUSY, ErrorOrigin::server, "the server's root is not removed")
                             : place.error());
  }
  if (!is_plain_name(place->name))
    return run.fail(url, Error(EINVAL, ErrorOrigin::usage, "\".\" and \"..\" are not removed"));
  auto entry = run.session.mount().lookup(place->parent, place->name, run.session.who());
  if (!entry) {
    if (run.call.force && entry.error().errno_value() == ENOENT) return;
    return run.fail(url, entry.error());
  }
  if (entry->attributes.type == NodeType::directory && !run.call.recursive)
    return run.fail(url, Error(EISDIR, ErrorOrigin::server, "is a directory; -r removes it and all in it"));
  remove_tree(run, *place, *entry, target.path, 0);
}

}  // namespace

int run_rm(const Call& call) {
  int code = exit_done;
  uint64_t removed = 0;
  for (const std::string& url : call.many) {
    auto target = parse_target(call, url);
    if (!target) return report(call, url, target.error());
    auto session = Session::open(*target);
    if (!session) return report(call, url, session.error());
    Remove run{call, *session};
    remove_one(run, *target, url);
    removed += run.removed;
    if (run.code != exit_done) code = run.code;
  }
  if (call.json) print_json(Record{{"removed", removed}});
  return finish_stdout(call, code);
}

}  // namespace cli
