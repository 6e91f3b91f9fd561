// SPDX-License-Identifier: Apache-2.0
// The upper half: MPA frames, DDP segments, RDMA memory, RPC-over-RDMA messages.
#include "tests/nfs4/capture.hpp"

#include <memory>

#include "tests/nfs4/capture_tcp.hpp"

namespace nfsrdma::capture {
namespace {

// What was placed at remote keys, by one side's Writes or Read Responses.
class Memory {
 public:
  void place(uint32_t key, uint64_t offset, View bytes) {
    pieces_[{key, offset}] = Buffer(bytes.begin(), bytes.end());
  }
  // Takes exactly length bytes from offset on; false when they were not placed without gaps.
  bool take(uint32_t key, uint64_t offset, uint32_t length, Buffer& out) {
    const uint64_t end = offset + length;
    while (offset < end) {
      const auto piece = pieces_.find({key, offset});
      if (piece == pieces_.end() || piece->second.size() > end - offset) return false;
      out.insert(out.end(), piece->second.begin(), piece->second.end());
      offset += piece->second.size();
      pieces_.erase(piece);
    }
    return true;
  }
  bool empty() const { return pieces_.empty(); }

 private:
  std::map<std::pair<uint32_t, uint64_t>, Buffer> pieces_;
};

struct Chunk {
  uint32_t position = 0;
  uint32_t key = 0;
  uint32_t length = 0;
  uint64_t offset = 0;
};

// An RPC-over-RDMA version 1 header.
struct Header {
  uint32_t xid = 0, version = 0, credits = 0, procedure = 0;
  std::vector<Chunk> reads;
  std::vector<std::vector<Chunk>> writes;
  std::optional<std::vector<Chunk>> reply;
  View rest;
};

class Words {
 public:
  explicit Words(View bytes) : bytes_(bytes) {}
  uint32_t next() {
    if (bytes_.size() < 4) {
      ok_ = false;
      return 0;
    }
    const uint32_t v = be32(bytes_, 0);
    bytes_ = bytes_.subspan(4);
    return v;
  }
  uint64_t next_long() {
    const uint64_t high = next();
    return high << 32 | next();
  }
  std::vector<Chunk> segments() {
    std::vector<Chunk> out;
    for (uint32_t n = next(); n > 0 && ok_; --n) {
      Chunk& segment = out.emplace_back();
      segment.key = next();
      segment.length = next();
      segment.offset = next_long();
    }
    return out;
  }
  bool ok() const { return ok_; }
  View rest() const { return bytes_; }

 private:
  View bytes_;
  bool ok_ = true;
};

bool parse_header(View send, Header& out) {
  Words words(send);
  out.xid = words.next();
  out.version = words.next();
  out.credits = words.next();
  out.procedure = words.next();
  while (words.next() == 1) {
    Chunk& chunk = out.reads.emplace_back();
    chunk.position = words.next();
    chunk.key = words.next();
    chunk.length = words.next();
    chunk.offset = words.next_long();
  }
  while (words.next() == 1) out.writes.push_back(words.segments());
  if (words.next() == 1) out.reply = words.segments();
  out.rest = words.rest();
  return words.ok() && out.version == 1 && out.procedure <= 1;
}

struct ReadRequest {
  uint32_t sink_key = 0, size = 0, source_key = 0;
  uint64_t sink_offset = 0, source_offset = 0;
};

// Both directions of one connection; [0] is what the client sends, [1] the server.
class Connection {
 public:
  Connection(uint32_t number, Capture& capture) : number_(number), capture_(capture) {}

  void on_bytes(bool from_client, View bytes) {
    Side& side = sides_[from_client ? 0 : 1];
    side.stream.insert(side.stream.end(), bytes.begin(), bytes.end());
    size_t used = 0;
    while (const size_t frame = next_frame(from_client, side, View(side.stream).subspan(used))) used += frame;
    side.stream.erase(side.stream.begin(), side.stream.begin() + static_cast<std::ptrdiff_t>(used));
  }
  void finish() {
    for (auto& [xid, call] : calls_) complete_call(call.first, call.second);
    for (const Side& side : sides_) {
      if (!side.stream.empty() || !side.partial.empty()) complain("the stream ends inside a message");
      if (!side.placed.empty()) complain("RDMA data that no message explains");
    }
  }

 private:
  struct Side {
    Buffer stream;
    bool started = false;       // the MPA frame is behind us
    uint32_t next_message = 1;  // Send queue
    Buffer partial;             // of the Send under way
    Memory placed;              // by this side, in the other's memory
  };
  static constexpr size_t untagged_header = 18, tagged_header = 14;

  void complain(const std::string& what) {
    capture_.complaints.push_back("connection " + std::to_string(number_) + ": " + what);
  }

  // Bytes used by one whole MPA frame or FPDU at the start of the stream, 0 when it is not complete yet.
  size_t next_frame(bool from_client, Side& side, View stream) {
    if (!side.started) {
      if (stream.size() < 20) return 0;
      const size_t size = 20 + be(stream, 18, 2);
      if (stream.size() < size) return 0;
      if (std::memcmp(stream.data(), from_client ? "MPA ID Req Frame" : "MPA ID Rep Frame", 16) != 0) {
        complain("no MPA frame at its start");
      }
      side.started = true;
      return size;
    }
    if (stream.size() < 2) return 0;
    const size_t length = be(stream, 0, 2);
    const size_t size = (2 + length + 3) / 4 * 4 + 4;
    if (stream.size() < size) return 0;
    ++capture_.fpdus;
    on_segment(from_client, side, stream.subspan(2, length));
    return size;
  }

