// SPDX-License-Identifier: Apache-2.0
// What the server keeps files in. Operations are coroutines: one that would block goes to a thread of the store and
// may end there, so after any co_await the caller stands on an unknown thread and must go back to its loop itself
// (co_await loop.enter()) before it touches what belongs to the loop.
//
// Names are single components that were already checked (server/names.hpp). Arguments given by reference must live
// until the task ended.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/task.hpp"
#include "mem/buffer_pool.hpp"
#include "nfs4/io_ops.hpp"
#include "nfs4/open_ops.hpp"
#include "nfs4/types.hpp"
#include "server/answer.hpp"
#include "server/identity.hpp"

namespace nfsrdma::io {
class IoLoop;
}

namespace nfsrdma::server {

using nfs4::ByteView;
using nfs4::ChangeInfo;
using nfs4::FileHandle;
using nfs4::FileType;
using nfs4::Time;
using nfs4::Verifier;

// A file, directory or other object of the exported tree. While anybody holds one, the store gives out no second
// object for the same file. Thread safe.
class Object {
 public:
  virtual ~Object() = default;
  const FileHandle& handle() const { return handle_; }
  FileType type() const { return type_; }

 protected:
  Object(const FileHandle& handle, FileType type) : handle_(handle), type_(type) {}

 private:
  FileHandle handle_;
  FileType type_;
};
using ObjectRef = std::shared_ptr<Object>;

// A regular file opened for data. Thread safe.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
};
using OpenFileRef = std::shared_ptr<OpenFile>;

struct ObjectAttributes {
  FileType type = FileType::regular;
  uint32_t mode = 0;  // permission bits, 12 of them
  uint32_t links = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t change = 0;
  uint64_t size_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t fileid = 0;
  nfs4::Fsid fsid;
  nfs4::Device device;
  Time accessed, modified, status_changed, created;
  bool has_created = false;
};

struct FilesystemAttributes {
  uint64_t files_free = 0, files_available = 0, files_total = 0;
  uint64_t bytes_free = 0, bytes_available = 0, bytes_total = 0;
  uint32_t name_bytes_max = 255;
};

// What SETATTR and the creating operations may set.
struct SetAttributes {
  static constexpr uint32_t size = 1, mode = 2, uid = 4, gid = 8, accessed = 16, modified = 32;
  uint32_t what = 0;  // of the bits above
  uint64_t size_bytes = 0;
  uint32_t mode_bits = 0;
  uint32_t uid_value = 0, gid_value = 0;
  bool accessed_now = false, modified_now = false;  // the server's time instead of the values
  Time accessed_time, modified_time;
  bool has(uint32_t bit) const { return (what & bit) != 0; }
};

// Bytes that were read. They stay valid, and their memory registered, as long as this lives.
struct ReadData {
  uint32_t length = 0;
  bool eof = false;
  rdma::Sge piece;             // where they lie
  mem::Buffer buffer;          // the owner when they were copied into the pool
  std::shared_ptr<void> hold;  // the owner otherwise
};

// Where bytes may be read to: a buffer of the pool; and, with in_place, they may stay where they are, in memory
// registered with the pool's protection domain that nothing but the kernel reads.
struct ReadPlace {
  mem::BufferPool& pool;
  bool in_place = false;
};

struct WriteDone {
  uint32_t count = 0;
  nfs4::StableHow committed = nfs4::StableHow::unstable;
};

enum class CreateHow : uint8_t { unchecked, guarded, exclusive };
struct CreateFile {
  CreateHow how = CreateHow::unchecked;
  Verifier verifier{};        // exclusive
  SetAttributes attributes;
};
struct CreateSpecial {
  FileType type = FileType::directory;  // everything but regular
  std::string_view link_text;
  nfs4::Device device;
  SetAttributes attributes;
};
struct Created {
  ObjectRef object;
  OpenFileRef file;           // regular files: open for reading and writing, since the creator may do both
  bool created = false;       // false: it was there (unchecked), or an earlier try made it (exclusive)
  uint32_t set = 0;           // SetAttributes bits that were applied
  ChangeInfo directory;
};

struct RenameDone {
  ChangeInfo source;
  ChangeInfo target;
};

struct SetDone {
  Status status = Status::ok;
  uint32_t set = 0;           // SetAttributes bits that were applied, also before a failure
};

struct DirEntryView {
  uint64_t cookie = 0;        // where to go on after this entry
  std::string_view name;
  Status status = Status::ok; // why there are no attributes
  const FileHandle* handle = nullptr;
  const ObjectAttributes* attributes = nullptr;
  const Object* object = nullptr;
};
class DirSink {
 public:
  virtual ~DirSink() = default;
  // False: no room, the entry was not taken and is the next one for this cookie. Any thread, one at a time.
  virtual bool take(const DirEntryView& entry) = 0;
};
struct DirDone {
  bool eof = false;
};

