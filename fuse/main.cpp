// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "arguments.hpp"
#include "daemon.hpp"
#include "mount_plan.hpp"
#include "nfsrdma/version.hpp"
#include "program.hpp"

namespace {

using namespace nfsrdma;
using namespace nfsrdma::fuse;

int say(const Config& config, int code, const std::string& line) {
  program::print_error(config.program, line);
  return code;
}

// What vers=4.2 gets is said where the one who mounts sees it; every other word without effect is in the log.
int note_version(const Config& config, int code) {
  for (const std::string& word : config.options.accepted) {
    if (code != exit_done || !word.ends_with("4.1 is used)")) continue;
    return say(config, code, "the option " + word);
  }
  return code;
}

// mount -N: the mount is made in another mount namespace.
bool enter_namespace(const std::string& which) {
  bool number = std::all_of(which.begin(), which.end(), [](unsigned char c) { return std::isdigit(c); });
  std::string path = number ? "/proc/" + which + "/ns/mnt" : which;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool entered = setns(fd, CLONE_NEWNS) == 0;
  int error = errno;
  close(fd);
  errno = error;
  return entered;
}

}  // namespace

int main(int argc, char** argv) {
  program::hold_standard_descriptors();
  Config config;
  Refusal refusal = parse_arguments(argc, argv, config);
  if (refusal.exit_code) return say(config, refusal.exit_code, refusal.line);
  if (config.help || config.version) {
    std::string text = config.help ? help_text() : std::string("nfsrdma-fuse ") + version_with_commit() + "\n";
    fputs(text.c_str(), stdout);
    return program::finish_stdout(config.program);
  }
  if (!config.mount_namespace.empty() && !enter_namespace(config.mount_namespace))
    return say(config, exit_usage, "-N takes the PID of a process or the path of a mount namespace, and \"" +
                                       config.mount_namespace + "\": " + strerror(errno));
  auto plan = plan_mount(config.options, config.directory);
  if (!plan) return say(config, exit_code_of(plan.error()), plan.error().text());
  if (config.verbose) printf("%s: %s on %s\n", config.program.c_str(), plan->source.c_str(), plan->directory.c_str());
  if (config.fake) return exit_done;
  if (config.foreground) return run_daemon(config, *plan, -1);
  if (!config.log_target_given) config.log.where = "syslog";
  return note_version(config, run_in_background(config, *plan));
}
