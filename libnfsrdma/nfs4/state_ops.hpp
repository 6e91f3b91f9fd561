// SPDX-License-Identifier: Apache-2.0
// Stateids and delegations: RFC 8881, 18.6, 18.38, 18.48.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

struct TestStateidResult {
  static constexpr Op op = Op::test_stateid;
  xdr::Array<Status> statuses{};  // one for each stateid asked, in order
};
template <class A>
constexpr void describe(A& ar, TestStateidResult& v) {
  ar.fields("statuses", xdr::bounded(v.statuses, stateid_count_max));
}
struct TestStateidArgs {
  static constexpr Op op = Op::test_stateid;
  using Result = TestStateidResult;
  xdr::Array<Stateid> stateids{};
};
template <class A>
constexpr void describe(A& ar, TestStateidArgs& v) {
  ar.fields("stateids", xdr::bounded(v.stateids, stateid_count_max));
}

using FreeStateidResult = NoBody<Op::free_stateid>;
struct FreeStateidArgs {
  static constexpr Op op = Op::free_stateid;
  using Result = FreeStateidResult;
  Stateid stateid{};
};
template <class A>
constexpr void describe(A& ar, FreeStateidArgs& v) {
  ar.fields("stateid", v.stateid);
}

using DelegreturnResult = NoBody<Op::delegreturn>;
struct DelegreturnArgs {
  static constexpr Op op = Op::delegreturn;
  using Result = DelegreturnResult;
  Stateid stateid{};
};
template <class A>
constexpr void describe(A& ar, DelegreturnArgs& v) {
  ar.fields("stateid", v.stateid);
}

}  // namespace nfsrdma::nfs4
