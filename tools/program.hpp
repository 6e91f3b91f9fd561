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

// On stderr, in one line.
inline void print_error(const std::string& name, std::string_view line) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), printable(line).c_str());
}

// 0 when all that was printed has gone out, or the errno; EIO where an earlier write failed and its errno is gone. EPIPE:
// the reader went away, of which nobody need hear.
inline int flush_stdout() {
  bool failed_before = std::ferror(stdout);
  if (std::fflush(stdout) != 0) return errno;
  return failed_before ? EIO : 0;
}

// The end of --help and --version: 0, or 1 with a line.
inline int finish_stdout(const std::string& name) {
  int error = flush_stdout();
  if (error != 0 && error != EPIPE) print_error(name, std::string("standard output: ") + std::strerror(error));
  return error == 0 ? 0 : 1;
}

}  // namespace nfsrdma::program
