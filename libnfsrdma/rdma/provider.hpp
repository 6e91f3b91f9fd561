// SPDX-License-Identifier: Apache-2.0
// The RDMA provider interface: what verbs, our iWARP over TCP and the in-process loop have in common.
//
// Objects and owners
//   Provider        one per kind and option set. Thread safe. Outlives all that it made.
//   Device          found by route (client) or by a connection request (server). Shared, thread safe.
//   ProtectionDomain one per server and device on the client; memory registered in one is unknown to another.
//   Region          registered memory; has no remote key by itself. Thread safe but for its destruction, which must
//                   come after every request and exposure that names it has ended.
//   CompletionQueue one per loop: work completions AND connection events of all its queue pairs. One thread.
//   QueuePair       used only by the thread that polls its CompletionQueue ("loop thread").
//
// Remote access to memory is an Exposure, made per queue pair and per transmission, ended by fence(). Memory is
// always (Region, offset, length): nothing above mem/ may dereference it, since it may be a GPU's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/address.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::rdma {

using base::Bytes;
using base::ConstBytes;
using base::SocketAddress;
using base::TimeNs;

// Why memory is named in a request or exposure. The provider maps it to its own access bits: iWARP wants remote
// write on the sink of an RDMA Read, InfiniBand does not.
enum class Purpose : uint8_t {
  send_source,      // local source of Send and RDMA Write
  receive_sink,     // target of incoming Sends; never remotely accessible
  read_source,      // the peer may RDMA Read it
  write_target,     // the peer may RDMA Write it
  local_read_sink,  // target of an RDMA Read that this side issues
};

enum class MemoryKind : uint8_t { host, memfd, cuda, dmabuf };

struct MemoryRange {
  void* address = nullptr;  // host or device address; unused for dmabuf
  size_t length_bytes = 0;
  MemoryKind kind = MemoryKind::host;
  int fd = -1;              // memfd or dmabuf; stays the caller's
  uint64_t fd_offset = 0;
};

struct Caps {
  uint32_t send_sge_max = 4;          // pieces per Send and per RDMA Write
  uint32_t receive_sge_max = 1;
  uint32_t read_sge_max = 1;          // sink pieces per RDMA Read
  uint32_t ird_max = 16;              // Reads that may be served at once
  uint32_t ord_max = 16;              // Reads that may be issued at once; more queue inside the provider
  uint32_t segment_bytes_max = 1u << 30;  // largest exposure and largest single Read or Write
  bool remote_invalidate = false;     // the peer can end an exposure by Send with Invalidate
  bool keys_per_exposure = false;     // after fence() the peer's key is dead. False: keys live as long as the Region,
                                      // only the queue pair's end stops the peer
  bool host_copy_free = true;         // payload needs no staging in user space on this provider (counted anyway)
};

class Region {
 public:
  virtual ~Region() = default;
  size_t length_bytes() const { return length_; }
  MemoryKind kind() const { return kind_; }
  // Host address of byte 0, or nullptr when the CPU cannot reach the memory.
  std::byte* host() const { return host_; }
  // Short pieces by copy. EFAULT when out of range, EIO when the memory was revoked.
  virtual Result<void> copy_in(uint64_t offset, ConstBytes from) = 0;
  virtual Result<void> copy_out(uint64_t offset, Bytes to) = 0;
  // Stands between "placed by the peer" and "completed to the owner": nothing on host memory, a flush on a GPU.
  virtual Result<void> make_visible(uint64_t offset, size_t length) = 0;
  // The memory's owner died: every exposure of it is fenced, or the queue pairs that hold one are torn down. After
  // return no request may name the Region (EIO), and no byte of it is touched. The owner of a pair that is torn down
  // hears EIO in on_disconnected: it ended from here, whatever the peer or the driver says of the end.
  virtual void revoke() = 0;

 protected:
  Region(std::byte* host, size_t length, MemoryKind kind) : host_(host), length_(length), kind_(kind) {}

 private:
  std::byte* host_;
  size_t length_;
  MemoryKind kind_;
};

// A piece of registered memory.
struct Sge {
  Region* region = nullptr;
  uint64_t offset = 0;
  uint32_t length = 0;
};

// What the peer needs to reach a piece of our memory: an STag or R_key, and the offset as the wire wants it.
struct Exposure {
  uint32_t key = 0;
  uint64_t base = 0;
  uint32_t length = 0;
  uint32_t token = 0;  // the provider's own index
};

struct RemoteSegment {
  uint32_t key = 0;
  uint64_t base = 0;
};

enum class Opcode : uint8_t { send, send_invalidate, write, read, receive, fence };

