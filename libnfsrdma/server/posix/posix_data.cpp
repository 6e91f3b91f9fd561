// SPDX-License-Identifier: Apache-2.0
// Opening, reading, writing, committing.
#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/log.hpp"
#include "server/posix/posix_store.hpp"

namespace nfsrdma::server {
namespace {

constexpr size_t pieces_max = 64;
// Below this a copy costs less than the look at the pages.
constexpr uint32_t in_place_bytes_min = 65536;
// Up to here a READ asks for a byte more than it was asked for, which tells whether the file ends there without a look
// at its size.
constexpr uint32_t small_read_max = 8192;
constexpr uint64_t small_read_end = uint64_t{1} << 62;  // far from where a file offset overflows

// Bytes from offset up to the file's end, at most count.
Status room_to_end(int fd, uint64_t offset, uint32_t count, uint32_t& want, uint64_t& size) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return status_of_errno(errno);
  size = static_cast<uint64_t>(st.st_size);
  want = offset >= size ? 0 : static_cast<uint32_t>(std::min<uint64_t>(count, size - offset));
  return Status::ok;
}

}  // namespace

io::Task<Answer<OpenFileRef>> PosixStore::open(const Caller& caller, const ObjectRef& object, bool read, bool write,
                                               bool owner_override) {
  return run_blocking([=, this, &caller, &object] {
    return do_open(caller, std::static_pointer_cast<PosixObject>(object), read, write, owner_override);
  });
}

Answer<OpenFileRef> PosixStore::do_open(const Caller& caller, const PosixObjectRef& object, bool read, bool write,
                                        bool owner_override) {
  if (write && params_.read_only) return Status::rofs;
  // A writer may have to read as well, to fill pages that it writes in part: where the mode allows it.
  Answer<Fd> fd = reopen(caller, *object, write ? O_RDWR : O_RDONLY, owner_override);
  bool readable = fd.ok();
  if (fd.status == Status::access && write && !read) fd = reopen(caller, *object, O_WRONLY, owner_override);
  if (!fd.ok()) return fd.status;
  std::lock_guard lock(object->mutex);
  std::weak_ptr<PosixFile>& known = write ? object->writer : object->reader;
  std::shared_ptr<PosixFile> file = known.lock();
  if (!file || file->readable != readable) {
    file = std::make_shared<PosixFile>(object, std::move(*fd), readable, write);
    known = file;
  }
  return OpenFileRef(file);
}

io::Task<Answer<ReadData>> PosixStore::read(const OpenFileRef& ref, uint64_t offset, uint32_t count,
                                            const ReadPlace& place) {
  PosixFile& file = posix(ref);
  if (!file.readable) co_return Status::access;
  ReadData data;
  if (count > 0 && count <= small_read_max && quick_ && offset < small_read_end && !WorkerPool::on_worker()) {
    data.buffer = place.pool.try_borrow(count);
    if (!data.buffer) co_return Status::delay;
    if (read_small(file, offset, count, data)) {
      data.piece = data.buffer.sge(0, data.length);
      co_return data;
    }
    data = {};
  }
  uint32_t want = 0;
  uint64_t size = 0;
  if (Status s = room_to_end(file.fd.get(), offset, count, want, size); s != Status::ok) co_return s;
  if (want == 0) {
    data.eof = offset >= size;
    co_return data;
  }
  if (place.in_place && want >= in_place_bytes_min && quick_ &&
      read_in_place(file, offset, want, place.pool.protection_domain(), data)) {
    data.eof = offset + want >= size;
    co_return data;
  }
  data.buffer = place.pool.try_borrow(want);
  if (!data.buffer) co_return Status::delay;
  Status status = would_block;
  if (quick_ && !WorkerPool::on_worker()) status = do_read(file, offset, want, data, Pace::nowait);
  if (status == would_block) {
    co_await workers_.enter();
    status = do_read(file, offset, want, data, Pace::blocking);
  }
  if (status != Status::ok) co_return status;
  if (data.length < want) {
    // The file became shorter meanwhile.
    if (Status s = room_to_end(file.fd.get(), offset, count, want, size); s != Status::ok) co_return s;
  }
  data.eof = offset + data.length >= size;
  data.piece = data.buffer.sge(0, data.length);
  co_return data;
}

// False where the answer would need a disk, or a second look.
bool PosixStore::read_small(PosixFile& file, uint64_t offset, uint32_t count, ReadData& data) {
  std::byte beyond;
  iovec pieces[2] = {{data.buffer.data(), count}, {&beyond, 1}};
  ssize_t n = preadv2(file.fd.get(), pieces, 2, static_cast<off_t>(offset), in_memory_ ? 0 : RWF_NOWAIT);
  // A count in between may be the file's end or the cache's.
  if (n != 0 && n <= static_cast<ssize_t>(count)) return false;
  data.length = n == 0 ? 0 : count;
  data.eof = n == 0;
  return true;
}

