// SPDX-License-Identifier: Apache-2.0
#include "tests/rdma/contract_harness.hpp"

#include <stdlib.h>

#include <algorithm>

namespace nfsrdma::rdma::contract {
namespace {

constexpr TimeNs patience_ns = base::seconds(8);
constexpr TimeNs settle_ns = base::ms(60);

}  // namespace

void PrintTo(const ContractProvider& provider, std::ostream* out) { *out << provider.name; }

SocketAddress loopback() { return *SocketAddress::parse("127.0.0.1", 0); }

std::byte pattern(uint8_t seed, size_t at) {
  return static_cast<std::byte>((at * 131 + (at >> 8) * 17 + (at >> 16) * 5 + seed) & 0xff);
}

Memory::Memory(ProtectionDomain& pd, size_t bytes)
    : data_(static_cast<std::byte*>(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))), bytes_(bytes) {
  std::fill_n(data_, bytes, std::byte{0});
  MemoryRange range;
  range.address = data_;
  range.length_bytes = bytes;
  auto region = pd.register_memory(range);
  EXPECT_TRUE(region.ok()) << region.error().text();
  if (region) region_ = std::move(*region);
}

Memory::~Memory() {
  region_.reset();
  free(data_);
}

void Memory::fill(uint8_t seed) {
  for (size_t i = 0; i < bytes_; i++) data_[i] = pattern(seed, i);
}

bool Memory::has(uint8_t seed, size_t offset, size_t length, size_t pattern_offset) const {
  for (size_t i = 0; i < length; i++)
    if (data_[offset + i] != pattern(seed, pattern_offset + i)) return false;
  return true;
}

bool Memory::all(std::byte value, size_t offset, size_t length) const {
  return std::all_of(data_ + offset, data_ + offset + length, [&](std::byte b) { return b == value; });
}

void Handler::on_established(const ConnectionInfo& info) {
  established = true;
  established_calls++;
  peer_private.assign(info.private_data.begin(), info.private_data.end());
  ird = info.ird;
  ord = info.ord;
  path = info.path;
  source_untouched = info.source_untouched;
}

void Handler::on_failed(const Error& why) {
  failed_calls++;
  failed = why;
}

void Handler::on_disconnected(const Error& why) {
  disconnected_calls++;
  disconnected = why;
}

const Completion* End::find(uint64_t id) const {
  for (const Completion& c : seen)
    if (c.id == id) return &c;
  return nullptr;
}

size_t End::count(uint64_t id) const {
  return static_cast<size_t>(std::count_if(seen.begin(), seen.end(), [&](const Completion& c) { return c.id == id; }));
}

void ContractTest::SetUp() {
  provider_ = GetParam().make();
  ResolveParams resolve;
  resolve.remote = GetParam().address;
  auto device = provider_->resolve(resolve);
  ASSERT_TRUE(device.ok()) << device.error().text();
  device_ = *device;
  for (End* end : {&client_, &server_}) {
    auto cq = provider_->create_completion_queue(1024);
    ASSERT_TRUE(cq.ok()) << cq.error().text();
    end->cq = std::move(*cq);
    auto pd = device_->create_protection_domain();
    ASSERT_TRUE(pd.ok()) << pd.error().text();
    end->pd = *pd;
  }
}

void ContractTest::TearDown() {
  client_.qp.reset();
  server_.qp.reset();
  scratch_.clear();
  listener_.reset();
}

void ContractTest::drain(End& end) {
  Completion out[64];
  size_t n = end.cq->poll(base::system_clock().now_ns(), out);
  end.seen.insert(end.seen.end(), out, out + n);
}

bool ContractTest::until(const std::function<bool()>& done) {
  TimeNs stop = base::system_clock().now_ns() + patience_ns;
  while (!done()) {
    if (base::system_clock().now_ns() > stop) return false;
    drain(client_);
    drain(server_);
  }
  return true;
}

void ContractTest::settle() {
  TimeNs stop = base::system_clock().now_ns() + settle_ns;
  until([&] { return base::system_clock().now_ns() > stop; });
}

QueuePairParams ContractTest::default_params() {
  QueuePairParams params;
  params.send_depth = 64;
  params.receive_depth = 64;
  params.ird = 8;
  params.ord = 8;
  return params;
}

