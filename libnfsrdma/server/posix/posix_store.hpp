// SPDX-License-Identifier: Apache-2.0
// A Store over a directory of this machine.
//
// What keeps it inside that directory: every object is a descriptor (O_PATH) that was opened one component at a time
// beneath another such descriptor without following any link, or by a signed handle; and each was asked for its place
// (ExportRoot::where) after it was opened and before anybody got it. Renames by others cannot make a component lead
// elsewhere, since nothing is ever opened by a path of several components.
//
// Threads: a call first tries what cannot block on the caller's thread (cached look-ups, attributes of open inodes,
// data in the page cache) when the file system is local, and goes to a worker otherwise.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string>

#include "server/posix/export_root.hpp"
#include "server/posix/handles.hpp"
#include "server/posix/object_cache.hpp"
#include "server/store.hpp"
#include "server/workers.hpp"

namespace nfsrdma::server {

struct PosixParams {
  std::string directory;
  std::string state_dir;     // "" = none
  SipKey handle_key;         // the same after a restart, where handles shall survive one
  bool read_only = false;
  bool async = false;        // names and attributes are answered before they are on stable storage
  uint32_t worker_threads = 4;
  uint32_t objects_max = 0;  // descriptors kept open; 0 = as the process's limit allows
  uint64_t boot_verifier = 0;
};

class PosixStore final : public Store {
 public:
  // One line of text on failure. Notices (handles that will not survive, no identity switch) are logged.
  static Result<std::unique_ptr<PosixStore>> open(const PosixParams& params);
  ~PosixStore() override;

  ObjectRef root() override { return root_object_; }
  ObjectRef find(const FileHandle& handle) override { return objects_.find(handle); }
  io::Task<Answer<ObjectRef>> resolve(const FileHandle& handle) override;
  io::Task<Answer<ObjectRef>> lookup(const Caller& caller, const ObjectRef& dir, std::string_view name) override;
  io::Task<Answer<ObjectRef>> parent(const Caller& caller, const ObjectRef& dir) override;
  io::Task<Answer<ObjectAttributes>> attributes(const ObjectRef& object) override;
  io::Task<Answer<FilesystemAttributes>> filesystem(const ObjectRef& object) override;
  io::Task<Answer<uint32_t>> access(const Caller& caller, const ObjectRef& object, uint32_t wanted) override;
  io::Task<Answer<std::string>> readlink(const Caller& caller, const ObjectRef& object) override;
  io::Task<Answer<DirDone>> readdir(const Caller& caller, const ObjectRef& dir, uint64_t cookie, bool with_attributes,
                                    DirSink& sink) override;
  io::Task<Answer<OpenFileRef>> open(const Caller& caller, const ObjectRef& object, bool read, bool write,
                                     bool owner_override) override;
  io::Task<Answer<Created>> create_file(const Caller& caller, const ObjectRef& dir, std::string_view name,
                                        const CreateFile& how) override;
  io::Task<Answer<Created>> create_special(const Caller& caller, const ObjectRef& dir, std::string_view name,
                                           const CreateSpecial& what) override;
  io::Task<Answer<ChangeInfo>> remove(const Caller& caller, const ObjectRef& dir, std::string_view name) override;
  io::Task<Answer<RenameDone>> rename(const Caller& caller, const ObjectRef& from_dir, std::string_view from,
                                      const ObjectRef& to_dir, std::string_view to) override;
  io::Task<Answer<ChangeInfo>> link(const Caller& caller, const ObjectRef& object, const ObjectRef& dir,
                                    std::string_view name) override;
  io::Task<SetDone> set_attributes(const Caller& caller, const ObjectRef& object, const SetAttributes& what,
                                   const OpenFileRef& file) override;
  io::Task<Answer<ReadData>> read(const OpenFileRef& file, uint64_t offset, uint32_t count,
                                  const ReadPlace& place) override;
  io::Task<Answer<WriteDone>> write(const Caller& caller, const OpenFileRef& file, uint64_t offset,
                                    std::span<const ByteView> pieces, nfs4::StableHow stable) override;
  io::Task<Answer<Nothing>> commit(const Caller& caller, const ObjectRef& object) override;
  Verifier write_verifier() override;
  void change_verifier() override { verifier_.fetch_add(1, std::memory_order_acq_rel); }
  std::unique_ptr<ChangeSource> watch_changes(std::function<void(const ObjectRef&)> changed) override;
  io::Task<void> tick() override;

 private:
  enum class Pace { nowait, blocking };
  static constexpr Status would_block = static_cast<Status>(UINT32_MAX);

  PosixStore(const PosixParams& params, ExportRoot root);
  Result<void> start();
  Result<void> make_handles();

