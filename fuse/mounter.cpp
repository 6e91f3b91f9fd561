// SPDX-License-Identifier: Apache-2.0
#include "mounter.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "log.hpp"

namespace nfsrdma::fuse {
namespace {

// What the child answers; a descriptor may come with it.
struct Answer {
  int errno_value = 0;
  ErrorOrigin origin = ErrorOrigin::local;
  char line[1003] = {};  // no padding behind it: the whole of it is sent
};

Error failure(int errno_value, std::string line) { return Error(errno_value, ErrorOrigin::local, std::move(line)); }

int receive_fd(int socket, Answer* answer) {
  char byte;
  iovec part = answer ? iovec{answer, sizeof *answer} : iovec{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  ssize_t n;
  do n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (answer && n != static_cast<ssize_t>(sizeof *answer)) {
    *answer = {};
    answer->errno_value = EPIPE;
    snprintf(answer->line, sizeof answer->line, "the process that mounts has ended");
    return -1;
  }
  cmsghdr* control = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) return -1;
  int fd;
  memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return fd;
}

void send_answer(int socket, const Result<int>& result) {
  Answer answer = {};
  if (!result) {
    answer.errno_value = result.error().errno_value();
    answer.origin = result.error().origin();
    result.error().text().copy(answer.line, sizeof answer.line - 1);
  }
  iovec part = {&answer, sizeof answer};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (result && *result >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &*result, sizeof(int));
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

// ---- in the child ------------------------------------------------------------------------------------------------

constexpr const char* device = "/dev/fuse";

Result<int> open_device() {
  int fd = open(device, O_RDWR | O_CLOEXEC);
  if (fd >= 0) return fd;
  int error = errno;
  std::string line = std::string("cannot open ") + device + ": " + strerror(error);
  if (error == ENOENT || error == ENODEV || error == ENXIO)
    line += "; load the module (modprobe fuse), or start the container with --device /dev/fuse";
  else if (error == EACCES || error == EPERM)
    line += "; it must be readable and writable by this user, and a container must be started with --device /dev/fuse";
  return failure(error, line);
}

Result<int> mount_directly(const MountPlan& plan) {
  auto fd = open_device();
  if (!fd) return fd;
  std::string data = text("fd=%d,", *fd) + plan.kernel_data;
  if (::mount(plan.source.c_str(), plan.directory.c_str(), "fuse.nfsrdma", plan.flags, data.c_str()) == 0) return fd;
  int error = errno;
  close(*fd);
  std::string line = "mounting on " + plan.directory + ": " + strerror(error);
  if (error == EPERM) line += "; mounting takes CAP_SYS_ADMIN: a container must be started with --cap-add SYS_ADMIN";
  if (error == ENODEV) line += "; this kernel has no FUSE: load the module (modprobe fuse)";
  return failure(error, line);
}

std::string first_line(int fd) {
  std::string out(512, '\0');
  ssize_t n = read(fd, out.data(), out.size());
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  out.resize(std::min(out.size(), out.find('\n')));
  return out;
}

// arguments: null-terminated. Its first line on stderr when it failed; a descriptor that it passes back.
Result<int> run_fusermount(const char* const* arguments, bool wants_fd) {
  int pair[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || pipe2(errors, O_CLOEXEC) != 0)
    return failure(errno, std::string("starting fusermount3: ") + strerror(errno));
  fcntl(pair[0], F_SETFD, FD_CLOEXEC);
  pid_t child = fork();
  if (child < 0) return failure(errno, std::string("starting fusermount3: ") + strerror(errno));
  if (child == 0) {
    dup2(errors[1], STDERR_FILENO);
    setenv("_FUSE_COMMFD", std::to_string(pair[1]).c_str(), 1);
    execvp("fusermount3", const_cast<char* const*>(arguments));
    dprintf(STDERR_FILENO, "fusermount3 cannot be run (%s): install the package fuse3\n", strerror(errno));
    _exit(127);
  }
  close(pair[1]);
  close(errors[1]);
  int fd = wants_fd ? receive_fd(pair[0], nullptr) : -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string said = first_line(errors[0]);
  close(pair[0]);
  close(errors[0]);
  bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (done && (fd >= 0 || !wants_fd)) return fd;
  return failure(EPERM, said.empty() ? "fusermount3 failed" : said);
}

Result<int> do_mount(const MountPlan& plan) {
  bool root = geteuid() == 0;
  if (plan.replaces_dead) {
    const char* arguments[] = {"fusermount3", "-u", "-z", "-q", "--", plan.directory.c_str(), nullptr};
    if (root) umount2(plan.directory.c_str(), MNT_DETACH);
    else static_cast<void>(run_fusermount(arguments, false));
  }
  if (root) return mount_directly(plan);
  const char* arguments[] = {"fusermount3", "-o", plan.helper_options.c_str(), "--", plan.directory.c_str(), nullptr};
  return run_fusermount(arguments, true);
}

Result<int> do_unmount(const MountPlan& plan) {
  if (geteuid() != 0) {
    const char* arguments[] = {"fusermount3", "-u", "-z", "-q", "--", plan.directory.c_str(), nullptr};
    return run_fusermount(arguments, false);
  }
  if (umount2(plan.directory.c_str(), MNT_DETACH) == 0) return -1;
  return failure(errno, "unmounting " + plan.directory + ": " + strerror(errno));
}

Result<int> do_check() {
  if (geteuid() == 0) {
    auto fd = open_device();
    if (!fd) return fd;
    close(*fd);
    return -1;
  }
  if (access(device, F_OK) == 0) return -1;
  return failure(ENOENT, std::string(device) + " is missing; load the module (modprobe fuse), or start the container "
                                               "with --device /dev/fuse");
}

// Ends when the daemon does, whose end of the socket closes then.
[[noreturn]] void serve(int socket, const MountPlan& plan) {
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) signal(s, SIG_IGN);
  prctl(PR_SET_NAME, "nfsrdma-mounter");
  if (chdir("/") != 0) _exit(1);
  int null = open("/dev/null", O_RDWR);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  socket = dup2(socket, STDERR_FILENO + 1);
  close_range(STDERR_FILENO + 2, ~0u, 0);  // log, signals, and whatever else was inherited
  char command;
  while (recv(socket, &command, 1, 0) == 1) {
    Result<int> result = command == 'm' ? do_mount(plan) : command == 'u' ? do_unmount(plan) : do_check();
    send_answer(socket, result);
    if (result && *result >= 0) close(*result);  // or the connection would outlive a crash of the daemon
  }
  _exit(0);
}

}  // namespace

Mounter::~Mounter() {
  if (socket_ >= 0) close(socket_);
  while (child_ > 0 && waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> Mounter::start(const MountPlan& plan) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return failure(errno, std::string("socketpair: ") + strerror(errno));
  pid_t child = fork();
  if (child < 0) {
    int error = errno;
    close(pair[0]);
    close(pair[1]);
    return failure(error, std::string("fork: ") + strerror(error));
  }
  if (child == 0) {
    serve(pair[1], plan);
  }
  close(pair[1]);
  socket_ = pair[0];
  child_ = child;
  return {};
}

Result<int> Mounter::ask(char command) {
  Answer answer;
  if (send(socket_, &command, 1, MSG_NOSIGNAL) != 1)
    return failure(errno, std::string("the process that mounts has ended: ") + strerror(errno));
  int fd = receive_fd(socket_, &answer);
  if (answer.errno_value == 0) return fd;
  answer.line[sizeof answer.line - 1] = '\0';
  return Error(answer.errno_value, answer.origin, answer.line);
}

Result<void> Mounter::check() {
  auto answer = ask('c');
  if (!answer) return answer.error();
  return {};
}

Result<int> Mounter::mount() {
  auto fd = ask('m');
  if (!fd || *fd >= 0) return fd;
  // It is mounted, and the kernel could not give this process the descriptor. A dead mount must not stay.
  static_cast<void>(unmount());
  return failure(EMFILE, "no room for the descriptor of the mount: the limit of open files (ulimit -Hn) is too low");
}

Result<void> Mounter::unmount() {
  auto answer = ask('u');
  if (!answer) return answer.error();
  return {};
}

}  // namespace nfsrdma::fuse
