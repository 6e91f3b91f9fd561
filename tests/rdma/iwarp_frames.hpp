// SPDX-License-Identifier: Apache-2.0
// iWARP bytes written by hand from RFC 5040, 5041 and 5044, apart from the library's own encoder, and an
// Engine without a socket to feed them to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rdma/iwarp/engine.hpp"

namespace nfsrdma::rdma::iwarp {

using Octets = std::vector<uint8_t>;

inline void put(Octets& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}
inline uint64_t get(const Octets& in, size_t at, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | in.at(at + static_cast<size_t>(i));
  return v;
}
inline Octets operator+(Octets a, const Octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Bit by bit: slow and certain.
inline uint32_t crc32c_by_bits(const Octets& data) {
  uint32_t crc = 0xffffffff;
  for (uint8_t byte : data)
    for (int bit = 0; bit < 8; bit++) {
      uint32_t carry = (crc ^ byte >> bit) & 1;
      crc = crc >> 1 ^ (carry ? 0x82f63b78u : 0);
    }
  return ~crc;
}

// Length, DDP segment, pad, CRC.
inline Octets fpdu(const Octets& segment, bool crc = false) {
  Octets out;
  put(out, segment.size(), 2);
  out.insert(out.end(), segment.begin(), segment.end());
  while (out.size() % 4) out.push_back(0);
  uint32_t value = crc ? crc32c_by_bits(out) : 0;
  for (int i = 0; i < 4; i++) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
  return out;
}
inline Octets tagged(uint16_t control, uint32_t stag, uint64_t offset, const Octets& payload) {
  Octets s;
  put(s, control, 2);
  put(s, stag, 4);
  put(s, offset, 8);
  return s + payload;
}
inline Octets untagged(uint16_t control, uint32_t word, uint32_t queue, uint32_t msn, uint32_t offset,
                       const Octets& payload) {
  Octets s;
  put(s, control, 2);
  put(s, word, 4);
  put(s, queue, 4);
  put(s, msn, 4);
  put(s, offset, 4);
  return s + payload;
}
inline Octets send_segment(uint32_t msn, const Octets& payload, uint32_t offset = 0, bool last = true) {
  return untagged(last ? 0x4143 : 0x0143, 0, 0, msn, offset, payload);
}
inline Octets read_request(uint32_t msn, uint32_t sink, uint64_t sink_offset, uint32_t bytes, uint32_t source,
                           uint64_t source_offset) {
  Octets body;
  put(body, sink, 4);
  put(body, sink_offset, 8);
  put(body, bytes, 4);
  put(body, source, 4);
  put(body, source_offset, 8);
  return untagged(0x4141, 0, 1, msn, 0, body);
}
inline Octets ramp(size_t n, uint8_t start = 0) {
  Octets v(n);
  for (size_t i = 0; i < n; i++) v[i] = static_cast<uint8_t>(start + i * 7 + i / 256);
  return v;
}

// An Engine, memory for it, and what it completed.
class EngineBench : private CompletionSink {
 public:
  explicit EngineBench(StreamParams params = responder(), QueuePairParams depths = default_depths())
      : engine(depths, *this, users) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0xcc});
    engine.start(params);
  }
  ~EngineBench() = default;

  static StreamParams responder() {
    StreamParams p;
    p.ird = 4;
    p.ord = 4;
    return p;
  }
  static QueuePairParams default_depths() {
    QueuePairParams p;
    p.send_depth = 32;
    p.receive_depth = 32;
    return p;
  }

  // Gives the engine bytes in reads of at most `most`; stops at a failure. Returns how many were taken.
  size_t feed(const Octets& in, size_t most = SIZE_MAX) {
    size_t at = 0;
    while (at < in.size()) {
      iovec iov[2];
      size_t n = engine.plan_receive(iov);
      if (n == 0) return at;
      size_t got = 0;
      for (size_t i = 0; i < n && got < most && at < in.size(); i++) {
        size_t step = std::min({iov[i].iov_len, most - got, in.size() - at});
        std::memcpy(iov[i].iov_base, in.data() + at, step);
        got += step;
        at += step;
      }
      if (!engine.received(got)) return at;
    }
    return at;
  }
  // Everything that the engine wants to send, taken in writes of at most `most`.
  Octets output(size_t most = SIZE_MAX) {
    Octets out;
    for (;;) {
      std::span<iovec> iov = engine.plan_send();
      if (iov.empty()) return out;
      size_t n = 0;
      for (const iovec& piece : iov) {
        size_t step = std::min(piece.iov_len, most - n);
        const uint8_t* from = static_cast<const uint8_t*>(piece.iov_base);
        out.insert(out.end(), from, from + step);
        n += step;
        if (n == most) break;
      }
      engine.sent(n);
    }
  }
  void post_receive(uint64_t id, uint64_t offset, uint32_t length) {
    ReceiveRequest r;
    r.id = id;
    r.sge = {&region, offset, length};
    ASSERT_TRUE(engine.post_receive({&r, 1}).ok());
  }
  void post(Opcode op, uint64_t id, uint64_t offset, uint32_t length, RemoteSegment remote = {},
            uint32_t invalidate = 0) {
    Sge piece{&region, offset, length};
    SendRequest r;
    r.id = id;
    r.op = op;
    r.sge = {&piece, 1};
    r.remote = remote;
    r.invalidate_key = invalidate;
    ASSERT_TRUE(engine.post_send({&r, 1}).ok());
  }
  Exposure expose(uint64_t offset, uint32_t length, Purpose purpose) {
    auto e = engine.expose(region, offset, length, purpose);
    EXPECT_TRUE(e.ok());
    return e ? *e : Exposure{};
  }
  bool holds(uint64_t offset, const Octets& expected) const {
    return std::memcmp(bytes.data() + offset, expected.data(), expected.size()) == 0;
  }
  bool untouched(uint64_t offset, uint64_t length) const {
    return std::all_of(bytes.begin() + static_cast<ptrdiff_t>(offset),
                       bytes.begin() + static_cast<ptrdiff_t>(offset + length),
                       [](std::byte b) { return b == std::byte{0xcc}; });
  }

  std::shared_ptr<MemoryUsers> users = std::make_shared<MemoryUsers>();
  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 20);
  HostRegion region{users, bytes.data(), bytes.size(), MemoryKind::host, false};
  std::vector<Completion> seen;
  Engine engine;

 private:
  void push(const Completion& completion) override { seen.push_back(completion); }
};

}  // namespace nfsrdma::rdma::iwarp
