// SPDX-License-Identifier: Apache-2.0
#include "pair.hpp"

#include <cerrno>

namespace cli {

using namespace nfsrdma;

Result<Target> parse_second(const Call& call, const Target& first, const std::string& second) {
  if (second.starts_with('/')) {
    Target target = first;
    target.path = second;
    target.wants_directory = second.ends_with('/');
    return target;
  }
  auto target = parse_target(call, second);
  if (!target) return target.error();
  if (target->options.host != first.options.host ||
      target->options.effective_port() != first.options.effective_port())
    return Error(EXDEV, ErrorOrigin::usage,
                 "both names must be on one server; get and put copy between servers");
  return *target;
}

Result<Place> place_or_inside(Session& session, const Target& target, const std::string& name) {
  auto there = session.resolve(target.path);
  if (there && there->attributes.type == NodeType::directory) return Place{there->node, name};
  if (target.wants_directory) {
    if (!there) return there.error();
    return Error(ENOTDIR, ErrorOrigin::server, "is not a directory");
  }
  return session.place(target.path);
}

}  // namespace cli