struct SendRequest {
  uint64_t id = 0;
  Opcode op = Opcode::send;           // send, send_invalidate, write or read
  std::span<const Sge> sge;           // the array is copied by post_send, the memory stays named until completion
  RemoteSegment remote;               // write, read
  uint32_t invalidate_key = 0;        // send_invalidate: the peer's key
  bool signaled = true;               // false: no completion on success, only on failure
};

struct ReceiveRequest {
  uint64_t id = 0;
  Sge sge;
};

enum class CompletionStatus : uint8_t {
  success,
  flushed,          // the queue pair ended before this request was done
  length_error,     // message longer than the Receive, or Read longer than its sink
  protection_error, // local memory: bounds, revoked
  remote_access,    // the peer refused the key, the bounds or the access
  remote_error,     // the peer reported another failure
  retry_exceeded,   // no answer from the peer's transport (verbs; often MTU or a dead link)
  rnr_exceeded,     // the peer had no Receive posted (verbs)
  transport_error,  // connection lost or malformed stream
};
const char* to_string(CompletionStatus status);

struct Completion {
  uint64_t id = 0;
  Opcode op = Opcode::send;
  CompletionStatus status = CompletionStatus::success;
  bool invalidated = false;           // receive: the Send carried an Invalidate; that exposure is fenced already
  uint32_t length = 0;                // receive: bytes placed
  uint32_t invalidated_key = 0;
};

// Convention of everything above the provider: an id is the address of a Work, and whoever polls the queue calls
// complete(). Works must stay alive until their completion came or their queue pair was destroyed.
struct Work {
  void (*complete)(Work& self, const Completion& completion) = nullptr;
  uint64_t id() { return reinterpret_cast<uint64_t>(this); }
  static void run(const Completion& c) {
    Work* work = reinterpret_cast<Work*>(c.id);
    work->complete(*work, c);
  }
};

// For error texts: "" when empty, else " (private data \"text\")" or the same in hexadecimal.
std::string describe_private_data(ConstBytes data);

struct ConnectionInfo {
  std::span<const std::byte> private_data;  // the peer's, valid during the call
  uint32_t ird = 0;                         // effective: Reads that the peer may have outstanding
  uint32_t ord = 0;                         // effective: Reads that we may have outstanding
  SocketAddress local;
  SocketAddress remote;
  // What is sent is read by the kernel or the device only, never by this process: memory that may vanish under us (a
  // mapped file that somebody truncates) costs the connection then, not the process.
  bool source_untouched = false;
  std::string path;                         // "iwarp tcp mss 65483 fpdu 65480 crc off" or "rxe0/1 gid 1 ... mtu 4096"
};

// Called on the loop thread from CompletionQueue::poll(). The callee must not destroy the queue pair inside.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  virtual void on_established(const ConnectionInfo& info) = 0;
  // Instead of on_established. Text: layer that failed (no listener, unreachable, rejected by the consumer, time-out,
  // not an iWARP peer ...), device, address, and what to do.
  virtual void on_failed(const Error& why) = 0;
  // After on_established, once: the peer closed, the link broke, or disconnect() finished. Each request still posted
  // completes as flushed through poll(), before or after this call.
  virtual void on_disconnected(const Error& why) = 0;
};

struct QueuePairParams {
  uint32_t send_depth = 256;     // SendRequests posted at once, reads and writes included
  uint32_t receive_depth = 160;
  uint32_t ird = 64;             // wanted; clamped by Caps. At least 1 on a client: knfsd refuses 0
  uint32_t ord = 0;
};

struct ConnectParams {
  SocketAddress remote;
  SocketAddress local;           // source address, port 0; invalid() = the route decides
  // At most 56 bytes on InfiniBand and RoCE (what the connection manager's request of 92 leaves behind its own header
  // of 36), 255 on iWARP devices; accept() takes 196. Copied.
  ConstBytes private_data;
  TimeNs timeout_ns = base::seconds(10);
};

class CompletionQueue;

class QueuePair {
 public:
  virtual ~QueuePair() = default;  // tears down: no completion and no handler call afterwards, memory untouched
  // Client side: starts connecting. Receives should be posted before. The outcome reaches the handler.
  virtual Result<void> connect(const ConnectParams& params) = 0;
  // Server side: answers the request this pair was made for. private_data is copied.
  virtual Result<void> accept(ConstBytes private_data) = 0;
  // Orderly end; on_disconnected follows. Harmless when already ended.
  virtual void disconnect() = 0;

  // Queues requests in order; nothing need reach the wire before flush(). ENOBUFS: more than send_depth /
  // receive_depth; ENOTCONN: the pair has ended (nothing was queued, no completion comes). Before establishment sends
  // fail with ENOTCONN and receives are accepted.
  virtual Result<void> post_send(std::span<const SendRequest> requests) = 0;
  virtual Result<void> post_receive(std::span<const ReceiveRequest> requests) = 0;
  virtual void flush() = 0;