// Notices what others than this server do to single files.
class ChangeSource {
 public:
  virtual ~ChangeSource() = default;
  // From begin() to end() changes of this object are told. Any thread; neither waits. False: it cannot be watched.
  // Every begin() that succeeded is followed by one end().
  virtual bool begin(const ObjectRef& object) = 0;
  virtual void end(const ObjectRef& object) = 0;
  // On the thread of the loop on which changes shall be told.
  virtual void start(io::IoLoop& loop) = 0;
  virtual void stop() = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual ObjectRef root() = 0;
  // An object that somebody used lately, without waiting; empty when it must be resolved.
  virtual ObjectRef find(const FileHandle& handle) = 0;
  // stale: not there any more, or not beneath the exported directory. badhandle: not made by this store.
  virtual io::Task<Answer<ObjectRef>> resolve(const FileHandle& handle) = 0;

  virtual io::Task<Answer<ObjectRef>> lookup(const Caller& caller, const ObjectRef& dir, std::string_view name) = 0;
  // noent for the exported directory itself.
  virtual io::Task<Answer<ObjectRef>> parent(const Caller& caller, const ObjectRef& dir) = 0;
  virtual io::Task<Answer<ObjectAttributes>> attributes(const ObjectRef& object) = 0;
  virtual io::Task<Answer<FilesystemAttributes>> filesystem(const ObjectRef& object) = 0;
  // The access_bits of `wanted` that the caller has.
  virtual io::Task<Answer<uint32_t>> access(const Caller& caller, const ObjectRef& object, uint32_t wanted) = 0;
  virtual io::Task<Answer<std::string>> readlink(const Caller& caller, const ObjectRef& object) = 0;
  virtual io::Task<Answer<DirDone>> readdir(const Caller& caller, const ObjectRef& dir, uint64_t cookie,
                                            bool with_attributes, DirSink& sink) = 0;

  // owner_override: the file's owner may do it whatever the mode says, as somebody who has it open expects.
  virtual io::Task<Answer<OpenFileRef>> open(const Caller& caller, const ObjectRef& object, bool read, bool write,
                                             bool owner_override) = 0;
  virtual io::Task<Answer<Created>> create_file(const Caller& caller, const ObjectRef& dir, std::string_view name,
                                                const CreateFile& how) = 0;
  virtual io::Task<Answer<Created>> create_special(const Caller& caller, const ObjectRef& dir, std::string_view name,
                                                   const CreateSpecial& what) = 0;
  virtual io::Task<Answer<ChangeInfo>> remove(const Caller& caller, const ObjectRef& dir, std::string_view name) = 0;
  virtual io::Task<Answer<RenameDone>> rename(const Caller& caller, const ObjectRef& from_dir, std::string_view from,
                                              const ObjectRef& to_dir, std::string_view to) = 0;
  virtual io::Task<Answer<ChangeInfo>> link(const Caller& caller, const ObjectRef& object, const ObjectRef& dir,
                                            std::string_view name) = 0;
  // file: open for writing, when the caller named a stateid with that right; a size is then set through it.
  virtual io::Task<SetDone> set_attributes(const Caller& caller, const ObjectRef& object, const SetAttributes& what,
                                           const OpenFileRef& file) = 0;

  // count at most the pool's largest buffer. delay when the pool is used up.
  virtual io::Task<Answer<ReadData>> read(const OpenFileRef& file, uint64_t offset, uint32_t count,
                                          const ReadPlace& place) = 0;
  // Host addressable pieces. A short count is no failure. The caller's rights decide whether the file stays suid.
  virtual io::Task<Answer<WriteDone>> write(const Caller& caller, const OpenFileRef& file, uint64_t offset,
                                            std::span<const ByteView> pieces, nfs4::StableHow stable) = 0;
  // Everything written to the file so far is on stable storage, or an error says that it is not.
  virtual io::Task<Answer<Nothing>> commit(const Caller& caller, const ObjectRef& object) = 0;
  // Changes at every start and whenever written data was lost.
  virtual Verifier write_verifier() = 0;
  // For tests of clients: as if written data had been lost.
  virtual void change_verifier() = 0;
  // nullptr: nobody but this server changes files.
  virtual std::unique_ptr<ChangeSource> watch_changes(std::function<void(const ObjectRef&)> changed) {
    (void)changed;
    return nullptr;
  }
  // Housekeeping; called about once a second.
  virtual io::Task<void> tick() = 0;
};

}  // namespace nfsrdma::server
