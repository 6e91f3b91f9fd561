// SPDX-License-Identifier: Apache-2.0
#include "log.hpp"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "program.hpp"

namespace nfsrdma::fuse {
namespace {

std::shared_ptr<spdlog::logger> logger;
LogLevel wanted_level = LogLevel::info;
bool to_terminal = false;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace: return spdlog::level::trace;
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error:
    case LogLevel::off: break;
  }
  return spdlog::level::err;
}

std::string format_list(const char* format, va_list list) {
  va_list again;
  va_copy(again, list);
  int length = vsnprintf(nullptr, 0, format, list);
  std::string out(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  vsnprintf(out.data(), out.size() + 1, format, again);
  va_end(again);
  return out;
}

// spdlog throws when it cannot open a file: ask first, with the mode that a log of users' doings should have.
Result<void> try_file(const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd < 0) {
    int error = errno;
    return Error(error, ErrorOrigin::usage, "log file " + path + ": " + strerror(error));
  }
  close(fd);
  return {};
}

void library_line(LogLevel level, std::string_view part, std::string_view line) {
  log(level, "%.*s: %.*s", static_cast<int>(part.size()), part.data(), static_cast<int>(line.size()), line.data());
}

}  // namespace

bool parse_log_level(const std::string& word, LogLevel& level) {
  if (word == "trace") level = LogLevel::trace;
  else if (word == "debug") level = LogLevel::debug;
  else if (word == "info") level = LogLevel::info;
  else if (word == "warn" || word == "warning") level = LogLevel::warn;
  else if (word == "error") level = LogLevel::error;
  else return false;
  return true;
}

Result<void> open_log(const LogTarget& target) {
  spdlog::sink_ptr sink;
  const char* pattern = "%Y-%m-%d %H:%M:%S.%e nfsrdma-fuse[%P] %l: %v";
  if (target.where == "syslog") {
    sink = std::make_shared<spdlog::sinks::syslog_sink_mt>("nfsrdma-fuse", LOG_PID, LOG_DAEMON, true);
    pattern = "%v";
  } else if (target.where == "stderr") {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    if (!isatty(STDERR_FILENO)) pattern = "nfsrdma-fuse[%P] %l: %v";
  } else {
    if (auto opened = try_file(target.where); !opened) return opened;
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(target.where);
  }
  auto made = std::make_shared<spdlog::logger>("nfsrdma-fuse", std::move(sink));
  made->set_level(level_of(target.lowest));
  made->flush_on(spdlog::level::trace);
  made->set_pattern(pattern);
  logger = std::move(made);
  wanted_level = target.lowest;
  to_terminal = target.where == "stderr";
  set_log_sink(library_line, target.lowest);
  return {};
}

void hold_log(bool held) {
  if (!to_terminal || !logger || wanted_level != LogLevel::info) return;
  logger->set_level(level_of(held ? LogLevel::warn : LogLevel::info));
}

void log(LogLevel level, const char* format, ...) {
  if (!logger || !logger->should_log(level_of(level))) return;
  va_list list;
  va_start(list, format);
  std::string line = format_list(format, list);
  va_end(list);
  logger->log(level_of(level), program::printable(line));
}

std::string text(const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::string out = format_list(format, list);
  va_end(list);
  return out;
}

}  // namespace nfsrdma::fuse
