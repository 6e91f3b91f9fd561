// SPDX-License-Identifier: Apache-2.0
// OPEN and CLOSE. Each open file has an open owner of its own, hence a stateid of its own: one CLOSE ends one open.
#include <cerrno>

#include "base/log.hpp"
#include "client/mount_impl.hpp"

namespace nfsrdma {

using nfs4::Op;
using nfs4::Status;
using session::LargeCompound;
using session::Repeat;
using session::SmallCompound;

namespace {

uint32_t share_access_of(uint32_t open_flags) {
  uint32_t access = 0;
  if (open_flags & open_read) access |= nfs4::share::access_read;
  if (open_flags & open_write) access |= nfs4::share::access_write;
  return access;
}

}  // namespace

std::shared_ptr<client::FileState> Mount::Impl::new_file(const std::shared_ptr<NodeState>& node, uint32_t open_flags,
                                                         const Credentials& who) {
  auto file = std::make_shared<FileState>(who);
  file->node = node;
  file->open_flags = open_flags;
  file->owner_id = next_owner_.fetch_add(1, std::memory_order_relaxed);
  file->epoch = server_->state_epoch();
  file->open = false;  // until the server says so
  return file;
}

nfs4::OpenArgs Mount::Impl::open_args(const FileState& file, std::array<std::byte, 16>& owner) {
  base::store_be(owner.data(), owner_seed_);
  base::store_be(owner.data() + 8, file.owner_id);
  nfs4::OpenArgs args;
  args.share_access = share_access_of(file.open_flags) | nfs4::share::want_no_deleg;
  args.owner = {server_->client_id(), owner};
  return args;
}

// Runs a compound of PUTFH OPEN GETFH [SETATTR of `after`] GETATTR and fills the file from it.
io::Task<Result<Opened>> Mount::Impl::run_open(session::Compound& c, std::shared_ptr<FileState> file,
                                               std::optional<AttributeChange> after) {
  open_requests_.fetch_add(1, std::memory_order_relaxed);
  auto ran = co_await run(c);
  open_requests_.fetch_sub(1, std::memory_order_relaxed);
  if (!ran) co_return ran.error();
  nfs4::CompoundReader& reader = c.reader();
  nfs4::OpenResult opened;
  nfs4::GetfhResult fh;
  if (!reader.next<nfs4::PutfhResult>() || !reader.next(opened)) co_return failure(c, "OPEN");
  // From here on the server holds an open: whatever fails below, it has to be closed again.
  file->stateid = opened.stateid;
  file->epoch = c.state_epoch;
  bool have_handle = reader.next(fh);
  nfs4::FileHandle handle = have_handle ? fh.fh : file->node ? file->node->handle : nfs4::FileHandle{};
  if (opened.delegation.granted() && !handle.empty()) io::spawn(return_delegation(handle, opened.delegation.stateid));
  // g++ 12 destroys the result twice when co_await stands in a conditional expression.
  Result<Entry> entry = Entry{};
  if (have_handle) entry = co_await finish_open(c, handle, *file, std::move(after));
  else entry = failure(c, "OPEN");
  if (!entry) {
    if (!handle.empty()) io::spawn(close_in_background(handle, opened.stateid, file->who));
    co_return entry.error();
  }
  file->node = entry->node.state();
  {
    std::lock_guard lock(file->node->mutex);
    file->errors_seen = file->node->write_error_count;
  }
  {
    std::lock_guard lock(link_->mutex);
    file->open = true;
    file->link = link_;
    link_->open_files.insert(file.get());
  }
  Opened out;
  out.file = File(file);
  out.node = entry->node;
  out.attributes = entry->attributes;
  out.created = opened.dir_change.before != opened.dir_change.after;
  co_return out;
}

// [SETATTR] GETATTR stand next in the reply. What the server was not ready for is asked again on its own.
io::Task<Result<Entry>> Mount::Impl::finish_open(session::Compound& c, nfs4::FileHandle handle, const FileState& file,
                                                 std::optional<AttributeChange> after) {
  nfs4::SetattrResult set;
  if (!after || c.reader().next(set)) co_return co_await finish_entry(c, handle, file.who);
  if (c.reader().malformed() || session::reaction_to(c.reader().op_status()) != session::Reaction::delay)
    co_return failure(c, "SETATTR");
  co_return co_await set_entry(handle, file.stateid.newest(), *after, file.who);
}

io::Task<Result<Opened>> Mount::Impl::open(Node node, uint32_t open_flags, Credentials who) {
  if (share_access_of(open_flags) == 0) co_return Error(EINVAL, ErrorOrigin::usage, "open for neither reading nor writing");
  auto file = new_file(node.state(), open_flags, who);
  std::array<std::byte, 16> owner;
  nfs4::OpenArgs args = open_args(*file, owner);
  args.claim.type = nfs4::ClaimType::fh;
  session::SizedCompound<1024> c(Op::open, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(node)});
  c.add(args);
  c.mark_main();
  c.add(nfs4::GetfhArgs{});
  std::optional<AttributeChange> after;
  client::ChangeScratch scratch;
  if (open_flags & open_truncate) {
    after.emplace().size_bytes = 0;
    nfs4::SetattrArgs set;
    set.stateid = nfs4::current_stateid;  // the one that OPEN has just made
    client::encode_change(*after, scratch, set.attributes);
    c.add(set);
  }
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto opened = co_await run_open(c, std::move(file), std::move(after));
  if (opened) opened->created = false;  // CLAIM_FH: there is no directory whose change could be told
  co_return opened;
}

