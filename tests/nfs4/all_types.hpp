// SPDX-License-Identifier: Apache-2.0
// Every described type of the nfs4 room, for tests that loop over all of them.
#pragma once

#include <string>
#include <vector>

#include "nfs4/attributes.hpp"
#include "nfs4/op_table.hpp"
#include "xdr/generator.hpp"
#include "xdr/printer.hpp"
#include "xdr/sizer.hpp"

namespace nfsrdma::nfs4::test {

using Buffer = std::vector<std::byte>;
inline constexpr size_t buffer_bytes = 1 << 20;

using PartTypes =
    TypeList<Stateid, FileHandle, Bitmap, Time, Fsid, ChangeInfo, Device, StateOwner, ClientOwner,
             ServerOwner, ImplId, Ace, Fattr, AuthSysParms, CallbackSecParms, StateProtectOps,
             StateProtectArgs, StateProtectResult, ChannelAttrs, OpenHow, OpenClaim, SpaceLimit,
             OpenDelegation, DirEntry, LockDenied, SecinfoEntry, ReferringCall, ReferringCallList, SetTime,
             PathComponent, FsLocation, FsLocations, Acl41, ChangePolicy, MaskedMode, ModeUmask, SecLabel>;

template <class T>
Buffer encode(const T& value) {
  static Buffer scratch(buffer_bytes);
  xdr::Encoder encoder(scratch);
  encoder(value);
  if (!encoder.ok()) return {};
  return Buffer(encoder.written().begin(), encoder.written().end());
}

template <class T>
void generate(xdr::Generator& generator, T& value) {
  generator(value);
}
// Failures that carry a body must come up: random statuses would never hit them.
template <class R>
void generate(xdr::Generator& generator, Outcome<R>& outcome) {
  constexpr Status statuses[] = {Status::ok,     Status::ok,    Status::ok,
                                 Status::denied, Status::delay, Status::noent};
  outcome.status = statuses[generator.below(std::size(statuses))];
  if (outcome.status == Status::ok) {
    generator(outcome.body);
  } else {
    describe_failure(generator, outcome.status, outcome.body);
  }
}

namespace detail {
template <class F, class... Ts>
void each(TypeList<Ts...>, F&& f) {
  (f.template operator()<Ts>(), ...);
}
template <class F, class... Args>
void each_outcome(TypeList<Args...>, F&& f) {
  (f.template operator()<Outcome<typename Args::Result>>(), ...);
}
}  // namespace detail

// f.template operator()<T>() for each type: the parts, every operation's arguments, every operation's result.
template <class F>
void for_each_type(F&& f) {
  detail::each(PartTypes{}, f);
  detail::each(OpArgsList{}, f);
  detail::each(CbOpArgsList{}, f);
  detail::each_outcome(OpArgsList{}, f);
  detail::each_outcome(CbOpArgsList{}, f);
}

template <class T>
std::string type_name() {
  const std::string_view text = __PRETTY_FUNCTION__;
  return std::string(text.substr(text.find("T = ")));
}

}  // namespace nfsrdma::nfs4::test
