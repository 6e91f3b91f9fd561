// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/call_plan.hpp"

#include <algorithm>

#include "rpc/message.hpp"
#include "rpcrdma/header.hpp"

namespace nfsrdma::rpcrdma {
namespace {

constexpr uint64_t reply_chunk_step_bytes = 4096;

uint64_t padded(uint64_t n) { return (n + 3) & ~uint64_t{3}; }

// Result chunks. Returns their bytes in the transport header.
uint64_t plan_results(const PlanLimits& limits, const PlanInput& in, CallPlan& plan) {
  const uint64_t reply = rpc::reply_header_bytes + uint64_t{in.results_bytes_max};
  const uint64_t room = limits.receive_inline_bytes;
  if (header_bytes_min + reply + padded(in.in_bytes) <= room) return 0;
  uint64_t header = 0;
  uint64_t left_in_reply = reply + padded(in.in_bytes);
  if (in.in_bytes > 0 && in.in_segments <= limits.segments_max) {
    plan.write_chunk = true;
    header = 8 + segment_bytes * uint64_t{in.in_segments};
    left_in_reply = reply;
    if (header_bytes_min + header + reply <= room) return header;
  }
  uint64_t rounded =
      (left_in_reply + reply_chunk_step_bytes - 1) / reply_chunk_step_bytes * reply_chunk_step_bytes;
  uint64_t cap = std::min(limits.reply_chunk_bytes_max, limits.buffer_bytes_max);
  plan.reply_chunk_bytes = static_cast<uint32_t>(std::min(rounded, cap));
  if (plan.reply_chunk_bytes == 0) plan.possible = false;
  return header + 4 + segment_bytes;
}

}  // namespace

CallPlan plan_call(const PlanLimits& limits, const PlanInput& in) {
  CallPlan plan;
  const uint64_t header = header_bytes_min + plan_results(limits, in, plan);
  const uint64_t message = uint64_t{in.call_header_bytes} + in.args_bytes;
  const uint64_t whole = message + padded(in.out_bytes);
  const uint64_t room = limits.send_inline_bytes;
  const uint64_t data_entries = read_entry_bytes * uint64_t{in.out_segments};
  const bool chunk_allowed = in.out_bytes > 0 && in.out_segments <= limits.segments_max;
  const bool keep_inline = in.out_bytes < limits.read_chunk_bytes_min || !chunk_allowed;
  uint64_t total = header;
  if (header + whole <= room && keep_inline) {
    // all inline
  } else if (chunk_allowed && header + data_entries + message <= room) {
    plan.data_chunk = true;
    total += data_entries;
  } else {
    plan.long_call = true;
    plan.data_chunk = whole > limits.buffer_bytes_max && chunk_allowed;
    uint64_t bytes = plan.data_chunk ? message : whole;
    total += read_entry_bytes + (plan.data_chunk ? data_entries : 0);
    if (bytes > limits.buffer_bytes_max || total > room) plan.possible = false;
    plan.long_call_bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, limits.buffer_bytes_max));
  }
  plan.header_bytes = static_cast<uint32_t>(total);
  return plan;
}

}  // namespace nfsrdma::rpcrdma
