// SPDX-License-Identifier: Apache-2.0
// Misbehaviour on demand. All of it works on an answer that is otherwise right.
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "rpcrdma/server_endpoint.hpp"

namespace nfsrdma::rpcrdma {
namespace {

constexpr uint32_t lists_at = fixed_bytes;        // read list
constexpr uint32_t write_list_at = lists_at + 4;  // behind an empty read list
constexpr uint32_t segment_at = write_list_at + 8;
constexpr uint32_t oversized_bytes = 65536;

uint32_t word(const std::byte* at) { return base::load_be<uint32_t>(at); }
void set_word(std::byte* at, uint32_t v) { base::store_be(at, v); }

// The first segment echoed in the write list, else in the reply chunk; nullptr when there is none.
std::byte* first_segment(std::byte* header) {
  if (word(header + write_list_at) == 1 && word(header + write_list_at + 4) > 0) return header + segment_at;
  if (word(header + write_list_at) == 0 && word(header + write_list_at + 4) == 1)
    return header + segment_at + 4;
  return nullptr;
}

}  // namespace

// True: that was all, the call is not answered in the ordinary way.
bool ServerEndpoint::apply_early_fault(Slot& slot) {
  switch (slot.fault.kind) {
    case ReplyFaultKind::drop:
      free_slot(slot);
      flush_soon();
      return true;
    case ReplyFaultKind::drop_connection:
      free_slot(slot);
      end_later(Error(ECONNABORTED, ErrorOrigin::local, "by a fault that was asked for"));
      return true;
    case ReplyFaultKind::error_chunk:
      send_error(slot, ErrorCode::chunk);
      return true;
    case ReplyFaultKind::error_version:
      send_error(slot, ErrorCode::version);
      return true;
    default:
      return false;
  }
}

uint32_t ServerEndpoint::apply_header_fault(Slot& slot, uint32_t header_bytes) {
  std::byte* h = arena_->at(slot.offset);
  std::byte* segment = first_segment(h);
  const uint32_t value = slot.fault.value;
  switch (slot.fault.kind) {
    case ReplyFaultKind::unknown_xid:
      set_word(h, word(h) ^ 0x55550000u);
      break;
    case ReplyFaultKind::bad_version:
      set_word(h + 4, 2);
      break;
    case ReplyFaultKind::bad_procedure:
      set_word(h + 12, 7);
      break;
    case ReplyFaultKind::nomsg_empty:
      set_word(h + 12, static_cast<uint32_t>(Procedure::nomsg));
      for (uint32_t at = lists_at; at < header_bytes_min; at += 4) set_word(h + at, 0);
      return header_bytes_min;
    case ReplyFaultKind::read_list:
      set_word(h + lists_at, 1);
      break;
    case ReplyFaultKind::many_segments:
      set_word(h + write_list_at, 1);
      set_word(h + write_list_at + 4, value ? value : 100'000);
      break;
    case ReplyFaultKind::extra_chunk: {
      HeaderWriter w({h, params_.inline_bytes});
      const Segment s{0x1234, 4096, 0};
      w.fixed(word(h), word(h + 8), Procedure::msg);
      w.end_reads();
      w.write_chunk({&s, 1});
      w.end_write_list();
      w.no_reply_chunk();
      return w.size();
    }
    case ReplyFaultKind::wrong_handle:
      if (segment) set_word(segment, word(segment) ^ 0x100);
      break;
    case ReplyFaultKind::long_segment:
      if (segment) set_word(segment + 4, 0x7fffffff);
      break;
    case ReplyFaultKind::short_segment:
      if (segment) set_word(segment + 4, word(segment + 4) - std::min(word(segment + 4), value ? value : 4));
      break;
    case ReplyFaultKind::write_chunk_absent:
    case ReplyFaultKind::write_chunk_empty: {
      HeaderWriter w({h, params_.inline_bytes});
      w.fixed(word(h), word(h + 8), Procedure::msg);
      w.end_reads();
      if (slot.fault.kind == ReplyFaultKind::write_chunk_empty) w.begin_write_chunk(0);
      w.end_write_list();
      w.no_reply_chunk();
      return w.size();
    }
    default:
      break;
  }
  return header_bytes;
}

void ServerEndpoint::apply_send_fault(Slot& slot) {
  switch (slot.fault.kind) {
    case ReplyFaultKind::twice:
      slot.sends_left = 2;
      slot.send_op = rdma::Opcode::send;  // a key can be invalidated only once
      break;
    case ReplyFaultKind::wrong_invalidate:
      slot.send_op = rdma::Opcode::send_invalidate;
      slot.invalidate_key = slot.fault.value;
      for (const Slot& other : slots_)
        if (other.stage == Stage::serving && !other.header.result_segments.empty())
          slot.invalidate_key = other.header.result_segments[0].handle;
      break;
    case ReplyFaultKind::truncated: {
      uint32_t left = slot.fault.value;
      InlineList<rdma::Sge, 12> cut;
      for (rdma::Sge piece : slot.send) {
        piece.length = std::min(piece.length, left);
        left -= piece.length;
        if (piece.length > 0) cut.push_back(piece);
      }
      slot.send = cut;
      break;
    }
    case ReplyFaultKind::oversized: {
      const uint32_t bytes = slot.fault.value ? slot.fault.value : oversized_bytes;
      mem::Buffer buffer = pool_->try_borrow(bytes);
      if (!buffer) break;
      slot.send.clear();
      slot.send.push_back(buffer.sge(0, bytes));
      slot.data_buffer = std::move(buffer);
      break;
    }
    default:
      break;
  }
}

}  // namespace nfsrdma::rpcrdma
