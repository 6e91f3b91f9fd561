// SPDX-License-Identifier: Apache-2.0
// One loop's own descriptor of the FUSE connection. A request read here is sent to the server, completed and answered
// on this loop's thread; the answer leaves by this descriptor, since the kernel looks for the request on no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "filesystem.hpp"
#include "in_flight.hpp"
#include "nfsrdma/mount.hpp"

struct fuse_req;
struct fuse_session;
struct iovec;

namespace nfsrdma::fuse {

class DataRequest;

class Channel {
 public:
  Channel(Filesystem& fs, Loop& loop, uint32_t index);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Filesystem& fs;
  Loop& loop;
  const uint32_t index;

  // ---- set-up, by the main thread before start() ----
  // Takes the descriptor.
  Result<void> open_session(int fd);
  // The kernel says INIT once; every session must have seen it. Only the first one's answer may leave.
  void replay_init(void* bytes, size_t length, bool answer);
  // Then requests are read on the loop.
  void start();

  // ---- any thread ----
  bool ended() const { return ended_.load(std::memory_order_acquire); }  // unmounted or aborted
  // Ends reading and gives memory back; when it is done nothing but what is in flight happens here.
  void stop();
  void interrupt(uint64_t unique, bool from_other_loop);

  // ---- loop thread ----
  fuse_session* session() const { return session_; }
  int fd() const { return fd_; }
  InFlightList& in_flight() { return in_flight_; }
  uint64_t current_unique() const { return current_unique_; }
  // False: the kernel does not wait for this answer any more.
  bool answer(uint64_t unique, int errno_value, const iovec* parts = nullptr, int count = 0);
  void watch_in_flight();

  // On whose behalf a request goes out: the caller's user, group and supplementary groups as they are now.
  Credentials caller(fuse_req* request, uint32_t uid, uint32_t gid);

  // Retried until the pool has memory again.
  void wait_for_memory(DataRequest& request);
  void recycle(DataRequest& request);

  static ssize_t write_answer(int fd, iovec* parts, int count, void* channel);

 private:
  void complete_init(iovec* parts, int count) const;
  enum class Reading : uint8_t { stopped, watching, out_of_memory };

  void on_ready();
  bool take_memory();
  void out_of_memory();
  void retry_memory();
  void dispatch(size_t length);
  void to_libfuse(size_t length);
  void read_request(size_t length);
  void write_request(size_t length);
  DataRequest& new_data_request(const void* header);
  void end();
  void tick_in_flight();

  std::byte* request_memory() const;

  fuse_session* session_ = nullptr;
  int fd_ = -1;
  enum class Init : uint8_t { over, swallow, answer };
  Init init_ = Init::over;
  uint64_t init_flags_ = 0;  // offered by the kernel
  std::atomic<bool> ended_{false};
  Reading reading_ = Reading::stopped;
  bool stopping_ = false;
  bool retrying_ = false;
  // Where the next request is read to. The payload of a WRITE begins on a page boundary and stays where it lies:
  // the buffer goes with the request and another one takes its place.
  Buffer buffer_;
  uint64_t current_unique_ = 0;
  InFlightList in_flight_;
  bool in_flight_watched_ = false;
  std::vector<std::unique_ptr<DataRequest>> data_requests_;  // all that were ever made
  std::vector<DataRequest*> free_;
  std::vector<DataRequest*> starved_;
  std::map<std::vector<uint32_t>, Credentials> callers_;
};

// Opens one channel per loop on the connection behind fd (which it takes), goes through INIT and starts reading.
Result<void> open_channels(Filesystem& fs, int fd);

}  // namespace nfsrdma::fuse
