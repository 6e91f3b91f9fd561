// SPDX-License-Identifier: Apache-2.0
#include "ops/data.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "channel.hpp"
#include "libfuse.hpp"
#include "log.hpp"

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
      log(LogLevel::debug, "READ at %llu: %s", static_cast<unsigned long long>(offset), result.error().text().c_str());
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
  if (!result) {
    log(LogLevel::debug, "WRITE at %llu: %s", static_cast<unsigned long long>(offset), result.error().text().c_str());
    return void(channel_.answer(unique, result.error().errno_value()));
  }
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
  Inode& inode = *file->inode;
  co_await inode.appending.lock();
  Wait<Attributes> asked;
  fs.mount.get_attributes(inode.node, file->who, asked.done());
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
  inode.appending.unlock();
  if (result) drop_attributes(channel.session(), inode.id);
  if (result && inode.may_have_pages) {
    // Through other handles: the last page ends in zeros where the new bytes are. The handle that appends has none,
    // so no page is locked for this request.
    Wait<bool> dropped;
    fs.notifier.drop_pages(inode.id, request.offset, request.size, &channel.loop, [&dropped] { dropped.complete(true); });
    Result<bool> done = co_await dropped;
    static_cast<void>(done);
  }
  request.finish_write(result);
}

}  // namespace nfsrdma::fuse
