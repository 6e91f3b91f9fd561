// SPDX-License-Identifier: Apache-2.0
// What the command line says, and the table of commands. Each command has a file of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

// Exit codes that scripts rely on.
enum ExitCode : int {
  exit_done = 0,
  exit_refused = 1,  // the server or a file said no
  exit_usage = 2,
  exit_no_connection = 3,
};

struct Call {
  std::string command;
  std::string first, second;      // operands of commands that take one or two
  std::vector<std::string> many;  // operands of commands that take any number
  std::string options;            // -o, on top of the URL's arguments
  bool json = false;
  bool recursive = false, force = false, parents = false, symbolic = false, follow = false;
  bool long_list = false, directory_itself = false;
  bool manual_form = false, names_only = false;  // options
  std::string mode;                              // -m, octal
};

int run_ls(const Call& call);
int run_stat(const Call& call);
int run_cat(const Call& call);
int run_get(const Call& call);
int run_put(const Call& call);
int run_mkdir(const Call& call);
int run_rm(const Call& call);
int run_mv(const Call& call);
int run_ln(const Call& call);
int run_ping(const Call& call);
int run_info(const Call& call);
int run_options(const Call& call);
int run_version(const Call& call);

}  // namespace cli
