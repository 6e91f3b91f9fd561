// SPDX-License-Identifier: Apache-2.0
// Attributes and access: RFC 8881, 18.1, 18.7, 18.15, 18.30, 18.31.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

struct AccessResult {
  static constexpr Op op = Op::access;
  uint32_t supported = 0;  // access_bit
  uint32_t access = 0;
};
template <class A>
constexpr void describe(A& ar, AccessResult& v) {
  ar.fields("supported access", v.supported, v.access);
}
struct AccessArgs {
  static constexpr Op op = Op::access;
  using Result = AccessResult;
  uint32_t access = 0;  // access_bit
};
template <class A>
constexpr void describe(A& ar, AccessArgs& v) {
  ar.fields("access", v.access);
}

struct GetattrResult {
  static constexpr Op op = Op::getattr;
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, GetattrResult& v) {
  ar.fields("attributes", v.attributes);
}
struct GetattrArgs {
  static constexpr Op op = Op::getattr;
  using Result = GetattrResult;
  Bitmap mask{};
};
template <class A>
constexpr void describe(A& ar, GetattrArgs& v) {
  ar.fields("mask", v.mask);
}

// attributes_set comes with every status: what was set before the failure stays set.
struct SetattrResult {
  static constexpr Op op = Op::setattr;
  Bitmap attributes_set{};
};
template <class A>
constexpr void describe(A& ar, SetattrResult& v) {
  ar.fields("attributes_set", v.attributes_set);
}
template <class A>
constexpr void describe_failure(A& ar, Status, SetattrResult& v) {
  ar.fields("attributes_set", v.attributes_set);
}
struct SetattrArgs {
  static constexpr Op op = Op::setattr;
  using Result = SetattrResult;
  Stateid stateid{};
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, SetattrArgs& v) {
  ar.fields("stateid attributes", v.stateid, v.attributes);
}

using VerifyResult = NoBody<Op::verify>;
struct VerifyArgs {
  static constexpr Op op = Op::verify;
  using Result = VerifyResult;
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, VerifyArgs& v) {
  ar.fields("attributes", v.attributes);
}

using NverifyResult = NoBody<Op::nverify>;
struct NverifyArgs {
  static constexpr Op op = Op::nverify;
  using Result = NverifyResult;
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, NverifyArgs& v) {
  ar.fields("attributes", v.attributes);
}

}  // namespace nfsrdma::nfs4