void ContractTest::listen() {
  if (!accepting_.act)
    accepting_.act = [this](std::unique_ptr<ConnectRequest> request) {
      auto qp = request->create_queue_pair(*server_.pd, *server_.cq, server_params_, server_.handler);
      ASSERT_TRUE(qp.ok()) << qp.error().text();
      server_.qp = std::move(*qp);
      if (before_accept_) before_accept_();
      if (auto ok = server_.qp->accept(server_private_); !ok) accept_error_ = ok.error();
    };
  auto listener = provider_->listen(GetParam().address, *server_.cq, accepting_);
  ASSERT_TRUE(listener.ok()) << listener.error().text();
  listener_ = std::move(*listener);
}

void ContractTest::connect_pair(const QueuePairParams& client_params, const QueuePairParams& server_params) {
  server_params_ = server_params;
  if (!listener_) listen();
  auto qp = client_.pd->create_queue_pair(*client_.cq, client_params, client_.handler);
  ASSERT_TRUE(qp.ok()) << qp.error().text();
  client_.qp = std::move(*qp);
  ConnectParams params;
  params.remote = listener_->local();
  params.private_data = client_private_;
  auto started = client_.qp->connect(params);
  ASSERT_TRUE(started.ok()) << started.error().text();
  ASSERT_TRUE(until([&] { return client_.handler.established && server_.handler.established; }))
      << (client_.handler.failed ? client_.handler.failed->text() : "time is up");
  ASSERT_FALSE(accept_error_) << accept_error_->text();
}

Result<void> ContractTest::send(End& from, uint64_t id, Memory& memory, uint64_t offset, uint32_t length,
                                bool signaled) {
  return tagged(from, Opcode::send, id, {{memory.get(), offset, length}}, {}, signaled);
}

Result<void> ContractTest::receive(End& at, uint64_t id, Memory& memory, uint64_t offset, uint32_t length) {
  ReceiveRequest request;
  request.id = id;
  request.sge = {memory.get(), offset, length};
  return at.qp->post_receive({&request, 1});
}

Result<void> ContractTest::tagged(End& from, Opcode op, uint64_t id, std::vector<Sge> pieces, RemoteSegment remote,
                                  bool signaled) {
  SendRequest request;
  request.id = id;
  request.op = op;
  request.sge = pieces;
  request.remote = remote;
  request.signaled = signaled;
  auto posted = from.qp->post_send({&request, 1});
  from.qp->flush();
  return posted;
}

Result<Exposure> ContractTest::expose(End& end, Memory& memory, uint64_t offset, uint32_t length, Purpose purpose) {
  constexpr uint64_t heard = 9101, told = 9102;
  End& other = &end == &client_ ? server_ : client_;
  auto exposure = end.qp->expose(*memory, offset, length, purpose);
  std::unique_ptr<Memory>& scratch = scratch_[&other];
  if (!scratch) scratch = std::make_unique<Memory>(*other.pd, 64);
  if (!exposure || !receive(other, heard, *scratch, 0, 64) || !tagged(end, Opcode::send, told, {}, {})) return exposure;
  EXPECT_TRUE(until([&] { return other.find(heard) && end.find(told); }));
  for (End* side : {&client_, &server_})
    std::erase_if(side->seen, [](const Completion& c) { return c.id == heard || c.id == told; });
  return exposure;
}

bool ContractTest::fence(End& end, const Exposure& exposure, uint64_t id) {
  return end.qp->fence(exposure, id) || until([&] { return end.find(id) != nullptr; });
}

void ContractTest::open_both_ways() {
  auto memory = std::make_unique<Memory>(*server_.pd, 64);
  ASSERT_TRUE(receive(server_, 9001, *memory, 0, 64).ok());
  ASSERT_TRUE(tagged(client_, Opcode::send, 9002, {}, {}).ok());
  ASSERT_TRUE(until([&] { return server_.find(9001) && client_.find(9002); }));
  ASSERT_EQ(server_.find(9001)->status, CompletionStatus::success);
}

bool ContractTest::both_down() {
  return until([&] { return client_.handler.disconnected && server_.handler.disconnected; });
}

}  // namespace nfsrdma::rdma::contract