// Lets the bytes be sent from where they are, when that will not wait for a disk. Pages that are not there, as in the
// holes of a sparse file, are read the other way.
bool PosixStore::read_in_place(PosixFile& file, uint64_t offset, uint32_t want, rdma::ProtectionDomain& pd,
                               ReadData& data) {
  struct InPlace {
    PosixObjectRef object;
    std::shared_ptr<FileMapping> mapping;
    InPlace(PosixObjectRef o, std::shared_ptr<FileMapping> m) : object(std::move(o)), mapping(std::move(m)) {}
    ~InPlace() { object->end_in_place(); }
  };
  // To others than root and the owner the kernel does not tell what is in memory.
  if (!can_assume_identity()) return false;
  std::shared_ptr<FileMapping> mapping = file.windows.find(file.fd.get(), offset, want, pd);
  if (!mapping || !mapping->resident(offset, want) || !file.object->begin_in_place()) return false;
  data.piece = {mapping->region(), offset - mapping->offset(), want};
  data.length = want;
  data.hold = std::make_shared<InPlace>(file.object, std::move(mapping));
  return true;
}

Status PosixStore::do_read(PosixFile& file, uint64_t offset, uint32_t want, ReadData& data, Pace pace) {
  int flags = pace == Pace::nowait && !in_memory_ ? RWF_NOWAIT : 0;
  while (data.length < want) {
    iovec piece{data.buffer.data() + data.length, want - data.length};
    ssize_t n = preadv2(file.fd.get(), &piece, 1, static_cast<off_t>(offset + data.length), flags);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EINTR) continue;
      if (flags != 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) return would_block;
      return status_of_errno(errno);
    }
    data.length += static_cast<uint32_t>(n);
  }
  return Status::ok;
}

io::Task<Answer<WriteDone>> PosixStore::write(const Caller& caller, const OpenFileRef& ref, uint64_t offset,
                                              std::span<const ByteView> pieces, nfs4::StableHow stable) {
  PosixFile& file = posix(ref);
  if (!file.writable) co_return Status::access;
  if (!in_memory_) co_await workers_.enter();
  co_return do_write(caller, file, offset, pieces, stable);
}

Answer<WriteDone> PosixStore::do_write(const Caller& caller, PosixFile& file, uint64_t offset,
                                       std::span<const ByteView> pieces, nfs4::StableHow stable) {
  // As the caller: the kernel takes suid and sgid off what another than root writes.
  IdentityScope identity(caller);
  if (!identity.ok()) return Status::perm;
  int flags = stable == nfs4::StableHow::unstable ? 0 : stable == nfs4::StableHow::data_sync ? RWF_DSYNC : RWF_SYNC;
  WriteDone done;
  done.committed = in_memory_ ? nfs4::StableHow::file_sync : stable;
  size_t index = 0, skip = 0;
  while (index < pieces.size()) {
    std::array<iovec, pieces_max> vector;
    int n = 0;
    for (size_t i = index; i < pieces.size() && n < static_cast<int>(pieces_max); ++i, ++n) {
      ByteView piece = pieces[i].subspan(i == index ? skip : 0);
      vector[static_cast<size_t>(n)] = {const_cast<std::byte*>(piece.data()), piece.size()};
    }
    ssize_t written = pwritev2(file.fd.get(), vector.data(), n, static_cast<off_t>(offset + done.count), flags);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EIO && flags != 0) lost_data(EIO);
      if (done.count > 0) break;
      return status_of_errno(errno);
    }
    file.object->note_change();
    done.count += static_cast<uint32_t>(written);
    size_t left = static_cast<size_t>(written);
    while (index < pieces.size() && left >= pieces[index].size() - skip) {
      left -= pieces[index++].size() - skip;
      skip = 0;
    }
    skip += left;
    if (written == 0) break;
  }
  return done;
}

void PosixStore::lost_data(int failed) {
  // Clients that hold uncommitted data see another verifier and send it again (RFC 8881, 18.32).
  verifier_.fetch_add(1, std::memory_order_acq_rel);
  base::log(base::LogLevel::error, "server", "written data did not reach the disk: %s", std::strerror(failed));
}

io::Task<Answer<Nothing>> PosixStore::commit(const Caller& caller, const ObjectRef& object) {
  return run_blocking([this, &caller, &object] {
    return do_commit(caller, std::static_pointer_cast<PosixObject>(object));
  });
}

Answer<Nothing> PosixStore::do_commit(const Caller& caller, const PosixObjectRef& object) {
  if (object->type() == FileType::directory) return Status::isdir;
  if (object->type() != FileType::regular) return Status::inval;
  if (params_.read_only) return Status::rofs;
  std::shared_ptr<PosixFile> file;
  {
    std::lock_guard lock(object->mutex);
    file = object->writer.lock();
    if (!file) file = object->reader.lock();
  }
  Fd opened;
  if (!file) {
    Answer<Fd> fd = reopen(caller, *object, O_WRONLY, true);
    if (fd.status == Status::access) fd = reopen(caller, *object, O_RDONLY, true);
    if (!fd.ok()) return fd.status;
    opened = std::move(*fd);
  }
  if (fdatasync(file ? file->fd.get() : opened.get()) == 0) return Nothing{};
  int failed = errno;
  lost_data(failed);
  return status_of_errno(failed);
}

}  // namespace nfsrdma::server
