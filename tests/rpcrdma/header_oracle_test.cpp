// SPDX-License-Identifier: Apache-2.0
// header.cpp against libtirpc and rpcgen: both must write the same bytes for the same header, and what one
// writes the other must read.
#include <gtest/gtest.h>
#include <rpc/rpc.h>

#include <deque>
#include <vector>

#include "rfc8166.h"
#include "tests/rpcrdma/random_header.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

// The header in the oracle's types; it owns the list nodes.
struct OracleForm {
  oracle_header header{};
  std::deque<oracle_read_list> reads;
  std::deque<oracle_write_list> writes;
  std::deque<std::vector<oracle_segment>> segments;
  oracle_reply_chunk reply{};

  explicit OracleForm(const Header& h) {
    header.xid = h.xid;
    header.vers = protocol_version;
    header.credit = h.credit;
    header.body.procedure = static_cast<oracle_procedure>(h.procedure);
    if (h.procedure == Procedure::error) {
      oracle_error& e = header.body.oracle_body_u.error;
      e.code = static_cast<oracle_error_code>(h.error);
      e.oracle_error_u.versions = {h.version_low, h.version_high};
      return;
    }
    oracle_lists& lists = header.body.oracle_body_u.msg;
    oracle_read_list** read_end = &lists.reads;
    for (const ReadSegment& r : h.reads) {
      reads.push_back({r.position, {r.target.handle, r.target.length, r.target.offset}, nullptr});
      *read_end = &reads.back();
      read_end = &reads.back().next;
    }
    oracle_write_list** write_end = &lists.writes;
    for (const ChunkRange& chunk : h.write_chunks) {
      auto& list = convert(h.segments(chunk));
      writes.push_back({{static_cast<u_int>(list.size()), list.data()}, nullptr});
      *write_end = &writes.back();
      write_end = &writes.back().next;
    }
    if (!h.has_reply_chunk) return;
    auto& list = convert(h.segments(h.reply_chunk));
    reply.chunk = {static_cast<u_int>(list.size()), list.data()};
    lists.reply = &reply;
  }
  std::vector<oracle_segment>& convert(std::span<const Segment> from) {
    auto& list = segments.emplace_back();
    for (const Segment& s : from) list.push_back({s.handle, s.length, s.offset});
    return list;
  }
};

std::vector<std::byte> oracle_encode(oracle_header& h) {
  std::vector<std::byte> out(65536);
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(out.data()), static_cast<u_int>(out.size()), XDR_ENCODE);
  EXPECT_TRUE(xdr_oracle_header(&xdr, &h));
  out.resize(xdr_getpos(&xdr));
  return out;
}

// libtirpc takes any number but 0 for TRUE; the specification knows 0 and 1 only. So what it accepts must
// also come out again as it went in.
bool oracle_accepts(std::span<const std::byte> bytes, uint32_t& used) {
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(copy.data()), static_cast<u_int>(copy.size()), XDR_DECODE);
  oracle_header h{};
  bool ok = xdr_oracle_header(&xdr, &h);
  used = xdr_getpos(&xdr);
  if (ok) {
    auto again = oracle_encode(h);
    ok = again.size() == used && std::ranges::equal(again, bytes.first(used));
  }
  xdr_free(reinterpret_cast<xdrproc_t>(xdr_oracle_header), &h);
  return ok;
}

TEST(HeaderOracle, BothWriteTheSameBytes) {
  base::SeededRandom random(11);
  Header h;
  for (int i = 0; i < 2000; i++) {
    make_random_header(random, 20, h);
    OracleForm form(h);
    std::vector<std::byte> ours(encoded_bytes(h));
    ASSERT_EQ(encode(h, ours), ours.size());
    EXPECT_EQ(oracle_encode(form.header), ours);
  }
}

TEST(HeaderOracle, BothAcceptTheSameMutations) {
  base::SeededRandom random(12);
  const ParseLimits limits{.read_segments_max = 1000, .write_chunks_max = 1000, .chunk_segments_max = 1000};
  Header h, back;
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20000; i++) {
    make_random_header(random, 3, h);
    std::vector<std::byte> bytes(encoded_bytes(h));
    encode(h, bytes);
    // Small values into aligned words: discriminators and counts are what decides.
    const size_t word = 3 + random.below(bytes.size() / 4 - 3);
    base::store_be(bytes.data() + 4 * word, static_cast<uint32_t>(random.below(4)));
    uint32_t body_at = 0, used = 0;
    const bool ours = parse(bytes, limits, back, body_at) == ParseStatus::ok;
    const bool theirs = oracle_accepts(bytes, used);
    ASSERT_EQ(ours, theirs) << "iteration " << i << " word " << word;
    if (ours) {
      EXPECT_EQ(body_at, used);
    }
    (ours ? accepted : refused)++;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
