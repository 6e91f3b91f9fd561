// SPDX-License-Identifier: Apache-2.0
// Who may do what, and changing attributes.
#include <fcntl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <climits>

#include "server/posix/posix_store.hpp"

namespace nfsrdma::server {
namespace {

bool may(int fd, int mode) {
  return syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

timespec time_to_set(bool set, bool now, const Time& time) {
  timespec t{};
  if (!set) {
    t.tv_nsec = UTIME_OMIT;
  } else if (now) {
    t.tv_nsec = UTIME_NOW;
  } else {
    t.tv_sec = time.seconds;
    t.tv_nsec = static_cast<long>(time.nanoseconds);
  }
  return t;
}

}  // namespace

io::Task<Answer<uint32_t>> PosixStore::access(const Caller& caller, const ObjectRef& object, uint32_t wanted) {
  return run([this, &caller, &object, wanted](Pace) { return do_access(caller, posix(object), wanted); });
}

Answer<uint32_t> PosixStore::do_access(const Caller& caller, PosixObject& object, uint32_t wanted) {
  namespace bit = nfs4::access_bit;
  IdentityScope identity(caller);
  if (!identity.ok()) return Status::perm;
  int fd = object.path_fd.get();
  bool directory = object.type() == FileType::directory;
  uint32_t granted = 0;
  if ((wanted & bit::read) && may(fd, R_OK)) granted |= bit::read;
  if (wanted & (bit::modify | bit::extend | bit::remove)) {
    bool writes = !params_.read_only && may(fd, directory ? W_OK | X_OK : W_OK);
    if (writes) granted |= wanted & (bit::modify | bit::extend | (directory ? bit::remove : 0));
  }
  uint32_t search = directory ? bit::lookup : bit::execute;
  if ((wanted & search) && may(fd, X_OK)) granted |= search;
  return granted;
}

io::Task<Answer<std::string>> PosixStore::readlink(const Caller&, const ObjectRef& object) {
  return run_blocking([&object]() -> Answer<std::string> {
    if (object->type() != FileType::symlink) return Status::inval;
    std::array<char, PATH_MAX> text;
    ssize_t n = readlinkat(posix(object).path_fd.get(), "", text.data(), text.size());
    if (n < 0) return status_of_errno(errno);
    return std::string(text.data(), static_cast<size_t>(n));
  });
}

// Opens the object behind its O_PATH descriptor for data, through /proc: that follows no name, so it cannot lead
// elsewhere. Regular files only; a FIFO or device would block or act.
Answer<Fd> PosixStore::reopen(const Caller& caller, PosixObject& object, int flags, bool owner_override) {
  if (object.type() == FileType::directory) return Status::isdir;
  if (object.type() == FileType::symlink) return Status::symlink;
  if (object.type() != FileType::regular) return Status::inval;
  flags |= O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  ProcName name(object.path_fd.get());
  int failed;
  bool runs = false;
  {
    IdentityScope identity(caller);
    if (!identity.ok()) return Status::perm;
    Fd fd(openat(root_.proc_fd(), name.text, flags));
    if (fd) return fd;
    failed = errno;
    // Who may execute a file must be able to load it.
    if (failed == EACCES && (flags & O_ACCMODE) == O_RDONLY) runs = may(object.path_fd.get(), X_OK);
  }
  if (failed != EACCES) return status_of_errno(failed);
  if (!runs) {
    struct statx st {};
    if (!owner_override || statx(object.path_fd.get(), "", AT_EMPTY_PATH, STATX_UID, &st) != 0 ||
        st.stx_uid != caller.uid) {
      return Status::access;
    }
  }
  IdentityScope::assume_own();
  Fd fd(openat(root_.proc_fd(), name.text, flags));
  return fd ? Answer<Fd>(std::move(fd)) : Answer<Fd>(status_of_errno(errno));
}

Status PosixStore::set_size(const Caller& caller, PosixObject& object, uint64_t size_bytes, PosixFile* file) {
  if (size_bytes > INT64_MAX) return Status::fbig;
  Fd opened;
  int fd = -1;
  if (file && file->object.get() == &object && file->writable) {
    fd = file->fd.get();
  } else {
    Answer<Fd> answer = reopen(caller, object, O_WRONLY, true);
    if (!answer.ok()) return answer.status;
    opened = std::move(*answer);
    fd = opened.get();
  }
  // As the caller: the kernel takes suid and sgid off what another than root cuts.
  IdentityScope identity(caller);
  if (!identity.ok()) return Status::perm;
  object.hold_in_place();
  int failed = ftruncate(fd, static_cast<off_t>(size_bytes)) == 0 ? 0 : errno;
  object.resume_in_place();
  return status_of_errno(failed);
}

io::Task<SetDone> PosixStore::set_attributes(const Caller& caller, const ObjectRef& object, const SetAttributes& what,
                                             const OpenFileRef& file) {
  return run_blocking([this, &caller, &object, &what, &file] {
    return do_set(caller, posix(object), what, file ? &posix(file) : nullptr);
  });
}

SetDone PosixStore::do_set(const Caller& caller, PosixObject& object, const SetAttributes& what, PosixFile* file) {
  using S = SetAttributes;
  SetDone done;
  if (params_.read_only) return {Status::rofs, 0};
  if (what.what == 0) return done;
  object.note_change();
  if (what.has(S::size)) {
    done.status = set_size(caller, object, what.size_bytes, file);
    if (done.status != Status::ok) return done;
    done.set |= S::size;
  }
  IdentityScope identity(caller);
  if (!identity.ok()) return {Status::perm, done.set};
  int fd = object.path_fd.get();
  ProcName name(fd);
  if (what.has(S::uid) || what.has(S::gid)) {
    uid_t uid = what.has(S::uid) ? what.uid_value : static_cast<uid_t>(-1);
    gid_t gid = what.has(S::gid) ? what.gid_value : static_cast<gid_t>(-1);
    if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) != 0) return {status_of_errno(errno), done.set};
    done.set |= what.what & (S::uid | S::gid);
  }
  if (what.has(S::mode)) {
    if (fchmodat(root_.proc_fd(), name.text, what.mode_bits & 07777, 0) != 0) {
      return {status_of_errno(errno), done.set};
    }
    done.set |= S::mode;
  }
  if (what.has(S::accessed) || what.has(S::modified)) {
    timespec times[2] = {time_to_set(what.has(S::accessed), what.accessed_now, what.accessed_time),
                         time_to_set(what.has(S::modified), what.modified_now, what.modified_time)};
    if (utimensat(root_.proc_fd(), name.text, times, 0) != 0) return {status_of_errno(errno), done.set};
    done.set |= what.what & (S::accessed | S::modified);
  }
  return done;
}

}  // namespace nfsrdma::server
