// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::server {
namespace {

TimeNs callback_answer_ns(TimeNs lease_ns) { return std::max(lease_ns / 10, base::seconds(1)); }

}  // namespace

NfsServer::NfsServer(base::Clock& clock, base::Random& random, Store& store, Recovery* recovery,
                     const ServerParams& params)
    : store_(store),
      recovery_(recovery),
      faults_(params.faults.any ? std::make_unique<ServerFaults>(params.faults) : nullptr),
      state_(clock, random, params.state),
      callbacks_(state_, callback_answer_ns(params.state.lease_ns)),
      context_{state_, store, clock, recovery, faults_.get()} {
  context_.lease_s = static_cast<uint32_t>(params.state.lease_ns / base::seconds(1));
  context_.data_bytes_max = params.data_bytes_max;
  context_.root_squash = params.root_squash;
  state_.set_callback_sender(&callbacks_);
  changes_ = store_.watch_changes([this](const ObjectRef& object) {
    [[maybe_unused]] Status recalled = state_.break_delegations(nullptr, object, true);
  });
  state_.set_change_source(changes_.get());
}

NfsServer::~NfsServer() { state_.set_callback_sender(nullptr); }

void NfsServer::on_connect(rpc::ServerConnection& connection) {
  base::log(base::LogLevel::info, "server", "connection %llu from %s",
            static_cast<unsigned long long>(connection.id()), connection.remote().c_str());
  auto made = std::make_shared<Connection>(connection, *io::IoLoop::current());
  std::lock_guard lock(connections_mutex_);
  connections_.emplace(connection.id(), std::move(made));
}

void NfsServer::on_disconnect(rpc::ServerConnection& connection) {
  ConnectionRef gone;
  {
    std::lock_guard lock(connections_mutex_);
    auto it = connections_.find(connection.id());
    if (it == connections_.end()) return;
    gone = std::move(it->second);
    connections_.erase(it);
  }
  gone->rpc = nullptr;
  state_.connection_gone(*gone);
  base::log(base::LogLevel::info, "server", "connection %llu ended", static_cast<unsigned long long>(gone->id));
}

ConnectionRef NfsServer::connection_of(rpc::ServerConnection& connection) {
  std::lock_guard lock(connections_mutex_);
  auto it = connections_.find(connection.id());
  return it == connections_.end() ? ConnectionRef() : it->second;
}

void NfsServer::on_call(std::unique_ptr<rpc::ServerCall> call) {
  const rpc::CallHeader& header = call->header;
  rpc::AcceptStatus refused = header.program != rpc::nfs_program       ? rpc::AcceptStatus::program_unavailable
                              : header.version != rpc::nfs_version     ? rpc::AcceptStatus::program_mismatch
                              : header.procedure > rpc::procedure_compound ? rpc::AcceptStatus::procedure_unavailable
                                                                           : rpc::AcceptStatus::success;
  if (refused != rpc::AcceptStatus::success || header.procedure == rpc::procedure_null) {
    call->reply(refused, 0);
    return;
  }
  ConnectionRef connection = connection_of(call->connection());
  if (!connection) return;
  under_way_.fetch_add(1, std::memory_order_relaxed);
  compounds_.fetch_add(1, std::memory_order_relaxed);
  io::spawn(serve(std::move(call), std::move(connection)));
}

io::Task<void> NfsServer::serve(std::unique_ptr<rpc::ServerCall> call, ConnectionRef connection) {
  co_await run_compound(context_, std::move(call), std::move(connection));
  if (faults_) misbehave();
  under_way_.fetch_sub(1, std::memory_order_release);
}

void NfsServer::misbehave() {
  if (faults_->changes_verifier()) store_.change_verifier();
  if (!faults_->restarts()) return;
  state_.restart();
  store_.change_verifier();
  std::lock_guard lock(connections_mutex_);
  for (const auto& [id, connection] : connections_) {
    connection->loop.post([connection = connection] {
      if (connection->rpc) connection->rpc->drop(Error(ECONNRESET, ErrorOrigin::local, "fault: restart"));
    });
  }
}

void NfsServer::start_housekeeping(io::IoLoop& loop) {
  loop_ = &loop;
  if (changes_) changes_->start(loop);
  timer_.set([this] { tick(); });
  loop.arm(timer_, loop.now_ns() + base::seconds(1));
}

void NfsServer::tick() {
  for (std::string& owner : state_.tick()) {
    if (recovery_ && !state_.is_recorded(owner)) io::spawn(recovery_->remove(std::move(owner)));
  }
  io::spawn(store_.tick());
  if (faults_ && !faults_->plan().callback.empty()) state_.call_everybody(faults_->callback_kind());
  loop_->arm(timer_, loop_->now_ns() + base::seconds(1));
}

io::Task<void> NfsServer::close() {
  if (loop_ && timer_.armed()) loop_->cancel(timer_);
  if (loop_ && changes_) changes_->stop();
  io::IoLoop& loop = *io::IoLoop::current();
  while (under_way_.load(std::memory_order_acquire) > 0) co_await loop.sleep_for(base::ms(1));
}

}  // namespace nfsrdma::server
