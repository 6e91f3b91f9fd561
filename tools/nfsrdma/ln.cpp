// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "pair.hpp"
#include "record.hpp"
#include "report.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

int finish(const Call& call, const Entry& made, const std::string& path) {
  if (call.json) {
    Record record;
    add_text(record, "path", path);
    add_attributes(record, made.attributes);
    print_json(record);
  }
  return finish_stdout(call, exit_done);
}

// TARGET is any text: the server keeps it as it is.
int make_symbolic(const Call& call) {
  auto target = parse_target(call, call.second);
  if (!target) return report(call, call.second, target.error());
  auto session = Session::open(*target);
  if (!session) return report(call, call.second, session.error());
  auto place = place_or_inside(*session, *target, last_name(call.first));
  if (!place) return report(call, call.second, place.error());
  auto made = session->mount().make_symlink(place->parent, place->name, call.first, session->who());
  if (!made) return report(call, call.second, made.error());
  return finish(call, *made, target->path);
}

int make_hard(const Call& call) {
  auto from = parse_target(call, call.first);
  if (!from) return report(call, call.first, from.error());
  auto to = parse_second(call, *from, call.second);
  if (!to) return report(call, call.second, to.error());
  auto session = Session::open(*from);
  if (!session) return report(call, call.first, session.error());
  auto entry = session->resolve(from->path, false);
  if (!entry) return report(call, call.first, entry.error());
  auto place = place_or_inside(*session, *to, last_name(from->path));
  if (!place) return report(call, call.second, place.error());
  auto made = session->mount().make_link(entry->node, place->parent, place->name, session->who());
  if (!made) return report(call, call.second, made.error());
  return finish(call, *made, to->path);
}

}  // namespace

int run_ln(const Call& call) { return call.symbolic ? make_symbolic(call) : make_hard(call); }

}  // namespace cli
