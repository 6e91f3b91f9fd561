// SPDX-License-Identifier: Apache-2.0
// Steady state allocates nothing, on either side: every operator new of this program is counted.
#include "tests/support/counting_new.hpp"
#include "tests/rpcrdma/store_service.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

// Calls that allocate nothing themselves: results are not kept.
struct QuietCall : rpc::Call {
  rdma::Sge piece;
  std::array<std::byte, 12> body{};
  int* done = nullptr;
  QuietCall() {
    complete = [](rpc::Call& self) {
      QuietCall& call = static_cast<QuietCall&>(self);
      if (call.outcome == rpc::CallOutcome::replied) ++*call.done;
    };
  }
  void set(uint32_t op, uint32_t n, size_t bytes) {
    base::store_be(body.data(), op);
    base::store_be(body.data() + 4, n);
    base::store_be(body.data() + 8, trailer);
    args = {body.data(), bytes};
  }
};

class Allocation : public Pair {
 protected:
  std::unique_ptr<Memory> memory;
  rdma::Sge source;
  int done = 0;
  std::array<QuietCall, 24> calls;

  // Answers fetches from `memory`, stores by their length, without keeping anything.
  void answer(rpc::ServerCall& call) {
    const uint32_t op = base::load_be<uint32_t>(call.args.data());
    const uint32_t n = base::load_be<uint32_t>(call.args.data() + 4);
    base::store_be(call.results_space().data(), n);
    if (op == op_results) return call.reply(rpc::AcceptStatus::success, n);
    if (op != op_fetch) return call.reply(rpc::AcceptStatus::success, 4);
    base::store_be(call.results_space().data() + 4, trailer);
    source = memory->sge(0, n);
    rpc::OutboundData data;
    data.position = 4;
    data.length = n;
    data.pieces = {&source, 1};
    call.reply(rpc::AcceptStatus::success, 8, std::move(data));
  }
  void round(uint32_t op, uint32_t n) {
    done = 0;
    for (QuietCall& call : calls) {
      call.done = &done;
      call.piece = memory->sge(1u << 20, n);
      call.out = {};
      call.in = {};
      call.results_bytes_max = op == op_results ? n : 8;
      call.set(op, n, op == op_store ? 12 : 8);
      if (op == op_store) call.out = {{&call.piece, 1}, n, 8};
      if (op == op_fetch) call.in = {{&call.piece, 1}, n};
      endpoint->submit(call);
    }
    endpoint->flush();
    for (int i = 0; i < 200'000 && done < static_cast<int>(calls.size()); i++)
      if (!loop.turn(0)) clock.advance(base::us(10));
    // Whatever trails behind the last reply.
    for (int i = 0; i < 20; i++) loop.turn(0);
  }
};
NFSRDMA_BOTH_PROVIDERS(Allocation);

TEST_P(Allocation, NoneInSteadyState) {
  service.handler = [this](std::unique_ptr<rpc::ServerCall> call) { answer(*call); };
  start();
  memory = std::make_unique<Memory>(*pd, 2u << 20);
  TestCall first;
  first.set_args({op_echo, 0});
  first.results_bytes_max = 8;
  run(first);
  for (bool counted : {false, false, true}) {
    for (uint32_t op : {op_store, op_fetch, op_results})
      for (uint32_t n : {4u, 1001u, 4096u, 65536u, 200'000u}) {
        if (op == op_results && n % 4) continue;
        const uint64_t before = nfsrdma::testing::heap_allocations();
        round(op, n);
        ASSERT_EQ(done, static_cast<int>(calls.size())) << op << " " << n;
        if (!counted) continue;
        EXPECT_EQ(nfsrdma::testing::heap_allocations() - before, 0u)
            << "operation " << op << ", " << n << " bytes";
      }
  }
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
