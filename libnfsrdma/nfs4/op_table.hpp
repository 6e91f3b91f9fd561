// SPDX-License-Identifier: Apache-2.0
// Every operation that has types here, by number: for printing, replay by number, and tests over all types.
#pragma once

#include "nfs4/attr_ops.hpp"
#include "nfs4/callback_ops.hpp"
#include "nfs4/dir_ops.hpp"
#include "nfs4/file_ops.hpp"
#include "nfs4/io_ops.hpp"
#include "nfs4/lock_ops.hpp"
#include "nfs4/open_ops.hpp"
#include "nfs4/security_ops.hpp"
#include "nfs4/session_ops.hpp"
#include "nfs4/state_ops.hpp"

namespace nfsrdma::nfs4 {

template <class... Args>
struct TypeList {};

using OpArgsList =
    TypeList<AccessArgs, CloseArgs, CommitArgs, CreateArgs, DelegreturnArgs, GetattrArgs, GetfhArgs, LinkArgs,
             LockArgs, LocktArgs, LockuArgs, LookupArgs, LookuppArgs, NverifyArgs, OpenArgs,
             OpenDowngradeArgs, PutfhArgs, PutpubfhArgs, PutrootfhArgs, ReadArgs, ReaddirArgs, ReadlinkArgs,
             RemoveArgs, RenameArgs, RestorefhArgs, SavefhArgs, SecinfoArgs, SetattrArgs, VerifyArgs,
             WriteArgs, BackchannelCtlArgs, BindConnToSessionArgs, ExchangeIdArgs, CreateSessionArgs,
             DestroySessionArgs, FreeStateidArgs, SecinfoNoNameArgs, SequenceArgs, TestStateidArgs,
             DestroyClientidArgs, ReclaimCompleteArgs, IllegalArgs>;

using CbOpArgsList = TypeList<CbGetattrArgs, CbRecallArgs, CbRecallAnyArgs, CbRecallSlotArgs, CbSequenceArgs,
                              CbNotifyLockArgs, CbIllegalArgs>;

namespace detail {
template <class OpNumber, class F, class... Args>
bool visit(TypeList<Args...>, OpNumber op, F&& f) {
  return ((Args::op == op ? (f.template operator()<Args>(), true) : false) || ...);
}
}  // namespace detail

// Calls f.template operator()<XxxArgs>() for the operation; false when it has no types here.
template <class F>
bool visit_op(Op op, F&& f) {
  return detail::visit(OpArgsList{}, op, f);
}
template <class F>
bool visit_op(CbOp op, F&& f) {
  return detail::visit(CbOpArgsList{}, op, f);
}

}  // namespace nfsrdma::nfs4