  void on_segment(bool from_client, Side& side, View segment) {
    if (segment.size() < tagged_header) return complain("a DDP segment without a header");
    const uint32_t control = be(segment, 0, 2);
    const bool tagged = (control & 0x8000) != 0, last = (control & 0x4000) != 0;
    const uint32_t opcode = control & 15;
    if (tagged) {
      if (opcode != 0 && opcode != 2) return complain("a tagged segment of opcode " + std::to_string(opcode));
      const View payload = segment.subspan(tagged_header);
      if (!payload.empty()) side.placed.place(be32(segment, 2), be64(segment, 6), payload);
      return;
    }
    if (segment.size() < untagged_header) return complain("a DDP segment without a header");
    const View payload = segment.subspan(untagged_header);
    if (opcode == 1) return on_read_request(from_client, payload);
    if (opcode < 3 || opcode > 6) return complain("an untagged segment of opcode " + std::to_string(opcode));
    if (be32(segment, 10) != side.next_message || be32(segment, 14) != side.partial.size()) {
      return complain("a Send out of order");
    }
    side.partial.insert(side.partial.end(), payload.begin(), payload.end());
    if (!last) return;
    ++side.next_message;
    const Buffer send = std::move(side.partial);
    side.partial.clear();
    on_send(from_client, send);
  }

  void on_read_request(bool from_client, View payload) {
    if (payload.size() != 28) return complain("a Read Request of the wrong size");
    if (from_client) return complain("a Read Request by the client");
    reads_.push_back(
        {be32(payload, 0), be32(payload, 12), be32(payload, 16), be64(payload, 4), be64(payload, 20)});
  }

  void on_send(bool from_client, View send) {
    Header header;
    if (!parse_header(send, header)) return complain("a Send that is no RPC-over-RDMA message");
    RpcMessage message;
    message.connection = number_;
    message.from_client = from_client;
    message.xid = header.xid;
    message.by_chunk = header.procedure == 1;
    message.bytes.assign(header.rest.begin(), header.rest.end());
    if (message.by_chunk && !message.bytes.empty()) complain("RDMA_NOMSG with a message");
    if (!from_client) {
      const auto call = calls_.find(header.xid);
      const bool reply = !message.by_chunk && !message.is_call() ? true : message.by_chunk;
      if (reply && call == calls_.end()) complain("a reply to nothing");
      if (reply && call != calls_.end()) {
        complete_call(call->second.first, call->second.second);
        calls_.erase(call);
      }
      gather_results(header, message);
    }
    capture_.messages.push_back(std::move(message));
    const size_t index = capture_.messages.size() - 1;
    if (from_client && (header.procedure == 1 || capture_.messages[index].is_call())) {
      calls_.insert_or_assign(header.xid, std::pair(index, std::move(header.reads)));
    }
  }

  // What the server wrote for this reply.
  void gather_results(const Header& header, RpcMessage& message) {
    if (header.writes.size() > 1) complain("more than one write chunk");
    for (const std::vector<Chunk>& chunk : header.writes) {
      message.data.emplace();
      for (const Chunk& segment : chunk) {
        if (!sides_[1].placed.take(segment.key, segment.offset, segment.length, *message.data)) {
          complain("a write chunk that was not written");
        }
      }
    }
    if (!message.by_chunk) return;
    if (!header.reply) return complain("a long reply without its chunk");
    for (const Chunk& segment : *header.reply) {
      if (!sides_[1].placed.take(segment.key, segment.offset, segment.length, message.bytes)) {
        complain("a reply chunk that was not written");
      }
    }
  }

  // Fetches what the server read for a call: its Read Requests say where the client's answers went.
  void complete_call(size_t index, const std::vector<Chunk>& reads) {
    RpcMessage& message = capture_.messages[index];
    for (const Chunk& segment : reads) {
      Buffer& target = segment.position == 0 ? message.bytes
                       : message.data        ? *message.data
                                             : message.data.emplace();
      if (segment.position != 0) message.data_position = segment.position;
      if (!fetch(segment, target)) complain("a read chunk that was not read");
    }
  }

  bool fetch(const Chunk& segment, Buffer& out) {
    uint64_t at = segment.offset;
    const uint64_t end = segment.offset + segment.length;
    for (auto read = reads_.begin(); read != reads_.end() && at < end;) {
      if (read->source_key != segment.key || read->source_offset != at) {
        ++read;
        continue;
      }
      if (!sides_[0].placed.take(read->sink_key, read->sink_offset, read->size, out)) return false;
      at += read->size;
      reads_.erase(read);
      read = reads_.begin();
    }
    return at == end;
  }

  uint32_t number_;
  Capture& capture_;
  Side sides_[2];
  std::vector<ReadRequest> reads_;
  std::map<uint32_t, std::pair<size_t, std::vector<Chunk>>> calls_;
};

}  // namespace

bool RpcMessage::is_call() const { return bytes.size() >= 8 && be32(bytes, 4) == 0; }

Capture read_capture(const std::string& path) {
  Capture capture;
  std::map<Flow, std::unique_ptr<Connection>> connections;  // by the client's direction
  const auto opened = [&](const Flow& flow) {
    connections[flow] = std::make_unique<Connection>(capture.connections++, capture);
  };
  const auto data = [&](const Flow& flow, View bytes) {
    if (const auto forward = connections.find(flow); forward != connections.end()) {
      forward->second->on_bytes(true, bytes);
    } else if (const auto back = connections.find(flow.reversed()); back != connections.end()) {
      back->second->on_bytes(false, bytes);
    }
  };
  read_tcp(path, opened, data, capture.complaints);
  for (auto& [flow, connection] : connections) connection->finish();
  return capture;
}

}  // namespace nfsrdma::capture
