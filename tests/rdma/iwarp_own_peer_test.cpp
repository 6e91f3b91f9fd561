// SPDX-License-Identifier: Apache-2.0
// Our provider on both ends: what it costs, and what it knows about itself.
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/providers.hpp"
#include "tests/rdma/contract_harness.hpp"

namespace nfsrdma::rdma::contract {

std::vector<ContractProvider> contract_providers() {
  return {{"iwarp", [] { return make_iwarp_provider({}); }, loopback()}};
}

namespace {

class OwnPeer : public ContractTest {
 protected:
  void open() {
    connect_pair();
    open_both_ways();
  }
  static uint64_t moved(const ProviderCounters& c) { return c.payload_direct_bytes + c.payload_copied_bytes; }
};

// Payload of 64 KiB and more goes from the socket to its place; at most 1 % takes the way through a small
// buffer.
TEST_P(OwnPeer, BulkIsPlacedDirectly) {
  open();
  for (uint32_t bytes : {64u << 10, 256u << 10, 1u << 20, (1u << 20) + 3}) {
    SCOPED_TRACE(bytes);
    Memory there(*server_.pd, bytes), here(*client_.pd, bytes), inbox(*client_.pd, 256);
    for (uint64_t round = 0; round < 30; round++) {
      ProviderCounters c0 = client_.cq->counters(), s0 = server_.cq->counters();
      auto target = client_.qp->expose(*here, 0, bytes, Purpose::write_target);
      auto source = client_.qp->expose(*here, 0, bytes, Purpose::read_source);
      ASSERT_TRUE(target.ok() && source.ok());
      client_.seen.clear();
      server_.seen.clear();
      ASSERT_TRUE(receive(client_, 1, inbox, 0, 256).ok());
      ASSERT_TRUE(
          tagged(server_, Opcode::write, 2, {{there.get(), 0, bytes}}, {target->key, target->base}).ok());
      ASSERT_TRUE(send(server_, 3, there, 0, 200).ok());
      ASSERT_TRUE(
          tagged(server_, Opcode::read, 4, {{there.get(), 0, bytes}}, {source->key, source->base}).ok());
      ASSERT_TRUE(until([&] { return client_.find(1) && server_.find(4); }));
      ASSERT_TRUE(fence(client_, *target, 10) && fence(client_, *source, 11));
      ProviderCounters c1 = client_.cq->counters(), s1 = server_.cq->counters();
      ASSERT_EQ(moved(c1) - moved(c0), bytes);
      ASSERT_EQ(moved(s1) - moved(s0), bytes);
      EXPECT_LE((c1.payload_copied_bytes - c0.payload_copied_bytes) * 100, bytes);
      EXPECT_LE((s1.payload_copied_bytes - s0.payload_copied_bytes) * 100, bytes);
    }
  }
}

TEST_P(OwnPeer, RecognisesItselfAndSendsLargeFpdus) {
  open();
  EXPECT_NE(client_.handler.path.find("fpdu 64k"), std::string::npos) << client_.handler.path;
  EXPECT_NE(client_.handler.path.find("crc off"), std::string::npos);
}

// A poll that finds nothing costs one system call, and one that moves a small message not many.
TEST_P(OwnPeer, SystemCalls) {
  open();
  Completion out[8];
  for (int i = 0; i < 20; i++) client_.cq->poll(base::system_clock().now_ns(), out);
  uint64_t before = client_.cq->counters().syscalls;
  for (int i = 0; i < 100; i++) client_.cq->poll(base::system_clock().now_ns(), out);
  EXPECT_LE(client_.cq->counters().syscalls - before, 100u);

  Memory m(*server_.pd, 1 << 20), t(*client_.pd, 1 << 20);
  auto target = client_.qp->expose(*t, 0, 1 << 20, Purpose::write_target);
  ASSERT_TRUE(target.ok());
  before = server_.cq->counters().syscalls;
  ASSERT_TRUE(tagged(server_, Opcode::write, 1, {{m.get(), 0, 65536}}, {target->key, target->base}).ok());
  EXPECT_EQ(server_.cq->counters().syscalls - before, 1u) << "one sendmsg for all FPDUs of a message";
  ASSERT_TRUE(until([&] { return server_.find(1) != nullptr; }));
}

TEST_P(OwnPeer, ManySmallRequestsGoInOneCall) {
  open();
  Memory m(*client_.pd, 4096), s(*server_.pd, 4096);
  for (uint64_t id = 0; id < 32; id++) ASSERT_TRUE(receive(server_, id, s, 0, 256).ok());
  std::vector<SendRequest> requests(32);
  Sge piece{m.get(), 0, 200};
  for (uint64_t i = 0; i < 32; i++) {
    requests[i].id = i;
    requests[i].sge = {&piece, 1};
  }
  uint64_t before = client_.cq->counters().syscalls;
  ASSERT_TRUE(client_.qp->post_send(requests).ok());
  client_.qp->flush();
  EXPECT_EQ(client_.cq->counters().syscalls - before, 1u);
  ASSERT_TRUE(until([&] { return server_.find(31) != nullptr; }));
}

// A file that is served from its mapping and truncated meanwhile costs the connection, not the process.
TEST_P(OwnPeer, TruncatedFileEndsTheConnection) {
  for (uint32_t bytes : {300u, 1u << 20}) {
    SCOPED_TRACE(bytes);
    client_.qp.reset();
    server_.qp.reset();
    client_.handler = Handler{};
    server_.handler = Handler{};
    client_.seen.clear();
    server_.seen.clear();
    open();
    EXPECT_TRUE(server_.handler.source_untouched);
    int fd = memfd_create("served", MFD_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
    MemoryRange range;
    range.kind = MemoryKind::memfd;
    range.length_bytes = 1 << 20;
    range.fd = fd;
    auto region = server_.pd->register_memory(range);
    ASSERT_TRUE(region.ok());
    ASSERT_NE((*region)->host(), nullptr);
    Memory target(*client_.pd, 1 << 20), inbox(*client_.pd, 64);
    auto exposure = client_.qp->expose(*target, 0, 1 << 20, Purpose::write_target);
    ASSERT_TRUE(exposure.ok());
    ASSERT_TRUE(receive(client_, 1, inbox, 0, 64).ok());
    ASSERT_EQ(ftruncate(fd, 0), 0);
    ASSERT_TRUE(
        tagged(server_, Opcode::write, 2, {{region->get(), 0, bytes}}, {exposure->key, exposure->base}).ok());
    ASSERT_TRUE(both_down());
    EXPECT_NE(server_.handler.disconnected->text().find("truncated"), std::string::npos)
        << server_.handler.disconnected->text();
    ASSERT_TRUE(until([&] { return server_.find(2) && client_.find(1); }));
    EXPECT_EQ(server_.find(2)->status, CompletionStatus::flushed);
    server_.qp.reset();
    close(fd);
  }
}

INSTANTIATE_TEST_SUITE_P(Iwarp, OwnPeer, testing::ValuesIn(contract_providers()));

}  // namespace
}  // namespace nfsrdma::rdma::contract
