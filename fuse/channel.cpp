// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "libfuse.hpp"
#include "log.hpp"
#include "ops/data.hpp"
#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

constexpr size_t page_bytes = 4096;
constexpr size_t write_header_bytes = sizeof(fuse_in_header) + sizeof(fuse_write_in);
constexpr size_t request_bytes = write_header_bytes + request_bytes_max;
constexpr int burst_max = 16;             // requests per wake-up before the loop's other sources get their turn
constexpr uint32_t memory_retry_ms = 2;
constexpr size_t callers_max = 1024;

}  // namespace

Channel::Channel(Filesystem& fs_, Loop& loop_, uint32_t index_)
    : fs(fs_), loop(loop_), index(index_), in_flight_(fs_.work) {}

Channel::~Channel() {
  if (session_) fuse_session_destroy(session_);  // closes fd_
  else if (fd_ >= 0) close(fd_);
}

void Channel::start() {
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  loop.post([this] {
    reading_ = Reading::out_of_memory;
    retry_memory();
  });
}

void Channel::stop() {
  Filesystem* shared = &fs;
  fs.work.begin();
  loop.post([this, shared] {
    stopping_ = true;
    if (reading_ == Reading::watching) loop.unwatch(fd_);
    reading_ = Reading::stopped;
    buffer_ = Buffer();
    in_flight_.give_up_all();
    for (DataRequest* request : starved_) recycle(*request);
    starved_.clear();
    shared->work.end();
  });
}

std::byte* Channel::request_memory() const { return buffer_.data() + page_bytes - write_header_bytes; }

bool Channel::take_memory() {
  if (!buffer_) buffer_ = fs.mount.borrow(page_bytes + request_bytes_max);
  return static_cast<bool>(buffer_);
}

void Channel::on_ready() {
  for (int i = 0; i < burst_max && reading_ == Reading::watching; i++) {
    if (!take_memory()) return out_of_memory();
    ssize_t n;
    do n = read(fd_, request_memory(), request_bytes);
    while (n < 0 && (errno == ENOENT || errno == EINTR));  // ENOENT: interrupted before anybody read it
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) return end();
    dispatch(static_cast<size_t>(n));
  }
}

void Channel::end() {
  if (errno != ENODEV && errno != ECONNABORTED) log(LogLevel::error, "reading from /dev/fuse: %s", strerror(errno));
  loop.unwatch(fd_);
  reading_ = Reading::stopped;
  buffer_ = Buffer();
  ended_.store(true, std::memory_order_release);
  fs.work.wake();
}

void Channel::dispatch(size_t length) {
  auto* in = reinterpret_cast<const fuse_in_header*>(request_memory());
  if (length < sizeof *in || in->len != length) {
    log(LogLevel::error, "a request of %zu bytes from the kernel does not have the length it says", length);
    return;
  }
  switch (in->opcode) {
    case FUSE_INTERRUPT:
      if (length >= sizeof *in + sizeof(fuse_interrupt_in))
        interrupt(reinterpret_cast<const fuse_interrupt_in*>(in + 1)->unique, false);
      return;
    case FUSE_READ: return read_request(length);
    case FUSE_WRITE: return write_request(length);
    default: return to_libfuse(length);
  }
}

void Channel::to_libfuse(size_t length) {
  fuse_buf request = {};
  request.mem = request_memory();
  request.size = length;
  current_unique_ = reinterpret_cast<const fuse_in_header*>(request.mem)->unique;
  fuse_session_process_buf(session_, &request);
}

// ---- interrupts ------------------------------------------------------------------------------------------------

// Any loop may be handed the message, only the one that read the request knows it: the others are told, and look
// after what they are doing now, so that the message never overtakes its request.
void Channel::interrupt(uint64_t unique, bool from_other_loop) {
  if (in_flight_.interrupt(unique)) return watch_in_flight();
  if (from_other_loop) return;
  for (auto& other : fs.channels) {
    if (other.get() == this) continue;
    Channel* target = other.get();
    target->loop.post([target, unique] { target->interrupt(unique, true); });
  }
}

void Channel::watch_in_flight() {
  if (in_flight_watched_ || stopping_) return;
  in_flight_watched_ = true;
  loop.post_after(500, [this] { tick_in_flight(); });
}

void Channel::tick_in_flight() {
  in_flight_watched_ = false;
  if (in_flight_.tick()) watch_in_flight();
}

// ---- answers ---------------------------------------------------------------------------------------------------

bool Channel::answer(uint64_t unique, int errno_value, const iovec* parts, int count) {
  fuse_out_header out = {};
  out.unique = unique;
  out.error = -errno_value;
  iovec all[3] = {{&out, sizeof out}, {}, {}};
  size_t length = sizeof out;
  for (int i = 0; i < count; i++) {
    all[i + 1] = parts[i];
    length += parts[i].iov_len;
  }
  out.len = static_cast<uint32_t>(length);
  if (writev(fd_, all, count + 1) >= 0) return true;
  // ENOENT: aborted meanwhile. ENODEV, ENOTCONN: unmounted.
  if (errno != ENOENT && errno != ENODEV && errno != ENOTCONN && errno != ECONNABORTED) {
    log(LogLevel::error, "an answer to the kernel failed: %s", strerror(errno));
    out.error = -EIO;
    out.len = sizeof out;
    if (writev(fd_, all, 1) >= 0) return false;
  }
  return false;
}

