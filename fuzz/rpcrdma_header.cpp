// SPDX-License-Identifier: Apache-2.0
// Transport header of RPC over RDMA. What parses must come out again byte for byte, and stay within the
// limits.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rpcrdma/cm_private_data.hpp"
#include "rpcrdma/header.hpp"

namespace {

using namespace nfsrdma;

void require(bool ok) {
  if (!ok) __builtin_trap();
}

void check(base::ConstBytes in, const rpcrdma::ParseLimits& limits) {
  static rpcrdma::Header header;  // used again and again, as endpoints do
  uint32_t body_at = 0;
  const rpcrdma::ParseStatus status = rpcrdma::parse(in, limits, header, body_at);
  require(body_at <= in.size());
  require(header.reads.size() <= limits.read_segments_max);
  require(header.write_chunks.size() <= limits.write_chunks_max);
  if (status != rpcrdma::ParseStatus::ok) return;
  for (const rpcrdma::ChunkRange& chunk : header.write_chunks)
    require(chunk.count <= limits.chunk_segments_max);
  require(rpcrdma::encoded_bytes(header) == body_at);
  std::vector<std::byte> again(body_at);
  require(rpcrdma::encode(header, again) == body_at);
  require(std::memcmp(again.data(), in.data(), body_at) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const base::ConstBytes in(reinterpret_cast<const std::byte*>(data), size);
  check(in, {});
  check(in, {.read_segments_max = 1, .write_chunks_max = 1, .chunk_segments_max = 16});
  check(in, {.read_segments_max = 260, .write_chunks_max = 16, .chunk_segments_max = 260});
  const rpcrdma::CmPrivateData d = rpcrdma::CmPrivateData::decode(in);
  require(d.send_bytes >= 1024 && d.send_bytes <= rpcrdma::inline_bytes_most);
  require(d.receive_bytes >= 1024 && d.receive_bytes <= rpcrdma::inline_bytes_most);
  return 0;
}
