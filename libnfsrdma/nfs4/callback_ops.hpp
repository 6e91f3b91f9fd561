// SPDX-License-Identifier: Apache-2.0
// Callbacks, the server's calls to the client: RFC 8881, 20.1, 20.2, 20.6, 20.8, 20.9, 20.11.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

// ---- CB_SEQUENCE ----

struct ReferringCall {
  uint32_t sequenceid = 0;
  uint32_t slotid = 0;
};
template <class A>
constexpr void describe(A& ar, ReferringCall& v) {
  ar.fields("sequenceid slotid", v.sequenceid, v.slotid);
}

struct ReferringCallList {
  SessionId session_id{};
  xdr::Array<ReferringCall> calls{};
};
template <class A>
constexpr void describe(A& ar, ReferringCallList& v) {
  ar.fields("session_id calls", v.session_id, xdr::bounded(v.calls, referring_calls_max));
}

struct CbSequenceResult {
  static constexpr CbOp op = CbOp::sequence;
  SessionId session_id{};
  uint32_t sequenceid = 0;
  uint32_t slotid = 0;
  uint32_t highest_slotid = 0;
  uint32_t target_highest_slotid = 0;
};
template <class A>
constexpr void describe(A& ar, CbSequenceResult& v) {
  ar.fields("session_id sequenceid slotid highest_slotid target_highest_slotid", v.session_id, v.sequenceid,
            v.slotid, v.highest_slotid, v.target_highest_slotid);
}
struct CbSequenceArgs {
  static constexpr CbOp op = CbOp::sequence;
  using Result = CbSequenceResult;
  SessionId session_id{};
  uint32_t sequenceid = 0;
  uint32_t slotid = 0;
  uint32_t highest_slotid = 0;
  bool cache_this = false;
  xdr::Array<ReferringCallList> referring_calls{};
};
template <class A>
constexpr void describe(A& ar, CbSequenceArgs& v) {
  ar.fields("session_id sequenceid slotid highest_slotid cache_this referring_calls", v.session_id,
            v.sequenceid, v.slotid, v.highest_slotid, v.cache_this,
            xdr::bounded(v.referring_calls, referring_lists_max));
}

// ---- the calls ----

using CbRecallResult = NoBody<CbOp::recall>;
struct CbRecallArgs {
  static constexpr CbOp op = CbOp::recall;
  using Result = CbRecallResult;
  Stateid stateid{};
  bool truncate = false;
  FileHandle fh{};
};
template <class A>
constexpr void describe(A& ar, CbRecallArgs& v) {
  ar.fields("stateid truncate fh", v.stateid, v.truncate, v.fh);
}

struct CbGetattrResult {
  static constexpr CbOp op = CbOp::getattr;
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, CbGetattrResult& v) {
  ar.fields("attributes", v.attributes);
}
struct CbGetattrArgs {
  static constexpr CbOp op = CbOp::getattr;
  using Result = CbGetattrResult;
  FileHandle fh{};
  Bitmap mask{};
};
template <class A>
constexpr void describe(A& ar, CbGetattrArgs& v) {
  ar.fields("fh mask", v.fh, v.mask);
}

// Bits of CB_RECALL_ANY's type mask.
namespace recall_any_bit {
inline constexpr uint32_t read_delegation = 0, write_delegation = 1;
}
using CbRecallAnyResult = NoBody<CbOp::recall_any>;
struct CbRecallAnyArgs {
  static constexpr CbOp op = CbOp::recall_any;
  using Result = CbRecallAnyResult;
  uint32_t objects_to_keep = 0;
  BitSet type_mask{};  // recall_any_bit
};
template <class A>
constexpr void describe(A& ar, CbRecallAnyArgs& v) {
  ar.fields("objects_to_keep type_mask", v.objects_to_keep, v.type_mask);
}

using CbRecallSlotResult = NoBody<CbOp::recall_slot>;
struct CbRecallSlotArgs {
  static constexpr CbOp op = CbOp::recall_slot;
  using Result = CbRecallSlotResult;
  uint32_t target_highest_slotid = 0;
};
template <class A>
constexpr void describe(A& ar, CbRecallSlotArgs& v) {
  ar.fields("target_highest_slotid", v.target_highest_slotid);
}

using CbNotifyLockResult = NoBody<CbOp::notify_lock>;
struct CbNotifyLockArgs {
  static constexpr CbOp op = CbOp::notify_lock;
  using Result = CbNotifyLockResult;
  FileHandle fh{};
  StateOwner lock_owner{};
};
template <class A>
constexpr void describe(A& ar, CbNotifyLockArgs& v) {
  ar.fields("fh lock_owner", v.fh, v.lock_owner);
}

using CbIllegalResult = NoBody<CbOp::illegal>;
struct CbIllegalArgs : NoBody<CbOp::illegal> {
  using Result = CbIllegalResult;
};

}  // namespace nfsrdma::nfs4
