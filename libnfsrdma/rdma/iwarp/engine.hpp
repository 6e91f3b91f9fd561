// SPDX-License-Identifier: Apache-2.0
// One established iWARP stream without its socket: DDP and RDMAP state of both directions, the posted
// requests and the keys. The queue pair feeds it with received bytes and takes bytes to send; tests and the
// fuzzer do the same. One thread (that of the completion queue); Region::revoke() comes from elsewhere, see
// MemoryUsers.
#pragma once

#include <memory>
#include <optional>

#include "rdma/host_memory.hpp"
#include "rdma/iwarp/receiver.hpp"
#include "rdma/iwarp/terminate.hpp"
#include "rdma/key_table.hpp"
#include "rdma/ring.hpp"

namespace nfsrdma::rdma::iwarp {

const Caps& iwarp_caps();

// What start-up agreed upon.
struct StreamParams {
  bool crc = false;
  bool may_send = true;  // false on a responder until the first FPDU came (RFC 5044 section 7.1.2)
  uint32_t fpdu_bytes = ulpdu_bytes_max + 8;  // largest FPDU to send, all bytes counted
  uint32_t ird = 0;
  uint32_t ord = 0;
};

class CompletionSink {
 public:
  virtual void push(const Completion& completion) = 0;

 protected:
  ~CompletionSink() = default;
};

// Why a stream ended by protocol. Local: found here, a Terminate may be sent. Otherwise the peer told us.
struct Failure {
  Error error;
  bool tell_peer = false;
  TerminateCode code;
  OffendingSegment segment;
};

class Engine final : private SegmentConsumer {
 public:
  Engine(const QueuePairParams& params, CompletionSink& sink, std::shared_ptr<MemoryUsers> users,
         const KeyTable::Secret& secret = KeyTable::fresh_secret());

  void start(const StreamParams& params);
  void open_gate() { params_.may_send = true; }

  // Posting, as in QueuePair. The caller knows whether the connection is up.
  Result<void> post_send(std::span<const SendRequest> requests);
  Result<void> post_receive(std::span<const ReceiveRequest> requests);
  Result<Exposure> expose(Region& region, uint64_t offset, uint32_t length, Purpose purpose);
  bool fence(const Exposure& exposure, uint64_t id);
  void post_empty_write();  // a zero-length RDMA Write to STag 0: wakes a peer up, means nothing

  // Inbound. plan_receive fills 2 iovecs; 0 and false mean that failure() is set.
  size_t plan_receive(iovec* iov);
  bool received(size_t n);
  bool receive_at_boundary() const { return receiver_.at_boundary(); }
  bool heard() const { return heard_; }  // an FPDU came
  const Receiver& receiver() const { return receiver_; }

  // Outbound. The iovecs stay valid until sent() was called for all of their bytes; empty: nothing to send.
  std::span<iovec> plan_send();
  void sent(size_t n);
  bool has_output() const;
  uint64_t bytes_sent() const { return stream_sent_; }
  bool crc() const { return params_.crc; }

  const std::optional<Failure>& failure() const { return failure_; }
  // Ends the stream: every request completes, no memory is named any more. Returns the bytes that may still
  // go out: the rest of a half-sent FPDU, and the Terminate when there is one to send.
  std::vector<std::byte> finish();

 private:
  struct Work {
    uint64_t id = 0;
    uint64_t end_offset = 0;  // of the outbound stream
    RemoteSegment remote;
    std::array<Sge, 4> pieces;
    uint32_t length = 0;
    uint32_t invalidate_key = 0;
    uint32_t sink_key = 0;
    Opcode op = Opcode::send;
    uint8_t piece_count = 0;
    bool signaled = true;
    bool read_done = false;
    bool silent = false;  // ours, not the consumer's
  };
  struct Response {  // to a Read Request of the peer
    uint64_t end_offset = 0;
    ReadRequest request;
  };
  struct PendingRead {  // a Read of ours whose Response is due
    uint64_t work = 0;  // sequence number of its Work
    uint32_t key = 0;
    uint64_t next_offset = 0;
    uint64_t base_offset = 0;
    uint32_t left = 0;
  };
  struct Cursor {  // the message that is being cut into segments
    enum class Kind : uint8_t { none, work, response };
    Kind kind = Kind::none;
    uint32_t done = 0;
    uint32_t piece = 0;
    uint32_t piece_done = 0;
  };