  // Lets the peer reach [offset, offset+length) of region for read_source or write_target, through this queue pair
  // only. Valid for the next post_send on. length 1..segment_bytes_max. EINVAL bounds, EIO revoked, ENOBUFS no more keys.
  virtual Result<Exposure> expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose) = 0;
  // Ends it. True: done, the peer cannot touch the memory any more (or never could after a remote invalidation, or
  // keys_per_exposure is false). False: a Completion {op fence, id} will say so.
  virtual bool fence(const Exposure& exposure, uint64_t id) = 0;
};

struct ProviderCounters {
  uint64_t payload_direct_bytes = 0;  // received tagged and bulk data that went straight to its destination
  uint64_t payload_copied_bytes = 0;  // the same, copied once in user space on its way (peeked, staged, fixed up)
  uint64_t syscalls = 0;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Makes progress (moves bytes, runs connection handlers and provider timers) and returns completions in order per
  // queue pair. 0 = nothing now.
  virtual size_t poll(TimeNs now_ns, std::span<Completion> out) = 0;
  // The last poll() moved bytes or events, be it without a completion: more is likely to follow at once, so a loop
  // that spins should count it as work (a 1 MiB transfer takes several polls).
  virtual bool moved() const { return false; }
  // Before sleeping: asks that fd() becomes readable when something happens. False: something is there, poll again.
  virtual bool arm() = 0;
  virtual int fd() const = 0;
  // When poll() must be called at the latest although fd() stays quiet; never_ns if it need not.
  virtual TimeNs deadline_ns() const = 0;
  virtual ProviderCounters counters() const = 0;
};

class ProtectionDomain : public std::enable_shared_from_this<ProtectionDomain> {
 public:
  virtual ~ProtectionDomain() = default;
  virtual const Caps& caps() const = 0;
  // Registers memory for every Purpose. ENOMEM names needed and allowed bytes when RLIMIT_MEMLOCK is the cause.
  virtual Result<std::unique_ptr<Region>> register_memory(const MemoryRange& range) = 0;
  // Client side pair; cq and handler must outlive it.
  virtual Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& cq, const QueuePairParams& params,
                                                               ConnectionHandler& handler) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string describe() const = 0;  // "iwarp", "rxe0 port 1 (ROCE v2, active mtu 4096)"
  virtual const Caps& caps() const = 0;
  virtual Result<std::shared_ptr<ProtectionDomain>> create_protection_domain() = 0;
};

// An incoming connection, not yet answered. May be moved to the thread whose loop shall own the pair. Destroying it
// unanswered rejects it.
class ConnectRequest {
 public:
  virtual ~ConnectRequest() = default;
  virtual std::shared_ptr<Device> device() = 0;
  virtual ConstBytes private_data() const = 0;
  virtual SocketAddress remote() const = 0;
  virtual uint32_t ird_offered() const = 0;  // Reads we may issue towards the peer, as it said
  // The pair to post Receives on and then accept(). The request is used up.
  virtual Result<std::unique_ptr<QueuePair>> create_queue_pair(ProtectionDomain& pd, CompletionQueue& cq,
                                                               const QueuePairParams& params,
                                                               ConnectionHandler& handler) = 0;
  virtual void reject(ConstBytes private_data) = 0;
};

class ListenHandler {
 public:
  virtual ~ListenHandler() = default;
  virtual void on_request(std::unique_ptr<ConnectRequest> request) = 0;  // on the loop thread of the listener's cq
};

class Listener {
 public:
  virtual ~Listener() = default;             // stops listening; established pairs live on
  virtual SocketAddress local() const = 0;   // with the port that was chosen
};

struct ResolveParams {
  SocketAddress remote;
  SocketAddress local;        // optional source address
  std::string device_name;    // optional: "rxe0" or "mlx5_0/1"
  TimeNs timeout_ns = base::seconds(5);
};

class Provider {
 public:
  virtual ~Provider() = default;
  virtual const char* name() const = 0;  // "iwarp", "verbs", "loop"
  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(uint32_t entries) = 0;
  // The device that routes to the peer. May block up to timeout; control threads only.
  virtual Result<std::shared_ptr<Device>> resolve(const ResolveParams& params) = 0;
  // Handler calls come from cq.poll(). Port 0 = any. EADDRINUSE, EADDRNOTAVAIL, EACCES with the address in the text.
  virtual Result<std::unique_ptr<Listener>> listen(const SocketAddress& address, CompletionQueue& cq,
                                                   ListenHandler& handler) = 0;
};

}  // namespace nfsrdma::rdma
