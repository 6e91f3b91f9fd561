// SPDX-License-Identifier: Apache-2.0
// Two endpoints of one provider, driven from one thread, for the contract suite that every provider passes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "rdma/provider.hpp"

namespace nfsrdma::rdma::contract {

using base::Bytes;
using base::ConstBytes;

// A provider under test. An executable defines contract_providers(): one for those that need no device, another for
// verbs, which takes device and address from its command line or environment.
struct ContractProvider {
  std::string name;
  std::function<std::shared_ptr<Provider>()> make;
  SocketAddress address;       // to listen on, port 0
  bool can_refuse = true;      // a port without a listener is reported as refused
  bool exact_bounds = true;    // an exposure ends where it ends; false: where its registration or window is checked
  size_t private_data_max = 196;  // of a connect request
  bool faithful_memory = true; // revocation is immediate; false: the pair is torn down instead
};
void PrintTo(const ContractProvider& provider, std::ostream* out);
std::vector<ContractProvider> contract_providers();
SocketAddress loopback();

// Page-aligned memory and its registration.
class Memory {
 public:
  Memory(ProtectionDomain& pd, size_t bytes);
  ~Memory();
  Region& operator*() { return *region_; }
  Region* get() { return region_.get(); }
  Bytes bytes() { return {data_, bytes_}; }
  std::byte& operator[](size_t i) { return data_[i]; }
  void fill(uint8_t seed);        // a pattern that differs at every offset and seed
  bool has(uint8_t seed, size_t offset, size_t length, size_t pattern_offset = 0) const;
  bool all(std::byte value, size_t offset, size_t length) const;
  void drop_registration() { region_.reset(); }

 private:
  std::byte* data_;
  size_t bytes_;
  std::unique_ptr<Region> region_;
};

std::byte pattern(uint8_t seed, size_t at);

struct Handler final : ConnectionHandler {
  bool established = false;
  std::vector<std::byte> peer_private;
  uint32_t ird = 0;
  uint32_t ord = 0;
  bool source_untouched = false;
  std::string path;
  std::optional<Error> failed;
  std::optional<Error> disconnected;
  int established_calls = 0;
  int failed_calls = 0;
  int disconnected_calls = 0;
  void on_established(const ConnectionInfo& info) override;
  void on_failed(const Error& why) override;
  void on_disconnected(const Error& why) override;
};

// One side: its queue, domain, pair, and what it has seen.
struct End {
  std::unique_ptr<CompletionQueue> cq;
  std::shared_ptr<ProtectionDomain> pd;
  Handler handler;
  std::unique_ptr<QueuePair> qp;
  std::vector<Completion> seen;

  const Completion* find(uint64_t id) const;
  size_t count(uint64_t id) const;
};

class ContractTest : public testing::TestWithParam<ContractProvider> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Polls both ends in turn until done() or 8 seconds passed.
  bool until(const std::function<bool()>& done);
  // Polls both ends a while, to see that nothing (more) happens.
  void settle();
  void drain(End& end);

  // A connected pair. Receives can be posted on either side by the hooks before it connects.
  void connect_pair(const QueuePairParams& client_params, const QueuePairParams& server_params);
  void connect_pair() { connect_pair(default_params(), default_params()); }
  static QueuePairParams default_params();
  void listen();

  Result<void> send(End& from, uint64_t id, Memory& memory, uint64_t offset, uint32_t length, bool signaled = true);
  Result<void> receive(End& at, uint64_t id, Memory& memory, uint64_t offset, uint32_t length);
  Result<void> tagged(End& from, Opcode op, uint64_t id, std::vector<Sge> pieces, RemoteSegment remote,
                      bool signaled = true);
  // expose(), and a Send to the other end behind it: an exposure is good from the next post_send on.
  Result<Exposure> expose(End& end, Memory& memory, uint64_t offset, uint32_t length, Purpose purpose);
  // fence(), and its completion where it needs one.
  bool fence(End& end, const Exposure& exposure, uint64_t id);
  // One empty Send from the client so that the server may speak (an iWARP responder waits for it).
  void open_both_ways();
  // Waits until both sides know that the connection has ended.
  bool both_down();

  std::shared_ptr<Provider> provider_;
  std::shared_ptr<Device> device_;
  End client_;
  End server_;

  struct Accepting final : ListenHandler {
    std::function<void(std::unique_ptr<ConnectRequest>)> act;
    void on_request(std::unique_ptr<ConnectRequest> request) override { act(std::move(request)); }
  };
  Accepting accepting_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::byte> server_private_;
  std::vector<std::byte> client_private_;
  QueuePairParams server_params_;
  std::function<void()> before_accept_;
  std::optional<Error> accept_error_;
  std::map<End*, std::unique_ptr<Memory>> scratch_;  // where the Sends of expose() arrive
};

}  // namespace nfsrdma::rdma::contract
