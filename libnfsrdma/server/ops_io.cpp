// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

// off_t's range: what lies beyond no file of this machine can have.
constexpr uint64_t offset_max = INT64_MAX;

Status check_regular(const Compound& c) {
  if (!c.current) return Status::nofilehandle;
  if (c.current->type() == FileType::directory) return Status::isdir;
  return c.current->type() == FileType::regular ? Status::ok : Status::wrong_type;
}

// The file to use: the stateid's, or one opened for this call with the caller's own rights. Somebody else than who
// opened it needs the right himself: a stateid is no capability.
Task<Answer<OpenFileRef>> file_for(Compound& c, const Stateid& stateid, Need need) {
  DataAccess access;
  Status s = c.state.data_access(c.client, c.current, c.resolve(stateid), need, access);
  if (s != Status::ok) co_return s;
  if (access.file && access.opener == c.caller) co_return access.file;
  Answer<OpenFileRef> own = co_await c.store.open(c.caller, c.current, need == Need::read, need == Need::write, true);
  if (!own.ok()) co_return own.status;
  co_return access.file ? access.file : *own;
}

}  // namespace

Task<Status> op_read(Compound& c, const nfs4::ReadArgs& args) {
  if (Status s = check_regular(c); s != Status::ok) co_return s;
  Answer<OpenFileRef> file = co_await file_for(c, args.stateid, Need::read);
  if (!file.ok()) co_return file.status;
  constexpr uint32_t overhead_bytes = 8;
  uint32_t room = c.payload_room(overhead_bytes);
  uint32_t count = std::min({args.count, room, c.context.data_bytes_max});
  if (count == 0 && args.count > 0) co_return c.too_big();
  // Behind the end of every file there is nothing to read, and that is no failure (RFC 8881, 18.22.3).
  if (args.offset > offset_max - count) {
    count = args.offset < offset_max ? static_cast<uint32_t>(offset_max - args.offset) : 0;
  }
  // What this process looks into itself must be in memory of its own.
  ReadPlace place{c.pool, c.in_place && !c.cache_this && !c.has_payload()};
  Answer<ReadData> data = co_await c.store.read(*file, args.offset, count, place);
  if (!data.ok()) co_return data.status;
  nfs4::ReadResult result;
  result.eof = data->eof;
  if (c.has_payload()) {
    // Only one payload of a reply goes out of band.
    std::span<const std::byte> bytes;
    if (data->length > 0) bytes = {data->piece.region->host() + data->piece.offset, data->length};
    result.data = xdr::DdpItem::of(bytes);
    co_return c.answer(result);
  }
  result.data = xdr::DdpItem::elsewhere(data->length);
  if (Status s = c.answer(result); s != Status::ok) co_return s;
  c.set_payload(std::move(*data));
  co_return Status::ok;
}

Task<Status> op_write(Compound& c, const nfs4::WriteArgs& args) {
  if (Status s = check_regular(c); s != Status::ok) co_return s;
  if (args.stable > nfs4::StableHow::file_sync) co_return Status::badxdr;
  constexpr uint32_t result_bytes = 16;
  if (Status s = c.need_room(result_bytes); s != Status::ok) co_return s;
  Answer<OpenFileRef> file = co_await file_for(c, args.stateid, Need::write);
  if (!file.ok()) co_return file.status;
  if (args.offset > offset_max - args.data.length) co_return Status::fbig;
  std::span<const ByteView> pieces = c.pieces_of(args.data);
  if (pieces.empty() && args.data.length > 0) co_return Status::badxdr;
  nfs4::WriteResult result;
  // Read before the data is written: a loss in between then shows.
  result.verifier = c.store.write_verifier();
  Answer<WriteDone> done = co_await c.store.write(c.caller, *file, args.offset, pieces, args.stable);
  if (!done.ok()) co_return done.status;
  result.count = done->count;
  result.committed = done->committed;
  co_return c.answer(result);
}

Task<Status> op_commit(Compound& c, const nfs4::CommitArgs& args) {
  if (Status s = check_regular(c); s != Status::ok) co_return s;
  if (args.count > UINT64_MAX - args.offset) co_return Status::inval;
  nfs4::CommitResult result;
  Answer<Nothing> done = co_await c.store.commit(c.caller, c.current);
  if (!done.ok()) co_return done.status;
  result.verifier = c.store.write_verifier();
  co_return c.answer(result);
}

}  // namespace nfsrdma::server
