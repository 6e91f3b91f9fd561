// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/mpa.hpp"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

constexpr char request_key[] = "MPA ID Req Frame";
constexpr char reply_key[] = "MPA ID Rep Frame";
constexpr size_t key_bytes = 16;
constexpr size_t depths_bytes = 4;

constexpr uint8_t flag_markers = 0x80;
constexpr uint8_t flag_crc = 0x40;
constexpr uint8_t flag_reject = 0x20;
constexpr uint8_t flag_enhanced = 0x10;

constexpr uint16_t flag_a_or_c = 0x8000;
constexpr uint16_t flag_b_or_d = 0x4000;
constexpr uint16_t depth_mask = 0x3fff;

constexpr char peer_mark[] = "nrdm";
constexpr uint8_t peer_mark_version = 1;
constexpr uint8_t peer_flag_any_fpdu = 0x01;

std::string show_start(const std::byte* at, size_t n) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(n, key_bytes); i++) {
    unsigned c = static_cast<unsigned>(at[i]);
    out += c >= 0x20 && c < 0x7f ? std::string(1, static_cast<char>(c)) : base::text("\\x%02x", c);
  }
  return out;
}

uint16_t depth_word(uint16_t depth, bool high, bool low) {
  return static_cast<uint16_t>((high ? flag_a_or_c : 0) | (low ? flag_b_or_d : 0) |
                               std::min(depth, depth_mask));
}

}  // namespace

std::vector<std::byte> encode_mpa(const MpaFrame& frame) {
  size_t private_bytes =
      (frame.enhanced ? depths_bytes : 0) + frame.private_data.size() + (frame.ours ? peer_mark_bytes : 0);
  std::vector<std::byte> out(mpa_header_bytes + private_bytes);
  std::memcpy(out.data(), frame.reply ? reply_key : request_key, key_bytes);
  out[16] = static_cast<std::byte>((frame.markers ? flag_markers : 0) | (frame.crc ? flag_crc : 0) |
                                   (frame.reject ? flag_reject : 0) | (frame.enhanced ? flag_enhanced : 0));
  out[17] = static_cast<std::byte>(frame.revision);
  base::store_be<uint16_t>(&out[18], static_cast<uint16_t>(private_bytes));
  std::byte* at = out.data() + mpa_header_bytes;
  if (frame.enhanced) {
    base::store_be<uint16_t>(at, depth_word(frame.ird, frame.peer_to_peer, frame.rtr_send));
    base::store_be<uint16_t>(at + 2, depth_word(frame.ord, frame.rtr_write, frame.rtr_read));
    at += depths_bytes;
  }
  if (!frame.private_data.empty()) std::memcpy(at, frame.private_data.data(), frame.private_data.size());
  at += frame.private_data.size();
  if (frame.ours) {
    std::memcpy(at, peer_mark, 4);
    at[4] = std::byte{peer_mark_version};
    at[5] = std::byte{peer_flag_any_fpdu};
    base::store_be<uint16_t>(at + 6, static_cast<uint16_t>(frame.private_data.size()));
  }
  return out;
}

MpaReader::State MpaReader::advance(size_t n) {
  have_ += n;
  // A peer of another kind shows itself by its first byte, long before 20 came.
  const char* key = reply_ ? reply_key : request_key;
  size_t prefix = std::min(have_, key_bytes);
  if (std::memcmp(buffer_.data(), key, prefix) != 0) {
    problem_ = "it sent \"" + show_start(buffer_.data(), prefix) + "\"";
    return State::not_mpa;
  }
  if (have_ < want_) return State::reading;
  if (want_ == mpa_header_bytes) {
    State state = parse_header();
    if (state != State::reading || have_ < want_) return state;
  }
  return parse_private();
}

