// SPDX-License-Identifier: Apache-2.0
// What every program does about its standard files.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace nfsrdma::program {

// First thing in main: a standard descriptor that the caller has closed would be the next thing that is opened, a
// connection or /dev/fuse, and what is printed would go there. The wrong access mode keeps it an error to use it.
inline void hold_standard_descriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

// One line stays one line, and no name takes over the terminal.
inline std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

// "" when all that was printed has gone out; the reason, which is of one line, when not. A reader that went away is
// the reason "EPIPE".
inline std::string flush_stdout() {
  bool failed_before = std::ferror(stdout);  // with an errno that nobody knows any more
  if (std::fflush(stdout) != 0) return errno == EPIPE ? "EPIPE" : std::strerror(errno);
  return failed_before ? "not all could be written" : "";
}

// The end of --help and --version: 0, or 1 with a line.
inline int finish_stdout(const std::string& name) {
  std::string why = flush_stdout();
  if (why.empty()) return 0;
  if (why != "EPIPE") std::fprintf(stderr, "%s: standard output: %s\n", name.c_str(), why.c_str());
  return 1;
}

}  // namespace nfsrdma::program
