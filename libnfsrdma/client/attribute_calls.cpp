// SPDX-License-Identifier: Apache-2.0
// GETATTR, SETATTR, ACCESS.
#include <cerrno>

#include "base/log.hpp"
#include "client/mount_impl.hpp"

namespace nfsrdma {

using nfs4::Op;
using session::Repeat;
using session::SmallCompound;

io::Task<Result<Attributes>> Mount::Impl::get_attributes(Node node, Credentials who) {
  auto entry = co_await get_entry(handle_of(node), std::move(who));
  if (!entry) co_return entry.error();
  co_return entry->attributes;
}

io::Task<Result<Entry>> Mount::Impl::get_entry(nfs4::FileHandle handle, Credentials who) {
  SmallCompound c(Op::getattr, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle});
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::GetattrResult got;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(got)) co_return failure(c, "GETATTR");
  co_return entry_of(handle, got.attributes);
}

io::Task<Result<Attributes>> Mount::Impl::set_attributes(Node node, nfs4::Stateid stateid, AttributeChange change,
                                                         Credentials who) {
  auto entry = co_await set_entry(handle_of(node), stateid, std::move(change), std::move(who));
  if (!entry) co_return entry.error();
  co_return entry->attributes;
}

io::Task<Result<Entry>> Mount::Impl::set_entry(nfs4::FileHandle handle, nfs4::Stateid stateid, AttributeChange change,
                                               Credentials who) {
  client::ChangeScratch scratch;
  nfs4::SetattrArgs args;
  args.stateid = stateid;
  if (!client::encode_change(change, scratch, args.attributes))
    co_return Error(EINVAL, ErrorOrigin::usage, "attributes do not encode");
  session::SizedCompound<1024> c(Op::setattr, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle});
  c.add(args);
  c.mark_main();
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::SetattrResult set;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(set)) co_return failure(c, "SETATTR");
  co_return co_await finish_entry(c, handle, std::move(who));
}

io::Task<Result<Attributes>> Mount::Impl::set_attributes_open(File file, AttributeChange change, Credentials who) {
  if (!file) co_return Error(EBADF, ErrorOrigin::usage, "no open file");
  FileState& f = *file.state();
  nfs4::Stateid stateid = nfs4::anonymous_stateid;
  // Only a size needs the open state, and only a handle open for writing has it to give.
  if (change.size_bytes && (f.open_flags & open_write)) {
    auto held = stateid_for_io(f);
    if (!held) co_return held.error();
    stateid = *held;
  }
  co_return co_await set_attributes(Node(f.node), stateid, std::move(change), std::move(who));
}

io::Task<Result<uint32_t>> Mount::Impl::access(Node node, uint32_t wanted, Credentials who) {
  SmallCompound c(Op::access, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(node)});
  c.add(nfs4::AccessArgs{wanted});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::AccessResult got;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(got)) co_return failure(c, "ACCESS");
  co_return got.access & got.supported;
}

io::Task<Result<FileSystemStats>> Mount::Impl::file_system_stats(Node node, Credentials who) {
  SmallCompound c(Op::getattr, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(node)});
  c.add(nfs4::GetattrArgs{nfs4::statfs_attributes | nfs4::Bitmap{nfs4::attr::maxname}});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::GetattrResult got;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(got)) co_return failure(c, "GETATTR");
  nfs4::Attributes a;
  if (nfs4::decode_fattr(got.attributes, a) == nfs4::FattrRead::malformed)
    co_return Error(EIO, ErrorOrigin::protocol, "the server's file system attributes do not decode");
  FileSystemStats s;
  s.total_bytes = a.space_total;
  s.free_bytes = a.space_free;
  s.available_bytes = a.space_avail;
  s.total_files = a.files_total;
  s.free_files = a.files_free;
  s.available_files = a.files_avail;
  if (a.has(nfs4::attr::maxname)) s.name_bytes_max = a.maxname;
  co_return s;
}

}  // namespace nfsrdma