io::Task<Result<Opened>> Mount::Impl::create(Node directory, std::string name, uint32_t open_flags, uint32_t mode,
                                             Credentials who) {
  if (name.empty() || name.size() > 2048 || name.find('/') != name.npos || name.find('\0') != name.npos)
    co_return Error(name.size() > 2048 ? ENAMETOOLONG : EINVAL, ErrorOrigin::usage, "not a file name");
  if (share_access_of(open_flags) == 0) co_return Error(EINVAL, ErrorOrigin::usage, "open for neither reading nor writing");
  auto file = new_file(nullptr, open_flags, who);
  std::array<std::byte, 16> owner;
  nfs4::OpenArgs args = open_args(*file, owner);
  args.claim.type = nfs4::ClaimType::null;
  args.claim.name = name;
  args.how.type = nfs4::OpenType::create;
  AttributeChange change;
  change.mode = mode;
  bool exclusive = open_flags & open_exclusive;
  if (exclusive) {
    // EXCLUSIVE4_1: a replay finds its own verifier and is no EEXIST.
    args.how.mode = nfs4::CreateMode::exclusive4_1;
    base::store_be(args.how.verifier.data(), owner_seed_ ^ (file->owner_id * 0x9e3779b97f4a7c15u));
    if (!exclusive_attributes_.test(nfs4::attr::mode)) change.mode.reset();
  } else if (open_flags & open_truncate) {
    change.size_bytes = 0;
  }
  std::optional<AttributeChange> after;
  client::ChangeScratch scratch, after_scratch;
  if (!client::encode_change(change, scratch, args.how.attributes))
    co_return Error(EINVAL, ErrorOrigin::usage, "attributes do not encode");
  LargeCompound c(Op::open, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(directory)});
  c.add(args);
  c.mark_main();
  c.add(nfs4::GetfhArgs{});
  if (exclusive) {
    // Servers keep the verifier in the times: give the file its real ones (and its mode, if it could not come along).
    after.emplace();
    after->atime_now = after->mtime_now = true;
    if (!change.mode) after->mode = mode;
    nfs4::SetattrArgs set;
    set.stateid = nfs4::current_stateid;
    client::encode_change(*after, after_scratch, set.attributes);
    c.add(set);
  }
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto opened = co_await run_open(c, std::move(file), std::move(after));
  if (opened && exclusive) opened->created = true;
  co_return opened;
}

