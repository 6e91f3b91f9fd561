// SPDX-License-Identifier: Apache-2.0
#include "transfer.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "report.hpp"
#include "window.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

Error interrupted_error() { return Error(EINTR, ErrorOrigin::local, "interrupted"); }

Error pool_error() {
  return Error(ENOMEM, ErrorOrigin::local,
               "no registered buffer is free; give the mount more, as in pool=256m");
}

Result<void> write_all(int fd, const std::byte* data, size_t length) {
  while (length) {
    ssize_t n = ::write(fd, data, length);
    if (n < 0 && errno == EINTR && !is_interrupted()) continue;
    if (n < 0) return errno == EINTR ? interrupted_error() : local_error(errno, "writing on this machine");
    data += n;
    length -= static_cast<size_t>(n);
  }
  return {};
}

// Less than length only at the end of what fd gives.
Result<size_t> read_full(int fd, std::byte* data, size_t length) {
  size_t have = 0;
  while (have < length) {
    ssize_t n = ::read(fd, data + have, length - have);
    if (n < 0 && errno == EINTR && !is_interrupted()) continue;
    if (n < 0) return errno == EINTR ? interrupted_error() : local_error(errno, "reading on this machine");
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

// Reads ahead of the writer by a ring of buffers: slot k % slots holds chunk k.
class Download {
 public:
  Download(Mount& mount, const File& file, uint64_t size_hint_bytes)
      : mount_(mount),
        file_(file),
        size_hint_bytes_(size_hint_bytes),
        chunk_bytes_(mount.info().rsize_bytes),
        slots_(window_requests(chunk_bytes_)) {}

  Result<uint64_t> run(int fd, Progress& progress) {
    for (;;) {
      if (auto r = fill(); !r) return r.error();
      Slot& slot = slots_[head_ % slots_.size()];
      in_flight_.wait_until([&](size_t) { return slot.done; });
      if (is_interrupted()) return interrupted_error();
      if (!slot.outcome) return slot.outcome.error();
      const ReadResult got = *slot.outcome;
      if (auto r = write_all(fd, slot.buffer.data(), got.length); !r) return r.error();
      total_bytes_ += got.length;
      progress.add(got.length);
      ++head_;
      if (got.eof || got.length < chunk_bytes_) return total_bytes_;
    }
  }

 private:
  struct Slot {
    Buffer buffer;
    Result<ReadResult> outcome = ReadResult{};
    bool done = false;  // guarded by in_flight_'s lock, like outcome until then
  };

  // Beyond the size that the file had at open, one read at a time looks whether there is more.
  bool may_send() const {
    if (next_ - head_ >= slots_.size()) return false;
    return next_ == head_ || next_ * chunk_bytes_ < size_hint_bytes_;
  }

  Result<void> fill() {
    while (may_send()) {
      Slot& slot = slots_[next_ % slots_.size()];
      if (!slot.buffer) slot.buffer = mount_.borrow(chunk_bytes_);
      if (!slot.buffer && next_ > head_) return {};
      if (!slot.buffer) return pool_error();
      slot.done = false;
      in_flight_.begin();
      mount_.read(file_, next_ * chunk_bytes_, slot.buffer.slice(0, chunk_bytes_),
                  [this, &slot](Result<ReadResult> outcome) {
                    slot.outcome = std::move(outcome);
                    in_flight_.end_with([&slot] { slot.done = true; });
                  });
      ++next_;
    }
    return {};
  }

  Mount& mount_;
  const File& file_;
  const uint64_t size_hint_bytes_;
  const uint32_t chunk_bytes_;
  uint64_t head_ = 0, next_ = 0;  // chunk numbers: next to write out, next to ask for
  uint64_t total_bytes_ = 0;
  std::vector<Slot> slots_;
  InFlight in_flight_;  // last: destroyed first, which waits for the reads
};

class Upload {
 public:
  Upload(Mount& mount, const File& file)
      : mount_(mount),
        file_(file),
        chunk_bytes_(mount.info().wsize_bytes),
        window_(window_requests(chunk_bytes_)) {}

  Result<uint64_t> run(int fd, Progress& progress) {
    for (;;) {
      auto buffer = next_buffer();
      if (!buffer) return buffer.error();
      auto n = read_full(fd, buffer->data(), chunk_bytes_);
      if (!n) return n.error();
      if (is_interrupted()) return interrupted_error();
      if (*n) send(std::move(*buffer), *n);
      progress.add(*n);
      if (*n < chunk_bytes_) break;
    }
    in_flight_.wait_until([](size_t count) { return count == 0; });
    if (is_interrupted()) return interrupted_error();
    if (auto error = in_flight_.error()) return *error;
    return offset_bytes_;
  }

 private:
  // Written buffers stay with the mount until a COMMIT covers them, so an empty pool may want a sync.
  Result<Buffer> next_buffer() {
    in_flight_.wait_until([this](size_t count) { return count < window_; });
    for (;;) {
      if (is_interrupted()) return interrupted_error();
      if (auto error = in_flight_.error()) return *error;
      if (Buffer buffer = mount_.borrow(chunk_bytes_)) return buffer;
      if (size_t before = in_flight_.count()) {
        in_flight_.wait_until([before](size_t count) { return count < before; });
        continue;
      }
      if (auto r = mount_.sync(file_); !r) return r.error();
      if (Buffer buffer = mount_.borrow(chunk_bytes_)) return buffer;
      return pool_error();
    }
  }

  void send(Buffer buffer, size_t length) {
    in_flight_.begin();
    mount_.write(
        file_, offset_bytes_, std::move(buffer), 0, length, Stability::unstable,
        [this, length](Result<size_t> outcome) {
          if (!outcome)
            in_flight_.end(outcome.error());
          else if (*outcome != length)
            in_flight_.end(Error(EIO, ErrorOrigin::protocol, "the server took a part of a write only"));
          else
            in_flight_.end();
        });
    offset_bytes_ += length;
  }

  Mount& mount_;
  const File& file_;
  const uint32_t chunk_bytes_;
  const size_t window_;
  uint64_t offset_bytes_ = 0;
  InFlight in_flight_;
};

}  // namespace

Result<uint64_t> download(Mount& mount, const File& file, uint64_t size_hint_bytes, int fd,
                          Progress& progress) {
  return Download(mount, file, size_hint_bytes).run(fd, progress);
}

Result<uint64_t> upload(Mount& mount, const File& file, int fd, Progress& progress) {
  return Upload(mount, file).run(fd, progress);
}

}  // namespace cli
