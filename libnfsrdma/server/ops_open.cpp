// SPDX-License-Identifier: Apache-2.0
// OPEN, OPEN_DOWNGRADE, CLOSE: RFC 8881, 18.2, 18.16, 18.18.
#include "server/attributes.hpp"
#include "server/names.hpp"
#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

namespace share = nfs4::share;
using nfs4::ClaimType;
using nfs4::CreateMode;

// stateid, change, flags, attributes set, delegation with an empty list of permissions.
constexpr uint32_t result_bytes = 16 + 20 + 4 + 16 + 4 + 16 + 4 + 12 + 16;

struct Opening {
  OpenRequest request;
  CreateFile create;
  bool creates = false;
  bool truncates = false;
  ObjectRef object;
  bool created = false;
  uint32_t set = 0;
  ChangeInfo directory;
};

bool names_file(ClaimType claim) { return claim == ClaimType::null || claim == ClaimType::delegate_cur; }

Status read_create(const nfs4::OpenHow& how, Opening& o) {
  o.creates = true;
  o.create.verifier = how.verifier;
  switch (how.mode) {
    case CreateMode::unchecked: o.create.how = CreateHow::unchecked; break;
    case CreateMode::guarded: o.create.how = CreateHow::guarded; break;
    case CreateMode::exclusive:
      o.create.how = CreateHow::exclusive;
      return Status::ok;
    case CreateMode::exclusive4_1: o.create.how = CreateHow::exclusive; break;
  }
  if (Status s = read_settable(how.attributes, o.create.attributes); s != Status::ok) return s;
  if (how.mode == CreateMode::exclusive4_1 && !(how.attributes.mask - attributes_with_exclusive).none()) {
    return Status::inval;
  }
  // Of an existing file only its size may be set, and only to nothing.
  o.truncates = how.mode == CreateMode::unchecked && o.create.attributes.has(SetAttributes::size) &&
                o.create.attributes.size_bytes == 0;
  return Status::ok;
}

Status read_request(Compound& c, const nfs4::OpenArgs& args, Opening& o) {
  constexpr uint32_t share_known = share::access_mask | share::want_mask | share::signal_when_available |
                                   share::push_when_uncontended;
  uint32_t access = args.share_access & share::access_mask;
  if (access == 0 || (args.share_access & ~share_known) || args.share_deny > share::deny_both) return Status::inval;
  if ((args.share_access & share::want_mask) > share::want_cancel) return Status::inval;
  o.request.owner = base::text_of(args.owner.owner);
  o.request.opener = c.caller;
  o.request.access = access;
  o.request.deny = args.share_deny;
  o.request.want = args.share_access;
  o.request.reclaim = args.claim.type == ClaimType::previous;
  o.request.reclaim_delegation = args.claim.delegation;
  if (args.claim.type == ClaimType::delegate_cur || args.claim.type == ClaimType::deleg_cur_fh) {
    o.request.by_delegation = c.resolve(args.claim.stateid);
  }
  if (args.claim.type == ClaimType::delegate_prev || args.claim.type == ClaimType::deleg_prev_fh) {
    return Status::notsupp;
  }
  if (names_file(args.claim.type)) {
    if (Status s = check_name(args.claim.name); s != Status::ok) return s;
  }
  if (args.how.type != nfs4::OpenType::create) return Status::ok;
  if (args.claim.type != ClaimType::null) return Status::inval;
  return read_create(args.how, o);
}

Status check_type(FileType type) {
  switch (type) {
    case FileType::regular: return Status::ok;
    case FileType::directory: return Status::isdir;
    case FileType::symlink: return Status::symlink;
    default: return Status::wrong_type;
  }
}

// Finds or creates the file; o.object is set when ok.
Task<Status> find_file(Compound& c, const nfs4::OpenArgs& args, Opening& o) {
  if (!names_file(args.claim.type)) {
    o.object = c.current;
    co_return Status::ok;
  }
  if (c.current->type() != FileType::directory) {
    co_return c.current->type() == FileType::symlink ? Status::symlink : Status::notdir;
  }
  if (!o.creates) {
    Answer<ObjectRef> object = co_await c.store.lookup(c.caller, c.current, args.claim.name);
    if (!object.ok()) co_return object.status;
    o.object = std::move(*object);
    co_return Status::ok;
  }
  Answer<Created> created = co_await c.store.create_file(c.caller, c.current, args.claim.name, o.create);
  if (!created.ok()) co_return created.status;
  o.object = created->object;
  o.created = created->created;
  o.set = created->set;
  o.directory = created->directory;
  if (o.created && created->file) {
    o.request.reader = (o.request.access & share::access_read) ? created->file : OpenFileRef();
    o.request.writer = (o.request.access & share::access_write) ? created->file : OpenFileRef();
  }
  co_return Status::ok;
}

