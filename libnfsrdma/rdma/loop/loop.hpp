// SPDX-License-Identifier: Apache-2.0
// The in-process provider: two queue pairs of one Provider object, joined by port number. Tests and
// simulation run the upper layers over it without sockets and without real time; the two ends may live on two
// threads.
//
// One mutex per provider guards everything here, data movement included: plain and deadlock free. Handlers
// are never called under it.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "rdma/host_memory.hpp"
#include "rdma/key_table.hpp"
#include "rdma/ring.hpp"

namespace nfsrdma::rdma::loop {

class LoopQueuePair;
class LoopListener;
class LoopCompletionQueue;

constexpr size_t private_data_bytes_max = 508;

struct Fabric {
  std::mutex mutex;
  std::map<uint16_t, LoopListener*> listeners;
  uint16_t next_port = 40000;
  std::shared_ptr<Device> device;
};

// A connect() on its way to the listener's consumer. Guarded by the fabric's mutex.
struct Handshake {
  LoopQueuePair* client = nullptr;  // nullptr: gone or timed out
  std::vector<std::byte> private_data;
  uint32_t ird = 0;
  uint32_t ord = 0;
  SocketAddress client_address;
  SocketAddress server_address;
};

struct Event {
  enum class Kind : uint8_t { established, failed, disconnected, request };
  Kind kind = Kind::established;
  LoopQueuePair* pair = nullptr;
  LoopListener* listener = nullptr;
  std::unique_ptr<ConnectRequest> request;
  std::optional<Error> why;
};

class LoopCompletionQueue final : public CompletionQueue {
 public:
  LoopCompletionQueue(std::shared_ptr<Fabric> fabric, uint32_t entries);
  ~LoopCompletionQueue() override;
  size_t poll(TimeNs now_ns, std::span<Completion> out) override;
  bool arm() override;
  int fd() const override { return event_fd_; }
  TimeNs deadline_ns() const override;
  ProviderCounters counters() const override;

  // The rest with the fabric's mutex held.
  void push(LoopQueuePair* owner, const Completion& completion);
  void push(Event event);
  void forget(const LoopQueuePair* owner);
  void forget(const LoopListener* owner);
  void watch(LoopQueuePair& pair);  // it waits for an answer
  void unwatch(LoopQueuePair& pair);
  void count_direct(uint64_t bytes) { counters_.payload_direct_bytes += bytes; }

 private:
  struct Entry {
    LoopQueuePair* owner = nullptr;
    Completion completion;
  };
  void wake();
  void expire(TimeNs now_ns);

  std::shared_ptr<Fabric> fabric_;
  Ring<Entry> entries_;
  Ring<Event> events_;
  std::vector<LoopQueuePair*> waiting_;
  ProviderCounters counters_;
  int event_fd_;
  bool armed_ = false;
};

class LoopDomain final : public ProtectionDomain {
 public:
  explicit LoopDomain(std::shared_ptr<Fabric> fabric) : fabric_(std::move(fabric)) {}
  const Caps& caps() const override;
  Result<std::unique_ptr<Region>> register_memory(const MemoryRange& range) override;
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& cq, const QueuePairParams& params,
                                                       ConnectionHandler& handler) override;
  const std::shared_ptr<MemoryUsers>& users() const { return users_; }

 private:
  std::shared_ptr<Fabric> fabric_;
  std::shared_ptr<MemoryUsers> users_ = std::make_shared<MemoryUsers>();
};

class LoopQueuePair final : public QueuePair, public MemoryUser {
 public:
  LoopQueuePair(std::shared_ptr<Fabric> fabric, std::shared_ptr<MemoryUsers> users, LoopCompletionQueue& cq,
                const QueuePairParams& params, ConnectionHandler& handler);
  ~LoopQueuePair() override;
  Result<void> connect(const ConnectParams& params) override;
  Result<void> accept(ConstBytes private_data) override;
  void disconnect() override;
  Result<void> post_send(std::span<const SendRequest> requests) override;
  Result<void> post_receive(std::span<const ReceiveRequest> requests) override;
  void flush() override;
  Result<Exposure> expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) override;
  bool fence(const Exposure& exposure, uint64_t id) override;
  void quiesce() override;

  void deliver(Event& event);  // on the loop thread, without the mutex

  // With the fabric's mutex held.
  void adopt(std::shared_ptr<Handshake> handshake) { handshake_ = std::move(handshake); }
  void fail(Error why);        // connecting came to nothing
  void end(const Error& why);  // an established pair ends: flush and tell
  bool expired(TimeNs now_ns);
  TimeNs deadline_ns() const { return deadline_; }

 private:
  friend class LoopRequest;
  enum class Phase : uint8_t { idle, connecting, established, ended };
  struct Posted {
    SendRequest request;
    std::array<Sge, 4> pieces;
    uint32_t length = 0;
  };
  struct Refusal {
    CompletionStatus local = CompletionStatus::success;  // for the requester
    const char* text = nullptr;
  };

  void become_established(LoopQueuePair& peer, ConstBytes peer_data, const SocketAddress& local,
                          const SocketAddress& remote);
  void run_queue();
  Refusal execute(Posted& posted);
  Refusal execute_send(Posted& posted);
  Refusal execute_tagged(Posted& posted);
  void complete(const Posted& posted, CompletionStatus status);
  void flush_all();

  std::shared_ptr<Fabric> fabric_;
  std::shared_ptr<MemoryUsers> users_;
  LoopCompletionQueue& cq_;
  ConnectionHandler& handler_;
  QueuePairParams params_;
  KeyTable keys_;
  Ring<Posted> sends_;
  Ring<ReceiveRequest> receives_;
  std::shared_ptr<Handshake> handshake_;
  LoopQueuePair* peer_ = nullptr;
  std::vector<std::byte> peer_data_;
  SocketAddress local_;
  SocketAddress remote_;
  uint32_t ird_ = 0;
  uint32_t ord_ = 0;
  TimeNs timeout_ = 0;
  TimeNs deadline_ = base::never_ns;
  Phase phase_ = Phase::idle;
};

class LoopListener final : public Listener {
 public:
  LoopListener(std::shared_ptr<Fabric> fabric, const SocketAddress& address, LoopCompletionQueue& cq,
               ListenHandler& handler)
      : fabric_(std::move(fabric)), address_(address), cq_(cq), handler_(handler) {}
  ~LoopListener() override;
  SocketAddress local() const override { return address_; }
  void deliver(Event& event) { handler_.on_request(std::move(event.request)); }
  LoopCompletionQueue& cq() { return cq_; }

 private:
  std::shared_ptr<Fabric> fabric_;
  SocketAddress address_;
  LoopCompletionQueue& cq_;
  ListenHandler& handler_;
};

class LoopRequest final : public ConnectRequest {
 public:
  LoopRequest(std::shared_ptr<Fabric> fabric, std::shared_ptr<Handshake> handshake)
      : fabric_(std::move(fabric)), handshake_(std::move(handshake)) {}
  ~LoopRequest() override;
  std::shared_ptr<Device> device() override { return fabric_->device; }
  ConstBytes private_data() const override { return handshake_->private_data; }
  SocketAddress remote() const override { return handshake_->client_address; }
  uint32_t ird_offered() const override { return handshake_->ird; }
  Result<std::unique_ptr<QueuePair>> create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                       const QueuePairParams& params,
                                                       ConnectionHandler& handler) override;
  void reject(ConstBytes private_data) override;

 private:
  std::shared_ptr<Fabric> fabric_;
  std::shared_ptr<Handshake> handshake_;
  bool answered_ = false;
};

}  // namespace nfsrdma::rdma::loop
