// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

fuse_lowlevel_ops make_table() {
  fuse_lowlevel_ops table = {};
  table.init = ops::init;
  table.lookup = ops::lookup;
  table.forget = ops::forget;
  table.forget_multi = ops::forget_multi;
  table.getattr = ops::getattr;
  table.setattr = ops::setattr;
  table.access = ops::access;
  table.statfs = ops::statfs;
  table.readlink = ops::readlink;
  table.mknod = ops::mknod;
  table.mkdir = ops::mkdir;
  table.symlink = ops::symlink;
  table.link = ops::link;
  table.unlink = ops::unlink;
  table.rmdir = ops::rmdir;
  table.rename = ops::rename;
  table.open = ops::open;
  table.create = ops::create;
  table.flush = ops::flush;
  table.fsync = ops::fsync;
  table.release = ops::release;
  table.opendir = ops::opendir;
  table.readdir = ops::readdir;
  table.readdirplus = ops::readdirplus;
  table.releasedir = ops::releasedir;
  table.fsyncdir = ops::fsyncdir;
  return table;
}

// The kernel keeps this many asynchronous reads and writes in flight; its own 12 would throttle.
uint16_t background_requests(const Options& options) {
  uint64_t wanted = uint64_t{options.nconnect} * options.credits;
  uint64_t fitting = std::max<uint64_t>(64, options.pool_bytes / (2 * request_bytes_max));
  return static_cast<uint16_t>(std::clamp<uint64_t>(wanted, 64, std::min<uint64_t>(fitting, 1024)));
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops table = make_table();
  return table;
}

// Runs once per session and must say the same each time. What is not named here stays off: pages are dropped by the
// change attribute and not by mtime (AUTO_INVAL_DATA), the kernel does not own sizes (WRITEBACK_CACHE), and payload
// goes to registered memory, not through pipes (SPLICE_*).
void ops::init(void* userdata, fuse_conn_info* connection) {
  const Options& options = static_cast<Channel*>(userdata)->fs.options;
  unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ATOMIC_O_TRUNC |
                    FUSE_CAP_DONT_MASK | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_IOCTL_DIR;
  if (options.rdirplus != Switch::off) wanted |= FUSE_CAP_READDIRPLUS;
  if (options.rdirplus == Switch::automatic) wanted |= FUSE_CAP_READDIRPLUS_AUTO;
  connection->want = connection->capable & wanted;
  connection->max_write = request_bytes_max;
  connection->max_background = background_requests(options);
  connection->congestion_threshold = connection->max_background * 3 / 4;
}

InodePtr inode_or_answer(Request& request, uint64_t id) {
  InodePtr inode = request.fs.inodes.get(id);
  if (!inode) request.error(Control::owns(id) ? EPERM : ESTALE);
  return inode;
}

InodePtr directory_or_answer(Request& request, uint64_t id, std::string_view name) {
  if (id == InodeTable::root_id && name == Control::directory_name) {
    request.error(EPERM);
    return nullptr;
  }
  return inode_or_answer(request, id);
}

void answer_entry(Request& request, const Inode& directory, const Result<Entry>& entry) {
  if (!entry) {
    request.error(entry.error());
    return;
  }
  fuse_entry_param out;
  InodePtr inode = request.fs.make_entry(directory, entry->node, entry->attributes, out);
  if (!request.entry(out)) request.fs.inodes.forget(inode->id, 1);
}

}  // namespace nfsrdma::fuse
