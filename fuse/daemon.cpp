// SPDX-License-Identifier: Apache-2.0
#include "daemon.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "channel.hpp"
#include "log.hpp"
#include "mounter.hpp"
#include "privileges.hpp"
#include "program.hpp"

namespace nfsrdma::fuse {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds detach_wait{10'000};  // after SIGTERM, for what is still open
constexpr Milliseconds drain_wait{5'000};    // after unmounting, for what is under way
constexpr Milliseconds retry_pause{2'000};

int open_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&signals, s);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread that is started later
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// SIGPIPE is none: a write to a closed pipe says EPIPE.
bool signal_came(int signal_fd) {
  signalfd_siginfo info;
  bool came = false;
  while (read(signal_fd, &info, sizeof info) == sizeof info) came = came || info.ssi_signo != SIGPIPE;
  return came;
}

// The rest of the start relies on it: a mount that lacks a descriptor would stay and not work.
Result<void> raise_descriptor_limit(const Options& options) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  // An estimate from above: some for the program, some for each io thread and connection.
  rlim_t needed = 32 + 8 * rlim_t{std::max(options.nconnect, options.loops)};
  if (limit.rlim_cur >= needed) return {};
  return Error(EMFILE, ErrorOrigin::local,
               text("the limit of open files (ulimit -Hn) is %llu, and this mount needs %llu: raise it, or ask for fewer "
                    "connections (nconnect=)",
                    static_cast<unsigned long long>(limit.rlim_cur), static_cast<unsigned long long>(needed)));
}

int milliseconds_until(Clock::time_point deadline) {
  auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<int64_t>(left + 1, 1'000'000));
}

class Daemon {
 public:
  Daemon(const Config& config, const MountPlan& plan, int status_fd)
      : config_(config), plan_(plan), status_fd_(status_fd), signal_fd_(open_signals()) {}

  int run() {
    if (auto started = start(); !started) return refuse(started.error());
    hold_log(false);
    report(exit_done, "");
    log(LogLevel::info, "%s is mounted on %s", plan_.source.c_str(), plan_.directory.c_str());
    bool drained = wait_for_end() && drain();
    return finish(drained);
  }

 private:
  Result<void> start();
  Result<void> connect();
  Result<int> connection_fd();
  bool retries(const Error& error, Clock::time_point until);
  void set_read_ahead();
  void report(int code, const std::string& line);
  int refuse(const Error& error);
  void let_go_of_terminal();
  bool all_ended() const;
  bool wait_until(Clock::time_point deadline, bool (Daemon::*done)() const);
  bool idle() const { return fs_->work.count() == 0; }
  bool wait_for_end();
  bool drain();
  void remove_silly_names();
  int finish(bool drained);

