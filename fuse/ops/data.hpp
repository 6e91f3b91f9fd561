// SPDX-License-Identifier: Apache-2.0
// READ and WRITE: decoded here instead of by libfuse, so that a payload never moves and nothing is allocated.
#pragma once

#include <cstdint>
#include <memory>

#include "handles.hpp"
#include "in_flight.hpp"
#include "nfsrdma/mount.hpp"
#include "task.hpp"

namespace nfsrdma::fuse {

class Channel;

inline constexpr uint32_t small_payload_bytes_max = 8192;

// Belongs to its channel, which uses it again and again.
class DataRequest final : public InFlight {
 public:
  explicit DataRequest(Channel& channel) : channel_(channel) {}

  std::shared_ptr<OpenFile> file;
  Buffer buffer;
  size_t buffer_at = 0;   // of the payload in the buffer
  uint64_t offset = 0;
  uint32_t size = 0;
  uint32_t flags = 0;     // of the open file, O_APPEND and the like

  void read();
  void write();
  void give_up() override;

 private:
  void finish_read(const Result<ReadResult>& result);
  void finish_write(const Result<size_t>& result);
  bool durable() const;
  void send_write(Done<size_t> done);
  void answer_write(const Result<size_t>& result);
  static Detached append(DataRequest& request);

  Channel& channel_;
};

}  // namespace nfsrdma::fuse
