// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <memory>
#include <optional>

#include "client/mount_impl.hpp"
#include "nfsrdma/buffer.hpp"

namespace nfsrdma {

constexpr size_t transfer_pieces_max = 64;
constexpr size_t copied_piece_bytes = 1u << 20;

// Counts the pieces under way; wakes its one waiter at each end of a piece. Loop thread.
class Pieces {
 public:
  void add() { count_++; }
  void done() {
    count_--;
    if (waiter_) std::exchange(waiter_, {}).resume();
  }
  size_t count() const { return count_; }
  struct OneDone {
    Pieces& pieces;
    bool await_ready() const noexcept { return pieces.count_ == 0; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { pieces.waiter_ = h; }
    void await_resume() const noexcept {}
  };

 private:
  size_t count_ = 0;
  std::coroutine_handle<> waiter_;
};

// One read or write that is cut into pieces. Lives in the frame of the coroutine that waits for them; all on one loop.
struct Mount::Impl::Transfer {
  std::shared_ptr<client::FileState> file;
  uint64_t offset;
  Slice slice;
  Pieces join;
  static constexpr size_t no_end = ~size_t{0};
  size_t end = no_end;           // first byte that the file does not have, as far as is known
  size_t error_at;
  std::optional<Error> error;    // of the lowest piece that failed
  nfs4::StableHow stable = nfs4::StableHow::unstable;
  size_t dirty_count = 0;        // extents noted by unstable()
  client::DirtyExtent first;     // the usual case has one: no allocation
  std::vector<client::DirtyExtent> more;

  Transfer(std::shared_ptr<client::FileState> f, uint64_t o, Slice s)
      : file(std::move(f)), offset(o), slice(s), error_at(s.length) {}
  void fail(size_t at, const Error& e) {
    if (error && error_at <= at) return;
    error_at = at;
    error = e;
  }
  void end_at(size_t at) { end = std::min(end, at); }
  bool ended(size_t at) const { return at >= end || error; }
  void unstable(client::DirtyExtent extent) {
    if (dirty_count++ == 0)
      first = std::move(extent);
    else
      more.push_back(std::move(extent));
  }
  // Only what the caller is told was written: the memory of the rest may go.
  template <class F>
  void hand_over(F&& keep) {
    auto told = [this](const client::DirtyExtent& e) { return e.offset < offset + error_at; };
    if (dirty_count && told(first)) keep(std::move(first));
    for (client::DirtyExtent& extent : more)
      if (told(extent)) keep(std::move(extent));
  }
  Pieces::OneDone one_done() { return {join}; }
};

}  // namespace nfsrdma
