// SPDX-License-Identifier: Apache-2.0
// A file that is removed while open must go on working for those who have it open, yet on the server a file without a
// name is gone. So it keeps one, ".nfs" and digits as the kernel's client makes them, until the last handle closes.
#include <random>

#include "log.hpp"
#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

std::string silly_name(uint64_t fileid) {
  static std::atomic<uint32_t> next{std::random_device{}()};
  return text(".nfs%016llx%08x", static_cast<unsigned long long>(fileid), next.fetch_add(1));
}

// Counts one open for the caller when the file has to be kept; EBUSY when the name is itself a silly one.
Result<bool> must_keep(Inode& inode, const Node& directory, const std::string& name, uint32_t links) {
  std::scoped_lock lock(inode.mutex);
  if (inode.silly) {
    if (inode.silly->name == name && inode.silly->directory.same(directory))
      return Error(EBUSY, ErrorOrigin::local, "the name of an unlinked file that is still open");
    return false;
  }
  if (inode.opens == 0 || links > 1) return false;
  inode.opens++;
  return true;
}

}  // namespace

void add_open(Filesystem& fs, Inode& inode) {
  fs.opens++;
  std::scoped_lock lock(inode.mutex);
  inode.opens++;
}

Task<int> drop_open(Channel& channel, InodePtr inode) {
  Filesystem& fs = channel.fs;
  WorkCount::Piece piece(fs.work);
  fs.opens--;
  std::optional<SillyName> silly;
  {
    std::scoped_lock lock(inode->mutex);
    if (--inode->opens == 0) silly.swap(inode->silly);
  }
  if (!silly) co_return 0;
  Wait<void> wait;
  fs.mount.remove(silly->directory, silly->name, silly->who, wait.done());
  Result<void> removed = co_await wait;
  if (!removed && removed.error().errno_value() != ENOENT)
    log(LogLevel::warn, "the leftover of an unlinked file could not be removed: %s", removed.error().text().c_str());
  co_return 0;
}

Task<Result<std::optional<Kept>>> keep_open_file(Request& request, InodePtr directory, std::string name,
                                                 Entry victim, bool keep) {
  std::optional<Kept> nothing;
  InodePtr inode = request.fs.inodes.find(victim.node);
  if (!inode) co_return nothing;
  Result<bool> needed = must_keep(*inode, directory->node, name, victim.attributes.links);
  if (!needed) co_return needed.error();
  if (!*needed) co_return nothing;
  request.fs.opens++;
  std::optional<Kept> kept(Kept{inode, {directory->node, silly_name(victim.attributes.fileid), request.who()}});
  if (keep) {
    // A second name first, so that a rename over the first one replaces it at once and nobody ever misses it.
    Wait<Entry> linked;
    request.mount.make_link(inode->node, directory->node, kept->silly.name, request.who(), linked.done());
    Result<Entry> link = co_await linked;
    kept->linked = link.ok();
  }
  if (!kept->linked) {
    Wait<void> renamed;
    request.mount.rename(directory->node, name, directory->node, kept->silly.name, request.who(), renamed.done());
    Result<void> moved = co_await renamed;
    if (!moved) {
      auto dropped = drop_open(request.channel, inode);
      co_await dropped;
      co_return moved.error();
    }
  }
  co_return kept;
}

Task<int> settle_silly(Request& request, Kept kept, std::string name, bool done) {
  const SillyName& silly = kept.silly;
  if (done) {
    std::scoped_lock lock(kept.inode->mutex);
    kept.inode->silly = silly;
  } else {
    Wait<void> wait;
    if (kept.linked)
      request.mount.remove(silly.directory, silly.name, silly.who, wait.done());
    else
      request.mount.rename(silly.directory, silly.name, silly.directory, name, silly.who, wait.done());
    Result<void> undone = co_await wait;
    if (!undone) log(LogLevel::warn, "a silly name stays behind: %s", undone.error().text().c_str());
  }
  auto dropped = drop_open(request.channel, kept.inode);
  co_await dropped;
  co_return 0;
}

}  // namespace nfsrdma::fuse
