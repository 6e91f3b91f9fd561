// SPDX-License-Identifier: Apache-2.0
// The rows behind option_table(): what a word means, how it is applied and how it is written again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nfsrdma/options.hpp"

namespace nfsrdma::client {

struct OptionWord {
  std::string_view name, value;
  bool has_value = false;
  const OptionInfo* info = nullptr;
};

// One list being applied. The versions are remembered so that contradictions in one list are seen.
struct OptionContext {
  Options& options;
  bool sloppy = false;
  std::string version_word, minor_word;
  uint32_t version_minor = 0, minor = 0;
};

using ApplyOption = Result<void> (*)(OptionContext&, const OptionWord&);
// The value to write, "" for a flag; nothing when the option has its default.
using ShowOption = std::optional<std::string> (*)(const Options&);

struct OptionRow {
  OptionInfo info;
  ApplyOption apply;
  ShowOption show;  // nullptr: never written
};

std::span<const OptionRow> option_rows();

// Looks the word up and applies it. value is already without quotes and escapes.
Result<void> apply_option(OptionContext& context, std::string_view name, std::string_view value,
                          bool has_value);
// What can be said only at the end of a list: contradictions, minima above their maxima.
Result<void> finish_options(OptionContext& context);

constexpr size_t option_list_bytes_max = 65536;

// EINVAL, origin usage.
Error option_error(std::string text);
// For messages: printable, in double quotes, cut at 64 bytes.
std::string quoted(std::string_view text);

// Applies every part of a URL to options, arguments last.
Result<void> apply_url(Options& options, std::string_view url);
bool is_url(std::string_view text);
// An address with colons must stand in brackets, which are not part of host.
Result<void> apply_host(Options& options, std::string_view host, bool bracketed);
Result<void> apply_path(Options& options, std::string_view path);

}  // namespace nfsrdma::client
