// SPDX-License-Identifier: Apache-2.0
// COMMIT: what was acknowledged as durable is on the server's stable storage. UNSTABLE data is kept until a COMMIT
// with the verifier of its WRITE; a server that restarted in between has another verifier and gets the data again.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "client/mount_impl.hpp"

namespace nfsrdma {

using client::DirtyExtent;
using nfs4::Op;
using nfs4::StableHow;
using session::Repeat;
using session::SmallCompound;

namespace {

constexpr base::TimeNs flush_age_ns = base::seconds(5);
constexpr base::TimeNs flush_tick_ns = base::seconds(1);
// A server that answers each COMMIT with a new verifier is asked to write through, which brings its error to light.
constexpr int unstable_rounds = 2, rounds_max = 4;

}  // namespace

// Half of the pool may lie under uncommitted data; above it commits start by themselves. A buffer counts whole: 64 KiB
// that arrived in a buffer of 1 MiB keep all of it from use.
uint64_t Mount::Impl::dirty_limit() const { return options_.pool_bytes / 2; }

void Mount::Impl::keep_dirty(const std::shared_ptr<FileState>& file, DirtyExtent extent) {
  NodeState& node = *file->node;
  extent.file = file;
  extent.held_bytes = extent.buffer ? extent.buffer.size() : extent.length;
  uint64_t total = dirty_bytes_.fetch_add(extent.held_bytes, std::memory_order_relaxed) + extent.held_bytes;
  bool queue = false, start_now = false;
  {
    std::lock_guard lock(node.mutex);
    node.dirty.push_back(std::move(extent));
    queue = !std::exchange(node.flush_queued, true);
    start_now = total > dirty_limit() && !node.syncing;
  }
  if (queue) {
    std::lock_guard lock(flush_mutex_);
    flush_queue_.push_back({file, io::IoLoop::current()->now_ns() + flush_age_ns});
  }
  if (start_now) io::spawn(commit_in_background(file));
}

// Any loop: starts the commits that are due by then.
void Mount::Impl::commit_due(base::TimeNs now_ns) {
  std::vector<Flush> due;
  {
    std::lock_guard lock(flush_mutex_);
    auto later = std::partition(flush_queue_.begin(), flush_queue_.end(), [&](Flush& f) { return f.due_ns > now_ns; });
    std::move(later, flush_queue_.end(), std::back_inserter(due));
    flush_queue_.erase(later, flush_queue_.end());
  }
  for (Flush& f : due) {
    {
      std::lock_guard lock(f.file->node->mutex);
      f.file->node->flush_queued = false;
    }
    io::spawn(commit_in_background(std::move(f.file)));
  }
}

// Home loop, once a second.
void Mount::Impl::flush_due(base::TimeNs now_ns) {
  commit_due(now_ns);
  if (!shut_down_) server_->home().arm(flush_timer_, server_->home().now_ns() + flush_tick_ns);
}

io::Task<void> Mount::Impl::commit_in_background(std::shared_ptr<FileState> file) {
  background_.fetch_add(1);
  // An error stays with the node: the next sync or close of every handle reports it.
  co_await settle(file);
  background_.fetch_sub(1);
}

namespace {

struct WaitSync : session::Waiter {
  client::NodeState& node;
  explicit WaitSync(client::NodeState& n) : node(n) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> h) {
    std::lock_guard lock(node.mutex);
    if (!node.syncing) return false;
    park(h);
    node.sync_waiters.push_back(*this);
    return true;
  }
  void await_resume() const noexcept {}
};

}  // namespace

// Commits all that is dirty now. One at a time per file: what is written meanwhile waits for the next.
io::Task<void> Mount::Impl::settle(std::shared_ptr<FileState> file) {
  NodeState& node = *file->node;
  for (;;) {
    bool mine = false;
    {
      std::lock_guard lock(node.mutex);
      if (!node.syncing) {
        if (node.dirty.empty()) co_return;
        // Both keep the larger capacity, so that a steady writer finds room in either.
        node.committing.reserve(node.dirty.capacity());
        node.committing.swap(node.dirty);
        node.syncing = mine = true;
      }
    }
    if (mine) break;
    co_await WaitSync(node);
  }
  uint64_t bytes_taken = 0;
  for (const DirtyExtent& e : node.committing) bytes_taken += e.held_bytes;
  auto done = co_await write_back(node, *file);
  dirty_bytes_.fetch_sub(bytes_taken, std::memory_order_relaxed);
  // The buffers go back before anybody is told; their files' last handles may close here.
  node.committing.clear();
  std::lock_guard lock(node.mutex);
  node.syncing = false;
  if (!done) {
    node.write_error = done.error();
    node.write_error_count++;
  }
  node.sync_waiters.wake_all();
}

// Until every extent of node.committing is on stable storage, or an error says which cannot be. Either way they are
// done with: the error reaches the writers.
io::Task<Result<void>> Mount::Impl::write_back(NodeState& node, const FileState& file) {
  for (int round = 0; round < rounds_max; round++) {
    auto verifier = co_await commit(node.handle, file.who);
    if (!verifier) co_return verifier.error();
    std::erase_if(node.committing, [&](const DirtyExtent& e) { return e.verifier == *verifier && !e.mixed; });
    if (node.committing.empty()) co_return Result<void>{};
    base::log(base::LogLevel::warn, "client", "the server's write verifier changed: %zu pieces are sent again",
              node.committing.size());
    StableHow how = round < unstable_rounds ? StableHow::unstable : StableHow::file_sync;
    for (DirtyExtent& e : node.committing) {
      for (uint32_t sent = 0; sent < e.length;) {
        rdma::Sge rest{e.source.region, e.source.offset + sent, e.length - sent};
        auto written = co_await write_piece(*e.file, e.offset + sent, rest, how);
        if (!written) co_return written.error();
        // A restart between two parts has lost the first: the next round sends both again.
        e.mixed = sent != 0 && (e.mixed || e.verifier != written->verifier);
        e.verifier = written->verifier;
        sent += written->count;
        bytes.commits_resent.fetch_add(1, std::memory_order_relaxed);
      }
    }
    if (how == StableHow::file_sync) {
      node.committing.clear();
      co_return Result<void>{};
    }
  }
  co_return Error(EIO, ErrorOrigin::server, "the server's write verifier keeps changing: it cannot store the data");
}

io::Task<Result<nfs4::Verifier>> Mount::Impl::commit(const nfs4::FileHandle& handle, const Credentials& who) {
  SmallCompound c(Op::commit, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle});
  c.add(nfs4::CommitArgs{0, 0});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::CommitResult committed;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(committed)) co_return failure(c, "COMMIT");
  co_return committed.verifier;
}

// Each handle hears of each failed write-back once.
Result<void> Mount::Impl::report_errors(FileState& file) {
  std::lock_guard lock(file.node->mutex);
  if (!file.node->write_error || file.errors_seen == file.node->write_error_count) return {};
  file.errors_seen = file.node->write_error_count;
  return *file.node->write_error;
}

io::Task<Result<void>> Mount::Impl::sync(File handle) {
  std::shared_ptr<FileState> file = handle.state();
  if (!file || !file->node) co_return Error(EBADF, ErrorOrigin::usage, "no open file");
  co_await settle(file);
  co_return report_errors(*file);
}

}  // namespace nfsrdma
