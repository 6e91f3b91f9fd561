// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/attributes.hpp"
#include "server/names.hpp"
#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

constexpr uint32_t change_bytes = 20;
constexpr uint32_t link_text_bytes_max = 4095;

Status check_directory(const ObjectRef& object) {
  if (!object) return Status::nofilehandle;
  return object->type() == FileType::directory ? Status::ok : Status::notdir;
}

// What a name stands for is about to be removed or renamed: others' delegations of it must go first. The object is
// looked up only when there are delegations at all.
Task<Status> break_named(Compound& c, const ObjectRef& dir, std::string_view name) {
  if (!c.state.any_delegations()) co_return Status::ok;
  Answer<ObjectRef> object = co_await c.store.lookup(c.caller, dir, name);
  if (!object.ok()) co_return Status::ok;
  co_return c.state.break_delegations(c.client.get(), *object, true);
}

Status text_of_link(Compound& c, const nfs4::CreateArgs& args, std::string& text) {
  for (ByteView piece : c.pieces_of(args.link_text)) text += base::text_of(piece);
  if (text.size() != args.link_text.length || text.find('\0') != text.npos) return Status::inval;
  if (text.empty()) return Status::inval;
  return text.size() <= link_text_bytes_max ? Status::ok : Status::nametoolong;
}

}  // namespace

Task<Status> op_create(Compound& c, const nfs4::CreateArgs& args) {
  if (Status s = check_directory(c.current); s != Status::ok) co_return s;
  if (Status s = check_name(args.name); s != Status::ok) co_return s;
  CreateSpecial what;
  what.type = args.type;
  what.device = args.device;
  std::string text;
  switch (args.type) {
    case FileType::symlink:
      if (Status s = text_of_link(c, args, text); s != Status::ok) co_return s;
      what.link_text = text;
      break;
    case FileType::directory:
    case FileType::block:
    case FileType::character:
    case FileType::socket:
    case FileType::fifo: break;
    default: co_return Status::badtype;
  }
  if (Status s = read_settable(args.attributes, what.attributes); s != Status::ok) co_return s;
  if (Status s = c.need_room(change_bytes + 16); s != Status::ok) co_return s;
  ObjectRef dir = c.current;
  Answer<Created> created = co_await c.store.create_special(c.caller, dir, args.name, what);
  if (!created.ok()) co_return created.status;
  nfs4::CreateResult result;
  result.dir_change = created->directory;
  result.attributes_set = set_mask(created->set, args.attributes.mask);
  c.set_current(std::move(created->object));
  co_return c.answer(result);
}

Task<Status> op_remove(Compound& c, const nfs4::RemoveArgs& args) {
  if (Status s = check_directory(c.current); s != Status::ok) co_return s;
  if (Status s = check_name(args.name); s != Status::ok) co_return s;
  if (c.state.in_grace()) co_return Status::grace;
  if (Status s = c.need_room(change_bytes); s != Status::ok) co_return s;
  if (Status s = co_await break_named(c, c.current, args.name); s != Status::ok) co_return s;
  Answer<ChangeInfo> change = co_await c.store.remove(c.caller, c.current, args.name);
  if (!change.ok()) co_return change.status;
  nfs4::RemoveResult result;
  result.dir_change = *change;
  co_return c.answer(result);
}

Task<Status> op_rename(Compound& c, const nfs4::RenameArgs& args) {
  if (!c.saved) co_return Status::nofilehandle;
  if (Status s = check_directory(c.current); s != Status::ok) co_return s;
  if (Status s = check_directory(c.saved); s != Status::ok) co_return s;
  if (Status s = check_name(args.old_name); s != Status::ok) co_return s;
  if (Status s = check_name(args.new_name); s != Status::ok) co_return s;
  if (c.state.in_grace()) co_return Status::grace;
  if (Status s = c.need_room(2 * change_bytes); s != Status::ok) co_return s;
  if (Status s = co_await break_named(c, c.saved, args.old_name); s != Status::ok) co_return s;
  if (Status s = co_await break_named(c, c.current, args.new_name); s != Status::ok) co_return s;
  Answer<RenameDone> done = co_await c.store.rename(c.caller, c.saved, args.old_name, c.current, args.new_name);
  // A file over a directory or the reverse (RFC 8881, 18.26.3): both folders were looked at above.
  if (done.status == Status::isdir || done.status == Status::notdir) co_return Status::exist;
  if (!done.ok()) co_return done.status;
  nfs4::RenameResult result;
  result.source_change = done->source;
  result.target_change = done->target;
  co_return c.answer(result);
}

Task<Status> op_link(Compound& c, const nfs4::LinkArgs& args) {
  if (!c.saved) co_return Status::nofilehandle;
  if (Status s = check_directory(c.current); s != Status::ok) co_return s;
  if (Status s = check_name(args.new_name); s != Status::ok) co_return s;
  if (c.saved->type() == FileType::directory) co_return Status::isdir;
  if (Status s = c.need_room(change_bytes); s != Status::ok) co_return s;
  if (Status s = c.state.break_delegations(c.client.get(), c.saved, true); s != Status::ok) co_return s;
  Answer<ChangeInfo> change = co_await c.store.link(c.caller, c.saved, c.current, args.new_name);
  if (!change.ok()) co_return change.status;
  nfs4::LinkResult result;
  result.dir_change = *change;
  co_return c.answer(result);
}

}  // namespace nfsrdma::server
