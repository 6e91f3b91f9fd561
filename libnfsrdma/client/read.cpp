// SPDX-License-Identifier: Apache-2.0
// READ: transfers of any length, split at rsize, the pieces in flight together, data placed where it belongs.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "client/mount_impl.hpp"
#include "client/transfer.hpp"

namespace nfsrdma {

using nfs4::Op;
using session::Repeat;
using session::SmallCompound;

// One READ after another until the piece is full or the file ends: a server may answer with less than was asked.
io::Task<Result<ReadResult>> Mount::Impl::read_piece(std::shared_ptr<FileState> file, uint64_t offset, Slice into) {
  ReadResult total;
  while (total.length < into.length) {
    auto stateid = stateid_for_io(*file);
    if (!stateid) co_return stateid.error();
    uint32_t count = static_cast<uint32_t>(into.length - total.length);
    rdma::Sge sink{into.region, into.offset + total.length, count};
    SmallCompound c(Op::read, Repeat::freely, file->who.identity()->wire, 1u, xdr::Form::whole, xdr::Form::reduced);
    c.add_sequence();
    c.add(nfs4::PutfhArgs{file->node->handle});
    c.add(nfs4::ReadArgs{*stateid, offset + total.length, count});
    auto sealed = c.seal();
    if (!sealed) co_return sealed.error();
    c.in = {std::span<const rdma::Sge>(&sink, 1), count};
    auto ran = co_await server_->run(c);
    if (!ran) co_return ran.error();
    nfs4::ReadResult got;
    if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(got)) {
      if (c.reader().malformed()) co_return failure(c, "READ");
      co_return state_lost(*file, c.reader().op_status());
    }
    if (got.data.length > count)
      co_return Error(EIO, ErrorOrigin::protocol, "READ: the server returned more than was asked");
    if (!c.data_placed && got.data.length > 0) {
      auto copied = into.region->copy_in(sink.offset, got.data.inline_bytes);
      if (!copied) co_return copied.error();
      bytes.bounced.fetch_add(got.data.length, std::memory_order_relaxed);
    } else {
      bytes.direct_read.fetch_add(got.data.length, std::memory_order_relaxed);
    }
    // Nothing at all and no end either: asking again would give the same.
    if (got.data.length == 0 && !got.eof)
      co_return Error(EIO, ErrorOrigin::protocol, "READ: the server returned no bytes before the end of the file");
    total.length += got.data.length;
    total.eof = got.eof;
    if (got.eof) break;
  }
  bytes.read.fetch_add(total.length, std::memory_order_relaxed);
  co_return total;
}

io::Task<void> Mount::Impl::read_part(Transfer& t, size_t at, size_t length) {
  auto got = co_await read_piece(t.file, t.offset + at, t.slice.sub(at, length));
  if (!got)
    t.fail(at, got.error());
  else if (got->eof)
    t.end_at(at + got->length);
  t.join.done();
}

io::Task<Result<ReadResult>> Mount::Impl::read(File handle, uint64_t offset, Slice into) {
  if (!handle || (into.length && !into.region)) co_return Error(EINVAL, ErrorOrigin::usage, "read: no file or no memory");
  if (into.length <= rsize_) co_return co_await read_piece(handle.state(), offset, into);
  Transfer t(handle.state(), offset, into);
  for (size_t at = 0; at < into.length; at += rsize_) {
    // No more under way than can be of use; the rest waits here and not in the slot queue.
    while (t.join.count() >= transfer_pieces_max) co_await t.one_done();
    if (t.ended(at)) break;
    t.join.add();
    io::spawn(read_part(t, at, std::min<size_t>(rsize_, into.length - at)));
  }
  while (t.join.count()) co_await t.one_done();
  if (t.error && t.error_at < t.end) {
    if (t.error_at == 0) co_return *t.error;
    co_return ReadResult{t.error_at, false};
  }
  co_return ReadResult{std::min(t.end, into.length), t.end != Transfer::no_end};
}

// Memory that is not registered: through pool buffers, piece by piece.
io::Task<Result<ReadResult>> Mount::Impl::read_copied(File handle, uint64_t offset, std::span<std::byte> into) {
  ReadResult total;
  while (total.length < into.size()) {
    uint32_t want = static_cast<uint32_t>(std::min<size_t>(into.size() - total.length, copied_piece_bytes));
    mem::Buffer buffer = co_await borrow(want, handle.state());
    if (!buffer) co_return Error(ENOBUFS, ErrorOrigin::local, "the buffer pool is used up");
    auto got = co_await read(handle, offset + total.length, Slice{buffer.region(), buffer.offset(), want});
    if (!got) {
      if (total.length) break;
      co_return got.error();
    }
    std::copy_n(buffer.data(), got->length, into.data() + total.length);
    bytes.bounced.fetch_add(got->length, std::memory_order_relaxed);
    total.length += got->length;
    total.eof = got->eof;
    if (got->eof || got->length < want) break;
  }
  co_return total;
}

}  // namespace nfsrdma
