// SPDX-License-Identifier: Apache-2.0
// The client behind class Mount. Every operation is a coroutine that starts and ends on one loop; mount.cpp turns the
// public forms into these. Owner of threads, fabric, session and node table.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/attributes.hpp"
#include "client/buffer_state.hpp"
#include "client/loop_handle.hpp"
#include "client/node_state.hpp"
#include "io/sync.hpp"
#include "io/task.hpp"
#include "nfs4/op_table.hpp"
#include "nfsrdma/mount.hpp"
#include "rpcrdma/factory.hpp"
#include "session/errors.hpp"
#include "session/server.hpp"

namespace nfsrdma {

class Mount::Impl final : public session::Connector {
 public:
  template <class T>
  using Task = io::Task<Result<T>>;
  using NodeTable = client::NodeTable;
  using NodeState = client::NodeState;
  using FileState = client::FileState;

  explicit Impl(const Options& options);
  ~Impl() override;
  // Before connect(), for tests: goes through this provider whatever the options say.
  void use_provider(std::shared_ptr<rdma::Provider> provider) { provider_ = std::move(provider); }

  // ---- connect.cpp: control thread ----
  Result<void> connect(const session::StepObserver& observer);
  Result<void> shut_down();

  // ---- running operations ----
  // Starts make() (a callable giving Task<T>) on the calling loop, or else on a loop of ours.
  template <class T, class Make>
  void start(Make make, Done<T> done);
  template <class T, class Make>
  Result<T> wait(Make make);
  io::IoLoop& some_loop();
  bool on_own_loop() const;
  static Error after_the_end() { return Error(ESHUTDOWN, ErrorOrigin::usage, "the mount was shut down"); }

  // ---- names.cpp ----
  Task<Entry> resolve(std::string path, bool follow, Credentials who);
  Task<Entry> lookup(Node directory, std::string name, Credentials who);
  Task<Entry> lookup_parent(Node directory, Credentials who);
  Task<std::string> read_link(Node link, Credentials who);
  Task<Entry> make(Node directory, std::string name, nfs4::FileType type, uint32_t mode, nfs4::Device device,
                   std::string target, Credentials who);
  Task<Entry> make_link(Node file, Node directory, std::string name, Credentials who);
  Task<void> remove(Node directory, std::string name, Credentials who);
  Task<void> rename(Node from_directory, std::string from_name, Node to_directory, std::string to_name,
                    Credentials who);
  // ---- directory.cpp ----
  Task<DirectoryPage> read_directory(Node directory, uint64_t cookie, uint64_t verifier, uint32_t bytes_max,
                                     bool with_attributes, Credentials who);
  // ---- attribute_calls.cpp ----
  Task<Attributes> get_attributes(Node node, Credentials who);
  Task<Attributes> set_attributes(Node node, nfs4::Stateid stateid, AttributeChange change, Credentials who);
  Task<Attributes> set_attributes_open(File file, AttributeChange change, Credentials who);
  Task<uint32_t> access(Node node, uint32_t wanted, Credentials who);
  Task<FileSystemStats> file_system_stats(Node node, Credentials who);
  // ---- open.cpp ----
  Task<Opened> open(Node file, uint32_t open_flags, Credentials who);
  Task<Opened> create(Node directory, std::string name, uint32_t open_flags, uint32_t mode, Credentials who);
  Task<void> close(File file);
  void close_abandoned(FileState& file);
  // ---- read.cpp ----
  Task<ReadResult> read(File file, uint64_t offset, Slice into);
  Task<ReadResult> read_copied(File file, uint64_t offset, std::span<std::byte> into);
  // ---- write.cpp ----
  Task<size_t> write(File file, uint64_t offset, Slice from, mem::Buffer owned, Stability stability);
  Task<size_t> write_copied(File file, uint64_t offset, std::span<const std::byte> from, Stability stability);
  // ---- commit.cpp ----
  Task<void> sync(File file);

