// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>
#include <unistd.h>

#include "ops/ops.hpp"
#include "ops/sync.hpp"

namespace nfsrdma::fuse {
namespace {

// ACCESS bits of RFC 8881, section 18.1.
constexpr uint32_t access_read = 0x01, access_lookup = 0x02, access_modify = 0x04, access_extend = 0x08,
                   access_delete = 0x10, access_execute = 0x20;

void answer_attributes(Request& request, Inode& inode, const Result<Attributes>& attributes) {
  if (attributes)
    request.attributes(request.fs.stat_of(inode, *attributes), request.fs.attribute_seconds(attributes->type));
  else
    request.error(attributes.error());
}

Detached getattr(RequestPtr request, InodePtr inode) {
  Wait<Attributes> wait;
  request->mount.get_attributes(inode->node, request->who(), wait.done());
  Result<Attributes> attributes = co_await wait;
  answer_attributes(*request, *inode, attributes);
}

AttributeChange change_of(const struct stat& st, int which) {
  AttributeChange change;
  if (which & FUSE_SET_ATTR_MODE) change.mode = st.st_mode & 07777;
  if (which & FUSE_SET_ATTR_UID) change.uid = st.st_uid;
  if (which & FUSE_SET_ATTR_GID) change.gid = st.st_gid;
  if (which & FUSE_SET_ATTR_SIZE) change.size_bytes = static_cast<uint64_t>(st.st_size);
  if (which & FUSE_SET_ATTR_ATIME_NOW) change.atime_now = true;
  else if (which & FUSE_SET_ATTR_ATIME) change.atime = Time{st.st_atim.tv_sec, static_cast<uint32_t>(st.st_atim.tv_nsec)};
  if (which & FUSE_SET_ATTR_MTIME_NOW) change.mtime_now = true;
  else if (which & FUSE_SET_ATTR_MTIME) change.mtime = Time{st.st_mtim.tv_sec, static_cast<uint32_t>(st.st_mtim.tv_nsec)};
  return change;
}

Detached setattr(RequestPtr request, InodePtr inode, AttributeChange change, std::shared_ptr<OpenFile> file) {
  if (change.size_bytes) {
    auto synced = sync_inode(request->fs, inode);
    co_await synced;
  }
  Wait<Attributes> wait;
  // A file opened for writing may be cut whatever its mode has become since.
  if (change.size_bytes && file && file->writable)
    request->mount.set_attributes(file->file, change, request->who(), wait.done());
  else
    request->mount.set_attributes(inode->node, change, request->who(), wait.done());
  Result<Attributes> attributes = co_await wait;
  answer_attributes(*request, *inode, attributes);
}

uint32_t access_wanted(int mask, bool directory) {
  uint32_t wanted = 0;
  if (mask & R_OK) wanted |= access_read;
  if (mask & W_OK) wanted |= access_modify | access_extend | (directory ? access_delete : 0);
  if (mask & X_OK) wanted |= directory ? access_lookup : access_execute;
  return wanted;
}

Detached access(RequestPtr request, InodePtr inode, uint32_t wanted) {
  Wait<uint32_t> wait;
  request->mount.access(inode->node, wanted, request->who(), wait.done());
  Result<uint32_t> granted = co_await wait;
  if (!granted) request->error(granted.error());
  else request->error((*granted & wanted) == wanted ? 0 : EACCES);
}

Detached statfs(RequestPtr request, InodePtr inode) {
  Wait<FileSystemStats> wait;
  request->mount.file_system_stats(inode->node, request->who(), wait.done());
  Result<FileSystemStats> found = co_await wait;
  if (!found) {
    request->error(found.error());
    co_return;
  }
  constexpr uint64_t fragment_bytes = 4096;
  struct statvfs st = {};
  st.f_bsize = fragment_bytes;
  st.f_frsize = fragment_bytes;
  st.f_blocks = found->total_bytes / fragment_bytes;
  st.f_bfree = found->free_bytes / fragment_bytes;
  st.f_bavail = found->available_bytes / fragment_bytes;
  st.f_files = found->total_files;
  st.f_ffree = found->free_files;
  st.f_favail = found->available_files;
  st.f_namemax = found->name_bytes_max;
  request->statistics(st);
}

}  // namespace

void ops::getattr(fuse_req_t raw, fuse_ino_t id, fuse_file_info*) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) return request->fs.control.getattr(*request, id);
  if (InodePtr inode = inode_or_answer(*request, id)) fuse::getattr(std::move(request), std::move(inode));
}

void ops::setattr(fuse_req_t raw, fuse_ino_t id, struct stat* st, int which, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  InodePtr inode = inode_or_answer(*request, id);
  if (!inode) return;
  if ((which & FUSE_SET_ATTR_SIZE) && st->st_size < 0) return void(request->error(EINVAL));
  auto file = info ? request->fs.files.get(info->fh) : nullptr;
  fuse::setattr(std::move(request), std::move(inode), change_of(*st, which), std::move(file));
}

void ops::access(fuse_req_t raw, fuse_ino_t id, int mask) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) return void(request->error(mask & W_OK ? EACCES : 0));
  InodePtr inode = inode_or_answer(*request, id);
  if (!inode) return;
  uint32_t wanted = access_wanted(mask, inode->type == NodeType::directory);
  if (wanted == 0) return void(request->ok());
  fuse::access(std::move(request), std::move(inode), wanted);
}

void ops::statfs(fuse_req_t raw, fuse_ino_t id) {
  auto request = std::make_unique<Request>(raw);
  InodePtr inode = request->fs.inodes.get(id);
  if (!inode) inode = request->fs.inodes.root();
  fuse::statfs(std::move(request), std::move(inode));
}

}  // namespace nfsrdma::fuse
