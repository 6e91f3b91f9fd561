// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <cstdarg>
#include <cstdio>

namespace nfsrdma::base {

std::atomic<LogLevel> log_lowest{LogLevel::off};

namespace {

std::atomic<LogSink> log_sink{nullptr};

std::string format_list(const char* format, va_list list) {
  va_list again;
  va_copy(again, list);
  int n = std::vsnprintf(nullptr, 0, format, list);
  std::string out(n > 0 ? static_cast<size_t>(n) : 0, '\0');
  if (n > 0) std::vsnprintf(out.data(), out.size() + 1, format, again);
  va_end(again);
  return out;
}

}  // namespace

void set_log(LogSink sink, LogLevel lowest) {
  log_sink.store(sink, std::memory_order_release);
  log_lowest.store(sink ? lowest : LogLevel::off, std::memory_order_release);
}

void log_line(LogLevel level, std::string_view room, std::string_view line) {
  LogSink sink = log_sink.load(std::memory_order_acquire);
  if (sink && log_wants(level)) sink(level, room, line);
}

void log(LogLevel level, const char* room, const char* format, ...) {
  if (!log_wants(level)) return;
  va_list list;
  va_start(list, format);
  std::string line = format_list(format, list);
  va_end(list);
  log_line(level, room, line);
}

std::string text(const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::string out = format_list(format, list);
  va_end(list);
  return out;
}

}  // namespace nfsrdma::base
