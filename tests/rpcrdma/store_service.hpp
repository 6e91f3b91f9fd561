// SPDX-License-Identifier: Apache-2.0
// A small program to call in tests: stores and returns payload, returns results and echoes arguments of any
// size.
#pragma once

#include "tests/rpcrdma/pair.hpp"

namespace nfsrdma::rpcrdma::testing {

constexpr uint32_t op_store = 1, op_fetch = 2, op_results = 3, op_echo = 4;
constexpr uint32_t trailer = 0xfeedface;

struct StoreService {
  std::vector<std::byte> stored;
  std::vector<std::byte> tail;  // arguments behind the payload of the last store
  bool stored_out_of_band = false;
  std::unique_ptr<Memory> source;  // of fetches
  std::vector<rdma::Sge> source_pieces;
  uint32_t source_cut = 0;  // fetches come in pieces of this size; 0 = one piece
  int releases = 0;
  uint32_t results_bytes_max = 0, write_chunk_bytes = 0;  // of the last call

  void operator()(std::unique_ptr<rpc::ServerCall> call) {
    results_bytes_max = call->results_bytes_max;
    write_chunk_bytes = call->write_chunk_bytes;
    ASSERT_GE(call->args.size(), 8u);
    const uint32_t op = base::load_be<uint32_t>(call->args.data());
    const uint32_t n = base::load_be<uint32_t>(call->args.data() + 4);
    switch (op) {
      case op_store:
        return store(*call, n);
      case op_fetch:
        return fetch(*call, n);
      case op_results:
        return results(*call, n);
      default:
        return echo(*call);
    }
  }

 private:
  void store(rpc::ServerCall& call, uint32_t n) {
    stored_out_of_band = call.data.length > 0;
    if (stored_out_of_band) {
      ASSERT_EQ(call.data.position, 8u);
      ASSERT_GE(call.data.length, n);
      stored.clear();
      for (const rdma::Sge& piece : call.data.pieces)
        stored.insert(stored.end(), piece.region->host() + piece.offset,
                      piece.region->host() + piece.offset + piece.length);
      stored.resize(n);
      tail.assign(call.args.begin() + 8, call.args.end());
    } else {
      ASSERT_GE(call.args.size(), 8 + n + base::pad4(n));
      stored.assign(call.args.begin() + 8, call.args.begin() + 8 + n);
      tail.assign(call.args.begin() + 8 + n + base::pad4(n), call.args.end());
    }
    base::store_be(call.results_space().data(), n);
    call.reply(rpc::AcceptStatus::success, 4);
  }
  void fetch(rpc::ServerCall& call, uint32_t n) {
    ASSERT_TRUE(source && source->bytes >= n);
    source_pieces.clear();
    for (uint32_t at = 0; at < n;) {
      const uint32_t step = std::min(n - at, source_cut ? source_cut : n);
      source_pieces.push_back(source->sge(at, step));
      at += step;
    }
    std::byte* out = call.results_space().data();
    base::store_be(out, n);
    base::store_be(out + 4, trailer);
    rpc::OutboundData data;
    data.position = 4;
    data.length = n;
    data.pieces = source_pieces;
    data.release = [this] { releases++; };
    call.reply(rpc::AcceptStatus::success, 8, std::move(data));
  }
  void results(rpc::ServerCall& call, uint32_t n) {
    if (n <= call.results_space().size())
      for (uint32_t i = 0; i < n; i++) call.results_space()[i] = Memory::pattern(3, i);
    call.reply(rpc::AcceptStatus::success, n);
  }
  void echo(rpc::ServerCall& call) {
    ASSERT_LE(call.args.size(), call.results_space().size());
    std::ranges::copy(call.args, call.results_space().begin());
    call.reply(rpc::AcceptStatus::success, static_cast<uint32_t>(call.args.size()));
  }
};

inline TestCall& make_store(TestCall& call, std::vector<rdma::Sge> pieces, uint32_t n) {
  call.set_args({op_store, n, trailer});
  call.out_pieces = std::move(pieces);
  call.out = {call.out_pieces, n, 8};
  call.results_bytes_max = 4;
  return call;
}

inline TestCall& make_fetch(TestCall& call, std::vector<rdma::Sge> pieces, uint32_t n) {
  call.set_args({op_fetch, n});
  call.in_pieces = std::move(pieces);
  call.in = {call.in_pieces, static_cast<uint32_t>(n)};
  call.results_bytes_max = 8;
  return call;
}

inline TestCall& make_results(TestCall& call, uint32_t n, uint32_t bound) {
  call.set_args({op_results, n});
  call.results_bytes_max = bound;
  return call;
}

}  // namespace nfsrdma::rpcrdma::testing
