// SPDX-License-Identifier: Apache-2.0
// Byte-range locks: RFC 8881, 18.10 to 18.12.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

enum class LockType : uint32_t { read = 1, write = 2, read_wait = 3, write_wait = 4 };

// LOCK4denied: the lock that is in the way.
struct LockDenied {
  uint64_t offset = 0;
  uint64_t length = 0;  // length_to_end: to the end of the file
  LockType type = LockType::read;
  StateOwner owner{};
};
template <class A>
constexpr void describe(A& ar, LockDenied& v) {
  ar.fields("offset length type owner", v.offset, v.length, v.type, v.owner);
}

// denied is filled when the status is Status::denied, stateid when it is ok.
struct LockResult {
  static constexpr Op op = Op::lock;
  Stateid stateid{};
  LockDenied denied{};
};
template <class A>
constexpr void describe(A& ar, LockResult& v) {
  ar.fields("stateid", v.stateid);
}
template <class A>
constexpr void describe_failure(A& ar, Status status, LockResult& v) {
  if (status == Status::denied) ar.fields("denied", v.denied);
}

// locker4: with new_owner the open stateid and the owner are used, else the lock stateid.
struct LockArgs {
  static constexpr Op op = Op::lock;
  using Result = LockResult;
  LockType type = LockType::read;
  bool reclaim = false;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool new_owner = false;
  uint32_t open_seqid = 0;
  Stateid open_stateid{};
  StateOwner owner{};
  Stateid lock_stateid{};
  uint32_t lock_seqid = 0;
};
template <class A>
constexpr void describe(A& ar, LockArgs& v) {
  ar.fields("type reclaim offset length", v.type, v.reclaim, v.offset, v.length);
  ar.branch("new_owner", v.new_owner);
  if (v.new_owner) {
    ar.fields("open_seqid open_stateid lock_seqid owner", v.open_seqid, v.open_stateid, v.lock_seqid,
              v.owner);
  } else {
    ar.fields("lock_stateid lock_seqid", v.lock_stateid, v.lock_seqid);
  }
}

struct LocktResult {
  static constexpr Op op = Op::lockt;
  LockDenied denied{};  // when the status is Status::denied
};
template <class A>
constexpr void describe(A&, LocktResult&) {}
template <class A>
constexpr void describe_failure(A& ar, Status status, LocktResult& v) {
  if (status == Status::denied) ar.fields("denied", v.denied);
}
struct LocktArgs {
  static constexpr Op op = Op::lockt;
  using Result = LocktResult;
  LockType type = LockType::read;
  uint64_t offset = 0;
  uint64_t length = 0;
  StateOwner owner{};
};
template <class A>
constexpr void describe(A& ar, LocktArgs& v) {
  ar.fields("type offset length owner", v.type, v.offset, v.length, v.owner);
}

struct LockuResult {
  static constexpr Op op = Op::locku;
  Stateid stateid{};
};
template <class A>
constexpr void describe(A& ar, LockuResult& v) {
  ar.fields("stateid", v.stateid);
}
struct LockuArgs {
  static constexpr Op op = Op::locku;
  using Result = LockuResult;
  LockType type = LockType::read;
  uint32_t seqid = 0;
  Stateid stateid{};
  uint64_t offset = 0;
  uint64_t length = 0;
};
template <class A>
constexpr void describe(A& ar, LockuArgs& v) {
  ar.fields("type seqid stateid offset length", v.type, v.seqid, v.stateid, v.offset, v.length);
}

}  // namespace nfsrdma::nfs4