// Descriptors for what the open asks for, with the caller's rights. What somebody holds already, by a delegation or
// from before a restart, and what he has just created, its owner may open whatever the mode says.
Task<Status> open_file(Compound& c, Opening& o) {
  bool held = o.request.reclaim || o.request.by_delegation || o.created;
  bool wants_read = (o.request.access & share::access_read) != 0;
  if ((o.request.access & share::access_write) && !o.request.writer) {
    Answer<OpenFileRef> file = co_await c.store.open(c.caller, o.object, wants_read, true, held);
    if (!file.ok()) co_return file.status;
    o.request.writer = *file;
    if (wants_read) o.request.reader = *file;
  }
  if (wants_read && !o.request.reader) {
    Answer<OpenFileRef> file = co_await c.store.open(c.caller, o.object, true, false, held);
    if (!file.ok()) co_return file.status;
    o.request.reader = *file;
  }
  co_return Status::ok;
}

Task<Status> truncate(Compound& c, Opening& o) {
  SetAttributes what;
  what.what = SetAttributes::size;
  SetDone done = co_await c.store.set_attributes(c.caller, o.object, what, o.request.writer);
  if (done.status == Status::ok) o.set |= SetAttributes::size;
  co_return done.status;
}

nfs4::Bitmap attributes_set(const nfs4::OpenArgs& args, const Opening& o) {
  nfs4::Bitmap mask;
  if (args.how.type != nfs4::OpenType::create) return mask;
  mask = set_mask(o.set, args.how.attributes.mask);
  // The verifier lies in the times: the client is told, so that it sets them to something sensible.
  if (o.created && o.create.how == CreateHow::exclusive) {
    mask.set(nfs4::attr::time_access);
    mask.set(nfs4::attr::time_modify);
  }
  return mask;
}

}  // namespace

Task<Status> op_open(Compound& c, const nfs4::OpenArgs& args) {
  if (!c.current) co_return Status::nofilehandle;
  Opening o;
  if (Status s = read_request(c, args, o); s != Status::ok) co_return s;
  if (Status s = c.need_room(result_bytes); s != Status::ok) co_return s;
  // Before anything is created: grace and the like.
  if (Status s = c.state.may_open(c.client, {}, o.request); s != Status::ok) co_return s;
  if (Status s = co_await find_file(c, args, o); s != Status::ok) co_return s;
  if (Status s = check_type(o.object->type()); s != Status::ok) co_return s;
  bool truncates = o.truncates && !o.created;
  if (Status s = co_await open_file(c, o); s != Status::ok) co_return s;
  if (truncates) {
    OpenRequest probe = o.request;
    probe.access |= share::access_write;
    if (Status s = c.state.may_open(c.client, o.object, probe); s != Status::ok) co_return s;
    if (Status s = co_await truncate(c, o); s != Status::ok) co_return s;
  }
  OpenDone done;
  if (Status s = c.state.open(c.session, o.object, o.request, done); s != Status::ok) co_return s;
  nfs4::OpenResult result;
  result.stateid = done.stateid;
  result.dir_change = o.directory;
  result.flags = nfs4::open_result_flag::locktype_posix;
  result.attributes_set = attributes_set(args, o);
  result.delegation = done.delegation;
  c.set_current(std::move(o.object));
  c.current_stateid = done.stateid;
  co_return c.answer(result);
}

Status op_open_downgrade(Compound& c, const nfs4::OpenDowngradeArgs& args) {
  if (!c.current) return Status::nofilehandle;
  uint32_t access = args.share_access & ~share::want_mask;
  if (access == 0 || access > share::access_both || args.share_deny > share::deny_both) return Status::inval;
  if (Status s = c.need_room(16); s != Status::ok) return s;
  nfs4::OpenDowngradeResult result;
  Status status = c.state.open_downgrade(c.client, c.current, c.resolve(args.stateid), access, args.share_deny,
                                         result.stateid);
  if (status != Status::ok) return status;
  c.current_stateid = result.stateid;
  return c.answer(result);
}

Status op_close(Compound& c, const nfs4::CloseArgs& args) {
  if (!c.current) return Status::nofilehandle;
  if (Status s = c.need_room(16); s != Status::ok) return s;
  Status status = c.state.close(c.client, c.current, c.resolve(args.stateid));
  if (status != Status::ok) return status;
  // RFC 8881, 18.2.4: the result is no stateid that anybody could use.
  nfs4::CloseResult result;
  result.stateid = nfs4::invalid_stateid;
  c.current_stateid = nfs4::invalid_stateid;
  return c.answer(result);
}

}  // namespace nfsrdma::server
