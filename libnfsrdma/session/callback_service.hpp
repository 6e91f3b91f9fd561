// SPDX-License-Identifier: Apache-2.0
// The client's end of the callback channel (RFC 8881 section 20): CB_NULL and CB_COMPOUND as the server's calls
// arrive on any connection that is bound for it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "nfs4/op_table.hpp"
#include "rpc/transport.hpp"

namespace nfsrdma::session {

constexpr uint32_t callback_slots = 16;
constexpr uint32_t callback_operations_max = 16;
constexpr uint32_t callback_bytes_max = 4068;  // 4096 less the smallest transport header

// Host name and identity of the callback channel's AUTH_SYS, kept as values.
struct AuthSysText {
  std::string machine;
  uint32_t uid = 0, gid = 0;
};

class CallbackService final : public rpc::ReverseHandler {
 public:
  // A new session: slots start at sequence 1. Any thread.
  void reset(const nfs4::SessionId& session);
  // Called for CB_RECALL on the connection's loop, must not block: whether the stateid is one that we hold.
  std::function<nfs4::Status(const nfs4::CbRecallArgs&)> on_recall;
  std::function<void(uint32_t target_highest_slot)> on_recall_slot;
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  uint32_t on_reverse_call(rpc::ConstBytes message, rpc::Bytes reply) override;

 private:
  struct Slot {
    uint32_t sequence = 0;               // last one seen
    uint64_t content = 0;                // hash of its arguments
    std::vector<std::byte> reply;        // results as answered
  };
  uint32_t compound(rpc::ConstBytes args, rpc::Bytes results);
  nfs4::Status check_sequence(const nfs4::CbSequenceArgs& args, uint64_t content, bool& replay);

  std::mutex mutex_;
  nfs4::SessionId session_{};
  std::vector<Slot> slots_ = std::vector<Slot>(callback_slots);
  std::atomic<uint64_t> calls_{0};
};

}  // namespace nfsrdma::session
