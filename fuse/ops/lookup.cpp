// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

Detached lookup(RequestPtr request, InodePtr directory, std::string name) {
  Wait<Entry> wait;
  request->mount.lookup(directory->node, name, request->who(), wait.done());
  Result<Entry> entry = co_await wait;
  double absent_s = request->fs.no_name_seconds(*directory);
  if (!entry && entry.error().errno_value() == ENOENT && absent_s > 0) {
    fuse_entry_param nothing = {};
    nothing.entry_timeout = absent_s;
    request->entry(nothing);
  } else {
    answer_entry(*request, *directory, entry);
  }
}

}  // namespace

void ops::lookup(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(parent) || (parent == InodeTable::root_id && name == Control::directory_name))
    return request->fs.control.lookup(*request, parent, name);
  if (InodePtr directory = inode_or_answer(*request, parent))
    fuse::lookup(std::move(request), std::move(directory), name);
}

void ops::forget(fuse_req_t raw, fuse_ino_t id, uint64_t lookups) {
  static_cast<Channel*>(fuse_req_userdata(raw))->fs.inodes.forget(id, lookups);
  fuse_reply_none(raw);
}

void ops::forget_multi(fuse_req_t raw, size_t count, fuse_forget_data* list) {
  InodeTable& inodes = static_cast<Channel*>(fuse_req_userdata(raw))->fs.inodes;
  for (size_t i = 0; i < count; i++) inodes.forget(list[i].ino, list[i].nlookup);
  fuse_reply_none(raw);
}

}  // namespace nfsrdma::fuse
