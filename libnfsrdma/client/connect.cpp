// SPDX-License-Identifier: Apache-2.0
// The mount's life, on the caller's thread: provider, device, loops, session, root; and all of it backwards.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/log.hpp"
#include "client/mount_impl.hpp"
#include "rdma/providers.hpp"

namespace nfsrdma {

using nfs4::Op;
using session::Repeat;
using session::SmallCompound;

namespace {

constexpr uint32_t reply_overhead_bytes = 512;    // of a READ or READDIR reply besides its payload
constexpr uint32_t request_overhead_bytes = 1024; // of a WRITE request, credential included
constexpr uint32_t spin_default_us = 20;

uint64_t micros(base::TimeNs ns) { return ns / 1000; }

std::string machine_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Credentials credentials_of(const Options& o) {
  Credentials process = Credentials::process();
  if (!o.have_uid && !o.have_gid) return process;
  return Credentials::sys(o.have_uid ? o.uid : process.uid(), o.have_gid ? o.gid : process.gid(), process.groups());
}

}  // namespace

Mount::Impl::Impl(const Options& options) : options_(options), default_credentials_(credentials_of(options)) {
  owner_seed_ = base::system_random().next();
  link_->impl = this;
}

Mount::Impl::~Impl() { tear_down(); }

Result<void> Mount::Impl::choose_provider() {
  if (provider_) return {};
  rdma::IwarpOptions iwarp;
  iwarp.crc = options_.crc;
  iwarp.fpdu_large = options_.fpdu_large;
  if (options_.provider == ProviderKind::iwarp) {
    provider_ = rdma::make_iwarp_provider(iwarp);
  } else {
#ifdef NFSRDMA_HAVE_VERBS
    rdma::VerbsOptions verbs;
    verbs.device_name = options_.rdma_device;
    verbs.memory_windows = options_.memory_windows;
    provider_ = rdma::make_verbs_provider(verbs);
#else
    return Error(ENOTSUP, ErrorOrigin::usage,
                 "provider=verbs: this build has no verbs provider; provider=iwarp reaches iWARP servers");
#endif
  }
#ifdef NFSRDMA_HAVE_HOOK
  if (options_.trace == "rdma") provider_ = rdma::make_trace_provider(provider_);
#endif
  return {};
}

Result<void> Mount::Impl::open_fabric(const session::StepObserver& observer) {
  base::TimeNs start = base::system_clock().now_ns();
  auto report = [&](const char* step, const Result<void>& r, const std::string& found) {
    base::TimeNs now = base::system_clock().now_ns();
    if (observer) observer(step, r.ok(), micros(now - start), r ? found : r.error().text());
    start = now;
    return r;
  };
  auto address = base::SocketAddress::resolve(options_.host, options_.effective_port());
  Result<void> named = address ? Result<void>{} : Result<void>{address.error()};
  if (!report("name", named, address ? address->text() : "")) return named;
  address_ = *address;
  auto chosen = choose_provider();
  if (!chosen) return report("route and device", chosen, "");
  rpcrdma::FabricParams p;
  p.remote = address_;
  p.device_name = options_.rdma_device;
  if (!options_.source_address.empty()) {
    auto local = base::SocketAddress::parse(options_.source_address, 0);
    if (!local) return report("route and device", local.error().in("source address"), "");
    p.local = *local;
  }
  p.credits = options_.credits;
  p.inline_bytes = options_.inline_bytes;
  p.timeout_ns = std::min(base::ms(options_.connect_timeout_ms), base::seconds(10));
  p.pool.bytes_max = options_.pool_bytes;
  p.pool.large_bytes = std::max({options_.rsize_bytes, options_.wsize_bytes, 1u << 20});
  auto fabric = rpcrdma::Fabric::open(provider_, p);
  Result<void> opened = fabric ? Result<void>{} : Result<void>{fabric.error()};
  if (!fabric && options_.provider == ProviderKind::automatic)
    opened = Error(fabric.error().errno_value(), fabric.error().origin(),
                   fabric.error().text() + "; without an RDMA device, provider=iwarp reaches iWARP servers (Linux siw, "
                                           "iWARP NICs, nfsrdma-serve) and must be chosen by name");
  if (!report("route and device", opened, fabric ? (*fabric)->describe() : "")) return opened;
  fabric_ = std::move(*fabric);
  return {};
}

void Mount::Impl::on_each_loop(const std::function<void(io::IoLoop&)>& f) {
  for (auto& thread : threads_) {
    client::WaitCell<void> cell;
    thread->loop().post([&] {
      f(thread->loop());
      std::lock_guard lock(cell.mutex);
      cell.result.emplace();
      cell.ready.notify_one();
    });
    std::unique_lock lock(cell.mutex);
    cell.ready.wait(lock, [&] { return cell.result.has_value(); });
  }
}

// As many loops as connections can use; one connection has one loop, since calls of another would change threads.
Result<void> Mount::Impl::start_loops() {
  uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  uint32_t n = options_.loops ? options_.loops : std::min(options_.nconnect, std::max(2u, cores));
  io::LoopParams p;
  p.spin_us = options_.spin_us >= 0 ? static_cast<uint32_t>(options_.spin_us) : n < cores ? spin_default_us : 0;
  for (uint32_t i = 0; i < n; i++) {
    p.name = "nfsrdma-io" + std::to_string(i);
    auto thread = io::IoThread::start(base::system_clock(), p);
    if (!thread) return thread.error();
    threads_.push_back(std::move(*thread));
    handles_.push_back(std::make_unique<client::LoopHandle>(threads_.back()->loop(), i));
    loop_list_.push_back(handles_.back().get());
  }
  Result<void> attached;
  on_each_loop([&](io::IoLoop& loop) {
    auto r = fabric_->attach(loop);
    if (!r) attached = r;
  });
  return attached;
}

session::ServerParams Mount::Impl::server_params() const {
  session::ServerParams p;
  p.nconnect = options_.nconnect;
  p.request_bytes_max = options_.wsize_bytes + 4096;
  p.response_bytes_max = options_.rsize_bytes + 4096;
  p.retrans = options_.retrans;
  p.soft = options_.retry_policy != RetryPolicy::hard;
  p.soft_errno = options_.retry_policy == RetryPolicy::softerr ? ETIMEDOUT : EIO;
  p.channel.answer_timeout_ns = base::ms(100) * std::max(1u, options_.timeo_ds);
  p.credential = default_credentials_.identity()->wire;
  p.auth = {machine_name(), default_credentials_.uid(), default_credentials_.gid()};
  return p;
}

Result<void> Mount::Impl::run_within(base::TimeNs limit_ns, Callback<Task<void>()> make) {
  client::WaitCell<void> cell;
  server_->home().post([&] {
    io::spawn(make(), [&](Result<void> r) {
      std::lock_guard lock(cell.mutex);
      cell.result.emplace(std::move(r));
      cell.ready.notify_one();
    });
  });
  std::unique_lock lock(cell.mutex);
  auto done = [&] { return cell.result.has_value(); };
  if (!cell.ready.wait_for(lock, std::chrono::nanoseconds(limit_ns), done)) {
    lock.unlock();
    server_->cut_off(Error(ETIMEDOUT, ErrorOrigin::connection,
                         base::text("the server at %s did not answer within %u ms", address_.text().c_str(),
                                    static_cast<unsigned>(limit_ns / 1'000'000))));
    lock.lock();
    cell.ready.wait(lock, done);
    if (!*cell.result)
      return Error(ETIMEDOUT, ErrorOrigin::connection,
                   base::text("no answer from %s within %u ms (%s)", address_.text().c_str(),
                              static_cast<unsigned>(limit_ns / 1'000'000), cell.result->error().text().c_str()));
  }
  return std::move(*cell.result);
}

Result<void> Mount::Impl::start_session(const session::StepObserver& observer, base::TimeNs limit_ns) {
  auto identity = session::ClientIdentity::make({options_.client_id, options_.state_dir}, base::system_random(),
                                                base::system_clock());
  if (!identity) return identity.error();
  std::vector<io::IoLoop*> loops;
  for (auto& thread : threads_) loops.push_back(&thread->loop());
  server_ = std::make_unique<session::Server>(loops, *this, std::move(*identity), server_params(),
                                              base::system_random());
  // We hold no delegations. While an OPEN is under way its grant may be on its way too: ask again.
  server_->callback_service().on_recall = [this](const nfs4::CbRecallArgs&) {
    return open_requests_.load() ? nfs4::Status::delay : nfs4::Status::bad_stateid;
  };
  base::TimeNs begin = base::system_clock().now_ns();
  auto started = run_within(limit_ns, [&]() -> Task<void> { return server_->start(observer); });
  if (!started) return started;
  begin = base::system_clock().now_ns();
  auto found = run_within(limit_ns, [this]() -> Task<void> { return find_root(); });
  if (observer)
    observer("root", found.ok(), micros(base::system_clock().now_ns() - begin),
             found ? base::text("%s, rsize %u, wsize %u, lease %u s", root_path_.c_str(), rsize_, wsize_, lease_s_)
                   : found.error().text());
  return found;
}

Result<void> Mount::Impl::connect(const session::StepObserver& observer) {
  if (options_.host.empty()) return Error(EINVAL, ErrorOrigin::usage, "no server is named");
  if (options_.protocol == Protocol::tcp)
    return Error(EPROTONOSUPPORT, ErrorOrigin::usage, "proto=tcp is not there yet; use proto=rdma");
  base::TimeNs limit_ns = base::ms(std::max(100u, options_.connect_timeout_ms));
  base::TimeNs begin = base::system_clock().now_ns();
  auto opened = open_fabric(observer);
  if (!opened) return opened;
  auto loops = start_loops();
  if (!loops) return loops;
  base::TimeNs used = base::system_clock().now_ns() - begin;
  auto started = start_session(observer, used < limit_ns ? limit_ns - used : base::ms(100));
  if (!started) return started.error();
  connected_at_ns_ = base::system_clock().now_ns();
  flush_timer_.set([this] { flush_due(base::system_clock().now_ns()); });
  server_->home().post([this] { flush_due(base::system_clock().now_ns()); });
  return {};
}

io::Task<Result<std::unique_ptr<rpc::Transport>>> Mount::Impl::connect(io::IoLoop& loop,
                                                                       rpc::TransportObserver& observer,
                                                                       rpc::ReverseHandler& reverse) {
  co_return co_await fabric_->connect(loop, observer, reverse);
}

// From the server's root along the export's path; symbolic links on it are followed by nobody.
io::Task<Result<void>> Mount::Impl::find_root() {
  SmallCompound c(Op::putrootfh, Repeat::freely, default_credentials_.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutrootfhArgs{});
  c.add(nfs4::GetfhArgs{});
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  if (!c.reader().next<nfs4::PutrootfhResult>()) co_return failure(c, "PUTROOTFH");
  auto entry = take_entry(c);
  if (!entry) co_return entry.error();
  std::string rest = options_.path, walked;
  while (!rest.empty()) {
    size_t slash = rest.find('/');
    std::string name = rest.substr(0, slash);
    rest = slash == rest.npos ? "" : rest.substr(slash + 1);
    if (name.empty() || name == ".") continue;
    Node directory = entry->node;
    entry = co_await lookup(directory, name, default_credentials_);
    walked += "/" + name;
    if (!entry) {
      const Error& e = entry.error();
      std::string advice = e.errno_value() == ENOENT ? "; is it exported, and spelt as the server names it?"
                           : e.errno_value() == EACCES || e.errno_value() == EPERM
                               ? "; the export does not allow this client or this user"
                               : "";
      co_return Error(e.errno_value(), e.origin(), "export " + walked + ": " + e.text() + advice, e.nfs_status());
    }
  }
  if (entry->attributes.type != NodeType::directory)
    co_return Error(ENOTDIR, ErrorOrigin::server, "export " + options_.path + " is not a directory");
  root_ = entry->node;
  root_path_ = walked.empty() ? "/" : walked;
  co_return co_await learn_limits(root_);
}

io::Task<Result<void>> Mount::Impl::learn_limits(Node root) {
  SmallCompound c(Op::getattr, Repeat::freely, default_credentials_.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{root.state()->handle});
  c.add(nfs4::GetattrArgs{nfs4::fsinfo_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::GetattrResult got;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(got)) co_return failure(c, "GETATTR");
  nfs4::Attributes a;
  if (nfs4::decode_fattr(got.attributes, a) == nfs4::FattrRead::malformed)
    co_return Error(EIO, ErrorOrigin::protocol, "the server's file system limits do not decode");
  session::ServerInfo info = server_->info();
  auto limit = [](uint32_t wanted, uint64_t server_max, uint32_t room, uint32_t overhead) {
    uint64_t most = room > overhead ? room - overhead : 1024;
    if (server_max) most = std::min(most, server_max);
    uint64_t size = std::min<uint64_t>(wanted, most);
    return static_cast<uint32_t>(size >= 4096 ? size / 4096 * 4096 : std::max<uint64_t>(size, 512));
  };
  rsize_ = limit(options_.rsize_bytes, a.maxread, info.response_bytes_max, reply_overhead_bytes);
  wsize_ = limit(options_.wsize_bytes, a.maxwrite, info.request_bytes_max, request_overhead_bytes);
  if (a.has(nfs4::attr::lease_time)) lease_s_ = std::clamp(a.lease_time_s, 1u, 3600u);
  if (a.has(nfs4::attr::maxname)) name_bytes_max_ = a.maxname;
  if (a.has(nfs4::attr::maxfilesize)) file_size_max_ = a.maxfilesize;
  exclusive_attributes_ = a.suppattr_exclcreat;
  server_->set_lease(lease_s_);
  co_return Result<void>{};
}

// Everything dirty is committed, then the session ends. What fails is told, but nothing is waited for without end.
Result<void> Mount::Impl::shut_down() {
  if (shut_down_ || !server_) return {};
  Result<void> result;
  base::TimeNs limit_ns = base::ms(std::max(1000u, options_.connect_timeout_ms));
  result = run_within(limit_ns, [this]() -> Task<void> { return drain(); });
  shut_down_ = true;
  {
    std::lock_guard lock(link_->mutex);
    link_->impl = nullptr;
  }
  tear_down();
  return result;
}

// Home loop: starts every commit that is due at any time, and waits for all background work.
io::Task<Result<void>> Mount::Impl::drain() {
  std::vector<std::shared_ptr<FileState>> files;
  {
    std::lock_guard lock(flush_mutex_);
    for (Flush& f : flush_queue_) files.push_back(f.file);
  }
  server_->home().cancel(flush_timer_);
  Result<void> result;
  for (auto& file : files) {
    co_await settle(file);
    auto reported = report_errors(*file);
    if (!reported) result = reported;
  }
  // With them go the files that only we kept open.
  files.clear();
  {
    std::vector<Flush> done;
    std::lock_guard lock(flush_mutex_);
    done.swap(flush_queue_);
  }
  // Commits that had begun may still need their files' open state.
  while (background_.load() != 0) co_await server_->home().sleep_for(base::ms(1));
  auto closed = co_await close_open_files();
  if (result && !closed) result = closed;
  while (background_.load() != 0) co_await server_->home().sleep_for(base::ms(1));
  co_return result;
}

// What the server still holds open for us keeps our client id alive there.
io::Task<Result<void>> Mount::Impl::close_open_files() {
  struct Held {
    nfs4::FileHandle handle;
    nfs4::Stateid stateid;
    Credentials who;
  };
  std::vector<Held> held;
  Result<void> result;
  {
    std::lock_guard lock(link_->mutex);
    for (FileState* file : link_->open_files) {
      auto reported = report_errors(*file);
      if (!reported) result = reported;
      std::lock_guard file_lock(file->mutex);
      if (!std::exchange(file->open, false) || file->lost || file->epoch != server_->state_epoch()) continue;
      held.push_back({file->node->handle, file->stateid, file->who});
    }
  }
  for (const Held& h : held) {
    auto closed = co_await send_close(h.handle, h.stateid, h.who);
    if (!closed) result = closed;
  }
  co_return result;
}

// After the last call: what could not be committed in time is lost, and whoever still asks hears of it.
void Mount::Impl::forget_dirty() {
  for (auto& node : nodes_->all()) {
    std::vector<client::DirtyExtent> dirty, committing;
    std::lock_guard lock(node->mutex);
    dirty.swap(node->dirty);
    committing.swap(node->committing);
    if (dirty.empty() && committing.empty()) continue;
    node->write_error = Error(EIO, ErrorOrigin::connection, "the mount ended before the data was on stable storage");
    node->write_error_count++;
  }
}

void Mount::Impl::tear_down() {
  {
    std::lock_guard lock(link_->mutex);
    link_->impl = nullptr;
  }
  shut_down_ = true;
  if (server_) {
    server_->home().post([this] { server_->home().cancel(flush_timer_); });
    (void)run_within(base::seconds(10), [this]() -> Task<void> {
      co_await server_->stop();
      co_return Result<void>{};
    });
  }
  for (auto& handle : handles_) handle->end();
  if (fabric_) on_each_loop([&](io::IoLoop& loop) { fabric_->detach(loop); });
  handles_.clear();
  loop_list_.clear();
  threads_.clear();
  flush_queue_.clear();
  forget_dirty();
  server_.reset();
  root_ = Node();
  fabric_.reset();
}

}  // namespace nfsrdma
