// SPDX-License-Identifier: Apache-2.0
// What the two ends tell each other while connecting (RFC 8797): inline sizes and whether remote invalidation
// is welcome. A peer that says nothing, or something else, gets the defaults of RFC 8166 section 3.3.2.
#pragma once

#include <algorithm>
#include <array>

#include "base/bytes.hpp"

namespace nfsrdma::rpcrdma {

constexpr uint32_t inline_bytes_unknown_peer = 1024;
constexpr uint32_t inline_bytes_most = 262144;

struct CmPrivateData {
  static constexpr size_t bytes = 8;
  static constexpr uint32_t magic = 0xf6ab0e18;
  static constexpr uint8_t format = 1;

  bool known = false;                                  // the peer sent one that we understand
  bool remote_invalidation = false;                    // the sender of this can take Send with Invalidate
  uint32_t send_bytes = inline_bytes_unknown_peer;     // largest message that it will send inline
  uint32_t receive_bytes = inline_bytes_unknown_peer;  // size of each Receive that it posts

  std::array<std::byte, bytes> encode() const {
    std::array<std::byte, bytes> out{};
    base::store_be(out.data(), magic);
    out[4] = std::byte{format};
    out[5] = std::byte{remote_invalidation};
    out[6] = size_code(send_bytes);
    out[7] = size_code(receive_bytes);
    return out;
  }

  // Longer data is accepted, its end ignored; a foreign magic or format is the same as no data.
  static CmPrivateData decode(base::ConstBytes in) {
    CmPrivateData d;
    if (in.size() < bytes || base::load_be<uint32_t>(in.data()) != magic || in[4] != std::byte{format})
      return d;
    d.known = true;
    d.remote_invalidation = (in[5] & std::byte{1}) != std::byte{0};
    d.send_bytes = (std::to_integer<uint32_t>(in[6]) + 1) * 1024;
    d.receive_bytes = (std::to_integer<uint32_t>(in[7]) + 1) * 1024;
    return d;
  }

 private:
  static std::byte size_code(uint32_t size_bytes) {
    return static_cast<std::byte>(std::clamp(size_bytes, 1024u, inline_bytes_most) / 1024 - 1);
  }
};

}  // namespace nfsrdma::rpcrdma
