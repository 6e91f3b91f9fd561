// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "pair.hpp"
#include "record.hpp"
#include "report.hpp"

namespace cli {

using namespace nfsrdma;

int run_mv(const Call& call) {
  auto from = parse_target(call, call.first);
  if (!from) return report(call, call.first, from.error());
  auto to = parse_second(call, *from, call.second);
  if (!to) return report(call, call.second, to.error());
  auto session = Session::open(*from);
  if (!session) return report(call, call.first, session.error());
  auto from_place = session->place(from->path);
  if (!from_place) return report(call, call.first, from_place.error());
  auto to_place = place_or_inside(*session, *to, from_place->name);
  if (!to_place) return report(call, call.second, to_place.error());
  auto moved = session->mount().rename(from_place->parent, from_place->name, to_place->parent, to_place->name,
                                       session->who());
  if (!moved) return report(call, call.first + " to " + call.second, moved.error());
  if (call.json) {
    Record record;
    add_text(record, "from", from->path);
    add_text(record, "to", to->path);
    print_json(record);
  }
  return finish_stdout(call, exit_done);
}

}  // namespace cli
