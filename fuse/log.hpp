// SPDX-License-Identifier: Apache-2.0
// Log lines of the program and of the library. Names of files and data never go into one.
#pragma once

#include <string>

#include "nfsrdma/error.hpp"
#include "nfsrdma/log.hpp"

namespace nfsrdma::fuse {

// "stderr", "syslog", or the path of a file that lines are appended to.
struct LogTarget {
  std::string where = "stderr";
  LogLevel lowest = LogLevel::info;
};

bool parse_log_level(const std::string& word, LogLevel& level);

// Before threads are started; the library's lines go there, too. The file's error when it cannot be opened.
Result<void> open_log(const LogTarget& target);

// While a mount is being started on a terminal, one line says how it went: until then notes of level info are left
// out, unless more than the default level was asked for.
void hold_log(bool held);

// Any thread.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

// printf into a string, for error lines.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

}  // namespace nfsrdma::fuse
