// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cli {

using nfsrdma::Error;
using nfsrdma::ErrorOrigin;

int exit_code(const Error& error) {
  switch (error.origin()) {
    case ErrorOrigin::usage:
      return exit_usage;
    case ErrorOrigin::connection:
    case ErrorOrigin::protocol:
      return exit_no_connection;
    case ErrorOrigin::local:
    case ErrorOrigin::server:
      return exit_refused;
  }
  return exit_refused;
}

int report(const Call& call, const std::string& what, const Error& error) {
  const std::string text = error.text().empty() ? std::strerror(error.errno_value()) : error.text();
  std::fprintf(stderr, "nfsrdma %s: %s%s%s\n", call.command.c_str(), printable(what).c_str(),
               what.empty() ? "" : ": ", printable(text).c_str());
  if (error.origin() == ErrorOrigin::usage)
    std::fprintf(stderr, "try 'nfsrdma %s --help'\n", call.command.c_str());
  return exit_code(error);
}

int usage(const std::string& command, const std::string& text) {
  const std::string space = command.empty() ? "" : " ";
  std::fprintf(stderr, "nfsrdma%s%s: %s\ntry 'nfsrdma%s%s --help'\n", space.c_str(), command.c_str(),
               printable(text).c_str(), space.c_str(), command.c_str());
  return exit_usage;
}

void warn(const Call& call, const std::string& text) {
  std::fprintf(stderr, "nfsrdma %s: %s\n", call.command.c_str(), printable(text).c_str());
}

void log_from(nfsrdma::LogLevel lowest) {
  nfsrdma::set_log_sink(
      [](nfsrdma::LogLevel level, std::string_view part, std::string_view line) {
        static const char* const names[] = {"trace", "debug", "info", "warning", "error", ""};
        // One write a line: several threads speak.
        const std::string text = std::string("nfsrdma: ") + names[static_cast<size_t>(level)] + ": " +
                                 std::string(part) + ": " + printable(line) + "\n";
        std::fputs(text.c_str(), stderr);
      },
      lowest);
}

Error local_error(int errno_value, const std::string& what) {
  return Error(errno_value, ErrorOrigin::local, what + ": " + std::strerror(errno_value));
}

std::string for_stdout(std::string_view text) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal ? printable(text) : std::string(text);
}

int finish_stdout(const Call& call, int code) {
  const int error = nfsrdma::program::flush_stdout();
  if (error == 0) return code;
  if (error != EPIPE) warn(call, std::string("standard output: ") + std::strerror(error));
  return exit_refused;
}

}  // namespace cli
