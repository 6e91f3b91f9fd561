// SPDX-License-Identifier: Apache-2.0
// Current file handle and name look-up: RFC 8881, 18.8, 18.13, 18.14, 18.19 to 18.21, 18.27, 18.28.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

using PutrootfhResult = NoBody<Op::putrootfh>;
struct PutrootfhArgs : NoBody<Op::putrootfh> {
  using Result = PutrootfhResult;
};

using PutpubfhResult = NoBody<Op::putpubfh>;
struct PutpubfhArgs : NoBody<Op::putpubfh> {
  using Result = PutpubfhResult;
};

using PutfhResult = NoBody<Op::putfh>;
struct PutfhArgs {
  static constexpr Op op = Op::putfh;
  using Result = PutfhResult;
  FileHandle fh{};
};
template <class A>
constexpr void describe(A& ar, PutfhArgs& v) {
  ar.fields("fh", v.fh);
}

struct GetfhResult {
  static constexpr Op op = Op::getfh;
  FileHandle fh{};
};
template <class A>
constexpr void describe(A& ar, GetfhResult& v) {
  ar.fields("fh", v.fh);
}
struct GetfhArgs : NoBody<Op::getfh> {
  using Result = GetfhResult;
};

using SavefhResult = NoBody<Op::savefh>;
struct SavefhArgs : NoBody<Op::savefh> {
  using Result = SavefhResult;
};

using RestorefhResult = NoBody<Op::restorefh>;
struct RestorefhArgs : NoBody<Op::restorefh> {
  using Result = RestorefhResult;
};

using LookupResult = NoBody<Op::lookup>;
struct LookupArgs {
  static constexpr Op op = Op::lookup;
  using Result = LookupResult;
  std::string_view name{};
};
template <class A>
constexpr void describe(A& ar, LookupArgs& v) {
  ar.fields("name", xdr::bounded(v.name, component_bytes_max));
}

using LookuppResult = NoBody<Op::lookupp>;
struct LookuppArgs : NoBody<Op::lookupp> {
  using Result = LookuppResult;
};

// The answer to an operation number that the server does not know.
using IllegalResult = NoBody<Op::illegal>;
struct IllegalArgs : NoBody<Op::illegal> {
  using Result = IllegalResult;
};

}  // namespace nfsrdma::nfs4
