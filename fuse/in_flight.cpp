// SPDX-License-Identifier: Apache-2.0
#include "in_flight.hpp"

#include <fcntl.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace nfsrdma::fuse {
namespace {

constexpr unsigned long pf_exiting = 0x4;  // PF_EXITING of the kernel's task flags, ninth field of stat

std::string read_proc(uint32_t pid, const char* file) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/%s", pid, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char bytes[16384];  // the line of groups may be long
  ssize_t n = read(fd, bytes, sizeof bytes);
  close(fd);
  return n > 0 ? std::string(bytes, static_cast<size_t>(n)) : std::string();
}

bool line_has_sigkill(std::string_view status, std::string_view name) {
  size_t at = status.find(name);
  if (at == std::string_view::npos) return false;
  std::string digits(status.substr(at + name.size(), 32));
  return strtoull(digits.c_str(), nullptr, 16) >> (SIGKILL - 1) & 1;
}

}  // namespace

bool has_sigkill_pending(uint32_t pid) {
  if (pid == 0) return false;
  std::string status = read_proc(pid, "status");
  return line_has_sigkill(status, "\nSigPnd:\t") || line_has_sigkill(status, "\nShdPnd:\t");
}

bool is_exiting(uint32_t pid) {
  if (pid == 0) return false;
  std::string stat = read_proc(pid, "stat");
  // "pid (name) state ppid pgrp session tty tpgid flags": the name may hold anything, even ")".
  size_t at = stat.rfind(')');
  if (at == std::string::npos) return false;
  for (int field = 0; field < 7; field++) {
    at = stat.find(' ', at + 1);
    if (at == std::string::npos) return false;
  }
  return strtoul(stat.c_str() + at, nullptr, 10) & pf_exiting;
}

InFlight::~InFlight() {
  if (list_) list_->remove(*this);
}

void InFlightList::add(InFlight& request) {
  request.list_ = this;
  request.previous_ = nullptr;
  request.next_ = first_;
  if (first_) first_->previous_ = &request;
  first_ = &request;
  work_.begin();
}

void InFlightList::remove(InFlight& request) {
  if (request.next_) request.next_->previous_ = request.previous_;
  if (request.previous_) request.previous_->next_ = request.next_;
  else first_ = request.next_;
  request.list_ = nullptr;
  work_.end();
}

bool InFlightList::interrupt(uint64_t unique) {
  for (InFlight* request = first_; request; request = request->next_) {
    if (request->unique != unique || request->answered) continue;
    request->interrupted = true;
    if (has_sigkill_pending(request->pid)) request->give_up();
    return true;
  }
  return false;
}

bool InFlightList::tick() {
  bool again = false;
  for (InFlight *request = first_, *next; request; request = next) {
    next = request->next_;
    if (!watched(*request)) continue;
    if (request->exit_watch_ticks > 1) request->exit_watch_ticks--;
    bool done_for = request->interrupted && has_sigkill_pending(request->pid);
    if (!done_for && request->exit_watch_ticks == 1) done_for = is_exiting(request->pid);
    if (done_for) request->give_up();
    else again = true;
  }
  return again;
}

void InFlightList::give_up_all() {
  for (InFlight* request = first_; request; request = request->next_)
    if (!request->answered) request->give_up();
}

}  // namespace nfsrdma::fuse