ssize_t Channel::write_answer(int fd, iovec* parts, int count, void* userdata) {
  auto* channel = static_cast<Channel*>(userdata);
  if (channel->init_ == Init::answer) channel->complete_init(parts, count);
  if (channel->init_ != Init::swallow) return writev(fd, parts, count);
  ssize_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += static_cast<ssize_t>(parts[i].iov_len);
  return bytes;
}

// ---- READ and WRITE --------------------------------------------------------------------------------------------

DataRequest& Channel::new_data_request(const void* header) {
  if (free_.empty()) {
    data_requests_.push_back(std::make_unique<DataRequest>(*this));
    free_.push_back(data_requests_.back().get());
  }
  DataRequest& request = *free_.back();
  free_.pop_back();
  auto* in = static_cast<const fuse_in_header*>(header);
  request.unique = in->unique;
  request.pid = in->pid;
  request.interrupted = request.answered = false;
  in_flight_.add(request);
  return request;
}

void Channel::recycle(DataRequest& request) {
  request.file.reset();
  request.buffer = Buffer();
  in_flight_.remove(request);
  free_.push_back(&request);
}

void Channel::read_request(size_t length) {
  auto* in = reinterpret_cast<const fuse_in_header*>(request_memory());
  auto* args = reinterpret_cast<const fuse_read_in*>(in + 1);
  if (length < sizeof *in + sizeof *args) return void(answer(in->unique, EINVAL));
  if (Control::owns(in->nodeid)) return fs.control.read(*this, in->unique, args->fh, args->offset, args->size);
  auto file = fs.files.get(args->fh);
  if (!file || args->size > request_bytes_max) return void(answer(in->unique, file ? EINVAL : EBADF));
  DataRequest& request = new_data_request(in);
  request.file = std::move(file);
  request.offset = args->offset;
  request.size = args->size;
  request.read();
}

void Channel::write_request(size_t length) {
  auto* in = reinterpret_cast<const fuse_in_header*>(request_memory());
  auto* args = reinterpret_cast<const fuse_write_in*>(in + 1);
  if (length < write_header_bytes || args->size != length - write_header_bytes)
    return void(answer(in->unique, EINVAL));
  auto file = fs.files.get(args->fh);
  if (!file) return void(answer(in->unique, EBADF));
  DataRequest& request = new_data_request(in);
  request.file = std::move(file);
  request.offset = args->offset;
  request.size = args->size;
  request.flags = args->flags;
  // A small payload would hold a large buffer until its COMMIT: it moves to a small one.
  if (request.size <= small_payload_bytes_max) request.buffer = fs.mount.borrow(request.size);
  request.buffer_at = 0;
  if (request.buffer) {
    memcpy(request.buffer.data(), buffer_.data() + page_bytes, request.size);
  } else {
    request.buffer = std::move(buffer_);
    request.buffer_at = page_bytes;
  }
  request.write();
}

// ---- memory ----------------------------------------------------------------------------------------------------

void Channel::out_of_memory() {
  loop.unwatch(fd_);
  reading_ = Reading::out_of_memory;
  fs.relieve();
  retry_memory();
}

void Channel::wait_for_memory(DataRequest& request) {
  starved_.push_back(&request);
  fs.relieve();
  if (retrying_) return;
  retrying_ = true;
  loop.post_after(memory_retry_ms, [this] { retry_memory(); });
}

void Channel::retry_memory() {
  retrying_ = false;
  if (stopping_) return;
  std::vector<DataRequest*> starved;
  starved.swap(starved_);
  for (DataRequest* request : starved) request->read();  // may put it back
  if (reading_ == Reading::out_of_memory && take_memory()) {
    reading_ = Reading::watching;
    auto watched = loop.watch(fd_, EPOLLIN | EPOLLEXCLUSIVE, [this](uint32_t) { on_ready(); });
    if (!watched) {
      log(LogLevel::error, "watching /dev/fuse: %s", watched.error().text().c_str());
      return end();
    }
  }
  if (retrying_ || (reading_ != Reading::out_of_memory && starved_.empty())) return;
  retrying_ = true;
  loop.post_after(memory_retry_ms, [this] { retry_memory(); });
}

// ---- callers ---------------------------------------------------------------------------------------------------

Credentials Channel::caller(fuse_req* request, uint32_t uid, uint32_t gid) {
  if (fs.options.have_uid) uid = fs.options.uid;
  if (fs.options.have_gid) gid = fs.options.gid;
  gid_t groups[64];
  int count = fuse_req_getgroups(request, 64, groups);
  if (count < 0) {
    count = 0;
    if (!fs.groups_unknown_said.exchange(true))
      log(LogLevel::warn, "the supplementary groups of a caller cannot be read (another PID namespace?): "
                          "such calls go out with user and group only");
  }
  std::vector<uint32_t> key{uid, gid};
  key.insert(key.end(), groups, groups + std::min(count, 64));
  auto found = callers_.find(key);
  if (found != callers_.end()) return found->second;
  if (callers_.size() >= callers_max) callers_.clear();
  auto made = Credentials::sys(uid, gid, std::span<const uint32_t>(key).subspan(2));
  callers_.emplace(std::move(key), made);
  return made;
}

}  // namespace nfsrdma::fuse
