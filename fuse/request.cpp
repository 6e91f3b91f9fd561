// SPDX-License-Identifier: Apache-2.0
#include "request.hpp"

#include <cerrno>

namespace nfsrdma::fuse {
namespace {

Channel& channel_of(fuse_req_t request) { return *static_cast<Channel*>(fuse_req_userdata(request)); }

}  // namespace

Request::Request(fuse_req_t request)
    : channel(channel_of(request)),
      fs(channel.fs),
      mount(fs.mount),
      uid(fuse_req_ctx(request)->uid),
      gid(fuse_req_ctx(request)->gid),
      umask(fuse_req_ctx(request)->umask),
      request_(request) {
  unique = channel.current_unique();
  pid = static_cast<uint32_t>(fuse_req_ctx(request)->pid);
  channel.in_flight().add(*this);
}

Request::~Request() {
  if (!answered) error(EIO);
}

const Credentials& Request::who() {
  if (!who_ && answered) who_ = std::make_unique<Credentials>(Credentials::sys(uid, gid));  // request_ is gone
  if (!who_) who_ = std::make_unique<Credentials>(channel.caller(request_, uid, gid));
  return *who_;
}

bool Request::error(int errno_value) { return take() && fuse_reply_err(request_, errno_value) == 0; }

bool Request::entry(const fuse_entry_param& entry) { return take() && fuse_reply_entry(request_, &entry) == 0; }

bool Request::attributes(const struct stat& st, double seconds) {
  return take() && fuse_reply_attr(request_, &st, seconds) == 0;
}

bool Request::link_text(const std::string& text) { return take() && fuse_reply_readlink(request_, text.c_str()) == 0; }

bool Request::opened(const fuse_file_info& info) { return take() && fuse_reply_open(request_, &info) == 0; }

bool Request::created(const fuse_entry_param& entry, const fuse_file_info& info) {
  return take() && fuse_reply_create(request_, &entry, &info) == 0;
}

bool Request::bytes(std::string_view payload) {
  return take() && fuse_reply_buf(request_, payload.data(), payload.size()) == 0;
}

bool Request::statistics(const struct statvfs& st) { return take() && fuse_reply_statfs(request_, &st) == 0; }

void Request::none() {
  if (take()) fuse_reply_none(request_);
}

void Request::watch_exit() {
  exit_watch_ticks = 3;
  channel.watch_in_flight();
}

void Request::give_up() {
  who();  // the coroutine goes on, and its next call is still the caller's
  error(EINTR);
}

}  // namespace nfsrdma::fuse
