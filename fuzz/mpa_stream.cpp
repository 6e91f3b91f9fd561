// SPDX-License-Identifier: Apache-2.0
// What a peer sends over TCP: an MPA start-up frame, then FPDUs, in reads of any size, to an endpoint that has
// Receives posted, memory exposed, and a Read, Writes and Sends of its own under way.
//
// Input: a byte of flags, a byte with the largest read (0: no limit), the stream.
//   flags 1: the frame is a Reply (we are the initiator)   2: no start-up frame, the stream begins with FPDUs
//         4: with CRC (when there is no frame to say so)   8: what we send is taken after each read
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "rdma/iwarp/engine.hpp"
#include "rdma/iwarp/mpa.hpp"

using namespace nfsrdma;
using namespace nfsrdma::rdma;
using namespace nfsrdma::rdma::iwarp;

namespace {

constexpr uint64_t receives = 4, sends = 4;
constexpr uint32_t receive_bytes = 200;

void demand(bool condition) {
  if (!condition) std::abort();
}

// Parts of memory that the peer may change, in ascending order; all else must stay 0x5a.
struct Part {
  size_t begin;
  size_t end;
};
constexpr Part writable[] = {
    {0, receives * receive_bytes}, {5000, 9000}, {12'000, 12'100}, {14'000, 14'008}, {15'000, 15'000 + 20'000}};
constexpr size_t memory_bytes = 40 << 10;

class Endpoint final : private CompletionSink {
 public:
  Endpoint() : engine(depths(), *this, users, KeyTable::Secret{1, 12345}) {
    std::fill(memory.begin(), memory.end(), std::byte{0x5a});
    for (uint64_t i = 0; i < receives; i++) {
      ReceiveRequest r{i, {&region, i * receive_bytes, receive_bytes}};
      demand(engine.post_receive({&r, 1}).ok());
    }
    demand(engine.expose(region, 5000, 4000, Purpose::write_target).ok());
    demand(engine.expose(region, 9000, 500, Purpose::read_source).ok());
    demand(engine.expose(region, 12'000, 100, Purpose::write_target).ok());
    demand(engine.expose(region, 15'000, 20'000, Purpose::write_target).ok());
    post(100, Opcode::read, 14'000, 8);
    post(101, Opcode::send, 13'000, 100);
    post(102, Opcode::write, 13'000, 900);
    post(103, Opcode::send_invalidate, 13'000, 3);
  }

  // Memory that is not the peer's is as it was, and every request ends exactly once.
  void check() {
    take_output();
    finish();
    demand(received <= receives && std::all_of(done, done + receives + sends, [](int n) { return n == 1; }));
    size_t at = 0;
    for (const Part& part : writable) {
      demand(std::memcmp(memory.data() + at, untouched(), part.begin - at) == 0);
      at = part.end;
    }
    demand(std::memcmp(memory.data() + at, untouched(), memory.size() - at) == 0);
  }
  void take_output() {
    for (;;) {
      std::span<iovec> iov = engine.plan_send();
      if (iov.empty()) return;
      size_t n = 0;
      for (const iovec& piece : iov) n += piece.iov_len;
      engine.sent(n);
    }
  }

  std::shared_ptr<MemoryUsers> users = std::make_shared<MemoryUsers>();
  std::vector<std::byte> memory = std::vector<std::byte>(memory_bytes);
  HostRegion region{users, memory.data(), memory.size(), MemoryKind::host, false};
  Engine engine;

 private:
  static const std::byte* untouched() {
    static const std::vector<std::byte> bytes(memory_bytes, std::byte{0x5a});
    return bytes.data();
  }
  static QueuePairParams depths() {
    QueuePairParams p;
    p.send_depth = 16;
    p.receive_depth = 16;
    return p;
  }
  void post(uint64_t id, Opcode op, uint64_t offset, uint32_t bytes) {
    Sge piece{&region, offset, bytes};
    SendRequest r;
    r.id = id;
    r.op = op;
    r.sge = {&piece, 1};
    r.remote = {0x4200, 0x1000};
    r.invalidate_key = 0x4300;
    demand(engine.post_send({&r, 1}).ok());
  }
  void finish() {
    // A Terminate and the rest of an FPDU: whole frames, whatever was half sent.
    std::vector<std::byte> tail = engine.finish();
    demand(tail.size() < 200 && tail.size() % 4 == 0);
    demand(!engine.failure() || !engine.failure()->error.text().empty());
  }
  void push(const Completion& c) override {
    if (c.op == Opcode::fence) return;
    const bool receive = c.op == Opcode::receive;
    const uint64_t index = receive ? c.id : c.id - 100 + receives;
    demand(index < receives + sends);
    done[index]++;
    if (receive && c.status == CompletionStatus::success) {
      demand(c.id == received && c.length <= receive_bytes);
      received++;
    }
  }

  int done[receives + sends] = {};
  uint64_t received = 0;
};

// False: the start-up ends the connection.
bool start_up(const uint8_t*& data, size_t& size, size_t most, bool reply, StreamParams* params) {
  MpaReader reader(reply);
  MpaReader::State state = MpaReader::State::reading;
  while (state == MpaReader::State::reading && size > 0) {
    base::Bytes space = reader.space();
    demand(!space.empty());
    size_t n = std::min({space.size(), most, size});
    std::memcpy(space.data(), data, n);
    data += n;
    size -= n;
    state = reader.advance(n);
  }
  if (state != MpaReader::State::complete) {
    demand(state == MpaReader::State::reading || !reader.problem().empty());
    return false;
  }
  const MpaFrame& frame = reader.frame();
  demand(frame.private_data.size() <= mpa_private_bytes_max);
  demand(encode_mpa(frame).size() <= mpa_frame_bytes_max);
  Depths depths;
  if (reply) {
    bool too_deep = false;
    auto agreed = judge_reply(frame, {4, 4}, &too_deep);
    if (!agreed || frame.reject) return false;
    depths = *agreed;
    params->crc = frame.crc;
  } else {
    MpaFrame answer = answer_request(frame, {4, 4}, false, &depths);
    demand(!answer.enhanced || encode_mpa(answer).size() >= mpa_header_bytes + 4);
    if (answer.reject) return false;
    params->crc = answer.crc;
  }
  demand(depths.ird <= 4 && depths.ord <= 4);
  params->ird = depths.ird;
  params->ord = depths.ord;
  params->may_send = reply;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t flags = data[0];
  const size_t most = data[1] ? data[1] : SIZE_MAX;
  data += 2;
  size -= 2;
  StreamParams params;
  params.ird = params.ord = 4;
  params.crc = flags & 4;
  if (!(flags & 2) && !start_up(data, size, most, flags & 1, &params)) return 0;
  Endpoint end;
  end.engine.start(params);
  end.take_output();
  bool good = true;
  while (good && size > 0) {
    iovec iov[2];
    size_t pieces = end.engine.plan_receive(iov);
    if (pieces == 0) break;
    size_t n = 0;
    for (size_t i = 0; i < pieces && size > 0 && n < most; i++) {
      size_t step = std::min({iov[i].iov_len, most - n, size});
      std::memcpy(iov[i].iov_base, data, step);
      data += step;
      size -= step;
      n += step;
    }
    demand(n > 0);
    good = end.engine.received(n);
    demand(good == !end.engine.failure().has_value());
    if (flags & 8) end.take_output();
  }
  end.check();
  return 0;
}
