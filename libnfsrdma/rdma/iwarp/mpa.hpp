// SPDX-License-Identifier: Apache-2.0
// MPA start-up frames (RFC 5044 section 7.1, RFC 6581): build, parse and judge. No I/O.
//
//   16 bytes key | u8 flags | u8 revision | u16 bytes of private data | private data (at most 512)
// With the enhanced flag (revision 2) private data begins with 4 bytes: IRD and ORD, 14 bits each, and the
// ready-to-receive options. The consumer's own data follows. Our endpoints append 8 bytes to it by which they
// know each other (Linux consumers read their fixed head and skip what follows):
//   "nrdm" | u8 version 1 | u8 flags | u16 bytes of the consumer's data before it
#pragma once

#include <optional>
#include <vector>

#include "nfsrdma/error.hpp"
#include "rdma/iwarp/wire.hpp"

namespace nfsrdma::rdma::iwarp {

constexpr size_t mpa_header_bytes = 20;
constexpr size_t mpa_private_bytes_max = 512;
constexpr size_t mpa_frame_bytes_max = mpa_header_bytes + mpa_private_bytes_max;
constexpr size_t peer_mark_bytes = 8;
// siw keeps the length in 8 bits: 255 less IRD/ORD and our mark.
constexpr size_t consumer_private_bytes_max = 255 - 4 - peer_mark_bytes;
constexpr uint16_t depth_not_negotiated = 0x3fff;

struct MpaFrame {
  bool reply = false;
  bool markers = false;
  bool crc = false;
  bool reject = false;
  bool enhanced = false;  // the 4 bytes are there; implies revision 2
  uint8_t revision = 2;
  bool peer_to_peer = false;  // A: the first FPDU shall be one of the following
  bool rtr_send = false;      // B
  bool rtr_write = false;     // C
  bool rtr_read = false;      // D
  uint16_t ird = 0;
  uint16_t ord = 0;
  bool ours = false;                    // the mark is there: the peer takes FPDUs of any size
  std::vector<std::byte> private_data;  // the consumer's
};

std::vector<std::byte> encode_mpa(const MpaFrame& frame);

// Collects one frame. Reads exactly as far as the frame goes: FPDUs that follow stay in the socket.
class MpaReader {
 public:
  enum class State : uint8_t { reading, complete, not_mpa, malformed };

  explicit MpaReader(bool reply) : reply_(reply), buffer_(mpa_frame_bytes_max) {}
  base::Bytes space() { return base::Bytes(buffer_).subspan(have_, want_ - have_); }
  State advance(size_t n);
  const MpaFrame& frame() const { return frame_; }
  const std::string& problem() const { return problem_; }  // not_mpa, malformed
  size_t have_bytes() const { return have_; }

 private:
  State parse_header();
  State parse_private();

  bool reply_;
  size_t have_ = 0;
  size_t want_ = mpa_header_bytes;
  std::vector<std::byte> buffer_;
  MpaFrame frame_;
  std::string problem_;
};

struct Depths {
  uint32_t ird = 0;
  uint32_t ord = 0;
};

// Responder: the Reply for a well-formed Request; reject is set when it must be refused (markers, no depths
// where the enhanced flag wants them). wanted: what our consumer asked for; agreed: what holds after the
// Reply.
MpaFrame answer_request(const MpaFrame& request, const Depths& wanted, bool want_crc, Depths* agreed);
// A Request that no consumer needs to see, and why; nullopt: it is good.
std::optional<std::string> request_problem(const MpaFrame& request);

// Initiator: what a Reply means for the depths that we offered. Error: the connection must be given up;
// too_deep is set when the reason is that the responder wants more Reads than we serve.
Result<Depths> judge_reply(const MpaFrame& reply, const Depths& offered, bool* too_deep);

}  // namespace nfsrdma::rdma::iwarp
