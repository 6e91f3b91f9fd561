// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/terminate.hpp"

#include <cstring>

#include "base/log.hpp"
#include "rdma/iwarp/crc32c.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

struct Row {
  TerminateCode code;
  const char* text;
};

constexpr Row rows[] = {
    {{0, 0, 0}, "local catastrophic error of RDMAP"},
    {{0, 1, 0}, "invalid STag in a Read Request"},
    {{0, 1, 1}, "base or bounds violation in a Read Request"},
    {{0, 1, 2}, "access rights violation"},
    {{0, 1, 3}, "STag of a Read Request is not of this connection"},
    {{0, 1, 4}, "tagged offset of a Read Request wraps"},
    {{0, 1, 9}, "STag cannot be invalidated"},
    {{0, 1, 255}, "unspecified remote protection error"},
    {{0, 2, 5}, "invalid RDMAP version"},
    {{0, 2, 6}, "unexpected opcode"},
    {{0, 2, 7}, "catastrophic error of this stream (also: too many Read Requests)"},
    {{0, 2, 8}, "catastrophic error of all streams"},
    {{0, 2, 9}, "STag cannot be invalidated"},
    {{0, 2, 255}, "unspecified remote operation error"},
    {{1, 0, 0}, "local catastrophic error of DDP"},
    {{1, 1, 0}, "invalid STag in a tagged segment"},
    {{1, 1, 1}, "base or bounds violation in a tagged segment"},
    {{1, 1, 2}, "STag of a tagged segment is not of this connection"},
    {{1, 1, 3}, "tagged offset wraps"},
    {{1, 1, 4}, "invalid DDP version in a tagged segment"},
    {{1, 2, 1}, "invalid queue number"},
    {{1, 2, 2}, "no Receive posted"},
    {{1, 2, 3}, "message sequence number out of range"},
    {{1, 2, 4}, "invalid message offset"},
    {{1, 2, 5}, "message longer than the Receive"},
    {{1, 2, 6}, "invalid DDP version in an untagged segment"},
    {{2, 0, 1}, "TCP connection lost"},
    {{2, 0, 2}, "CRC mismatch"},
    {{2, 0, 3}, "FPDU length or marker mismatch"},
    {{2, 0, 4}, "bad MPA Request or Reply"},
    {{2, 0, 5}, "local catastrophic error of MPA"},
    {{2, 0, 6}, "insufficient IRD"},
    {{2, 0, 7}, "no matching ready-to-receive option"},
};

const Row* find_row(const TerminateCode& code) {
  for (const Row& row : rows)
    if (row.code == code) return &row;
  return nullptr;
}

}  // namespace

bool known(const TerminateCode& code) { return find_row(code) != nullptr; }

std::string describe(const TerminateCode& code) {
  const Row* row = find_row(code);
  return base::text("%s (layer %u type %u code %u)", row ? row->text : "unknown reason", code.layer,
                    code.type, code.code);
}

std::vector<std::byte> encode_terminate(const TerminateCode& code, const OffendingSegment& segment,
                                        bool crc) {
  size_t body_bytes = 4;
  if (segment.ddp_header_bytes) body_bytes += 2u + segment.ddp_header_bytes;
  if (segment.has_read_request) body_bytes += read_request_bytes;
  SegmentHeader h;
  h.ulpdu_bytes = static_cast<uint16_t>(untagged_header_bytes - length_field_bytes + body_bytes);
  h.last = true;
  h.opcode = RdmapOpcode::terminate;
  h.queue = terminate_queue;
  h.msn = 1;
  std::vector<std::byte> out(length_field_bytes + h.ulpdu_bytes + pad_bytes(h.ulpdu_bytes) + crc_bytes);
  store_header(out.data(), h);
  std::byte* at = out.data() + untagged_header_bytes;
  bool quotes = segment.ddp_header_bytes != 0;
  at[0] = static_cast<std::byte>(code.layer << 4 | code.type);
  at[1] = static_cast<std::byte>(code.code);
  at[2] = static_cast<std::byte>((quotes ? 0xc0 : 0) | (segment.has_read_request ? 0x20 : 0));
  at += 4;
  if (quotes) {
    base::store_be<uint16_t>(at, segment.ulpdu_bytes);
    std::memcpy(at + 2, segment.ddp_header, segment.ddp_header_bytes);
    at += 2 + segment.ddp_header_bytes;
  }
  if (segment.has_read_request) std::memcpy(at, segment.read_request, read_request_bytes);
  if (crc)
    store_crc(out.data() + out.size() - crc_bytes,
              crc32c_update(crc32c_start, base::ConstBytes(out).first(out.size() - crc_bytes)));
  return out;
}

bool decode_terminate(base::ConstBytes payload, TerminateCode* code) {
  if (payload.size() < 2) return false;
  uint8_t first = static_cast<uint8_t>(payload[0]);
  uint8_t flags = payload.size() > 2 ? static_cast<uint8_t>(payload[2]) : 0;
  TerminateCode straight{static_cast<uint8_t>(first >> 4), static_cast<uint8_t>(first & 15),
                         static_cast<uint8_t>(payload[1])};
  TerminateCode swapped{straight.type, straight.layer, straight.code};
  bool like_siw = (flags & 0x07) != 0 || ((flags & 0xe0) == 0 && !known(straight) && known(swapped));
  *code = like_siw ? swapped : straight;
  return true;
}

}  // namespace nfsrdma::rdma::iwarp
