// SPDX-License-Identifier: Apache-2.0
// Open files: open, create, flush, fsync, release.
#include <fcntl.h>

#include <algorithm>

#include "log.hpp"
#include "ops/ops.hpp"
#include "ops/sync.hpp"

namespace nfsrdma::fuse {
namespace {

constexpr uint32_t access_read = 0x01, access_execute = 0x20;  // RFC 8881, section 18.1
constexpr int flag_exec = 0x20;                                // the kernel's FMODE_EXEC: opened to be run

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

uint32_t open_flags(int flags) {
  uint32_t out = (flags & O_ACCMODE) == O_WRONLY ? 0u : open_read;
  if (writes(flags)) out |= open_write;
  if (flags & O_TRUNC) out |= open_write | open_truncate;  // also by O_RDONLY, which needs the right to write then
  if (flags & O_EXCL) out |= open_exclusive;
  return out;
}

// A server lets the owner read whatever the mode says, and everybody who may execute a file: whether read(2) is
// allowed is the client's question, by ACCESS. Where the mode already shows it, nobody is asked.
Task<int> check_reading(Request& request, Opened opened, int flags) {
  bool exec = flags & flag_exec;
  if (!exec && (flags & O_ACCMODE) == O_WRONLY) co_return 0;
  const Credentials& who = request.who();
  auto groups = who.groups();
  bool in_group = who.gid() == opened.attributes.gid ||
                  std::find(groups.begin(), groups.end(), opened.attributes.gid) != groups.end();
  if (mode_shows(opened.attributes, who.uid(), in_group, exec ? 1 : 4)) co_return 0;
  uint32_t wanted = exec ? access_execute : access_read;
  Wait<uint32_t> wait;
  request.mount.access(opened.node, wanted, who, wait.done());
  Result<uint32_t> granted = co_await wait;
  if (!granted) co_return granted.error().errno_value();
  co_return (*granted & wanted) == wanted ? 0 : EACCES;
}

// Close-to-open: what another node has closed is what an open here sees. The kernel keeps its pages only if the
// change attribute has not moved since they were valid; they go before the open is answered, so that another open
// which finds them valid can rely on it.
Task<bool> revalidate_pages(Request& request, InodePtr inode, uint64_t change) {
  Filesystem& fs = request.fs;
  if (!fs.options.close_to_open) co_return true;
  {
    std::scoped_lock lock(inode->mutex);
    if (!inode->pages_change) inode->pages_change = change;  // the first open: there are none yet
    if (*inode->pages_change == change) co_return true;
  }
  drop_attributes(request.channel.session(), inode->id);
  Wait<bool> dropped;
  fs.notifier.drop_pages(inode->id, 0, 0, &request.channel.loop, [&dropped] { dropped.complete(true); });
  Result<bool> done = co_await dropped;
  std::scoped_lock lock(inode->mutex);
  inode->pages_change = change;
  co_return done.ok();
}

// Appending goes around the page cache: the kernel would lay the bytes where the file ended when it last looked.
bool around_page_cache(int flags) { return (flags & O_APPEND) && writes(flags); }

uint64_t add_handle(Request& request, const InodePtr& inode, const Opened& opened, int flags) {
  auto file = std::make_shared<OpenFile>(inode, opened.file, request.who());
  file->writable = writes(flags);
  // What can be read can be mapped, and a map has pages whatever the flags are.
  if (!around_page_cache(flags) || (flags & O_ACCMODE) == O_RDWR) inode->may_have_pages = true;
  if (file->writable) {
    std::scoped_lock lock(inode->mutex);
    inode->writer = file;
  }
  return request.fs.files.add(std::move(file));
}

Task<int> close_handle(Channel& channel, std::shared_ptr<OpenFile> file) {
  Filesystem& fs = channel.fs;
  file->closing = true;
  Wait<void> wait;
  fs.mount.close(file->file, wait.done());
  Result<void> closed = co_await wait;
  if (!closed && file->writable) {
    log(LogLevel::error, "closing a written file: %s", closed.error().text().c_str());
    fs.lost_writes = true;
  }
  auto dropped = drop_open(channel, file->inode);
  co_await dropped;
  co_return closed ? 0 : closed.error().errno_value();
}

// The kernel did not wait for the answer to an open: nobody will ever release it.
Detached close_unwanted(Channel& channel, std::shared_ptr<OpenFile> file) {
  WorkCount::Piece piece(channel.fs.work);
  auto closing = close_handle(channel, std::move(file));
  co_await closing;
}

Task<int> give_up_open(Request& request, File file, InodePtr inode) {
  Wait<void> wait;
  request.mount.close(file, wait.done());
  Result<void> closed = co_await wait;
  auto dropped = drop_open(request.channel, inode);
  co_await dropped;
  co_return closed ? 0 : closed.error().errno_value();
}

Detached open(RequestPtr request, InodePtr inode, fuse_file_info info) {
  add_open(request->fs, *inode);
  if (info.flags & O_TRUNC) {
    auto synced = sync_inode(request->fs, inode);
    co_await synced;
  }
  Wait<Opened> wait;
  request->mount.open(inode->node, open_flags(info.flags), request->who(), wait.done());
  Result<Opened> opened = co_await wait;
  if (!opened) {
    request->error(opened.error());
    auto dropped = drop_open(request->channel, inode);
    co_await dropped;
    co_return;
  }
  auto checking = check_reading(*request, *opened, info.flags);
  int refused = co_await checking;
  if (refused) {
    request->error(refused);
    auto closed = give_up_open(*request, opened->file, inode);
    co_await closed;
    co_return;
  }
  auto revalidating = revalidate_pages(*request, inode, opened->attributes.change);
  bool kept = co_await revalidating;
  info.fh = add_handle(*request, inode, *opened, info.flags);
  info.keep_cache = kept ? 1u : 0u;
  info.direct_io = around_page_cache(info.flags) ? 1u : 0u;
  if (!request->opened(info)) close_unwanted(request->channel, request->fs.files.remove(info.fh));
}

Detached create(RequestPtr request, InodePtr directory, std::string name, uint32_t mode, fuse_file_info info) {
  Wait<Opened> wait;
  request->mount.create(directory->node, name, open_flags(info.flags), mode, request->who(), wait.done());
  Result<Opened> opened = co_await wait;
  if (!opened) {
    request->error(opened.error());
    co_return;
  }
  fuse_entry_param entry;
  InodePtr inode = request->fs.make_entry(*directory, opened->node, opened->attributes, entry);
  add_open(request->fs, *inode);
  int refused = 0;
  if (!opened->created) {
    auto checking = check_reading(*request, *opened, info.flags);
    refused = co_await checking;
  }
  if (refused) {
    request->error(refused);
    request->fs.inodes.forget(inode->id, 1);
    auto closed = give_up_open(*request, opened->file, inode);
    co_await closed;
    co_return;
  }
  auto revalidating = revalidate_pages(*request, inode, opened->attributes.change);
  bool kept = co_await revalidating;
  info.fh = add_handle(*request, inode, *opened, info.flags);
  info.keep_cache = kept ? 1u : 0u;
  info.direct_io = around_page_cache(info.flags) ? 1u : 0u;
  if (request->created(entry, info)) co_return;
  request->fs.inodes.forget(inode->id, 1);
  close_unwanted(request->channel, request->fs.files.remove(info.fh));
}

Detached flush(RequestPtr request, std::shared_ptr<OpenFile> file) {
  request->watch_exit();
  auto syncing = sync_file(request->fs, file);
  int failed = co_await syncing;
  request->error(failed);
}

Detached fsync(RequestPtr request, std::shared_ptr<OpenFile> file) {
  auto syncing = sync_file(request->fs, file);
  int failed = co_await syncing;
  request->error(failed);
}

Detached release(RequestPtr request, std::shared_ptr<OpenFile> file) {
  auto closing = close_handle(request->channel, std::move(file));
  co_await closing;
  request->ok();
}

}  // namespace

void ops::open(fuse_req_t raw, fuse_ino_t id, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) {
    Control& control = request->fs.control;
    return control.open(std::move(request), id, *info);
  }
  if (InodePtr inode = inode_or_answer(*request, id)) fuse::open(std::move(request), std::move(inode), *info);
}

void ops::create(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  InodePtr directory = directory_or_answer(*request, parent, name);
  if (!directory) return;
  uint32_t bits = mode & 07777 & ~request->umask;
  fuse::create(std::move(request), std::move(directory), name, bits, *info);
}

// Of a handle that cannot have written anything there is nothing to bring to the server.
void ops::flush(fuse_req_t raw, fuse_ino_t id, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) return void(request->ok());
  auto file = request->fs.files.get(info->fh);
  if (!file) return void(request->error(EBADF));
  if (!file->writable || !request->fs.options.close_to_open) return void(request->ok());
  fuse::flush(std::move(request), std::move(file));
}

void ops::fsync(fuse_req_t raw, fuse_ino_t id, int, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) return void(request->ok());
  auto file = request->fs.files.get(info->fh);
  if (!file) return void(request->error(EBADF));
  fuse::fsync(std::move(request), std::move(file));
}

void ops::release(fuse_req_t raw, fuse_ino_t id, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) {
    request->fs.texts.remove(info->fh);
    return void(request->ok());
  }
  auto file = request->fs.files.remove(info->fh);
  if (!file) return void(request->error(EBADF));
  fuse::release(std::move(request), std::move(file));
}

}  // namespace nfsrdma::fuse
