// SPDX-License-Identifier: Apache-2.0
#include "server/posix/posix_store.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "server/posix/local_changes.hpp"
#include "server/posix/names.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t idle_seconds = 10;

uint32_t objects_by_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<uint32_t>(std::clamp<rlim_t>(limit.rlim_cur / 2, 64, 65536));
}

// Kinds of file systems whose cached metadata and open inodes are in this machine's memory.
bool is_local(long magic) {
  constexpr long xfs = 0x58465342, btrfs = 0x9123683e, f2fs = 0xf2f52010, zfs = 0x2fc12fc1;
  return magic == EXT4_SUPER_MAGIC || magic == xfs || magic == btrfs || magic == TMPFS_MAGIC || magic == RAMFS_MAGIC ||
         magic == OVERLAYFS_SUPER_MAGIC || magic == f2fs || magic == zfs;
}

FileType type_of_mode(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return FileType::directory;
    case S_IFLNK: return FileType::symlink;
    case S_IFBLK: return FileType::block;
    case S_IFCHR: return FileType::character;
    case S_IFSOCK: return FileType::socket;
    case S_IFIFO: return FileType::fifo;
    default: return FileType::regular;
  }
}

Time time_of(const statx_timestamp& t) { return {t.tv_sec, t.tv_nsec}; }

uint64_t nanoseconds_of(const statx_timestamp& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + t.tv_nsec;
}

}  // namespace

PosixStore::ProcName::ProcName(int fd) { std::snprintf(text, sizeof text, "%d", fd); }

PosixStore::PosixStore(const PosixParams& params, ExportRoot root)
    : params_(params),
      root_(std::move(root)),
      objects_(params.objects_max ? params.objects_max : objects_by_limit()),
      verifier_(params.boot_verifier),
      workers_(std::max(1u, params.worker_threads)) {}

PosixStore::~PosixStore() { root_object_.reset(); }

Result<std::unique_ptr<PosixStore>> PosixStore::open(const PosixParams& params) {
  auto root = ExportRoot::open(params.directory);
  if (!root) return root.error();
  std::unique_ptr<PosixStore> store(new PosixStore(params, std::move(*root)));
  if (auto started = store->start(); !started) return started.error();
  return store;
}

