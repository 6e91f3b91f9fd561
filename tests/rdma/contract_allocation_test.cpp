// SPDX-License-Identifier: Apache-2.0
// Contract: no heap allocation per message in steady state, on either side.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/rdma/contract_harness.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NFSRDMA_FOREIGN_NEW 1  // clang's TSan runtime brings operator new itself
#endif
#endif

namespace {

std::atomic<uint64_t> allocations{0};

#ifndef NFSRDMA_FOREIGN_NEW

void* counted(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = std::malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}

#endif

}  // namespace

#ifndef NFSRDMA_FOREIGN_NEW
void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
#endif

namespace nfsrdma::rdma::contract {
namespace {

class Allocation : public ContractTest {};

TEST_P(Allocation, NoneInSteadyState) {
#ifdef NFSRDMA_FOREIGN_NEW
  GTEST_SKIP() << "allocations cannot be counted in this build";
#endif
  connect_pair();
  open_both_ways();
  constexpr uint32_t bytes = 100'000;
  Memory c(*client_.pd, 2 * bytes), s(*server_.pd, 2 * bytes);
  size_t c_got = 0, s_got = 0;
  auto turn = [&] {
    Completion out[32];
    c_got += client_.cq->poll(base::system_clock().now_ns(), out);
    s_got += server_.cq->poll(base::system_clock().now_ns(), out);
  };
  auto post = [](End& end, Opcode op, Sge piece, RemoteSegment remote) {
    SendRequest request;
    request.op = op;
    request.sge = {&piece, 1};
    request.remote = remote;
    return end.qp->post_send({&request, 1}).ok();
  };
  // One "call" with a read chunk and a write chunk: Send, RDMA Read, RDMA Write, reply Send, fences.
  auto round = [&] {
    auto readable = client_.qp->expose(*c, 0, bytes, Purpose::read_source);
    auto writable = client_.qp->expose(*c, bytes, bytes, Purpose::write_target);
    ReceiveRequest receive;
    receive.sge = {s.get(), 0, 200};
    bool good = readable.ok() && writable.ok() && server_.qp->post_receive({&receive, 1}).ok();
    receive.sge = {c.get(), 0, 200};
    good &= client_.qp->post_receive({&receive, 1}).ok();
    c_got = s_got = 0;
    good &= post(client_, Opcode::send, {c.get(), 0, 200}, {});
    client_.qp->flush();
    while (good && (s_got < 1 || c_got < 1)) turn();
    good &= post(server_, Opcode::read, {s.get(), 0, bytes}, {readable->key, readable->base});
    good &= post(server_, Opcode::write, {s.get(), 0, bytes}, {writable->key, writable->base});
    good &= post(server_, Opcode::send, {s.get(), 0, 200}, {});
    server_.qp->flush();
    while (good && (s_got < 4 || c_got < 2)) turn();
    size_t fences = 0;
    fences += client_.qp->fence(*readable, 1) ? 0 : 1;
    fences += client_.qp->fence(*writable, 1) ? 0 : 1;
    while (good && c_got < 2 + fences) turn();
    return good;
  };
  for (int i = 0; i < 50; i++) ASSERT_TRUE(round());
  uint64_t before = allocations.load();
  bool good = true;
  for (int i = 0; i < 200; i++) good &= round();
  EXPECT_EQ(allocations.load() - before, 0u);
  EXPECT_TRUE(good);
}

INSTANTIATE_TEST_SUITE_P(Contract, Allocation, testing::ValuesIn(contract_providers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nfsrdma::rdma::contract
