// SPDX-License-Identifier: Apache-2.0
// Two places on one server, as mv and ln want them.
#pragma once

#include "session.hpp"

namespace cli {

// The second operand: a URL of the same server, or just a path there.
nfsrdma::Result<Target> parse_second(const Call& call, const Target& first, const std::string& second);

// The place that the path names; where that is a directory already, `name` inside it.
nfsrdma::Result<Place> place_or_inside(Session& session, const Target& target, const std::string& name);

}  // namespace cli