MpaReader::State MpaReader::parse_header() {
  uint8_t flags = static_cast<uint8_t>(buffer_[16]);
  uint8_t revision = static_cast<uint8_t>(buffer_[17]);
  uint16_t bytes = base::load_be<uint16_t>(&buffer_[18]);
  if (revision == 0 || revision > 2) {
    problem_ = base::text("MPA revision %u is not known here (1 and 2 are)", revision);
    return State::malformed;
  }
  if (bytes > mpa_private_bytes_max) {
    problem_ = base::text("MPA private data of %u bytes, at most 512 are allowed", bytes);
    return State::malformed;
  }
  frame_.reply = reply_;
  frame_.markers = flags & flag_markers;
  frame_.crc = flags & flag_crc;
  frame_.reject = flags & flag_reject;
  frame_.enhanced = revision == 2 && (flags & flag_enhanced);
  frame_.revision = revision;
  // A rejection needs no depths; everything else that promises them must have them.
  if (frame_.enhanced && bytes < depths_bytes) {
    if (!frame_.reject) {
      problem_ = "MPA frame with the enhanced flag, but without IRD and ORD";
      return State::malformed;
    }
    frame_.enhanced = false;
  }
  want_ += bytes;
  return bytes == 0 ? State::complete : State::reading;
}

MpaReader::State MpaReader::parse_private() {
  base::ConstBytes data(buffer_.data() + mpa_header_bytes, want_ - mpa_header_bytes);
  if (frame_.enhanced) {
    uint16_t first = base::load_be<uint16_t>(data.data());
    uint16_t second = base::load_be<uint16_t>(data.data() + 2);
    frame_.peer_to_peer = first & flag_a_or_c;
    frame_.rtr_send = first & flag_b_or_d;
    frame_.rtr_write = second & flag_a_or_c;
    frame_.rtr_read = second & flag_b_or_d;
    frame_.ird = first & depth_mask;
    frame_.ord = second & depth_mask;
    data = data.subspan(depths_bytes);
  }
  if (data.size() >= peer_mark_bytes) {
    const std::byte* mark = data.data() + data.size() - peer_mark_bytes;
    if (std::memcmp(mark, peer_mark, 4) == 0 && mark[4] == std::byte{peer_mark_version} &&
        base::load_be<uint16_t>(mark + 6) == data.size() - peer_mark_bytes) {
      frame_.ours = (mark[5] & std::byte{peer_flag_any_fpdu}) != std::byte{0};
      data = data.first(data.size() - peer_mark_bytes);
    }
  }
  frame_.private_data.assign(data.begin(), data.end());
  return State::complete;
}

std::optional<std::string> request_problem(const MpaFrame& request) {
  if (request.markers) return "it wants markers in the stream, which are not supported";
  if (request.reject) return "its Request has the reject flag set";
  return std::nullopt;
}

MpaFrame answer_request(const MpaFrame& request, const Depths& wanted, bool want_crc, Depths* agreed) {
  MpaFrame reply;
  reply.reply = true;
  reply.revision = request.revision;
  reply.crc = want_crc || request.crc;
  reply.enhanced = request.enhanced;
  reply.ours = request.ours;
  reply.reject = request_problem(request).has_value();
  *agreed = wanted;
  if (!request.enhanced) return reply;
  if (request.ird != depth_not_negotiated) agreed->ord = std::min<uint32_t>(wanted.ord, request.ird);
  if (request.ord != depth_not_negotiated) agreed->ird = std::min<uint32_t>(wanted.ird, request.ord);
  reply.ird = static_cast<uint16_t>(agreed->ird);
  reply.ord = static_cast<uint16_t>(agreed->ord);
  if (request.peer_to_peer) {
    // One option must be chosen; a Write is the one that costs nothing. Whatever FPDU comes first will do.
    reply.peer_to_peer = true;
    reply.rtr_read = request.rtr_read && !request.rtr_write;
    reply.rtr_write = !reply.rtr_read;
  }
  return reply;
}

Result<Depths> judge_reply(const MpaFrame& reply, const Depths& offered, bool* too_deep) {
  *too_deep = false;
  if (reply.markers)
    return Error(EPROTO, ErrorOrigin::protocol,
                 "the peer wants markers in the stream, which are not supported");
  if (!reply.enhanced) return offered;  // revision 1: both sides rely on their configuration
  if (reply.ord != depth_not_negotiated && reply.ord > offered.ird) {
    *too_deep = true;
    return Error(
        EPROTO, ErrorOrigin::protocol,
        base::text("the peer wants %u RDMA Reads at once, but was offered %u", reply.ord, offered.ird));
  }
  Depths agreed = offered;
  if (reply.ird != depth_not_negotiated) agreed.ord = std::min<uint32_t>(offered.ord, reply.ird);
  return agreed;
}

}  // namespace nfsrdma::rdma::iwarp