Result<void> PosixStore::start() {
  if (auto usable = workers_.usable(); !usable) return usable;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_CACHED;
  Fd probe(static_cast<int>(syscall(SYS_openat2, root_.fd(), ".", &how, sizeof how)));
  if (!probe && errno != EAGAIN) {
    return Error(errno, ErrorOrigin::local, "this kernel is too old: openat2 with RESOLVE_CACHED (Linux 5.12) is needed");
  }
  struct statfs fs {};
  if (fstatfs(root_.fd(), &fs) != 0) {
    return Error(errno, ErrorOrigin::local, params_.directory + ": " + std::strerror(errno));
  }
  quick_ = is_local(fs.f_type);
  in_memory_ = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
  std::memcpy(&fsid_.major, &fs.f_fsid, sizeof fsid_.major);
  fsid_.minor = 1;  // never 0:0, which clients take for a server's pseudo root
  if (auto made = make_handles(); !made) return made;
  Fd fd(openat(root_.fd(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  Answer<ObjectRef> object = object_for(std::move(fd), {}, {});
  if (!object.ok()) return Error(EIO, ErrorOrigin::local, params_.directory + " has no file handle");
  root_object_ = *object;
  return {};
}

Result<void> PosixStore::make_handles() {
  auto kernel = make_kernel_handles(root_, params_.handle_key);
  if (kernel) {
    handles_ = std::move(*kernel);
    return {};
  }
  auto index = make_index_handles(root_, params_.handle_key, params_.state_dir);
  if (!index) return index.error();
  base::log(base::LogLevel::info, "server", "file handles come from an index (%s)%s", kernel.error().text().c_str(),
            params_.state_dir.empty() ? ": without a state directory clients find theirs stale after a restart" : "");
  handles_ = std::move(*index);
  return {};
}

Verifier PosixStore::write_verifier() {
  uint64_t value = verifier_.load(std::memory_order_acquire);
  Verifier out;
  std::memcpy(out.data(), &value, out.size());
  return out;
}

std::unique_ptr<ChangeSource> PosixStore::watch_changes(std::function<void(const ObjectRef&)> changed) {
  return std::make_unique<LocalChanges>(std::move(changed));
}

io::Task<void> PosixStore::tick() {
  co_await workers_.enter();
  objects_.tick(idle_seconds);
}

Answer<Fd> PosixStore::open_beneath(const Caller& caller, PosixObject& dir, const char* name, int flags, mode_t mode,
                                    Pace pace) {
  IdentityScope identity(caller);
  if (!identity.ok()) return Status::perm;
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  if (pace == Pace::nowait) how.resolve |= RESOLVE_CACHED;
  Fd fd(static_cast<int>(syscall(SYS_openat2, dir.path_fd.get(), name, &how, sizeof how)));
  if (fd) return fd;
  if (errno == EAGAIN && pace == Pace::nowait) return would_block;
  // A mount point lies beneath but is not exported.
  if (errno == EXDEV) return Status::access;
  return status_of_errno(errno);
}

Answer<ObjectRef> PosixStore::object_for(Fd fd, const FileHandle& parent, std::string_view name) {
  struct statx st {};
  if (statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0) return status_of_errno(errno);
  Answer<FileHandle> handle = handles_->make(fd.get(), st, parent, name);
  if (!handle.ok()) return handle.status;
  return ObjectRef(objects_.insert(*handle, type_of_mode(st.stx_mode), std::move(fd), st.stx_ino));
}

io::Task<Answer<ObjectRef>> PosixStore::resolve(const FileHandle& handle) {
  return run_blocking([this, &handle] { return do_resolve(handle); });
}

Answer<ObjectRef> PosixStore::do_resolve(const FileHandle& handle) {
  if (PosixObjectRef known = objects_.find(handle)) return ObjectRef(known);
  IdentityScope::assume_own();
  Answer<Fd> fd = handles_->open(handle);
  if (!fd.ok()) return fd.status;
  struct statx st {};
  if (statx(fd->get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) != 0) return status_of_errno(errno);
  // A directory always has a path. Of a file that was never looked up the kernel may know none: then the signature
  // is what shows that it lay beneath when its handle was made.
  bool inside = S_ISDIR(st.stx_mode) ? root_.holds_directory(fd->get())
                                     : root_.where(fd->get()) != ExportRoot::Where::outside;
  if (!inside || st.stx_nlink == 0) return Status::stale;
  return ObjectRef(objects_.insert(handle, type_of_mode(st.stx_mode), std::move(*fd), st.stx_ino));
}

io::Task<Answer<ObjectRef>> PosixStore::lookup(const Caller& caller, const ObjectRef& dir, std::string_view name) {
  return run([this, &caller, &dir, name](Pace pace) { return do_lookup(caller, posix(dir), name, pace); });
}

Answer<ObjectRef> PosixStore::do_lookup(const Caller& caller, PosixObject& dir, std::string_view name, Pace pace) {
  if (dir.type() == FileType::symlink) return Status::symlink;
  if (dir.type() != FileType::directory) return Status::notdir;
  Answer<Fd> fd = open_beneath(caller, dir, CName(name).get(), O_PATH, 0, pace);
  if (!fd.ok()) return fd.status;
  ExportRoot::Where at = root_.where(fd->get());
  if (at == ExportRoot::Where::unknown) {
    if (pace == Pace::nowait) return would_block;
    IdentityScope::assume_own();
    at = root_.holds_directory(dir.path_fd.get()) ? ExportRoot::Where::inside : ExportRoot::Where::outside;
  }
  if (at != ExportRoot::Where::inside) return Status::stale;
  return object_for(std::move(*fd), dir.handle(), name);
}

io::Task<Answer<ObjectRef>> PosixStore::parent(const Caller& caller, const ObjectRef& dir) {
  return run_blocking([this, &caller, &dir] { return do_parent(caller, posix(dir)); });
}

Answer<ObjectRef> PosixStore::do_parent(const Caller& caller, PosixObject& dir) {
  if (dir.type() == FileType::symlink) return Status::symlink;
  if (dir.type() != FileType::directory) return Status::notdir;
  if (&dir == root_object_.get()) return Status::noent;
  Fd fd;
  {
    IdentityScope identity(caller);
    if (!identity.ok()) return Status::perm;
    fd = Fd(openat(dir.path_fd.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return status_of_errno(errno);
  }
  IdentityScope::assume_own();
  if (!root_.holds_directory(fd.get())) return Status::stale;
  struct statx st {};
  if (statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0) return status_of_errno(errno);
  Answer<FileHandle> handle = handles_->make(fd.get(), st, {}, {});
  if (!handle.ok()) return handle.status;
  return ObjectRef(objects_.insert(*handle, FileType::directory, std::move(fd), st.stx_ino));
}

ObjectAttributes PosixStore::attributes_of(PosixObject& object, const struct statx& st) {
  ObjectAttributes a;
  a.type = type_of_mode(st.stx_mode);
  a.mode = st.stx_mode & 07777;
  a.links = st.stx_nlink;
  a.uid = st.stx_uid;
  a.gid = st.stx_gid;
  a.size_bytes = st.stx_size;
  a.used_bytes = st.stx_blocks * 512;
  a.fileid = st.stx_ino;
  a.fsid = fsid_;
  a.device = {st.stx_rdev_major, st.stx_rdev_minor};
  a.accessed = time_of(st.stx_atime);
  a.modified = time_of(st.stx_mtime);
  a.status_changed = time_of(st.stx_ctime);
  a.has_created = (st.stx_mask & STATX_BTIME) != 0;
  if (a.has_created) a.created = time_of(st.stx_btime);
  a.change = object.change_for(nanoseconds_of(st.stx_ctime));
  return a;
}

io::Task<Answer<ObjectAttributes>> PosixStore::attributes(const ObjectRef& object) {
  return run([this, &object](Pace) { return do_attributes(posix(object)); });
}

Answer<ObjectAttributes> PosixStore::do_attributes(PosixObject& object) {
  struct statx st {};
  if (statx(object.path_fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0) {
    return status_of_errno(errno);
  }
  return attributes_of(object, st);
}

uint64_t PosixStore::change_of(PosixObject& dir) {
  struct statx st {};
  if (statx(dir.path_fd.get(), "", AT_EMPTY_PATH, STATX_CTIME, &st) != 0) return 0;
  return dir.change_for(nanoseconds_of(st.stx_ctime));
}

io::Task<Answer<FilesystemAttributes>> PosixStore::filesystem(const ObjectRef& object) {
  return run_blocking([&object]() -> Answer<FilesystemAttributes> {
    struct statfs fs {};
    if (fstatfs(posix(object).path_fd.get(), &fs) != 0) return status_of_errno(errno);
    FilesystemAttributes a;
    uint64_t unit = static_cast<uint64_t>(fs.f_frsize ? fs.f_frsize : fs.f_bsize);
    a.bytes_total = fs.f_blocks * unit;
    a.bytes_free = fs.f_bfree * unit;
    a.bytes_available = fs.f_bavail * unit;
    a.files_total = fs.f_files;
    a.files_free = a.files_available = fs.f_ffree;
    a.name_bytes_max = static_cast<uint32_t>(fs.f_namelen);
    return a;
  });
}

}  // namespace nfsrdma::server
