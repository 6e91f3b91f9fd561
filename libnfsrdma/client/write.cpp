// SPDX-License-Identifier: Apache-2.0
// WRITE: sent as it lies, UNSTABLE unless durability was asked; what the server may lose is kept (commit.cpp).
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "client/mount_impl.hpp"
#include "client/transfer.hpp"

namespace nfsrdma {

using nfs4::Op;
using nfs4::StableHow;
using session::Repeat;
using session::SmallCompound;

// One WRITE operation; the server may take less than offered.
io::Task<Result<nfs4::WriteResult>> Mount::Impl::write_piece(FileState& file, uint64_t offset, rdma::Sge from,
                                                             StableHow stable) {
  auto stateid = stateid_for_io(file);
  if (!stateid) co_return stateid.error();
  SmallCompound c(Op::write, Repeat::freely, file.who.identity()->wire, 1u, xdr::Form::reduced);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{file.node->handle});
  nfs4::WriteArgs args;
  args.stateid = *stateid;
  args.offset = offset;
  args.stable = stable;
  args.data = xdr::DdpItem::elsewhere(from.length);
  c.add(args);
  auto sealed = c.seal();
  if (!sealed) co_return sealed.error();
  c.out.pieces = std::span<const rdma::Sge>(&from, 1);
  c.out.length = from.length;
  auto ran = co_await server_->run(c);
  if (!ran) co_return ran.error();
  nfs4::WriteResult written;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(written)) {
    if (c.reader().malformed()) co_return failure(c, "WRITE");
    co_return state_lost(file, c.reader().op_status());
  }
  if (written.count == 0 || written.count > from.length)
    co_return Error(EIO, ErrorOrigin::protocol,
                    base::text("WRITE: the server says it took %u of %u bytes", written.count, from.length));
  bytes.written.fetch_add(written.count, std::memory_order_relaxed);
  bytes.direct_written.fetch_add(written.count, std::memory_order_relaxed);
  co_return written;
}

// One piece of a transfer, in as many WRITEs as the server needs. Caller memory is tracked here; an owned buffer is
// handed over by write() once all of it was taken.
io::Task<void> Mount::Impl::write_part(Transfer& t, size_t at, size_t length) {
  while (length > 0) {
    rdma::Sge from{t.slice.region, t.slice.offset + at, static_cast<uint32_t>(length)};
    auto written = co_await write_piece(*t.file, t.offset + at, from, t.stable);
    if (!written) {
      t.fail(at, written.error());
      break;
    }
    if (written->committed == StableHow::unstable) {
      client::DirtyExtent extent;
      extent.offset = t.offset + at;
      extent.length = written->count;
      extent.source = {from.region, from.offset, written->count};
      extent.verifier = written->verifier;
      t.unstable(std::move(extent));
    }
    at += written->count;
    length -= written->count;
  }
  t.join.done();
}

io::Task<Result<size_t>> Mount::Impl::write(File handle, uint64_t offset, Slice from, mem::Buffer owned,
                                            Stability stability) {
  if (!handle || (from.length && !from.region)) co_return Error(EINVAL, ErrorOrigin::usage, "write: no file or no memory");
  if (from.length == 0) co_return size_t{0};
  bool durable = stability == Stability::durable || options_.sync_writes;
  Transfer t(handle.state(), offset, from);
  // One WRITE that must be durable asks for it itself; several are committed together.
  t.stable = durable && from.length <= wsize_ ? StableHow::file_sync : StableHow::unstable;
  for (size_t at = 0; at < from.length; at += wsize_) {
    while (t.join.count() >= transfer_pieces_max) co_await t.one_done();
    if (t.error) break;
    t.join.add();
    io::spawn(write_part(t, at, std::min<size_t>(wsize_, from.length - at)));
  }
  while (t.join.count()) co_await t.one_done();
  bool any_dirty = t.dirty_count > 0;
  // All extents of an owned buffer share it: it returns to the pool when the last of them is durable. The usual case
  // has one extent, and allocates nothing.
  std::shared_ptr<mem::Buffer> shared;
  if (owned && t.dirty_count > 1) shared = std::make_shared<mem::Buffer>(std::move(owned));
  t.hand_over([&](client::DirtyExtent extent) {
    extent.buffer = std::move(owned);
    extent.shared_buffer = shared;
    keep_dirty(handle.state(), std::move(extent));
  });
  if (t.error) {
    if (t.error_at == 0) co_return *t.error;
    co_return t.error_at;
  }
  if (durable && any_dirty) {
    auto synced = co_await sync(handle);
    if (!synced) co_return synced.error();
  }
  co_return from.length;
}

io::Task<Result<size_t>> Mount::Impl::write_copied(File handle, uint64_t offset, std::span<const std::byte> from,
                                                   Stability stability) {
  size_t total = 0;
  while (total < from.size()) {
    size_t n = std::min(from.size() - total, copied_piece_bytes);
    mem::Buffer buffer = co_await borrow(static_cast<uint32_t>(n), handle.state());
    if (!buffer) co_return Error(ENOBUFS, ErrorOrigin::local, "the buffer pool is used up");
    std::copy_n(from.data() + total, n, buffer.data());
    bytes.bounced.fetch_add(n, std::memory_order_relaxed);
    Slice slice{buffer.region(), buffer.offset(), n};
    auto written = co_await write(handle, offset + total, slice, std::move(buffer), stability);
    if (!written) {
      if (total) break;
      co_return written.error();
    }
    total += *written;
    if (*written < n) break;
  }
  co_return total;
}

// Waits for a pool buffer: what is uncommitted is committed first, since that is what holds them.
io::Task<mem::Buffer> Mount::Impl::borrow(uint32_t bytes_wanted, const std::shared_ptr<FileState>& file) {
  for (;;) {
    mem::Buffer buffer = pool().try_borrow(bytes_wanted);
    if (buffer || bytes_wanted > pool().largest_bytes()) co_return buffer;
    bool dirty = false;
    {
      std::lock_guard lock(file->node->mutex);
      dirty = !file->node->dirty.empty();
    }
    // An error stays with the file until it is asked for.
    if (dirty) {
      co_await settle(file);
    } else {
      commit_due(base::never_ns);
      co_await io::IoLoop::current()->sleep_for(base::ms(1));
    }
  }
}

}  // namespace nfsrdma
