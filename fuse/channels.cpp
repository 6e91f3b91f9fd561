// SPDX-License-Identifier: Apache-2.0
// How the loops come to share one FUSE connection.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "channel.hpp"
#include "libfuse.hpp"
#include "log.hpp"
#include "ops/data.hpp"
#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

constexpr size_t init_bytes_max = 65536;
constexpr int init_wait_ms = 10'000;

ssize_t read_request(int fd, void* memory, size_t bytes, void*) { return read(fd, memory, bytes); }

int clone_by(const char* path, int master) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  auto number = static_cast<uint32_t>(master);
  if (ioctl(fd, FUSE_DEV_IOC_CLONE, &number) == 0) return fd;
  close(fd);
  return -1;
}

// A descriptor of its own for each loop. Where the device may not be opened (it was opened by somebody with more
// rights, or is missing in this mount namespace) the same open file is shared, which works as well.
int another_descriptor(int master) {
  int fd = clone_by("/dev/fuse", master);
  if (fd < 0) fd = clone_by(("/proc/self/fd/" + std::to_string(master)).c_str(), master);
  if (fd >= 0) return fd;
  log(LogLevel::debug, "/dev/fuse cannot be cloned: its descriptor is shared");
  return fcntl(master, F_DUPFD_CLOEXEC, 0);
}

Error failed(const std::string& what, int error) {
  return Error(error, ErrorOrigin::local, what + ": " + strerror(error));
}

// Nothing but INIT can come before it is answered.
Result<size_t> read_init(int fd, std::byte* memory, size_t size) {
  pollfd waiting = {fd, POLLIN, 0};
  int ready;
  do ready = poll(&waiting, 1, init_wait_ms);
  while (ready < 0 && errno == EINTR);
  if (ready == 0) return failed("waiting for the kernel's first request", ETIMEDOUT);
  ssize_t n;
  do n = read(fd, memory, size);
  while (n < 0 && errno == EINTR);
  if (n < 0) return failed("reading the kernel's first request", errno);
  return static_cast<size_t>(n);
}

void to_log(enum fuse_log_level level, const char* format, va_list list) {
  char line[500];
  vsnprintf(line, sizeof line, format, list);
  line[strcspn(line, "\n")] = '\0';
  log(level <= FUSE_LOG_ERR ? LogLevel::error : level <= FUSE_LOG_WARNING ? LogLevel::warn : LogLevel::debug, "%s", line);
}

}  // namespace

Result<void> Channel::open_session(int fd) {
  fd_ = fd;
  char name[] = "nfsrdma-fuse";
  char* words[] = {name, nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, words);
  session_ = fuse_session_new(&arguments, &operations(), sizeof operations(), this);
  fuse_opt_free_args(&arguments);
  if (!session_) return Error(ENOMEM, ErrorOrigin::local, "libfuse gave no session");
  fuse_custom_io io = {};
  io.read = fuse::read_request;
  io.writev = Channel::write_answer;
  int error = fuse_session_custom_io(session_, &io, fd_);
  if (error) return failed("libfuse", error < 0 ? -error : error);
  return {};
}

void Channel::replay_init(void* bytes, size_t length, bool answers) {
  auto* in = reinterpret_cast<const fuse_init_in*>(static_cast<const fuse_in_header*>(bytes) + 1);
  if (length >= sizeof(fuse_in_header) + offsetof(fuse_init_in, flags) + sizeof in->flags) init_flags_ = in->flags;
  if ((init_flags_ & FUSE_INIT_EXT) && length >= sizeof(fuse_in_header) + sizeof *in)
    init_flags_ |= uint64_t{in->flags2} << 32;
  fuse_buf request = {};
  request.mem = bytes;
  request.size = length;
  init_ = answers ? Init::answer : Init::swallow;
  fuse_session_process_buf(session_, &request);
  init_ = Init::over;
}

// What libfuse 3.14 cannot say: that the server clears suid and sgid bits on writes, so that the kernel need not try it
// in the writer's name; and that files which go around the page cache may be mapped all the same.
void Channel::complete_init(iovec* parts, int count) const {
  constexpr uint64_t direct_io_allow_mmap = uint64_t{1} << 36;  // since protocol 7.39
  if (count < 2 || parts[1].iov_len < offsetof(fuse_init_out, flags2) + sizeof(uint32_t)) return;
  auto* out = static_cast<fuse_init_out*>(parts[1].iov_base);
  out->flags |= static_cast<uint32_t>(init_flags_ & FUSE_HANDLE_KILLPRIV);
  if (!(init_flags_ & direct_io_allow_mmap)) return;
  out->flags |= FUSE_INIT_EXT;
  out->flags2 |= static_cast<uint32_t>(direct_io_allow_mmap >> 32);
}

// Session 0 sees INIT last: once its answer is out, requests come to any of the descriptors.
Result<void> open_channels(Filesystem& fs, int fd) {
  fuse_set_log_func(to_log);
  for (Loop* loop : fs.mount.loops()) {
    auto number = static_cast<uint32_t>(fs.channels.size());
    int own = number == 0 ? fd : another_descriptor(fd);
    if (own < 0) return failed("another descriptor of /dev/fuse", errno);
    fs.channels.push_back(std::make_unique<Channel>(fs, *loop, number));
    if (auto opened = fs.channels.back()->open_session(own); !opened) return opened;
  }
  auto memory = std::make_unique<std::byte[]>(init_bytes_max + request_bytes_max);
  auto length = read_init(fd, memory.get(), init_bytes_max + request_bytes_max);
  if (!length) return length.error();
  for (size_t i = fs.channels.size(); i-- > 0;) fs.channels[i]->replay_init(memory.get(), *length, i == 0);
  if (auto started = fs.notifier.start(fs.channels[0]->session()); !started) return started;
  for (auto& channel : fs.channels) channel->start();
  return {};
}

}  // namespace nfsrdma::fuse
