// SPDX-License-Identifier: Apache-2.0
// Requests that were read from a loop's descriptor and are not answered yet, and what FUSE_INTERRUPT does to them.
#pragma once

#include <cstdint>

#include "work.hpp"

namespace nfsrdma::fuse {

class InFlightList;

// Loop thread only. The kernel waits for the answer uninterruptibly once the request was read, and tells the first
// signal of any kind. A handled signal must not change a result: so a request is given up, with EINTR, only when its
// caller has SIGKILL pending. What it set going in the library goes on and is cleaned up when it ends.
class InFlight {
 public:
  InFlight() = default;
  virtual ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  uint64_t unique = 0;
  uint32_t pid = 0;               // the calling thread, 0 when it cannot be seen from here
  bool interrupted = false;
  bool answered = false;
  uint32_t exit_watch_ticks = 0;  // FLUSH: half seconds until the caller may be found exiting

  virtual void give_up() = 0;     // answers EINTR

 private:
  friend class InFlightList;
  InFlightList* list_ = nullptr;
  InFlight* next_ = nullptr;
  InFlight* previous_ = nullptr;
};

class InFlightList {
 public:
  explicit InFlightList(WorkCount& work) : work_(work) {}
  void add(InFlight& request);
  void remove(InFlight& request);
  bool empty() const { return first_ == nullptr; }

  // False: there is no such request on this loop. It is given up at once if its caller is being killed.
  bool interrupt(uint64_t unique);
  // Twice a second while it returns true: looks again after the requests that were interrupted or whose caller may
  // be exiting.
  bool tick();
  void give_up_all();

 private:
  static bool watched(const InFlight& request) {
    return !request.answered && (request.interrupted || request.exit_watch_ticks);
  }
  WorkCount& work_;
  InFlight* first_ = nullptr;
};

// Reads /proc/PID/status and /proc/PID/stat: the other files there can block on the caller's memory.
bool has_sigkill_pending(uint32_t pid);
bool is_exiting(uint32_t pid);

}  // namespace nfsrdma::fuse
