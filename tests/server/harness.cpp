// SPDX-License-Identifier: Apache-2.0
#include "tests/server/harness.hpp"

#include <cstring>

namespace nfsrdma::server::testing {

TestCall::TestCall(TestConnection& connection, std::vector<std::byte> bytes, const CallOptions& options,
                   std::shared_ptr<Caught> caught)
    : connection_(connection), args_(std::move(bytes)), space_(options.results_bytes_max), caught_(std::move(caught)) {
  args = args_;
  rpc::AuthSys sys;
  sys.machine = "test";
  sys.uid = options.uid;
  sys.gid = options.gid;
  sys.group_count = static_cast<uint32_t>(options.groups.size());
  std::copy(options.groups.begin(), options.groups.end(), sys.groups.begin());
  header.program = rpc::nfs_program;
  header.version = rpc::nfs_version;
  header.procedure = rpc::procedure_compound;
  header.flavor = rpc::AuthFlavor::sys;
  header.sys = sys;
  results_bytes_max = options.results_bytes_max;
  write_chunk_bytes = options.write_chunk_bytes;
  if (options.data.empty()) return;
  data_buffer_ = connection.pool().try_borrow(static_cast<uint32_t>(options.data.size()));
  std::memcpy(data_buffer_.data(), options.data.data(), options.data.size());
  data_piece_[0] = data_buffer_.sge(0, static_cast<uint32_t>(options.data.size()));
  data.position = options.data_position;
  data.length = static_cast<uint32_t>(options.data.size());
  data.pieces = data_piece_;
}

void TestCall::reply(rpc::AcceptStatus status, uint32_t results_bytes, rpc::OutboundData out) {
  EXPECT_FALSE(caught_->replied);
  EXPECT_LE(results_bytes, results_bytes_max);
  caught_->replied = true;
  caught_->status = status;
  caught_->results.assign(space_.begin(), space_.begin() + results_bytes);
  caught_->payload_position = out.position;
  for (const rdma::Sge& piece : out.pieces) {
    caught_->payload.append(reinterpret_cast<const char*>(piece.region->host() + piece.offset), piece.length);
  }
  EXPECT_EQ(caught_->payload.size(), out.length);
  if (write_chunk_bytes > 0) {
    EXPECT_LE(out.length, write_chunk_bytes);
  } else {
    EXPECT_LE(results_bytes + (out.length + 3) / 4 * 4, results_bytes_max);
  }
  if (out.release) out.release();
}

Rig::Rig(const TempDir& dir, ServerParams params, PosixParams posix, Recovery* recovery, bool root_squash) {
  loop = std::make_unique<io::IoLoop>(clock, io::LoopParams{});
  provider = rdma::make_loop_provider();
  auto device = provider->resolve({});
  auto pd = (*device)->create_protection_domain();
  pool = std::make_unique<mem::BufferPool>(*pd, mem::PoolParams{});
  if (posix.directory.empty()) posix.directory = dir.path();
  posix.worker_threads = 2;
  if (posix.handle_key.k0 == 0) posix.handle_key = {11, 22};
  posix.boot_verifier = random.next();
  auto opened = PosixStore::open(posix);
  EXPECT_TRUE(opened) << opened.error().text();
  store = std::move(*opened);
  params.root_squash = root_squash;
  params.state.server_owner = "test server";
  if (params.state.instance == 0) params.state.instance = 7;
  server = std::make_unique<NfsServer>(clock, random, *store, recovery, params);
}

Rig::~Rig() {
  bool closed = false;
  loop->post([&] { io::spawn([](NfsServer& s, bool& done) -> io::Task<void> {
                     co_await s.close();
                     done = true;
                   }(*server, closed)); });
  wait([&] { return closed; });
  server.reset();
  store.reset();
}

std::unique_ptr<TestConnection> Rig::connect() {
  auto connection = std::make_unique<TestConnection>(++connections_, *pool);
  bool announced = false;
  loop->post([&] {
    server->on_connect(*connection);
    announced = true;
  });
  wait([&] { return announced; });
  return connection;
}

void Rig::wait(const std::function<bool()>& done) {
  base::TimeNs give_up = base::system_clock().now_ns() + base::seconds(20);
  while (!done()) {
    if (base::system_clock().now_ns() > give_up) {
      FAIL() << "nothing happened for 20 s";
      return;
    }
    loop->turn(clock.now_ns() + base::ms(50));
  }
}

std::shared_ptr<Caught> Rig::start(TestConnection& connection, base::ConstBytes args, const CallOptions& options) {
  auto caught = std::make_shared<Caught>();
  auto* call = new TestCall(connection, {args.begin(), args.end()}, options, caught);
  loop->post([this, call] { server->on_call(std::unique_ptr<rpc::ServerCall>(call)); });
  return caught;
}

Caught Rig::call(TestConnection& connection, base::ConstBytes args, const CallOptions& options) {
  std::shared_ptr<Caught> caught = start(connection, args, options);
  wait([&] { return caught->replied || caught->destroyed; });
  return *caught;
}

void Reply::rewind() {
  std::optional<xdr::OutOfBand> out_of_band;
  if (!caught_->payload.empty()) out_of_band = xdr::OutOfBand{static_cast<uint32_t>(caught_->payload.size())};
  reader_.emplace(caught_->results, ops_, out_of_band);
}

TestClient::TestClient(Rig& r, std::string n, bool back) : rig(r), name(std::move(n)), back_channel(back) {
  connection = rig.connect();
}

Status TestClient::exchange_id(ExchangeIdResult* result) {
  ExchangeIdArgs args;
  args.client_owner.owner = base::bytes_of(name);
  args.client_owner.verifier = verifier;
  Reply reply = alone(args);
  if (reply.status() != Status::ok) return reply.status();
  auto r = reply.next<ExchangeIdResult>();
  clientid = r.clientid;
  exchange_sequence = r.sequenceid;
  if (result) *result = r;
  return Status::ok;
}

Status TestClient::create_session() {
  CreateSessionArgs args;
  args.clientid = clientid;
  args.sequenceid = exchange_sequence;
  args.flags = back_channel ? create_session_flag::conn_back_chan : 0;
  args.fore = {0, (1 << 20) + 4096, (1 << 20) + 4096, 4096, 32, 16, {}};
  args.back = {0, 4096, 4096, 0, 2, 1, {}};
  args.callback_program = 0x40000000;
  Reply reply = alone(args);
  if (reply.status() != Status::ok) return reply.status();
  session = reply.next<CreateSessionResult>();
  ++exchange_sequence;
  sequence = 1;
  return Status::ok;
}

void TestClient::establish(bool complete_reclaim) {
  ASSERT_EQ(exchange_id(), Status::ok);
  ASSERT_EQ(create_session(), Status::ok);
  if (complete_reclaim) {
    ASSERT_EQ(run(ReclaimCompleteArgs{}).status(), Status::ok);
  }
}

TestClient::Opened TestClient::open(const std::string& file, uint32_t access, uint32_t deny, bool create,
                                    const std::string& owner) {
  OpenArgs args;
  args.share_access = access;
  args.share_deny = deny;
  args.owner = {0, base::bytes_of(owner)};
  args.claim.name = file;
  AttributeSet mode = AttributeSet::mode(0644);
  if (create) {
    args.how.type = OpenType::create;
    args.how.attributes = mode.fattr;
  }
  Reply reply = run(PutrootfhArgs{}, args, GetfhArgs{});
  Opened opened;
  opened.status = reply.status();
  if (opened.status != Status::ok) return opened;
  reply.next<PutrootfhResult>();
  opened.open = reply.next<OpenResult>();
  opened.handle = reply.next<GetfhResult>().fh;
  return opened;
}

FileHandle TestClient::lookup(const std::string& file) {
  LookupArgs args;
  args.name = file;
  Reply reply = run(PutrootfhArgs{}, args, GetfhArgs{});
  EXPECT_EQ(reply.status(), Status::ok);
  if (reply.status() != Status::ok) return {};
  reply.skip<PutrootfhResult, LookupResult>();
  return reply.next<GetfhResult>().fh;
}

Attributes decoded(const Fattr& fattr) {
  Attributes attributes;
  EXPECT_EQ(decode_fattr(fattr, attributes), FattrRead::complete);
  return attributes;
}

PutfhArgs putfh(const FileHandle& handle) {
  PutfhArgs args;
  args.fh = handle;
  return args;
}

}  // namespace nfsrdma::server::testing