  // inbound.cpp
  bool begin_segment(const SegmentHeader& header, std::byte** at) override;
  bool may_place() override;
  bool end_segment(const SegmentHeader& header) override;
  void bad_crc() override;
  void bad_length() override;
  bool begin_send(const SegmentHeader& header, std::byte** at);
  bool begin_control(const SegmentHeader& header, std::byte** at);
  bool begin_write(const SegmentHeader& header, std::byte** at);
  bool begin_response(const SegmentHeader& header, std::byte** at);
  bool end_send(const SegmentHeader& header);
  bool end_read_request();
  bool end_response(const SegmentHeader& header);
  bool end_terminate(const SegmentHeader& header);
  bool refuse(const TerminateCode& code, const char* what);
  bool refuse_read_request(KeyVerdict verdict);

  // outbound.cpp
  bool choose_message();
  bool start_read(Work& work);
  void append_segment();
  void append_message_segment(SegmentHeader& header, const Sge* pieces, uint32_t total);
  void append_read_request(Work& work, SegmentHeader& header);
  void end_message(SegmentHeader& header);
  std::byte* framing(size_t n);
  void append_payload(const Sge* pieces, uint32_t n, uint32_t* crc);
  void close_fpdu(uint32_t ulpdu_bytes, uint32_t crc);
  bool room() const;
  void retire_works();
  void retire_responses();
  bool batch_memory_intact();
  bool local_failure(const char* what);
  uint32_t payload_max(size_t header_bytes) const;
  bool names_file_memory(const Sge* pieces, uint32_t n) const;

  void complete(const Work& work, CompletionStatus status);
  void unpin(uint32_t key);

  CompletionSink& sink_;
  std::shared_ptr<MemoryUsers> users_;
  QueuePairParams limits_;
  StreamParams params_;
  KeyTable keys_;
  Receiver receiver_;
  std::optional<Failure> failure_;
  CompletionStatus front_receive_status_ = CompletionStatus::flushed;
  CompletionStatus front_work_status_ = CompletionStatus::flushed;

  // Inbound state.
  Ring<ReceiveRequest> receives_;
  Ring<PendingRead> reads_;
  uint32_t receive_msn_ = 1;
  uint32_t receive_offset_ = 0;
  uint32_t read_request_msn_ = 1;
  uint32_t message_stag_ = 0;  // of the untagged message under way
  uint32_t target_key_ = 0;    // of the tagged segment under way
  RdmapOpcode message_opcode_ = RdmapOpcode::send;
  RdmapOpcode segment_opcode_ = RdmapOpcode::send;
  RdmapOpcode tagged_opcode_ = RdmapOpcode::write;
  bool message_open_ = false;
  bool tagged_open_ = false;
  bool heard_ = false;
  std::byte control_[64] = {};  // Read Request or Terminate body
  uint32_t control_bytes_ = 0;

  // Outbound state.
  Ring<Work> works_;
  Ring<Response> responses_;
  uint64_t first_work_ = 0;  // sequence number of works_.front()
  size_t works_built_ = 0;   // how many from the front are in the stream already
  size_t responses_built_ = 0;
  size_t consumer_works_ = 0;  // works_ without silent ones
  uint32_t send_msn_ = 1;
  uint32_t read_msn_ = 1;
  bool response_last_ = false;  // turn and turn about between answers and own requests
  Cursor cursor_;
  uint64_t revocations_seen_ = 0;
  uint64_t stream_built_ = 0;
  uint64_t stream_sent_ = 0;
  std::vector<iovec> batch_;
  size_t batch_at_ = 0;
  uint64_t batch_begin_ = 0;  // stream offset of its first byte
  uint64_t batch_payload_ = 0;
  bool batch_in_place_ = false;  // the batch names memory that only the kernel may touch
  std::vector<std::byte> arena_;
  size_t arena_used_ = 0;
  std::vector<uint64_t> fpdu_ends_;  // stream offsets of the batch's FPDU ends
};

}  // namespace nfsrdma::rdma::iwarp
