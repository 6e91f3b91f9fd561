// SPDX-License-Identifier: Apache-2.0
// Everything that makes a name but open files: directories, nodes, links.
#include <sys/sysmacros.h>

#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

// The kernel leaves the umask to us (DONT_MASK), as it does to its own NFS client.
uint32_t masked(const Request& request, mode_t mode) { return mode & 07777 & ~request.umask; }

Detached mkdir(RequestPtr request, InodePtr directory, std::string name, uint32_t mode) {
  Wait<Entry> wait;
  request->mount.make_directory(directory->node, name, mode, request->who(), wait.done());
  Result<Entry> made = co_await wait;
  answer_entry(*request, *directory, made);
}

struct NodeWish {
  NodeType type;
  uint32_t mode, major, minor;
};

Detached make_node(RequestPtr request, InodePtr directory, std::string name, NodeWish wish) {
  Wait<Entry> wait;
  request->mount.make_node(directory->node, name, wish.type, wish.mode, wish.major, wish.minor, request->who(),
                           wait.done());
  Result<Entry> made = co_await wait;
  answer_entry(*request, *directory, made);
}

// NFSv4 makes regular files by OPEN only.
Detached make_file(RequestPtr request, InodePtr directory, std::string name, uint32_t mode) {
  Wait<Opened> wait;
  request->mount.create(directory->node, name, open_write | open_exclusive, mode, request->who(), wait.done());
  Result<Opened> opened = co_await wait;
  if (!opened) {
    request->error(opened.error());
    co_return;
  }
  Wait<void> closed;
  request->mount.close(opened->file, closed.done());
  Result<void> result = co_await closed;
  if (!result) request->error(result.error());
  else answer_entry(*request, *directory, Entry{opened->node, opened->attributes});
}

Detached symlink(RequestPtr request, InodePtr directory, std::string name, std::string target) {
  Wait<Entry> wait;
  request->mount.make_symlink(directory->node, name, target, request->who(), wait.done());
  Result<Entry> made = co_await wait;
  answer_entry(*request, *directory, made);
}

Detached link(RequestPtr request, InodePtr inode, InodePtr directory, std::string name) {
  Wait<Entry> wait;
  request->mount.make_link(inode->node, directory->node, name, request->who(), wait.done());
  Result<Entry> made = co_await wait;
  answer_entry(*request, *directory, made);
}

Detached readlink(RequestPtr request, InodePtr inode) {
  Wait<std::string> wait;
  request->mount.read_link(inode->node, request->who(), wait.done());
  Result<std::string> target = co_await wait;
  if (target) request->link_text(*target);
  else request->error(target.error());
}

NodeType node_type(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFBLK: return NodeType::block;
    case S_IFCHR: return NodeType::character;
    case S_IFSOCK: return NodeType::socket;
    case S_IFIFO: return NodeType::fifo;
    case S_IFREG:
    case 0: return NodeType::regular;
    default: return NodeType::none;
  }
}

}  // namespace

void ops::mkdir(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode) {
  auto request = std::make_unique<Request>(raw);
  InodePtr directory = directory_or_answer(*request, parent, name);
  if (!directory) return;
  uint32_t bits = masked(*request, mode);
  fuse::mkdir(std::move(request), std::move(directory), name, bits);
}

void ops::mknod(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  auto request = std::make_unique<Request>(raw);
  InodePtr directory = directory_or_answer(*request, parent, name);
  if (!directory) return;
  NodeWish wish = {node_type(mode), masked(*request, mode), major(device), minor(device)};
  if (wish.type == NodeType::none) return void(request->error(EINVAL));
  if (wish.type == NodeType::regular)
    make_file(std::move(request), std::move(directory), name, wish.mode);
  else
    make_node(std::move(request), std::move(directory), name, wish);
}

void ops::symlink(fuse_req_t raw, const char* target, fuse_ino_t parent, const char* name) {
  auto request = std::make_unique<Request>(raw);
  if (InodePtr directory = directory_or_answer(*request, parent, name))
    fuse::symlink(std::move(request), std::move(directory), name, target);
}

void ops::link(fuse_req_t raw, fuse_ino_t id, fuse_ino_t parent, const char* name) {
  auto request = std::make_unique<Request>(raw);
  InodePtr directory = directory_or_answer(*request, parent, name);
  InodePtr inode = directory ? inode_or_answer(*request, id) : nullptr;
  if (inode) fuse::link(std::move(request), std::move(inode), std::move(directory), name);
}

void ops::readlink(fuse_req_t raw, fuse_ino_t id) {
  auto request = std::make_unique<Request>(raw);
  if (InodePtr inode = inode_or_answer(*request, id)) fuse::readlink(std::move(request), std::move(inode));
}

}  // namespace nfsrdma::fuse
