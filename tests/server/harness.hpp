// SPDX-License-Identifier: Apache-2.0
// The server without a network: calls are handed to it as the transport would, replies are caught. One thread turns
// the loop; only the store has threads of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "io/loop.hpp"
#include "nfs4/attributes.hpp"
#include "nfs4/callback_ops.hpp"
#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"
#include "nfs4/op_table.hpp"
#include "rdma/providers.hpp"
#include "server/posix/posix_store.hpp"
#include "server/server.hpp"

namespace nfsrdma::server::testing {

using namespace nfs4;

// Real time plus what the test adds.
class SkewedClock final : public base::Clock {
 public:
  base::TimeNs now_ns() override { return base::system_clock().now_ns() + skew_ns_.load(); }
  uint64_t wall_ns() override { return base::system_clock().wall_ns() + skew_ns_.load(); }
  void advance(base::TimeNs by) { skew_ns_ += by; }

 private:
  std::atomic<base::TimeNs> skew_ns_{0};
};

class TempDir {
 public:
  TempDir() {
    std::string path = std::filesystem::temp_directory_path() / "nfsrdma-server-test-XXXXXX";
    path_ = mkdtemp(path.data());
    // Callers that are nobody here shall reach what lies in it.
    chmod(path_.c_str(), 0755);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& name = {}) const { return name.empty() ? path_ : path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

// What became of a call.
struct Caught {
  bool replied = false;
  bool destroyed = false;
  rpc::AcceptStatus status = rpc::AcceptStatus::success;
  std::vector<std::byte> results;  // reduced form
  std::string payload;
  uint32_t payload_position = 0;
};

struct CallOptions {
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;
  uint32_t results_bytes_max = 1 << 20;
  uint32_t write_chunk_bytes = 1 << 20;
  std::string data;                // out of band
  uint32_t data_position = 0;
};

class TestConnection final : public rpc::ServerConnection {
 public:
  TestConnection(uint64_t id, mem::BufferPool& pool) : id_(id), pool_(pool) {}
  uint64_t id() const override { return id_; }
  std::string remote() const override { return "test"; }
  bool is_rdma() const override { return true; }
  mem::BufferPool& pool() override { return pool_; }
  void drop(const Error&) override { dropped = true; }
  Result<void> call_back(base::ConstBytes message, Callback<void(Result<base::ConstBytes>)> done) override {
    callbacks.push_back({std::vector<std::byte>(message.begin(), message.end()), std::move(done)});
    return {};
  }
  uint32_t reverse_bytes_max() const override { return 4000; }

  struct PendingCallback {
    std::vector<std::byte> message;
    Callback<void(Result<base::ConstBytes>)> done;
  };
  std::deque<PendingCallback> callbacks;
  bool dropped = false;

 private:
  uint64_t id_;
  mem::BufferPool& pool_;
};

class TestCall final : public rpc::ServerCall {
 public:
  TestCall(TestConnection& connection, std::vector<std::byte> args, const CallOptions& options,
           std::shared_ptr<Caught> caught);
  ~TestCall() override { caught_->destroyed = true; }
  rpc::ServerConnection& connection() override { return connection_; }
  base::Bytes results_space() override { return space_; }
  void reply(rpc::AcceptStatus status, uint32_t results_bytes, rpc::OutboundData data) override;

 private:
  TestConnection& connection_;
  std::vector<std::byte> args_;
  std::vector<std::byte> space_;
  mem::Buffer data_buffer_;
  std::array<rdma::Sge, 1> data_piece_;
  std::shared_ptr<Caught> caught_;
};

// The server, its store and the loop.
class Rig {
 public:
  explicit Rig(const TempDir& dir, ServerParams params = {}, PosixParams posix = {}, Recovery* recovery = nullptr,
               bool root_squash = false);
  ~Rig();

  std::unique_ptr<TestConnection> connect();
  void disconnect(TestConnection& connection) { server->on_disconnect(connection); }
  // Hands the call over and turns the loop until it was answered or dropped.
  Caught call(TestConnection& connection, base::ConstBytes args, const CallOptions& options = {});
  std::shared_ptr<Caught> start(TestConnection& connection, base::ConstBytes args, const CallOptions& options = {});
  void wait(const std::function<bool()>& done);

  // A task of the store, awaited.
  template <class T>
  T run(io::Task<T> task) {
    std::optional<T> value;
    io::spawn(wrap(std::move(task), value));
    wait([&] { return value.has_value(); });
    return std::move(*value);
  }

  SkewedClock clock;
  base::SeededRandom random{42};
  std::unique_ptr<io::IoLoop> loop;
  std::shared_ptr<rdma::Provider> provider;
  std::unique_ptr<mem::BufferPool> pool;
  std::unique_ptr<PosixStore> store;
  std::unique_ptr<NfsServer> server;

 private:
  template <class T>
  io::Task<void> wrap(io::Task<T> task, std::optional<T>& value) {
    T result = co_await task;
    co_await loop->enter();
    value.emplace(std::move(result));
  }
  uint64_t connections_ = 0;
};

// Results of a compound, read in order.
class Reply {
 public:
  Reply(Caught caught, uint32_t ops) : caught_(std::make_shared<Caught>(std::move(caught))), ops_(ops) { rewind(); }
  void rewind();
  template <class R>
  R next() {
    R result{};
    EXPECT_TRUE(reader_->next(result)) << "status " << to_string(reader_->op_status()) << " at " << reader_->index();
    return result;
  }
  // Skips n results.
  template <class... Rs>
  Reply& skip() {
    (next<Rs>(), ...);
    return *this;
  }
  Status status() const { return reader_->status(); }
  uint32_t result_count() const { return reader_->result_count(); }
  const std::string& payload() const { return caught_->payload; }
  const Caught& caught() const { return *caught_; }
  CompoundReader& reader() { return *reader_; }

 private:
  std::shared_ptr<Caught> caught_;
  uint32_t ops_;
  std::optional<CompoundReader> reader_;
};

struct Encoded {
  std::vector<std::byte> bytes;
  uint32_t ops = 0;
  uint32_t data_position = 0;
};

template <class... Args>
Encoded encode(xdr::Form form, const Args&... args) {
  static std::vector<std::byte> room(1 << 21);
  Encoded e;
  CompoundBuilder builder(room, 1, form);
  (builder.add(args), ...);
  base::ConstBytes whole = builder.finish();
  e.bytes.assign(whole.begin(), whole.end());
  e.ops = builder.op_count();
  if (builder.ddp()) e.data_position = builder.ddp()->position;
  return e;
}

// A client with one session.
class TestClient {
 public:
  explicit TestClient(Rig& rig, std::string name = "client", bool back_channel = false);

  void establish(bool complete_reclaim = true);
  Status exchange_id(ExchangeIdResult* result = nullptr);
  Status create_session();

  // SEQUENCE on slot 0 and these operations; the reply stands behind SEQUENCE's result.
  template <class... Args>
  Reply run(const Args&... args) {
    return run_with(options, args...);
  }
  template <class... Args>
  Reply run_with(const CallOptions& opts, const Args&... args) {
    Encoded e = encode(opts.data.empty() ? xdr::Form::whole : xdr::Form::reduced, next_sequence(), args...);
    CallOptions o = opts;
    o.data_position = e.data_position;
    Reply reply(rig.call(*connection, e.bytes, o), e.ops);
    if (reply.result_count() > 0 && reply.reader().next<SequenceResult>()) ++sequence;
    return reply;
  }
  template <class... Args>
  Reply alone(const Args&... args) {
    Encoded e = encode(xdr::Form::whole, args...);
    return Reply(rig.call(*connection, e.bytes, options), e.ops);
  }
  SequenceArgs next_sequence() const {
    SequenceArgs args;
    args.session_id = session.session_id;
    args.sequenceid = sequence;
    args.cache_this = cache_this;
    return args;
  }

  // PUTROOTFH, OPEN, GETFH.
  struct Opened {
    Status status = Status::ok;
    FileHandle handle;
    OpenResult open;
  };
  Opened open(const std::string& name, uint32_t access = share::access_both, uint32_t deny = 0, bool create = true,
              const std::string& owner = "owner");
  FileHandle lookup(const std::string& name);

  Rig& rig;
  std::string name;
  bool back_channel;
  Verifier verifier{};
  std::unique_ptr<TestConnection> connection;
  CallOptions options;
  ClientId clientid = 0;
  uint32_t exchange_sequence = 0;
  CreateSessionResult session;
  uint32_t sequence = 1;
  bool cache_this = false;
};

// Owns the bytes that a Fattr views.
class AttributeSet {
 public:
  AttributeSet(const Bitmap& mask, const Attributes& values) {
    bytes_.resize(4096);
    EXPECT_TRUE(encode_fattr(mask, values, bytes_, fattr));
  }
  static AttributeSet size(uint64_t bytes) {
    Attributes a;
    a.size = bytes;
    return AttributeSet({attr::size}, a);
  }
  static AttributeSet mode(uint32_t bits) {
    Attributes a;
    a.mode = bits;
    return AttributeSet({attr::mode}, a);
  }
  Fattr fattr;

 private:
  std::vector<std::byte> bytes_;
};

Attributes decoded(const Fattr& fattr);
PutfhArgs putfh(const FileHandle& handle);

}  // namespace nfsrdma::server::testing
