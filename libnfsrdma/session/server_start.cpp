// SPDX-License-Identifier: Apache-2.0
// The session's life: start, binding of connections, lease, recovery, end.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "session/errors.hpp"
#include "session/server.hpp"

namespace nfsrdma::session {

using base::LogLevel;
using nfs4::Status;
using rpc::CallOutcome;

namespace {

constexpr uint32_t bound_back_channels = 2;  // the first connections carry callbacks, so that one may be lost
constexpr base::TimeNs goodbye_ns = base::seconds(5);
constexpr base::TimeNs recovery_retry_ns = base::seconds(1);
constexpr base::TimeNs confirm_shrink_ns = base::seconds(1);
constexpr uint32_t status_callback_down = nfs4::sequence_flag::cb_path_down |
                                          nfs4::sequence_flag::cb_path_down_session |
                                          nfs4::sequence_flag::backchannel_fault;

std::string text_of(nfs4::ByteView bytes) { return std::string(base::text_of(bytes)); }

uint64_t micros_since(io::IoLoop& loop, base::TimeNs start_ns) { return (loop.now_ns() - start_ns) / 1000; }

}  // namespace

Server::Server(std::vector<io::IoLoop*> loops, Connector& connector, ClientIdentity identity, ServerParams params,
               base::Random& random)
    : loops_(std::move(loops)),
      connector_(connector),
      identity_(std::move(identity)),
      params_(std::move(params)),
      random_(random) {
  // The server waits for a request that shows it the slots' end: the lease timer sends one if nobody else does.
  callback_service_.on_recall_slot = [this](uint32_t target) {
    slots_.set_target(target);
    home().post([this] { arm_lease(); });
  };
  for (uint32_t i = 0; i < params_.nconnect; i++)
    channels_.push_back(
        std::make_unique<Channel>(*this, i, *loops_[i % loops_.size()], connector_, params_.channel));
  lease_timer_.set([this] { io::spawn(renew_lease()); });
}

Server::~Server() = default;

uint64_t Server::client_id() const {
  std::lock_guard lock(mutex_);
  return client_id_;
}

ServerInfo Server::info() const {
  std::lock_guard lock(mutex_);
  ServerInfo info = info_;
  info.slots = slots_.slots();
  return info;
}

void Server::set_lease(uint32_t lease_s) {
  lease_s_.store(std::clamp(lease_s, 1u, 3600u), std::memory_order_relaxed);
  home().post([this] { arm_lease(); });
}

io::Task<Result<void>> Server::start(StepObserver observer) {
  base::TimeNs step_ns = home().now_ns();
  auto report = [&](const char* name, const Result<void>& r, std::string detail) {
    if (observer) observer(name, r.ok(), micros_since(home(), step_ns), r ? detail : r.error().text());
    step_ns = home().now_ns();
  };
  Channel& first = *channels_.front();
  auto connected = co_await first.connect();
  report("connect", connected, connected ? first.transport()->describe() : "");
  if (!connected) co_return connected.error();
  auto null_call = co_await send_null();
  report("NULL", null_call, "the server answers RPC");
  if (!null_call) co_return null_call.error();
  first.usable();
  auto exchanged = co_await exchange_id();
  Result<void> identified = exchanged ? Result<void>{} : Result<void>{exchanged.error()};
  report("EXCHANGE_ID", identified, "server says it is \"" + info().implementation + "\"");
  if (!identified) co_return identified.error();
  auto created = co_await create_session();
  if (created) created = co_await reclaim_complete();
  if (created) slots_.open();
  ServerInfo now = info();
  report("session", created,
         base::text("%u slots, requests to %u bytes, replies to %u bytes, callbacks %s", now.slots,
                    now.request_bytes_max, now.response_bytes_max, now.back_channel ? "yes" : "no"));
  if (!created) co_return created.error();
  auto others = co_await open_other_channels();
  if (params_.nconnect > 1)
    report("connections", others, base::text("%u connections in the session", params_.nconnect));
  if (!others) co_return others.error();
  for (auto& channel : channels_)
    channel->loop().post([c = channel.get()] { c->keep_open(); });
  started_.store(true, std::memory_order_release);
  arm_lease();
  co_return Result<void>{};
}

io::Task<Result<void>> Server::send_null() {
  std::array<std::byte, 64> storage;
  Compound c(storage, nfs4::Op::illegal, Repeat::freely, params_.credential);
  rpc::Credential none = rpc::Credential::none();
  c.credential = &none;
  c.procedure = rpc::procedure_null;
  c.results_bytes_max = 0;
  Channel& first = *channels_.front();
  co_await first.exchange(c);
  if (c.outcome == CallOutcome::replied) co_return Result<void>{};
  if (c.error.origin() == ErrorOrigin::server) co_return c.error.in("NULL call");
  // The port took the connection, but what is behind it does not speak RPC over it.
  co_return Error(c.error.errno_value(), c.error.origin(),
                  "NULL call: " + c.error.text() + "; check that an NFS server for RDMA has this port");
}

// Operations that stand alone in their compound: no slot, no sequence, any connection.
io::Task<Result<void>> Server::call_unsequenced(Compound& c) {
  auto sealed = c.seal();
  if (!sealed) co_return sealed.error();
  for (base::TimeNs wait_ns = base::ms(100);;) {
    bool sent = co_await transmit(c, base::never_ns);
    if (!sent) co_return c.error;
    switch (c.outcome) {
      case CallOutcome::replied: break;
      case CallOutcome::lost:
      case CallOutcome::not_sent:
        if (!may_wait_for_channel()) co_return c.error;
        continue;
      default: co_return c.error;
    }
    c.open_reply();
    if (c.reader().status() != Status::delay) break;
    if (stopping_.load(std::memory_order_acquire)) co_return Error(EBUSY, ErrorOrigin::server, "the server is busy");
    co_await home().sleep_for(wait_ns);
    wait_ns = std::min(wait_ns * 2, base::seconds(5));
  }
  co_return Result<void>{};
}

namespace {

// The single result of an unsequenced compound.
template <class R>
Result<void> take_result(Compound& c, R& out) {
  nfs4::CompoundReader& reader = c.reader();
  if (reader.next(out) && reader.finish()) return {};
  if (reader.malformed())
    return Error(EIO, ErrorOrigin::protocol,
                 base::text("%s: malformed reply (%s)", nfs4::to_string(c.main_op()), reader.complaint()));
  Error e = nfs_error(reader.op_status(), nfs4::to_string(c.main_op()));
  if (reader.op_status() == Status::minor_vers_mismatch)
    return Error(EPROTONOSUPPORT, ErrorOrigin::server,
                 "the server does not speak this minor version of NFSv4 (it has NFSv4.0 only?); NFSv4.1 is needed: "
                 "enable it there",
                 e.nfs_status());
  if (reader.op_status() == Status::clid_inuse)
    return Error(EPERM, ErrorOrigin::server, e.text() + "; another user holds this client id: choose another client_id",
                 e.nfs_status());
  return e;
}

}  // namespace

io::Task<Result<bool>> Server::exchange_id() {
  std::array<std::byte, 4096> storage;
  Compound c(storage, nfs4::Op::exchange_id, Repeat::freely, params_.credential, params_.minor_version);
  nfs4::ExchangeIdArgs args;
  args.client_owner = identity_.client_owner();
  args.flags = nfs4::exchange_flag::supp_moved_refer;
  args.impl_id = nfs4::ImplId{"nfsrdma.org", "nfsrdma", {}};
  c.add(args);
  auto called = co_await call_unsequenced(c);
  if (!called) co_return called.error();
  nfs4::ExchangeIdResult r;
  auto taken = take_result(c, r);
  if (!taken) co_return taken.error();
  std::lock_guard lock(mutex_);
  bool kept = (r.flags & nfs4::exchange_flag::confirmed_r) && r.clientid == client_id_;
  client_id_ = r.clientid;
  create_sequence_ = r.sequenceid;
  info_.minor_version = params_.minor_version;
  info_.implementation = r.impl_id ? std::string(r.impl_id->name) : text_of(r.server_owner.major);
  co_return kept;
}

io::Task<Result<void>> Server::create_session() {
  std::array<std::byte, 1024> storage;
  Compound c(storage, nfs4::Op::create_session, Repeat::freely, params_.credential, params_.minor_version);
  nfs4::CreateSessionArgs args;
  args.clientid = client_id();
  args.sequenceid = create_sequence_;
  args.flags = nfs4::create_session_flag::conn_back_chan;
  args.fore = {0, params_.request_bytes_max, params_.response_bytes_max, params_.cached_response_bytes_max, 16,
               params_.slots_wanted, {}};
  args.back = {0, callback_bytes_max, callback_bytes_max, 0, callback_operations_max, callback_slots, {}};
  args.callback_program = rpc::callback_program;
  nfs4::CallbackSecParms sec;
  sec.flavor = nfs4::AuthFlavor::sys;
  sec.sys.machine_name = params_.auth.machine;
  sec.sys.uid = params_.auth.uid;
  sec.sys.gid = params_.auth.gid;
  args.sec_parms = xdr::Array<nfs4::CallbackSecParms>(std::span<const nfs4::CallbackSecParms>(&sec, 1));
  c.add(args);
  auto called = co_await call_unsequenced(c);
  if (!called) co_return called.error();
  nfs4::CreateSessionResult r;
  auto taken = take_result(c, r);
  if (!taken) co_return taken.error();
  if (r.fore.requests_max == 0 || r.fore.response_bytes_max < 4096 || r.fore.request_bytes_max < 4096)
    co_return Error(EPROTO, ErrorOrigin::protocol,
                    base::text("CREATE_SESSION: the server grants too little to work with (%u slots, %u/%u bytes)",
                               r.fore.requests_max, r.fore.request_bytes_max, r.fore.response_bytes_max));
  create_sequence_++;
  callback_service_.reset(r.session_id);
  {
    std::lock_guard lock(mutex_);
    session_id_ = r.session_id;
    info_.request_bytes_max = std::min(r.fore.request_bytes_max, params_.request_bytes_max);
    info_.response_bytes_max = std::min(r.fore.response_bytes_max, params_.response_bytes_max);
    info_.cached_response_bytes_max = r.fore.cached_response_bytes_max;
    info_.operations_max = r.fore.operations_max;
    info_.back_channel = r.flags & nfs4::create_session_flag::conn_back_chan;
  }
  slots_.reset(r.session_id, r.fore.requests_max);
  renewed_at_ns_.store(home().now_ns(), std::memory_order_relaxed);
  co_return Result<void>{};
}

io::Task<Result<void>> Server::reclaim_complete() {
  SmallCompound c(nfs4::Op::reclaim_complete, Repeat::exactly_once, params_.credential, params_.minor_version);
  c.privileged = true;
  c.urgent = true;
  c.add_sequence();
  c.add(nfs4::ReclaimCompleteArgs{false});
  auto sealed = c.seal();
  if (!sealed) co_return sealed.error();
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  if (!c.reader().next<nfs4::ReclaimCompleteResult>() && c.reader().op_status() != Status::complete_already)
    co_return nfs_error(c.reader().op_status(), "RECLAIM_COMPLETE");
  reclaim_due_ = false;
  co_return Result<void>{};
}

io::Task<Result<void>> Server::open_other_channels() {
  for (size_t i = 1; i < channels_.size(); i++) {
    Channel& channel = *channels_[i];
    co_await channel.loop().enter();
    auto opened = co_await channel.open();
    co_await home().enter();
    if (!opened) co_return opened.error().in(base::text("connection %zu of %zu", i + 1, channels_.size()));
  }
  co_return Result<void>{};
}

// On the channel's loop. A session that the server has forgotten is rebuilt by recovery; the connection is good.
io::Task<Result<void>> Server::bind(Channel& channel) {
  if (channel.connects() > 1) reconnects_.fetch_add(1, std::memory_order_relaxed);
  uint64_t generation = slots_.generation();
  auto bound = co_await bind_channel(channel);
  if (bound) co_return bound;
  switch (reaction_to(static_cast<Status>(bound.error().nfs_status()))) {
    case Reaction::session_lost:
    case Reaction::client_lost: lose_session(generation); co_return Result<void>{};
    default: co_return bound;
  }
}

io::Task<Result<void>> Server::bind_channel(Channel& channel) {
  std::array<std::byte, 256> storage;
  Compound c(storage, nfs4::Op::bind_conn_to_session, Repeat::freely, params_.credential, params_.minor_version);
  nfs4::BindConnToSessionArgs args;
  {
    std::lock_guard lock(mutex_);
    args.session_id = session_id_;
  }
  // FORE_OR_BOTH rather than BACK_OR_BOTH: knfsd answers INVAL to the latter on a connection that is bound already.
  args.direction = channel.index() < bound_back_channels ? nfs4::ChannelDirection::fore_or_both
                                                         : nfs4::ChannelDirection::fore;
  c.add(args);
  auto sealed = c.seal();
  if (!sealed) co_return sealed.error();
  for (;;) {
    co_await channel.exchange(c);
    if (c.outcome != CallOutcome::replied) co_return c.error.in("BIND_CONN_TO_SESSION");
    c.open_reply();
    if (c.reader().status() != Status::delay || stopping_.load(std::memory_order_acquire)) break;
    co_await channel.loop().sleep_for(base::ms(100));
  }
  nfs4::BindConnToSessionResult r;
  co_return take_result(c, r);
}

void Server::on_channel_up(Channel&) {
  std::lock_guard lock(mutex_);
  channel_waiters_.wake_all();
}

void Server::on_channel_down(Channel&, const Error&) {
  if (may_wait_for_channel()) return;
  std::lock_guard lock(mutex_);
  channel_waiters_.wake_all();
}

// ---- lease ----

void Server::arm_lease() {
  if (!may_wait_for_channel()) return;
  base::TimeNs third = base::seconds(lease_s_.load(std::memory_order_relaxed)) / 3;
  base::TimeNs due_ns = std::max(renewed_at_ns_.load(std::memory_order_relaxed) + third, home().now_ns() + third / 4);
  if (slots_.shrink_unconfirmed()) due_ns = std::min(due_ns, home().now_ns() + confirm_shrink_ns);
  home().arm(lease_timer_, due_ns);
}

io::Task<void> Server::renew_lease() {
  Background mark(*this);
  base::TimeNs third = base::seconds(lease_s_.load(std::memory_order_relaxed)) / 3;
  if (home().now_ns() >= renewed_at_ns_.load(std::memory_order_relaxed) + third || slots_.shrink_unconfirmed()) {
    SmallCompound c(nfs4::Op::sequence, Repeat::freely, params_.credential, params_.minor_version);
    c.urgent = true;
    c.add_sequence();
    if (c.seal()) {
      auto ran = co_await run(c);
      if (!ran && !stopping_) base::log(LogLevel::warn, "session", "lease renewal: %s", ran.error().text().c_str());
    }
  }
  // What a transition of the flag did not cure is tried again at this slow pace, not with every reply.
  if ((flags_seen_.load() & status_callback_down) && may_wait_for_channel()) io::spawn(restore_back_channel());
  arm_lease();
}

// ---- status flags, recovery ----

void Server::on_sequence_flags(uint32_t flags) {
  uint32_t fresh = flags & ~flags_seen_.exchange(flags);
  if (fresh & ~status_callback_down)
    base::log(LogLevel::warn, "session", "the server reports SEQUENCE status flags 0x%x", flags);
  if ((fresh & status_callback_down) && may_wait_for_channel())
    home().post([this] { io::spawn(restore_back_channel()); });
}

io::Task<void> Server::restore_back_channel() {
  if (std::exchange(restoring_, true)) co_return;
  Background mark(*this);
  for (auto& channel : channels_) {
    if (channel->index() >= bound_back_channels) break;
    co_await channel->loop().enter();
    if (channel->up()) {
      auto bound = co_await bind_channel(*channel);
      if (!bound) base::log(LogLevel::warn, "session", "callback channel: %s", bound.error().text().c_str());
    }
    co_await home().enter();
  }
  restoring_ = false;
}

void Server::lose_session(uint64_t generation) {
  std::lock_guard lock(mutex_);
  if (recovering_ || stopping_ || slots_.generation() != generation) return;
  recovering_ = true;
  slots_.shut();
  home().post([this] { io::spawn(recover()); });
}

io::Task<void> Server::recover() {
  Background mark(*this);
  base::log(LogLevel::warn, "session", "the server does not know our session any more; making a new one");
  while (!stopping_.load(std::memory_order_acquire)) {
    auto rebuilt = co_await rebuild_session();
    if (rebuilt) break;
    base::log(LogLevel::warn, "session", "recovery: %s", rebuilt.error().text().c_str());
    co_await home().sleep_for(recovery_retry_ns);
  }
  slots_.open();
  std::lock_guard lock(mutex_);
  recovering_ = false;
  recovery_waiters_.wake_all();
}

io::Task<Result<void>> Server::rebuild_session() {
  nfs4::SessionId old = session_id_;
  auto kept = co_await exchange_id();
  if (!kept) co_return kept.error();
  // A server that restarted or dropped us wants to hear RECLAIM_COMPLETE, whatever happens on the way there.
  reclaim_due_ = reclaim_due_ || !*kept;
  auto created = co_await create_session();
  if (!created) co_return created.error();
  if (*kept && old != session_id_) io::spawn(destroy_old_session(old));
  if (reclaim_due_) {
    // Opens and locks of the old client id are gone there, and their handles say so.
    state_epoch_.fetch_add(1, std::memory_order_acq_rel);
    auto complete = co_await reclaim_complete();
    if (!complete) co_return complete.error();
  }
  flags_seen_.store(0);
  co_await restore_back_channel();
  co_return Result<void>{};
}

io::Task<Result<void>> Server::destroy_session(nfs4::SessionId session) {
  std::array<std::byte, 256> storage;
  Compound c(storage, nfs4::Op::destroy_session, Repeat::freely, params_.credential, params_.minor_version);
  c.add(nfs4::DestroySessionArgs{session});
  auto called = co_await call_unsequenced(c);
  if (!called) co_return called.error();
  nfs4::DestroySessionResult r;
  co_return take_result(c, r);
}

// It takes the server's memory as long as our client id lives. That it may be gone already is no news.
io::Task<void> Server::destroy_old_session(nfs4::SessionId session) {
  Background mark(*this);
  auto r = co_await destroy_session(session);
  if (!r) base::log(LogLevel::debug, "session", "the old session: %s", r.error().text().c_str());
}

// ---- end ----

void Server::wake_everybody() {
  slots_.end();
  std::lock_guard lock(mutex_);
  channel_waiters_.wake_all();
  recovery_waiters_.wake_all();
}

void Server::cut_off(const Error& why) {
  stopping_.store(true, std::memory_order_release);
  wake_everybody();
  auto shared = std::make_shared<Error>(why);
  for (auto& channel : channels_)
    channel->loop().post([c = channel.get(), shared] { c->cut_off(*shared); });
}

io::Task<void> Server::say_goodbye() {
  if (slots_.generation() > 0) {
    auto r = co_await destroy_session(session_id_);
    if (!r) base::log(LogLevel::debug, "session", "DESTROY_SESSION: %s", r.error().text().c_str());
  }
  std::array<std::byte, 256> storage;
  Compound c(storage, nfs4::Op::destroy_clientid, Repeat::freely, params_.credential, params_.minor_version);
  c.add(nfs4::DestroyClientidArgs{client_id()});
  auto r = co_await call_unsequenced(c);
  if (!r) base::log(LogLevel::debug, "session", "DESTROY_CLIENTID: %s", r.error().text().c_str());
}

io::Task<void> Server::stop() {
  stopping_.store(true, std::memory_order_release);
  home().cancel(lease_timer_);
  wake_everybody();
  // A server that does not answer goodbyes is not waited for.
  io::Timer impatience([this] { cut_off(Error(ETIMEDOUT, ErrorOrigin::connection, "no answer at shutdown")); });
  home().arm(impatience, home().now_ns() + goodbye_ns);
  if (choose_channel() && client_id() != 0) co_await say_goodbye();
  home().cancel(impatience);
  for (auto& channel : channels_) {
    co_await channel->loop().enter();
    co_await channel->close();
    co_await home().enter();
  }
  while (background_.load() != 0) co_await home().sleep_for(base::ms(1));
}

}  // namespace nfsrdma::session
