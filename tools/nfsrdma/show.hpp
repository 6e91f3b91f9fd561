// SPDX-License-Identifier: Apache-2.0
// Attributes as text, the way ls(1) and stat(1) write them.
#pragma once

#include <string>

#include "nfsrdma/node.hpp"

namespace cli {

std::string type_name(nfsrdma::NodeType type);        // "regular file"
std::string mode_text(const nfsrdma::Attributes& a);  // "-rwxr-sr-t"
std::string octal_mode(uint32_t mode);                // "0644"
std::string user_name(uint32_t uid);                  // the number when it has no name here
std::string group_name(uint32_t gid);
std::string iso_time(const nfsrdma::Time& t);    // "2024-05-06T07:08:09.123456789Z"
std::string local_time(const nfsrdma::Time& t);  // as stat(1)
std::string list_time(const nfsrdma::Time& t);   // as ls -l: the hour for recent ones, else the year
std::string size_text(uint64_t bytes);           // "1.5 MiB"

}  // namespace cli