  // ---- shared by them ----
  session::Server& server() { return *server_; }
  mem::BufferPool& pool() { return fabric_->pool(); }
  rpcrdma::Fabric& fabric() { return *fabric_; }
  NodeTable& nodes() { return *nodes_; }
  const Options& options() const { return options_; }
  const Node& root() const { return root_; }
  uint32_t rsize() const { return rsize_; }
  uint32_t wsize() const { return wsize_; }
  const Credentials& default_credentials() const { return default_credentials_; }
  const std::vector<Loop*>& loops() const { return loop_list_; }
  MountInfo info();
  Stats stats();
  Task<Stats> collect_stats();

  struct ByteCounters {
    std::atomic<uint64_t> read{0}, written{0}, direct_read{0}, direct_written{0}, bounced{0}, commits_resent{0};
  };
  ByteCounters bytes;

 private:
  struct Piece;  // one READ or WRITE of a split transfer
  struct Transfer;

  io::Task<Result<std::unique_ptr<rpc::Transport>>> connect(io::IoLoop& loop, rpc::TransportObserver& observer,
                                                            rpc::ReverseHandler& reverse) override;
  Result<void> choose_provider();
  Result<void> open_fabric(const session::StepObserver& observer);
  Result<void> start_loops();
  Result<void> start_session(const session::StepObserver& observer, base::TimeNs limit_ns);
  session::ServerParams server_params() const;
  Task<void> find_root();
  Task<void> learn_limits(Node root);
  Task<void> drain();
  // Runs make() on the home loop; when limit_ns have passed the session is aborted, and so ends make().
  Result<void> run_within(base::TimeNs limit_ns, Callback<Task<void>()> make);
  void on_each_loop(const std::function<void(io::IoLoop&)>& f);
  void tear_down();

  // What follows a successful SEQUENCE and PUTFH...: GETFH and GETATTR as an Entry.
  Result<Entry> take_entry(session::Compound& c);
  Task<Entry> finish_entry(session::Compound& c, nfs4::FileHandle handle, Credentials who);
  Task<Entry> get_entry(nfs4::FileHandle handle, Credentials who);
  Task<Entry> set_entry(nfs4::FileHandle handle, nfs4::Stateid stateid, AttributeChange change, Credentials who);
  // Of a Node that is none: an empty handle, which every server refuses (ESTALE).
  static const nfs4::FileHandle& handle_of(const Node& node);
  Result<Entry> entry_of(const nfs4::FileHandle& handle, const nfs4::Fattr& fattr);
  Error failure(session::Compound& c, const char* what);
  // Seals, runs, and consumes the leading PUTFH result(s).
  Task<void> run(session::Compound& c);

  Task<Opened> run_open(session::Compound& c, std::shared_ptr<FileState> file, std::optional<AttributeChange> after);
  Task<Entry> finish_open(session::Compound& c, nfs4::FileHandle handle, const FileState& file,
                          std::optional<AttributeChange> after);
  std::shared_ptr<FileState> new_file(const std::shared_ptr<NodeState>& node, uint32_t open_flags,
                                      const Credentials& who);
  nfs4::OpenArgs open_args(const FileState& file, std::array<std::byte, 16>& owner);
  io::Task<void> return_delegation(nfs4::FileHandle handle, nfs4::Stateid stateid);
  io::Task<void> close_in_background(nfs4::FileHandle handle, nfs4::Stateid stateid, Credentials who);
  Task<void> send_close(const nfs4::FileHandle& handle, const nfs4::Stateid& stateid, const Credentials& who);
  Result<nfs4::Stateid> stateid_for_io(FileState& file);
  Error state_lost(FileState& file, nfs4::Status status);

  Task<ReadResult> read_piece(std::shared_ptr<FileState> file, uint64_t offset, Slice into);
  io::Task<void> read_part(Transfer& t, size_t at, size_t length);
  Task<nfs4::WriteResult> write_piece(FileState& file, uint64_t offset, rdma::Sge from, nfs4::StableHow stable);
  io::Task<void> write_part(Transfer& t, size_t at, size_t length);
  Task<nfs4::Verifier> commit(const nfs4::FileHandle& handle, const Credentials& who);
  Task<void> write_back(NodeState& node, const FileState& file);
  void keep_dirty(const std::shared_ptr<FileState>& file, client::DirtyExtent extent);
  io::Task<void> settle(std::shared_ptr<FileState> file);
  io::Task<void> commit_in_background(std::shared_ptr<FileState> file);
  void commit_due(base::TimeNs now_ns);
  void flush_due(base::TimeNs now_ns);
  Task<void> close_open_files();
  void forget_dirty();
  Result<void> report_errors(FileState& file);
  io::Task<mem::Buffer> borrow(uint32_t bytes, const std::shared_ptr<FileState>& file);
  uint64_t dirty_limit() const;

