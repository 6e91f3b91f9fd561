// SPDX-License-Identifier: Apache-2.0
// Listing directories. A cookie is the kernel's own offset (d_off), which file systems keep meaningful while the
// directory changes; where one does not, the kept stream does (DirStream).
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "server/posix/posix_store.hpp"

namespace nfsrdma::server {
namespace {

constexpr size_t listing_bytes = 32768;
constexpr size_t streams_per_directory = 2;

// RFC 8881, 18.23.3: cookies 0, 1 and 2 have meanings of their own, and offsets know nothing of that.
constexpr uint64_t low_offset_mark = uint64_t{1} << 62;
uint64_t cookie_of_offset(uint64_t offset) { return offset <= 2 ? offset | low_offset_mark : offset; }
uint64_t offset_of_cookie(uint64_t cookie) {
  uint64_t offset = cookie & ~low_offset_mark;
  return (cookie & low_offset_mark) && offset <= 2 ? offset : cookie;
}

struct Record {
  uint64_t offset;
  size_t bytes;
  std::string_view name;
};

// The record at stream.at; bytes 0 when there is none.
Record record_of(const DirStream& stream) {
  constexpr size_t name_at = offsetof(dirent64, d_name);
  size_t left = stream.entries.size() - stream.at;
  if (left < name_at) return {};
  const std::byte* at = stream.entries.data() + stream.at;
  int64_t offset;
  uint16_t length;
  std::memcpy(&offset, at + offsetof(dirent64, d_off), sizeof offset);
  std::memcpy(&length, at + offsetof(dirent64, d_reclen), sizeof length);
  if (length < name_at || length > left) return {};
  const char* name = reinterpret_cast<const char*>(at + name_at);
  return {static_cast<uint64_t>(offset), length, {name, strnlen(name, length - name_at)}};
}

// False at the end of the directory.
Answer<bool> fill(DirStream& stream) {
  stream.entries.resize(listing_bytes);
  stream.at = 0;
  ssize_t n = getdents64(stream.fd.get(), stream.entries.data(), stream.entries.size());
  if (n < 0) {
    stream.entries.clear();
    return errno == EINVAL ? Status::bad_cookie : errno == ENOENT ? Status::stale : status_of_errno(errno);
  }
  stream.entries.resize(static_cast<size_t>(n));
  return n > 0;
}

}  // namespace

io::Task<Answer<DirDone>> PosixStore::readdir(const Caller& caller, const ObjectRef& dir, uint64_t cookie,
                                              bool with_attributes, DirSink& sink) {
  return run_blocking([this, &caller, &dir, cookie, with_attributes, &sink] {
    return do_readdir(caller, posix(dir), cookie, with_attributes, sink);
  });
}

Answer<std::unique_ptr<DirStream>> PosixStore::dir_stream(const Caller& caller, PosixObject& dir, uint64_t cookie) {
  if (cookie != 0) {
    std::lock_guard lock(dir.mutex);
    for (auto it = dir.streams.begin(); it != dir.streams.end(); ++it) {
      if ((*it)->next_cookie != cookie || !((*it)->caller == caller)) continue;
      std::unique_ptr<DirStream> stream = std::move(*it);
      dir.streams.erase(it);
      return stream;
    }
  }
  auto stream = std::make_unique<DirStream>();
  stream->caller = caller;
  stream->next_cookie = cookie;
  IdentityScope identity(caller);
  if (!identity.ok()) return Status::perm;
  stream->fd = Fd(openat(dir.path_fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!stream->fd) return status_of_errno(errno);
  if (cookie != 0 && lseek(stream->fd.get(), static_cast<off_t>(offset_of_cookie(cookie)), SEEK_SET) < 0) {
    return Status::bad_cookie;
  }
  return stream;
}

void PosixStore::keep_stream(PosixObject& dir, std::unique_ptr<DirStream> stream) {
  std::unique_ptr<DirStream> oldest;
  std::lock_guard lock(dir.mutex);
  if (dir.streams.size() >= streams_per_directory) {
    oldest = std::move(dir.streams.front());
    dir.streams.erase(dir.streams.begin());
  }
  dir.streams.push_back(std::move(stream));
}

Answer<DirDone> PosixStore::do_readdir(const Caller& caller, PosixObject& dir, uint64_t cookie, bool with_attributes,
                                       DirSink& sink) {
  if (Status s = check_directory(dir, false); s != Status::ok) return s;
  Answer<std::unique_ptr<DirStream>> opened = dir_stream(caller, dir, cookie);
  if (!opened.ok()) return opened.status;
  DirStream& stream = **opened;
  DirDone done;
  for (bool taken = true; taken;) {
    Record record = record_of(stream);
    if (record.bytes == 0) {
      Answer<bool> more = fill(stream);
      if (!more.ok()) return more.status;
      if (!*more) {
        done.eof = true;
        return done;
      }
      continue;
    }
    if (record.name != "." && record.name != "..") {
      Status s = give_entry(caller, dir, record.name, cookie_of_offset(record.offset), with_attributes, sink, taken);
      if (s != Status::ok) return s;
    }
    if (taken) {
      stream.at += record.bytes;
      stream.next_cookie = cookie_of_offset(record.offset);
    }
  }
  if (stream.next_cookie != 0) keep_stream(dir, std::move(*opened));
  return done;
}

Status PosixStore::give_entry(const Caller& caller, PosixObject& dir, std::string_view name, uint64_t cookie,
                              bool with_attributes, DirSink& sink, bool& taken) {
  DirEntryView entry;
  entry.cookie = cookie;
  entry.name = name;
  ObjectAttributes attributes;
  ObjectRef object;
  if (with_attributes) {
    Answer<ObjectRef> found = do_lookup(caller, dir, name, Pace::blocking);
    // Removed since the kernel listed it.
    if (found.status == Status::noent) return Status::ok;
    entry.status = found.status;
    if (found.ok()) {
      object = *found;
      Answer<ObjectAttributes> answer = do_attributes(posix(object));
      entry.status = answer.status;
      attributes = *answer;
    }
  }
  if (object && entry.status == Status::ok) {
    entry.attributes = &attributes;
    entry.handle = &object->handle();
  }
  taken = sink.take(entry);
  return Status::ok;
}

}  // namespace nfsrdma::server
