// SPDX-License-Identifier: Apache-2.0
// Results for programs: flat records that are printed as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "nfsrdma/node.hpp"

namespace cli {

using Value = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<std::string>>;
using Record = std::vector<std::pair<std::string, Value>>;

// One line on stdout: an object, or an array of them.
void print_json(const Record& record);
void print_json(const std::vector<Record>& records);

// A name need not be UTF-8; then its bytes follow in hexadecimal under NAME_hex.
void add_text(Record& record, const std::string& key, const std::string& text);
void add_attributes(Record& record, const nfsrdma::Attributes& attributes);

}  // namespace cli
