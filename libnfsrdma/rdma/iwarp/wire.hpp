// SPDX-License-Identifier: Apache-2.0
// Bytes of MPA FPDUs, DDP segments and RDMAP messages (RFC 5044, 5041, 5040). No I/O, no state.
//
//   u16 ULPDU length | u8 DDP control | u8 RDMAP control | ...          header
//      tagged:   u32 STag | u64 tagged offset                           16 bytes with the length
//      untagged: u32 STag to invalidate or 0 | u32 QN | u32 MSN | u32 MO  20 bytes with the length
//   payload | 0-3 zero bytes | CRC32C, least significant byte first
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace nfsrdma::rdma::iwarp {

constexpr size_t length_field_bytes = 2;
constexpr size_t tagged_header_bytes = 16;
constexpr size_t untagged_header_bytes = 20;
constexpr size_t header_bytes_max = untagged_header_bytes;
constexpr size_t crc_bytes = 4;
constexpr size_t trailer_bytes_max = 3 + crc_bytes;
constexpr size_t read_request_bytes = 28;
constexpr uint32_t ulpdu_bytes_max = 65535;

constexpr uint32_t send_queue = 0;
constexpr uint32_t read_request_queue = 1;
constexpr uint32_t terminate_queue = 2;

enum class RdmapOpcode : uint8_t {
  write = 0,
  read_request = 1,
  read_response = 2,
  send = 3,
  send_invalidate = 4,
  send_solicited = 5,
  send_solicited_invalidate = 6,
  terminate = 7,
};

constexpr bool is_send(RdmapOpcode op) { return op >= RdmapOpcode::send && op < RdmapOpcode::terminate; }
constexpr bool invalidates(RdmapOpcode op) {
  return op == RdmapOpcode::send_invalidate || op == RdmapOpcode::send_solicited_invalidate;
}

constexpr uint32_t pad_bytes(uint32_t ulpdu_bytes) {
  return (4 - (length_field_bytes + ulpdu_bytes) % 4) % 4;
}

struct SegmentHeader {
  uint16_t ulpdu_bytes = 0;
  bool tagged = false;
  bool last = false;
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
  RdmapOpcode opcode = RdmapOpcode::send;  // any value of 0..15 off the wire
  uint32_t stag = 0;                       // tagged: the target; untagged: what to invalidate
  uint64_t tagged_offset = 0;
  uint32_t queue = 0;
  uint32_t msn = 0;
  uint32_t offset = 0;

  size_t header_bytes() const { return tagged ? tagged_header_bytes : untagged_header_bytes; }
  bool long_enough() const { return ulpdu_bytes + length_field_bytes >= header_bytes(); }
  uint32_t payload_bytes() const {
    return static_cast<uint32_t>(ulpdu_bytes + length_field_bytes - header_bytes());
  }
};

// The first 4 bytes tell how long the header is.
inline bool header_is_tagged(const std::byte* at) { return (at[2] & std::byte{0x80}) != std::byte{0}; }

inline SegmentHeader load_header(const std::byte* at) {
  SegmentHeader h;
  uint8_t ddp = static_cast<uint8_t>(at[2]);
  uint8_t rdmap = static_cast<uint8_t>(at[3]);
  h.ulpdu_bytes = base::load_be<uint16_t>(at);
  h.tagged = ddp & 0x80;
  h.last = ddp & 0x40;
  h.ddp_version = ddp & 3;
  h.rdmap_version = rdmap >> 6;
  h.opcode = static_cast<RdmapOpcode>(rdmap & 15);
  h.stag = base::load_be<uint32_t>(at + 4);
  if (h.tagged) {
    h.tagged_offset = base::load_be<uint64_t>(at + 8);
  } else {
    h.queue = base::load_be<uint32_t>(at + 8);
    h.msn = base::load_be<uint32_t>(at + 12);
    h.offset = base::load_be<uint32_t>(at + 16);
  }
  return h;
}

// Writes header_bytes() bytes.
inline void store_header(std::byte* at, const SegmentHeader& h) {
  base::store_be<uint16_t>(at, h.ulpdu_bytes);
  at[2] = static_cast<std::byte>((h.tagged ? 0x80 : 0) | (h.last ? 0x40 : 0) | h.ddp_version);
  at[3] = static_cast<std::byte>(h.rdmap_version << 6 | static_cast<uint8_t>(h.opcode));
  base::store_be<uint32_t>(at + 4, h.stag);
  if (h.tagged) {
    base::store_be<uint64_t>(at + 8, h.tagged_offset);
  } else {
    base::store_be<uint32_t>(at + 8, h.queue);
    base::store_be<uint32_t>(at + 12, h.msn);
    base::store_be<uint32_t>(at + 16, h.offset);
  }
}

struct ReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_offset = 0;
  uint32_t bytes = 0;
  uint32_t source_stag = 0;
  uint64_t source_offset = 0;
};

inline ReadRequest load_read_request(const std::byte* at) {
  return {base::load_be<uint32_t>(at), base::load_be<uint64_t>(at + 4), base::load_be<uint32_t>(at + 12),
          base::load_be<uint32_t>(at + 16), base::load_be<uint64_t>(at + 20)};
}

inline void store_read_request(std::byte* at, const ReadRequest& r) {
  base::store_be<uint32_t>(at, r.sink_stag);
  base::store_be<uint64_t>(at + 4, r.sink_offset);
  base::store_be<uint32_t>(at + 12, r.bytes);
  base::store_be<uint32_t>(at + 16, r.source_stag);
  base::store_be<uint64_t>(at + 20, r.source_offset);
}

}  // namespace nfsrdma::rdma::iwarp
