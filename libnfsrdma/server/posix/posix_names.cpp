// SPDX-License-Identifier: Apache-2.0
// What changes directories. NFS promises that such a change is on stable storage when it is answered.
#include <fcntl.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdio>

#include "server/posix/names.hpp"
#include "server/posix/posix_store.hpp"

namespace nfsrdma::server {
namespace {

constexpr mode_t file_mode_default = 0600;
constexpr mode_t directory_mode_default = 0755;
constexpr int create_tries = 8;

// RFC 8881, 18.16.3: where the server keeps the verifier is its business. Seconds stay below 2^31 for file systems
// with small time stamps.
void times_of_verifier(const Verifier& verifier, int64_t& accessed_s, int64_t& modified_s) {
  accessed_s = base::load_be<uint32_t>(verifier.data()) & 0x7fffffff;
  modified_s = base::load_be<uint32_t>(verifier.data() + 4) & 0x7fffffff;
}

mode_t type_bits(FileType type) {
  switch (type) {
    case FileType::block: return S_IFBLK;
    case FileType::character: return S_IFCHR;
    case FileType::socket: return S_IFSOCK;
    default: return S_IFIFO;
  }
}

}  // namespace

Status PosixStore::check_directory(PosixObject& dir, bool changes) {
  if (changes && params_.read_only) return Status::rofs;
  if (dir.type() != FileType::directory) return Status::notdir;
  IdentityScope::assume_own();
  return root_.holds_directory(dir.path_fd.get()) ? Status::ok : Status::stale;
}

void PosixStore::make_stable(PosixObject& dir) {
  if (in_memory_ || params_.async) return;
  IdentityScope::assume_own();
  Fd fd(openat(dir.path_fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && fsync(fd.get()) != 0 && errno == EIO) lost_data(EIO);
}

template <class Change>
Answer<ChangeInfo> PosixStore::change_directory(const Caller& caller, PosixObject& dir, Change change) {
  if (Status s = check_directory(dir, true); s != Status::ok) return s;
  ChangeInfo info;
  info.before = change_of(dir);
  {
    IdentityScope identity(caller);
    if (!identity.ok()) return Status::perm;
    if (change() != 0) return status_of_errno(errno);
  }
  dir.note_change();
  make_stable(dir);
  info.after = change_of(dir);
  return info;
}

io::Task<Answer<Created>> PosixStore::create_file(const Caller& caller, const ObjectRef& dir, std::string_view name,
                                                  const CreateFile& how) {
  return run_blocking([this, &caller, &dir, name, &how] { return do_create_file(caller, posix(dir), name, how); });
}

Answer<Created> PosixStore::do_create_file(const Caller& caller, PosixObject& dir, std::string_view name,
                                           const CreateFile& how) {
  if (Status s = check_directory(dir, true); s != Status::ok) return s;
  ChangeInfo change;
  change.before = change_of(dir);
  mode_t mode = how.attributes.has(SetAttributes::mode) ? how.attributes.mode_bits & 07777 : file_mode_default;
  CName cname(name);
  for (int i = 0; i < create_tries; ++i) {
    Answer<Fd> fd = open_beneath(caller, dir, cname.get(), O_RDWR | O_CREAT | O_EXCL | O_NOCTTY, mode, Pace::blocking);
    if (fd.ok()) {
      Answer<Created> created = finish_file(caller, dir, name, std::move(*fd), how);
      if (!created.ok()) {
        IdentityScope identity(caller);
        if (identity.ok()) unlinkat(dir.path_fd.get(), cname.get(), 0);
        return created.status;
      }
      dir.note_change();
      make_stable(dir);
      change.after = change_of(dir);
      created->directory = change;
      return created;
    }
    if (fd.status != Status::exist) return fd.status;
    if (how.how == CreateHow::guarded) return Status::exist;
    Answer<Created> existing = found_existing(caller, dir, name, how);
    // Gone again between the two looks: then it can be created.
    if (existing.status == Status::noent) continue;
    existing->directory = {false, change.before, change.before};
    return existing;
  }
  return Status::delay;
}

Answer<Created> PosixStore::found_existing(const Caller& caller, PosixObject& dir, std::string_view name,
                                           const CreateFile& how) {
  Answer<ObjectRef> object = do_lookup(caller, dir, name, Pace::blocking);
  if (!object.ok()) return object.status;
  Created created;
  created.object = *object;
  if (how.how == CreateHow::unchecked) return created;
  Answer<ObjectAttributes> attributes = do_attributes(posix(*object));
  if (!attributes.ok()) return attributes.status;
  int64_t accessed_s, modified_s;
  times_of_verifier(how.verifier, accessed_s, modified_s);
  uint64_t size_bytes = how.attributes.has(SetAttributes::size) ? how.attributes.size_bytes : 0;
  if (attributes->type != FileType::regular || attributes->size_bytes != size_bytes ||
      attributes->accessed.seconds != accessed_s || attributes->modified.seconds != modified_s) {
    return Status::exist;
  }
  created.created = true;
  created.set = how.attributes.what;
  return created;
}

Answer<Created> PosixStore::finish_file(const Caller& caller, PosixObject& dir, std::string_view name, Fd fd,
                                        const CreateFile& how) {
  Fd path(openat(root_.proc_fd(), ProcName(fd.get()).text, O_PATH | O_CLOEXEC));
  if (!path) return status_of_errno(errno);
  Answer<ObjectRef> object = object_for(std::move(path), dir.handle(), name);
  if (!object.ok()) return object.status;
  PosixObjectRef posix_object = std::static_pointer_cast<PosixObject>(*object);
  auto file = std::make_shared<PosixFile>(posix_object, std::move(fd), true, true);
  SetAttributes rest = how.attributes;
  if (how.how == CreateHow::exclusive) {
    rest.what |= SetAttributes::accessed | SetAttributes::modified;
    rest.accessed_now = rest.modified_now = false;
    rest.accessed_time = rest.modified_time = {};
    times_of_verifier(how.verifier, rest.accessed_time.seconds, rest.modified_time.seconds);
  }
  rest.what &= ~SetAttributes::mode;
  SetDone set = do_set(caller, *posix_object, rest, file.get());
  if (set.status != Status::ok) return set.status;
  if (rest.what != 0 && !in_memory_ && !params_.async) fsync(file->fd.get());
  {
    std::lock_guard lock(posix_object->mutex);
    if (posix_object->writer.expired()) posix_object->writer = file;
  }
  Created created;
  created.object = *object;
  created.file = file;
  created.created = true;
  created.set = how.attributes.what;
  return created;
}

io::Task<Answer<Created>> PosixStore::create_special(const Caller& caller, const ObjectRef& dir, std::string_view name,
                                                     const CreateSpecial& what) {
  return run_blocking([this, &caller, &dir, name, &what] { return do_create_special(caller, posix(dir), name, what); });
}

Answer<Created> PosixStore::do_create_special(const Caller& caller, PosixObject& dir, std::string_view name,
                                              const CreateSpecial& what) {
  CName cname(name);
  bool has_mode = what.attributes.has(SetAttributes::mode);
  mode_t mode = has_mode ? what.attributes.mode_bits & 07777 : directory_mode_default;
  std::string link_text(what.link_text);
  int at = dir.path_fd.get();
  Created created;
  Answer<ChangeInfo> change = change_directory(caller, dir, [&] {
    if (what.type == FileType::directory) return mkdirat(at, cname.get(), mode);
    if (what.type == FileType::symlink) return symlinkat(link_text.c_str(), at, cname.get());
    return mknodat(at, cname.get(), type_bits(what.type) | (has_mode ? mode : file_mode_default),
                   makedev(what.device.major, what.device.minor));
  });
  if (!change.ok()) return change.status;
  Answer<ObjectRef> object = do_lookup(caller, dir, name, Pace::blocking);
  if (!object.ok()) return object.status;
  SetAttributes rest = what.attributes;
  // mkdir leaves out bits that are not permissions (setgid, sticky); a link's mode means nothing.
  if (what.type != FileType::directory || !(mode & 07000)) rest.what &= ~SetAttributes::mode;
  rest.what &= ~SetAttributes::size;
  SetDone set = do_set(caller, posix(*object), rest, nullptr);
  if (set.status != Status::ok) {
    IdentityScope identity(caller);
    if (identity.ok()) unlinkat(at, cname.get(), what.type == FileType::directory ? AT_REMOVEDIR : 0);
    return set.status;
  }
  created.object = *object;
  created.created = true;
  created.set = what.attributes.what & ~SetAttributes::size;
  created.directory = *change;
  return created;
}

// The object that a name stands for before it goes, to let its descriptor go as well.
PosixObjectRef PosixStore::about_to_go(const Caller& caller, PosixObject& dir, std::string_view name) {
  Answer<ObjectRef> object = do_lookup(caller, dir, name, Pace::blocking);
  return object.ok() ? std::static_pointer_cast<PosixObject>(*object) : PosixObjectRef();
}

void PosixStore::gone(const PosixObjectRef& object) {
  if (!object) return;
  object->note_change();
  struct statx st {};
  if (statx(object->path_fd.get(), "", AT_EMPTY_PATH, STATX_NLINK, &st) == 0 &&
      (st.stx_nlink == 0 || object->type() == FileType::directory)) {
    objects_.release(object->handle());
  }
}

io::Task<Answer<ChangeInfo>> PosixStore::remove(const Caller& caller, const ObjectRef& dir, std::string_view name) {
  return run_blocking([this, &caller, &dir, name] { return do_remove(caller, posix(dir), name); });
}

Answer<ChangeInfo> PosixStore::do_remove(const Caller& caller, PosixObject& dir, std::string_view name) {
  CName cname(name);
  PosixObjectRef object = about_to_go(caller, dir, name);
  bool directory = object && object->type() == FileType::directory;
  Answer<ChangeInfo> change = change_directory(caller, dir, [&] {
    return unlinkat(dir.path_fd.get(), cname.get(), directory ? AT_REMOVEDIR : 0);
  });
  if (change.ok()) gone(object);
  return change;
}

io::Task<Answer<RenameDone>> PosixStore::rename(const Caller& caller, const ObjectRef& from_dir, std::string_view from,
                                                const ObjectRef& to_dir, std::string_view to) {
  return run_blocking([this, &caller, &from_dir, from, &to_dir, to] {
    return do_rename(caller, posix(from_dir), from, posix(to_dir), to);
  });
}

Answer<RenameDone> PosixStore::do_rename(const Caller& caller, PosixObject& from_dir, std::string_view from,
                                         PosixObject& to_dir, std::string_view to) {
  CName cfrom(from), cto(to);
  if (Status s = check_directory(to_dir, true); s != Status::ok) return s;
  PosixObjectRef moving = about_to_go(caller, from_dir, from);
  PosixObjectRef replaced = about_to_go(caller, to_dir, to);
  RenameDone done;
  done.target.before = change_of(to_dir);
  Answer<ChangeInfo> change = change_directory(caller, from_dir, [&] {
    return renameat(from_dir.path_fd.get(), cfrom.get(), to_dir.path_fd.get(), cto.get());
  });
  if (!change.ok()) return change.status;
  if (&to_dir != &from_dir) {
    to_dir.note_change();
    make_stable(to_dir);
  }
  done.source = *change;
  done.target.after = change_of(to_dir);
  if (moving) {
    moving->note_change();
    handles_->moved(moving->handle(), to_dir.handle(), to);
  }
  if (replaced != moving) gone(replaced);
  return done;
}

io::Task<Answer<ChangeInfo>> PosixStore::link(const Caller& caller, const ObjectRef& object, const ObjectRef& dir,
                                              std::string_view name) {
  return run_blocking([this, &caller, &object, &dir, name] { return do_link(caller, posix(object), posix(dir), name); });
}

Answer<ChangeInfo> PosixStore::do_link(const Caller& caller, PosixObject& object, PosixObject& dir,
                                       std::string_view name) {
  if (object.type() == FileType::directory) return Status::isdir;
  CName cname(name);
  object.note_change();
  return change_directory(caller, dir, [&] {
    return linkat(root_.proc_fd(), ProcName(object.path_fd.get()).text, dir.path_fd.get(), cname.get(),
                  AT_SYMLINK_FOLLOW);
  });
}

}  // namespace nfsrdma::server
