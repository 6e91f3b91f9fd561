// SPDX-License-Identifier: Apache-2.0
// READ, WRITE, COMMIT: RFC 8881, 18.3, 18.22, 18.32. Their data may travel by RDMA (RFC 8267).
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

enum class StableHow : uint32_t { unstable = 0, data_sync = 1, file_sync = 2 };

struct ReadResult {
  static constexpr Op op = Op::read;
  bool eof = false;
  xdr::DdpItem data{};
};
// Inlined by force: the compilers judge it too big for its two callers, and one of them is the hottest there
// is.
template <class A>
[[gnu::always_inline]] constexpr void describe(A& ar, ReadResult& v) {
  ar.fields("eof", v.eof);
  ar.ddp("data", v.data, data_bytes_max);
}
struct ReadArgs {
  static constexpr Op op = Op::read;
  using Result = ReadResult;
  Stateid stateid{};
  uint64_t offset = 0;
  uint32_t count = 0;
};
template <class A>
constexpr void describe(A& ar, ReadArgs& v) {
  ar.fields("stateid offset count", v.stateid, v.offset, v.count);
}

struct WriteResult {
  static constexpr Op op = Op::write;
  uint32_t count = 0;
  StableHow committed = StableHow::unstable;
  Verifier verifier{};
};
template <class A>
constexpr void describe(A& ar, WriteResult& v) {
  ar.fields("count committed verifier", v.count, v.committed, v.verifier);
}
struct WriteArgs {
  static constexpr Op op = Op::write;
  using Result = WriteResult;
  Stateid stateid{};
  uint64_t offset = 0;
  StableHow stable = StableHow::unstable;
  xdr::DdpItem data{};
};
template <class A>
constexpr void describe(A& ar, WriteArgs& v) {
  ar.fields("stateid offset stable", v.stateid, v.offset, v.stable);
  ar.ddp("data", v.data, data_bytes_max);
}

struct CommitResult {
  static constexpr Op op = Op::commit;
  Verifier verifier{};
};
template <class A>
constexpr void describe(A& ar, CommitResult& v) {
  ar.fields("verifier", v.verifier);
}
// offset 0 and count 0: the whole file.
struct CommitArgs {
  static constexpr Op op = Op::commit;
  using Result = CommitResult;
  uint64_t offset = 0;
  uint32_t count = 0;
};
template <class A>
constexpr void describe(A& ar, CommitArgs& v) {
  ar.fields("offset count", v.offset, v.count);
}

}  // namespace nfsrdma::nfs4
