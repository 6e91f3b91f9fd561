// SPDX-License-Identifier: Apache-2.0
// The posix store's objects and open files.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "server/posix/fd.hpp"
#include "server/posix/file_mapping.hpp"
#include "server/store.hpp"

namespace nfsrdma::server {

class ObjectCache;
class PosixFile;

// Where a listing of a directory stopped, so that the next READDIR goes on in the same kernel stream: file systems
// whose offsets move when entries vanish keep their place only there.
struct DirStream {
  Fd fd;
  Caller caller;
  uint64_t next_cookie = 0;
  std::vector<std::byte> entries;  // getdents64 records not yet given out, from `at` on
  size_t at = 0;
};

class PosixObject final : public Object {
 public:
  PosixObject(ObjectCache& cache, const FileHandle& handle, FileType type, Fd fd, uint64_t inode_number)
      : Object(handle, type), path_fd(std::move(fd)), inode(inode_number), cache_(cache) {}
  ~PosixObject() override;

  const Fd path_fd;  // O_PATH
  const uint64_t inode;

  // The change attribute: nanoseconds of the status change time, plus a count of the changes that this server made
  // within one tick of the kernel's clock.
  uint64_t change_for(uint64_t ctime_ns);
  struct ChangeMemory {
    uint64_t ctime_ns = 0;
    uint64_t extra = 0;
  };
  void recall_change(const ChangeMemory& memory);  // before anybody else has the object
  void note_change() { touched_.store(true, std::memory_order_release); }

  // READs that are being sent out of the file's pages: a size must not shrink under them. Truncating waits, bounded,
  // for those that are under way, and none begins meanwhile.
  bool begin_in_place();
  void end_in_place();
  void hold_in_place();     // waits; a worker only
  void resume_in_place();

  std::mutex mutex;                             // guards what follows
  std::weak_ptr<PosixFile> reader;              // open for reading only
  std::weak_ptr<PosixFile> writer;              // open for writing, and for reading where the mode allows it
  std::vector<std::unique_ptr<DirStream>> streams;

 private:
  ObjectCache& cache_;
  std::mutex in_place_mutex_;                   // guards the next three
  std::condition_variable in_place_ended_;
  uint32_t in_place_ = 0;
  uint32_t truncations_ = 0;
  std::atomic<bool> touched_{false};
  std::mutex change_mutex_;
  ChangeMemory change_;                         // guarded by change_mutex_
};
using PosixObjectRef = std::shared_ptr<PosixObject>;

class PosixFile final : public OpenFile {
 public:
  PosixFile(PosixObjectRef o, Fd f, bool r, bool w)
      : object(std::move(o)), fd(std::move(f)), readable(r), writable(w) {}
  const PosixObjectRef object;
  const Fd fd;
  const bool readable;
  const bool writable;
  FileWindows windows;
};

inline PosixObject& posix(const ObjectRef& object) { return static_cast<PosixObject&>(*object); }
inline PosixFile& posix(const OpenFileRef& file) { return static_cast<PosixFile&>(*file); }

}  // namespace nfsrdma::server
