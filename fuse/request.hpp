// SPDX-License-Identifier: Apache-2.0
// A request that libfuse has decoded, for the coroutine that answers it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "channel.hpp"
#include "in_flight.hpp"
#include "libfuse.hpp"

namespace nfsrdma::fuse {

// Made by an operation's entry function, on the loop. Answers once; every answer tells whether the kernel took it:
// false means that it does not wait any more, and that lookups counted and handles made for it must be taken back.
class Request final : public InFlight {
 public:
  explicit Request(fuse_req_t request);
  ~Request() override;  // what nobody answered ends with EIO: a caller never hangs

  Channel& channel;
  Filesystem& fs;
  Mount& mount;
  const uint32_t uid, gid, umask;
  // The caller's identity as the server will see it.
  const Credentials& who();

  bool error(int errno_value);
  bool error(const Error& reason) { return error(reason.errno_value()); }
  bool ok() { return error(0); }
  bool entry(const fuse_entry_param& entry);
  bool attributes(const struct stat& st, double seconds);
  bool link_text(const std::string& text);
  bool opened(const fuse_file_info& info);
  bool created(const fuse_entry_param& entry, const fuse_file_info& info);
  bool bytes(std::string_view payload);
  bool statistics(const struct statvfs& st);
  void none();
  fuse_req_t raw() const { return request_; }

  // FLUSH of a task that is being ended gets no INTERRUPT.
  void watch_exit();
  void give_up() override;

 private:
  bool take() { return !std::exchange(answered, true); }
  fuse_req_t request_;
  std::unique_ptr<Credentials> who_;
};

using RequestPtr = std::unique_ptr<Request>;

}  // namespace nfsrdma::fuse
