// SPDX-License-Identifier: Apache-2.0
// Log lines go to one sink per process. The default sink drops everything: a library does not write to stderr
// unasked. Programs install theirs at start.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace nfsrdma::base {

enum class LogLevel : uint8_t { trace, debug, info, warn, error, off };

// Called from any thread, must not block for long. `room` is the part of the library that speaks, e.g. "session".
using LogSink = void (*)(LogLevel, std::string_view room, std::string_view line);

void set_log(LogSink sink, LogLevel lowest);
void log_line(LogLevel level, std::string_view room, std::string_view line);

extern std::atomic<LogLevel> log_lowest;
inline bool log_wants(LogLevel level) { return level >= log_lowest.load(std::memory_order_relaxed); }

// printf-like; formats only when somebody listens.
[[gnu::format(printf, 3, 4)]] void log(LogLevel level, const char* room, const char* format, ...);

// printf into a string; for error texts, off the hot path.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

}  // namespace nfsrdma::base
