// SPDX-License-Identifier: Apache-2.0
// Messages for people on stderr, and what the exit code is.
#pragma once

#include <string>
#include <string_view>

#include "command.hpp"
#include "nfsrdma/error.hpp"
#include "nfsrdma/log.hpp"
#include "program.hpp"

namespace cli {

// Prints "nfsrdma COMMAND: what: error" on stderr and returns the exit code that the error stands for.
int report(const Call& call, const std::string& what, const nfsrdma::Error& error);
int exit_code(const nfsrdma::Error& error);
// The wrong use of a command: one line and where to read on. Returns exit_usage.
int usage(const std::string& command, const std::string& text);
void warn(const Call& call, const std::string& text);

// The library's log lines of at least this level go to stderr.
void log_from(nfsrdma::LogLevel lowest);

// An error of this process's own: errno with the call that set it, e.g. "open".
nfsrdma::Error local_error(int errno_value, const std::string& what);

// Control characters become "?", so that no name can steer a terminal or forge a line.
using nfsrdma::program::printable;
// printable on a terminal, unchanged where a program reads.
std::string for_stdout(std::string_view text);

// Everything that was written to stdout has arrived there; else the error. A reader that went away is said
// nothing about, and ends with exit_refused.
int finish_stdout(const Call& call, int code);

}  // namespace cli
