// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

bool is_write(nfs4::LockType type) { return type == nfs4::LockType::write || type == nfs4::LockType::write_wait; }
bool is_known(nfs4::LockType type) { return type >= nfs4::LockType::read && type <= nfs4::LockType::write_wait; }

Status check_file(const Compound& c) {
  if (!c.current) return Status::nofilehandle;
  if (c.current->type() == FileType::directory) return Status::isdir;
  return c.current->type() == FileType::regular ? Status::ok : Status::inval;
}

nfs4::LockDenied denied_of(const LockConflict& conflict) {
  nfs4::LockDenied denied;
  denied.offset = conflict.offset;
  denied.length = conflict.length;
  denied.type = conflict.write ? nfs4::LockType::write : nfs4::LockType::read;
  denied.owner = {conflict.clientid, base::bytes_of(conflict.owner)};
  return denied;
}

}  // namespace

Status op_lock(Compound& c, const nfs4::LockArgs& args) {
  if (Status s = check_file(c); s != Status::ok) return s;
  if (!is_known(args.type)) return Status::inval;
  if (Status s = c.need_room(16); s != Status::ok) return s;
  LockRequest request;
  request.new_owner = args.new_owner;
  request.stateid = c.resolve(args.new_owner ? args.open_stateid : args.lock_stateid);
  request.owner = base::text_of(args.owner.owner);
  request.write = is_write(args.type);
  request.reclaim = args.reclaim;
  request.offset = args.offset;
  request.length = args.length;
  nfs4::LockResult result;
  LockConflict conflict;
  Status status = c.state.lock(c.client, c.current, request, result.stateid, conflict);
  if (status == Status::denied) {
    result.denied = denied_of(conflict);
    return c.answer_failure(status, result);
  }
  if (status != Status::ok) return status;
  c.current_stateid = result.stateid;
  return c.answer(result);
}

Status op_lockt(Compound& c, const nfs4::LocktArgs& args) {
  if (Status s = check_file(c); s != Status::ok) return s;
  if (!is_known(args.type)) return Status::inval;
  LockRequest request;
  request.owner = base::text_of(args.owner.owner);
  request.write = is_write(args.type);
  request.offset = args.offset;
  request.length = args.length;
  nfs4::LocktResult result;
  LockConflict conflict;
  Status status = c.state.test_lock(c.client, c.current, request, conflict);
  if (status == Status::denied) {
    result.denied = denied_of(conflict);
    return c.answer_failure(status, result);
  }
  return status == Status::ok ? c.answer(result) : status;
}

Status op_locku(Compound& c, const nfs4::LockuArgs& args) {
  if (Status s = check_file(c); s != Status::ok) return s;
  if (!is_known(args.type)) return Status::inval;
  if (Status s = c.need_room(16); s != Status::ok) return s;
  nfs4::LockuResult result;
  Status status = c.state.unlock(c.client, c.current, c.resolve(args.stateid), args.offset, args.length,
                                 result.stateid);
  if (status != Status::ok) return status;
  c.current_stateid = result.stateid;
  return c.answer(result);
}

Status op_delegreturn(Compound& c, const nfs4::DelegreturnArgs& args) {
  if (Status s = check_file(c); s != Status::ok) return s;
  Status status = c.state.return_delegation(c.client, c.current, c.resolve(args.stateid));
  return status == Status::ok ? c.answer(nfs4::DelegreturnResult{}) : status;
}

Status op_test_stateid(Compound& c, const nfs4::TestStateidArgs& args) {
  if (Status s = c.need_room(4 + 4 * args.stateids.size()); s != Status::ok) return s;
  std::vector<Status> statuses;
  statuses.reserve(args.stateids.size());
  for (const Stateid& stateid : args.stateids) statuses.push_back(c.state.test_stateid(c.client, stateid));
  nfs4::TestStateidResult result;
  result.statuses = std::span<const Status>(statuses);
  return c.answer(result);
}

Status op_free_stateid(Compound& c, const nfs4::FreeStateidArgs& args) {
  Status status = c.state.free_stateid(c.client, c.resolve(args.stateid));
  return status == Status::ok ? c.answer(nfs4::FreeStateidResult{}) : status;
}

}  // namespace nfsrdma::server