  const Config& config_;
  const MountPlan& plan_;
  int status_fd_;
  int signal_fd_;
  bool interrupted_ = false;
  Mounter mounter_;
  std::unique_ptr<Mount> mount_;
  std::unique_ptr<Filesystem> fs_;
};

// ---- start -------------------------------------------------------------------------------------------------------

Result<void> Daemon::start() {
  if (!config_.core_dumps) prctl(PR_SET_DUMPABLE, 0);
  if (auto raised = raise_descriptor_limit(config_.options); !raised) return raised;
  if (auto opened = open_log(config_.log); !opened) return opened;
  hold_log(true);
  if (plan_.passed_fd < 0) {
    // The last fork: RDMA devices do not survive one.
    if (auto started = mounter_.start(plan_); !started) return started;
    if (auto able = mounter_.check(); !able) return able;
  }
  drop_privileges();
  if (auto connected = connect(); !connected) return connected;
  fs_ = std::make_unique<Filesystem>(*mount_, config_.options, plan_.directory);
  if (auto learned = fs_->learn_root(); !learned) return learned;
  auto fd = connection_fd();
  if (!fd) return fd.error();
  if (auto opened = open_channels(*fs_, *fd); !opened) {
    if (plan_.passed_fd < 0) static_cast<void>(mounter_.unmount());
    return opened;
  }
  set_read_ahead();
  for (const std::string& word : config_.options.accepted)
    log(LogLevel::info, "the option %s is taken without effect", word.c_str());
  return {};
}

Result<int> Daemon::connection_fd() {
  if (plan_.passed_fd >= 0) return plan_.passed_fd;
  return mounter_.mount();
}

// One try, unless retry= says for how long; a server's refusal is final.
Result<void> Daemon::connect() {
  auto until = Clock::now() + std::chrono::minutes(std::max(0, config_.options.retry_min));
  for (;;) {
    auto mount = Mount::connect(config_.options);
    if (mount) {
      mount_ = std::move(*mount);
      return {};
    }
    if (!retries(mount.error(), until)) return mount.error();
    log(LogLevel::info, "%s; trying again", mount.error().text().c_str());
  }
}

bool Daemon::retries(const Error& error, Clock::time_point until) {
  if (error.origin() != ErrorOrigin::connection || Clock::now() + retry_pause > until) return false;
  pollfd waiting = {signal_fd_, POLLIN, 0};
  poll(&waiting, 1, static_cast<int>(retry_pause.count()));
  interrupted_ = signal_came(signal_fd_);
  return !interrupted_;
}

// FUSE mounts begin with 128 KiB, a tenth of what a link needs.
void Daemon::set_read_ahead() {
  auto mounted = find_mount(plan_.directory);
  if (!mounted) return;
  std::string path = "/sys/class/bdi/" + mounted->device + "/read_ahead_kb";
  std::ofstream file(path);
  file << 4 * uint64_t{fs_->info.rsize_bytes} / 1024 << std::flush;
  if (!file) log(LogLevel::info, "read-ahead stays at the kernel's value: %s: %s", path.c_str(), strerror(errno));
}

void Daemon::report(int code, const std::string& line) {
  if (status_fd_ < 0) {
    if (code) program::print_error(config_.program, line);
    return;
  }
  std::string message = std::to_string(code) + "\n" + line;
  if (code == exit_done) let_go_of_terminal();
  ssize_t written = write(status_fd_, message.data(), message.size());
  static_cast<void>(written);
  close(status_fd_);
  status_fd_ = -1;
}

void Daemon::let_go_of_terminal() {
  if (chdir("/") != 0) return;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  if (config_.log.where != "stderr") dup2(null, STDERR_FILENO);
  close(null);
}

int Daemon::refuse(const Error& error) {
  int code = interrupted_ ? exit_interrupted : exit_code_of(error);
  report(code, error.text());
  fs_.reset();
  mount_.reset();
  return code;
}

// ---- end ---------------------------------------------------------------------------------------------------------

bool Daemon::all_ended() const {
  for (const auto& channel : fs_->channels)
    if (!channel->ended()) return false;
  return true;
}

// False: the deadline came first, or a signal.
bool Daemon::wait_until(Clock::time_point deadline, bool (Daemon::*done)() const) {
  for (;;) {
    eventfd_t ignored;
    eventfd_read(fs_->work.wake_fd(), &ignored);
    if ((this->*done)()) return true;
    pollfd waiting[] = {{signal_fd_, POLLIN, 0}, {fs_->work.wake_fd(), POLLIN, 0}};
    int wait_ms = deadline == Clock::time_point::max() ? -1 : milliseconds_until(deadline);
    if (wait_ms == 0) return false;
    poll(waiting, 2, wait_ms);
    if (signal_came(signal_fd_)) return false;
  }
}

// Returns when the kernel has ended the connection, or a signal and a bounded wait have. False: at once.
bool Daemon::wait_for_end() {
  if (wait_until(Clock::time_point::max(), &Daemon::all_ended)) return true;
  log(LogLevel::info, "a signal came: unmounting %s", plan_.directory.c_str());
  if (plan_.passed_fd < 0)
    if (auto unmounted = mounter_.unmount(); !unmounted) log(LogLevel::warn, "%s", unmounted.error().text().c_str());
  auto deadline = Clock::now() + detach_wait;
  if (wait_until(deadline, &Daemon::all_ended)) return true;
  if (Clock::now() < deadline) {
    log(LogLevel::warn, "a second signal came: ending now");
    return false;
  }
  log(LogLevel::warn, "files are still open: the connection ends all the same");
  return true;
}

// Nothing may be under way when the mount is shut down.
bool Daemon::drain() {
  fs_->work.watch();
  for (auto& channel : fs_->channels) channel->stop();
  bool drained = wait_until(Clock::now() + drain_wait, &Daemon::idle);
  if (!drained)
    log(LogLevel::error, "%llu requests are still under way at the end",
        static_cast<unsigned long long>(fs_->work.count()));
  fs_->notifier.stop();
  return drained;
}

// Of files that were open to the end: nobody closes them any more.
void Daemon::remove_silly_names() {
  Stats stats = mount_->stats();
  bool up = std::any_of(stats.connections.begin(), stats.connections.end(), [](const auto& c) { return c.up; });
  for (auto& file : fs_->files.all()) {
    std::optional<SillyName> silly;
    {
      std::scoped_lock lock(file->inode->mutex);
      silly.swap(file->inode->silly);
    }
    if (!silly || !up) continue;
    auto removed = mount_->remove(silly->directory, silly->name, silly->who);
    if (!removed) log(LogLevel::warn, "the leftover of an unlinked file stays: %s", removed.error().text().c_str());
  }
}

int Daemon::finish(bool drained) {
  if (drained) {
    remove_silly_names();
    if (auto ended = mount_->shut_down(); !ended) {
      log(LogLevel::error, "at the end: %s", ended.error().text().c_str());
      fs_->lost_writes = true;
    }
  }
  bool lost = !drained || fs_->lost_writes;
  log(LogLevel::info, lost ? "%s ends; some of what was written is lost" : "%s ends", plan_.directory.c_str());
  // What is left (handles, loops) belongs to the kernel now; taking it apart would only race with stuck requests.
  fflush(nullptr);
  _exit(lost ? 1 : 0);
}

}  // namespace

int run_daemon(const Config& config, const MountPlan& plan, int status_fd) {
  return Daemon(config, plan, status_fd).run();
}

}  // namespace nfsrdma::fuse
