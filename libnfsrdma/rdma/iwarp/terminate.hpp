// SPDX-License-Identifier: Apache-2.0
// Terminate messages (RFC 5040 section 4.8): why a stream ends, in the words of its three layers.
#pragma once

#include <string>
#include <vector>

#include "rdma/iwarp/wire.hpp"

namespace nfsrdma::rdma::iwarp {

struct TerminateCode {
  uint8_t layer = 0;  // 0 RDMAP, 1 DDP, 2 MPA
  uint8_t type = 0;
  uint8_t code = 0;
  bool operator==(const TerminateCode&) const = default;
};

namespace terminate {
inline constexpr TerminateCode local_catastrophic{0, 0, 0};
inline constexpr TerminateCode read_invalid_stag{0, 1, 0};
inline constexpr TerminateCode read_bounds{0, 1, 1};
inline constexpr TerminateCode read_access{0, 1, 2};
inline constexpr TerminateCode read_foreign_stag{0, 1, 3};
inline constexpr TerminateCode read_wraps{0, 1, 4};
inline constexpr TerminateCode cannot_invalidate{0, 1, 9};
inline constexpr TerminateCode rdmap_version{0, 2, 5};
inline constexpr TerminateCode unexpected_opcode{0, 2, 6};
inline constexpr TerminateCode stream_catastrophic{0, 2, 7};  // also: more Read Requests than the IRD
inline constexpr TerminateCode unspecified{0, 2, 255};
inline constexpr TerminateCode write_invalid_stag{1, 1, 0};
inline constexpr TerminateCode write_bounds{1, 1, 1};
inline constexpr TerminateCode write_foreign_stag{1, 1, 2};
inline constexpr TerminateCode write_wraps{1, 1, 3};
inline constexpr TerminateCode tagged_ddp_version{1, 1, 4};
inline constexpr TerminateCode invalid_queue{1, 2, 1};
inline constexpr TerminateCode no_buffer{1, 2, 2};
inline constexpr TerminateCode msn_out_of_range{1, 2, 3};
inline constexpr TerminateCode invalid_offset{1, 2, 4};
inline constexpr TerminateCode message_too_long{1, 2, 5};
inline constexpr TerminateCode untagged_ddp_version{1, 2, 6};
inline constexpr TerminateCode crc_mismatch{2, 0, 2};
inline constexpr TerminateCode length_mismatch{2, 0, 3};
inline constexpr TerminateCode bad_startup_frame{2, 0, 4};
inline constexpr TerminateCode insufficient_ird{2, 0, 6};
}  // namespace terminate

// "base or bounds violation (DDP tagged buffer, layer 1 type 1 code 1)"
std::string describe(const TerminateCode& code);
// A code that RFC 5040, 5041, 5044 or 6581 define.
bool known(const TerminateCode& code);

// What a Terminate may quote of the segment that caused it.
struct OffendingSegment {
  uint16_t ulpdu_bytes = 0;
  std::byte ddp_header[18] = {};  // without the length
  uint8_t ddp_header_bytes = 0;   // 0: nothing to quote
  std::byte read_request[read_request_bytes] = {};
  bool has_read_request = false;
};

// The whole FPDU, with a CRC when the stream uses it.
std::vector<std::byte> encode_terminate(const TerminateCode& code, const OffendingSegment& segment, bool crc);

// Any layout is accepted: Linux siw swaps the nibbles of the first byte and moves the flags (seen on the
// wire). False: too short to say anything.
bool decode_terminate(base::ConstBytes payload, TerminateCode* code);

}  // namespace nfsrdma::rdma::iwarp
