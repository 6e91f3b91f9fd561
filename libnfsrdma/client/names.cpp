// SPDX-License-Identifier: Apache-2.0
// LOOKUP, READLINK, CREATE, LINK, REMOVE, RENAME.
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

constexpr uint32_t symlinks_followed_max = 40;

Result<void> check_name(std::string_view name) {
  if (name.empty()) return Error(ENOENT, ErrorOrigin::usage, "the name is empty");
  if (name.find('/') != name.npos || name.find('\0') != name.npos)
    return Error(EINVAL, ErrorOrigin::usage, "a name must not contain '/' or a zero byte");
  if (name.size() > 2048)
    return Error(ENAMETOOLONG, ErrorOrigin::usage, base::text("the name is %zu bytes long", name.size()));
  return {};
}

}  // namespace

const nfs4::FileHandle& Mount::Impl::handle_of(const Node& node) {
  static const nfs4::FileHandle none;
  return node.state() ? node.state()->handle : none;
}

io::Task<Result<void>> Mount::Impl::run(session::Compound& c) {
  auto sealed = c.seal();
  if (!sealed) co_return sealed.error();
  co_return co_await server_->run(c);
}

// Of a compound whose results did not all succeed.
Error Mount::Impl::failure(session::Compound& c, const char* what) {
  nfs4::CompoundReader& reader = c.reader();
  if (reader.malformed()) {
    Error e(EIO, ErrorOrigin::protocol,
            base::text("%s: malformed reply (%s)", what, reader.complaint() ? reader.complaint() : "?"));
    server_->replace_connection_of(c, e);
    return e;
  }
  return session::nfs_error(reader.op_status(), what);
}

Result<Entry> Mount::Impl::entry_of(const nfs4::FileHandle& handle, const nfs4::Fattr& fattr) {
  nfs4::Attributes raw;
  Entry entry;
  if (!client::decode_stat(fattr, raw, entry.attributes))
    return Error(EIO, ErrorOrigin::protocol, "the server's attributes do not decode or lack the type");
  entry.node = Node(nodes_->get(handle, raw.fsid, raw.fileid, entry.attributes.type));
  return entry;
}

// GETFH and GETATTR stand next in the reply.
Result<Entry> Mount::Impl::take_entry(session::Compound& c) {
  nfs4::GetfhResult fh;
  nfs4::GetattrResult attributes;
  if (!c.reader().next(fh) || !c.reader().next(attributes)) return failure(c, nfs4::to_string(c.main_op()));
  return entry_of(fh.fh, attributes.attributes);
}

// GETATTR stands next in the reply, and what came before it has been done. A server that recalls a delegation before it
// tells the attributes is asked for them again, lest the whole call look as if it had failed.
io::Task<Result<Entry>> Mount::Impl::finish_entry(session::Compound& c, nfs4::FileHandle handle, Credentials who) {
  nfs4::GetattrResult got;
  if (c.reader().next(got)) co_return entry_of(handle, got.attributes);
  if (c.reader().malformed() || session::reaction_to(c.reader().op_status()) != session::Reaction::delay)
    co_return failure(c, "GETATTR");
  co_return co_await get_entry(handle, std::move(who));
}

io::Task<Result<Entry>> Mount::Impl::lookup(Node directory, std::string name, Credentials who) {
  auto good = check_name(name);
  if (!good) co_return good.error();
  LargeCompound c(Op::lookup, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(directory)});
  c.add(nfs4::LookupArgs{name});
  c.add(nfs4::GetfhArgs{});
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next<nfs4::LookupResult>()) co_return failure(c, "LOOKUP");
  co_return take_entry(c);
}

io::Task<Result<Entry>> Mount::Impl::lookup_parent(Node directory, Credentials who) {
  SmallCompound c(Op::lookupp, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(directory)});
  c.add(nfs4::LookuppArgs{});
  c.add(nfs4::GetfhArgs{});
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next<nfs4::LookuppResult>()) co_return failure(c, "LOOKUPP");
  co_return take_entry(c);
}

io::Task<Result<std::string>> Mount::Impl::read_link(Node link, Credentials who) {
  SmallCompound c(Op::readlink, Repeat::freely, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(link)});
  c.add(nfs4::ReadlinkArgs{});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::ReadlinkResult text;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(text)) co_return failure(c, "READLINK");
  std::string_view target = base::text_of(text.text.inline_bytes);
  if (target.empty() || target.find('\0') != target.npos)
    co_return Error(EIO, ErrorOrigin::protocol, "READLINK: the server's link text is empty or has a zero byte");
  co_return std::string(target);
}

