// SPDX-License-Identifier: Apache-2.0
// The lower half of capture.hpp: from the file to ordered byte streams.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "tests/nfs4/capture.hpp"

namespace nfsrdma::capture {

using View = std::span<const std::byte>;

inline uint32_t be(View bytes, size_t at, size_t width) {
  uint32_t v = 0;
  for (size_t i = 0; i < width; ++i) v = v << 8 | static_cast<uint32_t>(bytes[at + i]);
  return v;
}
inline uint32_t be32(View bytes, size_t at) { return be(bytes, at, 4); }
inline uint64_t be64(View bytes, size_t at) { return uint64_t{be32(bytes, at)} << 32 | be32(bytes, at + 4); }

// One direction of a TCP connection.
struct Flow {
  uint64_t source = 0;  // address and port
  uint64_t target = 0;
  auto operator<=>(const Flow&) const = default;
  Flow reversed() const { return {target, source}; }
};

// Calls data(flow, bytes) with each connection's bytes in order, as the packets that complete them come;
// retransmitted bytes are dropped. opened(flow) comes before, for the direction that sent the first SYN.
// False and a complaint when the file is no capture of the kind that this reads.
bool read_tcp(const std::string& path, const std::function<void(const Flow&)>& opened,
              const std::function<void(const Flow&, View)>& data, std::vector<std::string>& complaints);

}  // namespace nfsrdma::capture