  Options options_;
  Credentials default_credentials_;
  std::shared_ptr<rdma::Provider> provider_;
  base::SocketAddress address_;
  std::vector<std::unique_ptr<io::IoThread>> threads_;
  std::vector<std::unique_ptr<client::LoopHandle>> handles_;
  std::vector<Loop*> loop_list_;
  std::atomic<uint32_t> next_loop_{0};
  std::unique_ptr<rpcrdma::Fabric> fabric_;
  std::unique_ptr<session::Server> server_;
  std::shared_ptr<NodeTable> nodes_ = std::make_shared<NodeTable>();
  std::shared_ptr<client::MountLink> link_ = std::make_shared<client::MountLink>();
  Node root_;
  std::string root_path_;
  uint32_t rsize_ = 0, wsize_ = 0;
  uint32_t lease_s_ = 90;
  uint32_t name_bytes_max_ = 255;
  uint64_t file_size_max_ = ~uint64_t{0} >> 1;
  nfs4::Bitmap exclusive_attributes_;
  uint64_t owner_seed_ = 0;
  std::atomic<uint64_t> next_owner_{1};
  std::atomic<uint64_t> open_requests_{0};  // OPENs under way, for recalls that overtake their grant
  std::atomic<uint32_t> background_{0};
  std::atomic<uint64_t> dirty_bytes_{0};
  struct Flush {
    std::shared_ptr<FileState> file;
    base::TimeNs due_ns;
  };
  std::mutex flush_mutex_;
  std::vector<Flush> flush_queue_;          // guarded by flush_mutex_
  io::Timer flush_timer_;                   // home loop
  base::TimeNs connected_at_ns_ = 0;
  std::atomic<bool> shut_down_{false};
};

namespace client {

// A block for what start() carries to another thread; blocks are kept, so that steady traffic allocates nothing.
void* box_allocate(size_t bytes);
void box_free(void* block, size_t bytes) noexcept;

template <class T>
struct WaitCell {
  std::mutex mutex;
  std::condition_variable ready;
  std::optional<Result<T>> result;
};

}  // namespace client

template <class T, class Make>
void Mount::Impl::start(Make make, Done<T> done) {
  if (shut_down_) return done(after_the_end());
  if (on_own_loop()) {
    io::spawn(make(), [d = std::move(done)](Result<T> r) mutable { d(std::move(r)); });
    return;
  }
  struct Box {
    Make make;
    Done<T> done;
    static void* operator new(size_t bytes) { return client::box_allocate(bytes); }
    static void operator delete(void* p, size_t bytes) noexcept { client::box_free(p, bytes); }
  };
  Box* box = new Box{std::move(make), std::move(done)};
  some_loop().post([box] {
    std::unique_ptr<Box> owned(box);
    io::spawn(owned->make(), [d = std::move(owned->done)](Result<T> r) mutable { d(std::move(r)); });
  });
}

template <class T, class Make>
Result<T> Mount::Impl::wait(Make make) {
  if (io::IoLoop::current())
    return Error(EDEADLK, ErrorOrigin::usage, "a blocking call on a loop thread would wait for itself");
  if (shut_down_) return after_the_end();
  // All of it on this stack: the caller does not leave before the result is there.
  struct Call {
    Make make;
    client::WaitCell<T> cell;
  } call{std::move(make), {}};
  some_loop().post([&call] {
    io::spawn(call.make(), [&call](Result<T> r) {
      std::lock_guard lock(call.cell.mutex);
      call.cell.result.emplace(std::move(r));
      call.cell.ready.notify_one();
    });
  });
  std::unique_lock lock(call.cell.mutex);
  call.cell.ready.wait(lock, [&] { return call.cell.result.has_value(); });
  return std::move(*call.cell.result);
}

}  // namespace nfsrdma
