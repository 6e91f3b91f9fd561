// SPDX-License-Identifier: Apache-2.0
// The library commits what was written within seconds by itself (sync(2) reaches no FUSE program); here is what asks
// for it sooner.
#include "ops/sync.hpp"

#include <utility>

#include "channel.hpp"

namespace nfsrdma::fuse {
namespace {

// Asked for by nobody who waits: the library tells a handle of an error once, so it has to be kept.
Task<int> sync_unasked(Filesystem& fs, std::shared_ptr<OpenFile> file) {
  Wait<void> wait;
  fs.mount.sync(file->file, wait.done());
  Result<void> result = co_await wait;
  if (!result) file->kept_error = result.error().errno_value();
  co_return 0;
}

Detached sync_all(Filesystem& fs, std::atomic<bool>& busy) {
  WorkCount::Piece piece(fs.work);
  std::vector<std::shared_ptr<OpenFile>> files = fs.files.all();
  for (auto& file : files) {
    if (!file->writable || file->closing) continue;
    auto syncing = sync_unasked(fs, file);
    co_await syncing;
  }
  busy = false;
}

}  // namespace

Task<int> sync_file(Filesystem& fs, std::shared_ptr<OpenFile> file) {
  Wait<void> wait;
  fs.mount.sync(file->file, wait.done());
  Result<void> result = co_await wait;
  int kept = file->kept_error.exchange(0);
  co_return result ? kept : result.error().errno_value();
}

Task<int> sync_inode(Filesystem& fs, InodePtr inode) {
  std::shared_ptr<OpenFile> writer;
  {
    std::scoped_lock lock(inode->mutex);
    writer = inode->writer.lock();
  }
  if (!writer || writer->closing) co_return 0;
  auto syncing = sync_unasked(fs, std::move(writer));
  int done = co_await syncing;
  co_return done;
}

void Filesystem::relieve() {
  if (!relieving_.exchange(true)) sync_all(*this, relieving_);
}

}  // namespace nfsrdma::fuse
