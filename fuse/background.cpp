// SPDX-License-Identifier: Apache-2.0
// The parent's side: its exit code says whether the mount works.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "daemon.hpp"
#include "program.hpp"

namespace nfsrdma::fuse {
namespace {

using Clock = std::chrono::steady_clock;

int say(const Config& config, int code, const std::string& line) {
  program::print_error(config.program, line);
  return code;
}

// Everything that the child says until it closes the pipe; false when the time is over.
bool read_status(int fd, Clock::time_point deadline, std::string& said) {
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting = {fd, POLLIN, 0};
    int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready <= 0) continue;
    char bytes[4096];
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    said.append(bytes, static_cast<size_t>(n));
  }
}

std::string how_it_ended(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "the mounting process vanished";
  if (WIFSIGNALED(status)) return std::string("the mounting process died: ") + strsignal(WTERMSIG(status));
  return "the mounting process ended with code " + std::to_string(WEXITSTATUS(status)) + " and no reason";
}

int wait_for_child(const Config& config, int status_fd, pid_t child) {
  // The library bounds every step itself; this is for what it cannot see.
  auto limit = std::chrono::milliseconds(config.options.connect_timeout_ms) + std::chrono::seconds(10) +
               std::chrono::minutes(std::max(0, config.options.retry_min));
  std::string said;
  if (!read_status(status_fd, Clock::now() + limit, said)) {
    kill(child, SIGKILL);
    return say(config, exit_mount, "mounting " + config.source + " took too long: given up");
  }
  size_t end = said.find('\n');
  if (end == std::string::npos) return say(config, exit_system, how_it_ended(child));
  int code = atoi(said.c_str());
  return code == exit_done ? code : say(config, code, said.substr(end + 1));
}

}  // namespace

int run_in_background(const Config& config, const MountPlan& plan) {
  int status[2];
  if (pipe2(status, O_CLOEXEC) != 0) return say(config, exit_system, std::string("pipe: ") + strerror(errno));
  fflush(nullptr);
  pid_t child = fork();
  if (child < 0) return say(config, exit_system, std::string("fork: ") + strerror(errno));
  if (child == 0) {
    close(status[0]);
    setsid();
    _exit(run_daemon(config, plan, status[1]));
  }
  close(status[1]);
  // bg: the shell goes on at once, and the child tries for as long as retry= says.
  if (config.options.background) return exit_done;
  return wait_for_child(config, status[0], child);
}

}  // namespace nfsrdma::fuse