// Walks component by component: links on the way are followed from where they stand, absolute ones from the root.
io::Task<Result<Entry>> Mount::Impl::resolve(std::string path, bool follow, Credentials who) {
  std::vector<Entry> stack;  // the directories from the root to here
  auto root = co_await get_attributes(root_, who);
  if (!root) co_return root.error();
  stack.push_back({root_, *root});
  uint32_t links = 0;
  std::string rest = std::move(path);
  while (!rest.empty()) {
    size_t slash = rest.find('/');
    std::string name = rest.substr(0, slash);
    rest = slash == rest.npos ? "" : rest.substr(slash + 1);
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (stack.size() > 1) stack.pop_back();
      continue;
    }
    if (stack.back().attributes.type != NodeType::directory)
      co_return Error(ENOTDIR, ErrorOrigin::server, "\"" + name + "\" is looked for in something that is no directory");
    auto entry = co_await lookup(stack.back().node, name, who);
    if (!entry) co_return entry.error().in("\"" + name + "\"");
    bool last = rest.find_first_not_of('/') == rest.npos;
    if (entry->attributes.type != NodeType::symlink || (last && !follow && rest.empty())) {
      stack.push_back(std::move(*entry));
      continue;
    }
    if (++links > symlinks_followed_max)
      co_return Error(ELOOP, ErrorOrigin::server, "more than 40 symbolic links on the way");
    auto target = co_await read_link(entry->node, who);
    if (!target) co_return target.error();
    if (target->starts_with('/')) stack.resize(1);
    rest = rest.empty() ? *target : *target + "/" + rest;
  }
  co_return std::move(stack.back());
}

io::Task<Result<Entry>> Mount::Impl::make(Node directory, std::string name, nfs4::FileType type, uint32_t mode,
                                          nfs4::Device device, std::string target, Credentials who) {
  auto good = check_name(name);
  if (!good) co_return good.error();
  if (target.size() > 4096)
    co_return Error(ENAMETOOLONG, ErrorOrigin::usage, "the link's target is longer than 4096 bytes");
  client::ChangeScratch scratch;
  AttributeChange change;
  change.mode = mode;
  nfs4::CreateArgs args;
  args.type = type;
  args.device = device;
  args.name = name;
  args.link_text = xdr::DdpItem::of(base::bytes_of(target));
  if (!client::encode_change(change, scratch, args.attributes))
    co_return Error(EINVAL, ErrorOrigin::usage, "attributes do not encode");
  LargeCompound c(Op::create, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(directory)});
  c.add(args);
  c.mark_main();
  c.add(nfs4::GetfhArgs{});
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::CreateResult created;
  nfs4::GetfhResult fh;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(created) || !c.reader().next(fh))
    co_return failure(c, "CREATE");
  co_return co_await finish_entry(c, fh.fh, std::move(who));
}

io::Task<Result<Entry>> Mount::Impl::make_link(Node file, Node directory, std::string name, Credentials who) {
  auto good = check_name(name);
  if (!good) co_return good.error();
  LargeCompound c(Op::link, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(file)});
  c.add(nfs4::SavefhArgs{});
  c.add(nfs4::PutfhArgs{handle_of(directory)});
  c.add(nfs4::LinkArgs{name});
  c.mark_main();
  c.add(nfs4::RestorefhArgs{});
  c.add(nfs4::GetfhArgs{});
  c.add(nfs4::GetattrArgs{nfs4::stat_attributes});
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::LinkResult linked;
  nfs4::GetfhResult fh;
  nfs4::CompoundReader& reader = c.reader();
  if (!reader.next<nfs4::PutfhResult>() || !reader.next<nfs4::SavefhResult>() || !reader.next<nfs4::PutfhResult>() ||
      !reader.next(linked) || !reader.next<nfs4::RestorefhResult>() || !reader.next(fh))
    co_return failure(c, "LINK");
  co_return co_await finish_entry(c, fh.fh, std::move(who));
}

io::Task<Result<void>> Mount::Impl::remove(Node directory, std::string name, Credentials who) {
  auto good = check_name(name);
  if (!good) co_return good.error();
  LargeCompound c(Op::remove, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(directory)});
  c.add(nfs4::RemoveArgs{name});
  c.mark_main();
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::RemoveResult removed;
  if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(removed)) co_return failure(c, "REMOVE");
  co_return Result<void>{};
}

io::Task<Result<void>> Mount::Impl::rename(Node from_directory, std::string from_name, Node to_directory,
                                           std::string to_name, Credentials who) {
  auto good = check_name(from_name);
  if (good) good = check_name(to_name);
  if (!good) co_return good.error();
  LargeCompound c(Op::rename, Repeat::exactly_once, who.identity()->wire);
  c.add_sequence();
  c.add(nfs4::PutfhArgs{handle_of(from_directory)});
  c.add(nfs4::SavefhArgs{});
  c.add(nfs4::PutfhArgs{handle_of(to_directory)});
  c.add(nfs4::RenameArgs{from_name, to_name});
  c.mark_main();
  auto ran = co_await run(c);
  if (!ran) co_return ran.error();
  nfs4::RenameResult renamed;
  nfs4::CompoundReader& reader = c.reader();
  if (!reader.next<nfs4::PutfhResult>() || !reader.next<nfs4::SavefhResult>() || !reader.next<nfs4::PutfhResult>() ||
      !reader.next(renamed))
    co_return failure(c, "RENAME");
  co_return Result<void>{};
}

}  // namespace nfsrdma
