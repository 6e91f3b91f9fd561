// SPDX-License-Identifier: Apache-2.0
// Which security a file wants: RFC 8881, 18.29, 18.45.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

// secinfo4. flavor is an RPC authentication flavor; the GSS fields come with flavor 6 only.
struct SecinfoEntry {
  uint32_t flavor = 0;
  ByteView gss_oid{};
  uint32_t gss_qop = 0;
  uint32_t gss_service = 0;
};
template <class A>
constexpr void describe(A& ar, SecinfoEntry& v) {
  ar.branch("flavor", v.flavor);
  if (v.flavor != 6) return;
  ar.fields("oid qop service", xdr::bounded(v.gss_oid, oid_bytes_max), v.gss_qop, v.gss_service);
}

struct SecinfoResult {
  static constexpr Op op = Op::secinfo;
  xdr::Array<SecinfoEntry> entries{};
};
template <class A>
constexpr void describe(A& ar, SecinfoResult& v) {
  ar.fields("entries", xdr::bounded(v.entries, secinfo_count_max));
}
struct SecinfoArgs {
  static constexpr Op op = Op::secinfo;
  using Result = SecinfoResult;
  std::string_view name{};
};
template <class A>
constexpr void describe(A& ar, SecinfoArgs& v) {
  ar.fields("name", xdr::bounded(v.name, component_bytes_max));
}

enum class SecinfoStyle : uint32_t { current_fh = 0, parent = 1 };
struct SecinfoNoNameResult {
  static constexpr Op op = Op::secinfo_no_name;
  xdr::Array<SecinfoEntry> entries{};
};
template <class A>
constexpr void describe(A& ar, SecinfoNoNameResult& v) {
  ar.fields("entries", xdr::bounded(v.entries, secinfo_count_max));
}
struct SecinfoNoNameArgs {
  static constexpr Op op = Op::secinfo_no_name;
  using Result = SecinfoNoNameResult;
  SecinfoStyle style = SecinfoStyle::current_fh;
};
template <class A>
constexpr void describe(A& ar, SecinfoNoNameArgs& v) {
  ar.fields("style", v.style);
}

}  // namespace nfsrdma::nfs4