  // Runs f(Pace) here when it can be done without waiting, else on a worker.
  template <class F>
  auto run(F f) -> io::Task<std::invoke_result_t<F&, Pace>> {
    if (quick_ && !WorkerPool::on_worker()) {
      auto answer = f(Pace::nowait);
      if (answer.status != would_block) co_return answer;
    }
    co_await workers_.enter();
    co_return f(Pace::blocking);
  }
  // The same for what always may block.
  template <class F>
  auto run_blocking(F f) -> io::Task<std::invoke_result_t<F&>> {
    co_await workers_.enter();
    co_return f();
  }

  // A component of dir, with open_how's resolve bits that keep it there. Errors as errno in the status.
  Answer<Fd> open_beneath(const Caller& caller, PosixObject& dir, const char* name, int flags, mode_t mode, Pace pace);
  Answer<ObjectRef> object_for(Fd fd, const FileHandle& parent, std::string_view name);
  Answer<ObjectRef> do_resolve(const FileHandle& handle);
  Answer<ObjectRef> do_lookup(const Caller& caller, PosixObject& dir, std::string_view name, Pace pace);
  Answer<ObjectRef> do_parent(const Caller& caller, PosixObject& dir);
  Answer<ObjectAttributes> do_attributes(PosixObject& object);
  Answer<uint32_t> do_access(const Caller& caller, PosixObject& object, uint32_t wanted);
  Answer<Fd> reopen(const Caller& caller, PosixObject& object, int flags, bool owner_override);
  Answer<OpenFileRef> do_open(const Caller& caller, const PosixObjectRef& object, bool read, bool write,
                              bool owner_override);
  Answer<Created> do_create_file(const Caller& caller, PosixObject& dir, std::string_view name, const CreateFile& how);
  Answer<Created> found_existing(const Caller& caller, PosixObject& dir, std::string_view name, const CreateFile& how);
  Answer<Created> finish_file(const Caller& caller, PosixObject& dir, std::string_view name, Fd fd,
                              const CreateFile& how);
  Status check_directory(PosixObject& dir, bool changes);
  void make_stable(PosixObject& dir);
  template <class Change>
  Answer<ChangeInfo> change_directory(const Caller& caller, PosixObject& dir, Change change);
  PosixObjectRef about_to_go(const Caller& caller, PosixObject& dir, std::string_view name);
  void gone(const PosixObjectRef& object);
  Answer<Created> do_create_special(const Caller& caller, PosixObject& dir, std::string_view name,
                                    const CreateSpecial& what);
  Answer<ChangeInfo> do_remove(const Caller& caller, PosixObject& dir, std::string_view name);
  Answer<RenameDone> do_rename(const Caller& caller, PosixObject& from_dir, std::string_view from,
                               PosixObject& to_dir, std::string_view to);
  Answer<ChangeInfo> do_link(const Caller& caller, PosixObject& object, PosixObject& dir, std::string_view name);
  SetDone do_set(const Caller& caller, PosixObject& object, const SetAttributes& what, PosixFile* file);
  Status set_size(const Caller& caller, PosixObject& object, uint64_t size_bytes, PosixFile* file);
  bool read_small(PosixFile& file, uint64_t offset, uint32_t count, ReadData& data);
  bool read_in_place(PosixFile& file, uint64_t offset, uint32_t want, rdma::ProtectionDomain& pd, ReadData& data);
  Status do_read(PosixFile& file, uint64_t offset, uint32_t want, ReadData& data, Pace pace);
  Answer<WriteDone> do_write(const Caller& caller, PosixFile& file, uint64_t offset,
                             std::span<const ByteView> pieces, nfs4::StableHow stable);
  void lost_data(int failed);
  Answer<Nothing> do_commit(const Caller& caller, const PosixObjectRef& object);
  Answer<DirDone> do_readdir(const Caller& caller, PosixObject& dir, uint64_t cookie, bool with_attributes,
                             DirSink& sink);
  Status give_entry(const Caller& caller, PosixObject& dir, std::string_view name, uint64_t cookie,
                    bool with_attributes, DirSink& sink, bool& taken);
  Answer<std::unique_ptr<DirStream>> dir_stream(const Caller& caller, PosixObject& dir, uint64_t cookie);
  void keep_stream(PosixObject& dir, std::unique_ptr<DirStream> stream);

  ObjectAttributes attributes_of(PosixObject& object, const struct statx& st);
  uint64_t change_of(PosixObject& dir);
  // "123" for /proc/self/fd, as the first argument of *at calls with proc_fd().
  struct ProcName {
    char text[16];
    explicit ProcName(int fd);
  };

  PosixParams params_;
  ExportRoot root_;
  std::unique_ptr<HandleMaker> handles_;
  ObjectCache objects_;
  ObjectRef root_object_;
  nfs4::Fsid fsid_;
  bool quick_ = false;        // local file system: cached metadata never blocks
  bool in_memory_ = false;    // tmpfs: data never blocks either
  std::atomic<uint64_t> verifier_;
  WorkerPool workers_;        // last: its threads use everything above
};

}  // namespace nfsrdma::server
