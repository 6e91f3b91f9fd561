// SPDX-License-Identifier: Apache-2.0
#include "ops/data.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "channel.hpp"
#include "libfuse.hpp"

namespace nfsrdma::fuse {

void DataRequest::give_up() {
  answered = true;
  channel_.answer(unique, EINTR);
}

void DataRequest::read() {
  if (size == 0) return finish_read(ReadResult{});
  buffer = channel_.fs.mount.borrow(size);
  if (!buffer) return channel_.wait_for_memory(*this);
  channel_.fs.mount.read(file->file, offset, buffer.slice(0, size),
                         [this](Result<ReadResult> result) { finish_read(result); });
}

void DataRequest::finish_read(const Result<ReadResult>& result) {
  if (!std::exchange(answered, true)) {
    if (!result) {
      channel_.answer(unique, result.error().errno_value());
    } else if (size_t length = std::min<size_t>(result->length, size)) {
      iovec payload = {buffer.data(), length};
      channel_.answer(unique, 0, &payload, 1);
    } else {
      channel_.answer(unique, 0);
    }
  }
  channel_.recycle(*this);
}

void DataRequest::write() {
  if (flags & O_APPEND) {
    append(*this);
    return;
  }
  send_write([this](Result<size_t> result) { finish_write(result); });
}

bool DataRequest::durable() const { return channel_.fs.options.sync_writes || (flags & (O_SYNC | O_DSYNC)); }

void DataRequest::send_write(Done<size_t> done) {
  channel_.fs.mount.write(file->file, offset, std::move(buffer), buffer_at, size,
                          durable() ? Stability::durable : Stability::unstable, std::move(done));
}

void DataRequest::finish_write(const Result<size_t>& result) {
  answer_write(result);
  channel_.recycle(*this);
}

void DataRequest::answer_write(const Result<size_t>& result) {
  if (std::exchange(answered, true)) return;
  if (!result) return void(channel_.answer(unique, result.error().errno_value()));
  fuse_write_out out = {};
  out.size = static_cast<uint32_t>(std::min<size_t>(*result, size));
  iovec part = {&out, sizeof out};
  channel_.answer(unique, 0, &part, 1);
}

// The kernel's offset comes from the size it remembers, and another client may have appended since. Two appends of
// this mount go one after the other; between clients NFS has nothing better than the size just asked for.
Detached DataRequest::append(DataRequest& request) {
  Channel& channel = request.channel_;
  Filesystem& fs = channel.fs;
  std::shared_ptr<OpenFile> file = request.file;
  const uint64_t expected = request.offset, length = request.size, inode = file->inode->id;
  co_await file->inode->appending.lock();
  Wait<Attributes> asked;
  fs.mount.get_attributes(file->inode->node, file->who, asked.done());
  Result<Attributes> attributes = co_await asked;
  Result<size_t> result = size_t{0};
  if (attributes) {
    request.offset = attributes->size_bytes;
    Wait<size_t> sent;
    request.send_write(sent.done());
    result = co_await sent;
  } else {
    result = attributes.error();
  }
  const bool moved = result && request.offset != expected;
  file->inode->appending.unlock();
  if (moved && !file->page_cache) {
    // Pages that other handles have cached: the kernel holds none of them for this write, so they can go first.
    drop_attributes(channel.session(), inode);
    Wait<bool> dropped;
    fs.notifier.drop_pages(inode, request.offset, length, &channel.loop, [&dropped] { dropped.complete(true); });
    Result<bool> done = co_await dropped;
    static_cast<void>(done);
  }
  request.finish_write(result);
  // Through the page cache the kernel has laid the bytes where it thought they go, in pages locked until the answer.
  if (moved && file->page_cache) fs.notifier.drop_pages(inode, expected & ~uint64_t{4095}, 0);
}

}  // namespace nfsrdma::fuse
