// SPDX-License-Identifier: Apache-2.0
#include "tests/nfs4/capture_tcp.hpp"

#include <fstream>
#include <iterator>

namespace nfsrdma::capture {
namespace {

struct Direction {
  bool synchronised = false;
  uint32_t next = 0;                 // sequence number expected next
  std::map<uint32_t, Buffer> early;  // segments beyond it
};

struct Segment {
  Flow flow;
  uint32_t sequence = 0;
  bool syn = false;
  bool ack = false;
  View payload;
};

// Ethernet II, IPv4 without fragments, TCP. False for everything else.
bool parse_packet(View packet, Segment& out) {
  if (packet.size() < 14 + 20 || be(packet, 12, 2) != 0x0800) return false;
  View ip = packet.subspan(14);
  const size_t ip_header = (static_cast<size_t>(ip[0]) & 15) * 4;
  const size_t total = be(ip, 2, 2);
  if (static_cast<uint32_t>(ip[9]) != 6 || total > ip.size() || ip_header + 20 > total) return false;
  const View tcp = ip.subspan(ip_header, total - ip_header);
  const size_t tcp_header = (static_cast<size_t>(tcp[12]) >> 4) * 4;
  if (tcp_header > tcp.size()) return false;
  out.flow.source = uint64_t{be32(ip, 12)} << 16 | be(tcp, 0, 2);
  out.flow.target = uint64_t{be32(ip, 16)} << 16 | be(tcp, 2, 2);
  out.sequence = be32(tcp, 4);
  out.syn = (static_cast<uint32_t>(tcp[13]) & 2) != 0;
  out.ack = (static_cast<uint32_t>(tcp[13]) & 16) != 0;
  out.payload = tcp.subspan(tcp_header);
  return true;
}

void deliver(Direction& direction, const Segment& segment,
             const std::function<void(const Flow&, View)>& data) {
  if (!segment.payload.empty()) {
    direction.early[segment.sequence] = Buffer(segment.payload.begin(), segment.payload.end());
  }
  while (!direction.early.empty()) {
    const auto first = direction.early.begin();
    const int32_t ahead = static_cast<int32_t>(first->first - direction.next);
    if (ahead > 0) return;
    const size_t known = static_cast<size_t>(-static_cast<int64_t>(ahead));
    if (known < first->second.size()) {
      const View fresh = View(first->second).subspan(known);
      direction.next += static_cast<uint32_t>(fresh.size());
      data(segment.flow, fresh);
    }
    direction.early.erase(first);
  }
}

uint32_t le32(View bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) | static_cast<uint32_t>(bytes[at + 1]) << 8 |
         static_cast<uint32_t>(bytes[at + 2]) << 16 | static_cast<uint32_t>(bytes[at + 3]) << 24;
}

}  // namespace

bool read_tcp(const std::string& path, const std::function<void(const Flow&)>& opened,
              const std::function<void(const Flow&, View)>& data, std::vector<std::string>& complaints) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const View bytes(reinterpret_cast<const std::byte*>(content.data()), content.size());
  constexpr size_t file_header = 24, record_header = 16;
  if (bytes.size() < file_header || le32(bytes, 0) != 0xa1b2c3d4 || le32(bytes, 20) != 1) {
    complaints.push_back(path + ": no little-endian pcap file of Ethernet frames");
    return false;
  }
  std::map<Flow, Direction> directions;
  size_t at = file_header;
  while (at + record_header <= bytes.size()) {
    const uint32_t captured = le32(bytes, at + 8);
    const uint32_t length = le32(bytes, at + 12);
    at += record_header;
    if (captured != length || captured > bytes.size() - at) {
      complaints.push_back(path + ": a packet was cut");
      return false;
    }
    Segment segment;
    const bool tcp = parse_packet(bytes.subspan(at, captured), segment);
    at += captured;
    if (!tcp) continue;
    Direction& direction = directions[segment.flow];
    if (segment.syn) {
      direction = Direction{true, segment.sequence + 1, {}};
      if (!segment.ack) opened(segment.flow);
    }
    if (!direction.synchronised) continue;
    deliver(direction, segment, data);
  }
  for (const auto& [flow, direction] : directions) {
    if (!direction.early.empty()) complaints.push_back(path + ": a gap in a TCP stream");
  }
  return true;
}

}  // namespace nfsrdma::capture