// A delegation that was given although none was wanted goes straight back: nothing here relies on one.
io::Task<void> Mount::Impl::return_delegation(nfs4::FileHandle handle, nfs4::Stateid stateid) {
  background_.fetch_add(1);
  {
    SmallCompound c(Op::delegreturn, Repeat::exactly_once, default_credentials_.identity()->wire);
    c.add_sequence();
    c.add(nfs4::PutfhArgs{handle});
    c.add(nfs4::DelegreturnArgs{stateid});
    auto ran = co_await run(c);
    if (!ran) base::log(base::LogLevel::info, "client", "DELEGRETURN: %s", ran.error().text().c_str());
  }
  background_.fetch_sub(1);
}

io::Task<Result<void>> Mount::Impl::send_close(const nfs4::FileHandle& handle, const nfs4::Stateid& stateid,
                                               const Credentials& who) {
  SmallCompound c(Op::close, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle});
  nfs4::CloseArgs args;
  args.stateid = stateid;
  c.add(args);
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::CloseResult closed;
  if (c.reader().next<nfs4::PutfhResult>() && c.reader().next(closed)) co_return Result<void>{};
  switch (c.reader().op_status()) {
    case Status::bad_stateid:
    case Status::stale_stateid:
    case Status::expired:
    case Status::admin_revoked:
    case Status::deleg_revoked:
    case Status::stale: co_return Result<void>{};  // the server holds nothing any more
    default: co_return failure(c, "CLOSE");
  }
}

io::Task<void> Mount::Impl::close_in_background(nfs4::FileHandle handle, nfs4::Stateid stateid, Credentials who) {
  background_.fetch_add(1);
  auto closed = co_await send_close(handle, stateid, who);
  if (!closed) base::log(base::LogLevel::info, "client", "CLOSE: %s", closed.error().text().c_str());
  background_.fetch_sub(1);
}

// From the destructor of the last handle, on any thread; the link keeps us alive meanwhile.
void Mount::Impl::close_abandoned(FileState& file) {
  if (shut_down_ || file.epoch != server_->state_epoch()) return;
  struct Late {
    nfs4::FileHandle handle;
    nfs4::Stateid stateid;
    Credentials who;
  };
  auto late = std::make_shared<Late>(Late{file.node->handle, file.stateid, file.who});
  background_.fetch_add(1);
  some_loop().post([this, late] {
    io::spawn(close_in_background(late->handle, late->stateid, late->who));
    background_.fetch_sub(1);
  });
}

io::Task<Result<void>> Mount::Impl::close(File handle) {
  std::shared_ptr<FileState> file = handle.state();
  auto synced = co_await sync(handle);
  if (!file) co_return synced;
  nfs4::Stateid stateid;
  bool held = false;
  {
    std::lock_guard lock(file->mutex);
    if (!file->open) co_return Error(EBADF, ErrorOrigin::usage, "the file is closed already");
    file->open = false;
    stateid = file->stateid;
    held = !file->lost && file->epoch == server_->state_epoch();
  }
  if (held) {
    auto closed = co_await send_close(file->node->handle, stateid, file->who);
    if (synced && !closed) co_return closed.error();
  }
  co_return synced;
}

// The newest stateid for READ, WRITE and SETATTR (seqid 0, RFC 8881 section 8.2.2).
Result<nfs4::Stateid> Mount::Impl::stateid_for_io(FileState& file) {
  std::lock_guard lock(file.mutex);
  if (!file.open) return Error(EBADF, ErrorOrigin::usage, "the file is closed");
  if (file.lost || file.epoch != server_->state_epoch())
    return Error(EIO, ErrorOrigin::server,
                 "the server lost this open file (it restarted, or our lease ran out); open it again");
  return file.stateid.newest();
}

// The server refused the stateid: the handle is dead and says so from now on.
Error Mount::Impl::state_lost(FileState& file, Status status) {
  switch (status) {
    case Status::bad_stateid:
    case Status::stale_stateid:
    case Status::expired:
    case Status::admin_revoked:
    case Status::deleg_revoked: {
      std::lock_guard lock(file.mutex);
      file.lost = true;
      return Error(EIO, ErrorOrigin::server,
                   base::text("the server lost this open file (NFS4ERR_%s); open it again", nfs4::to_string(status)),
                   static_cast<uint32_t>(status));
    }
    default: return session::nfs_error(status, "I/O");
  }
}

}  // namespace nfsrdma
