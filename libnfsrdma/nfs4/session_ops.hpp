// SPDX-License-Identifier: Apache-2.0
// Client identity, sessions and connections: RFC 8881, 18.33 to 18.37, 18.46, 18.50, 18.51.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

// ---- callback security ----

// authsys_parms, also the body of an AUTH_SYS credential.
struct AuthSysParms {
  uint32_t stamp = 0;
  std::string_view machine_name{};
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t gid_count = 0;
  std::array<uint32_t, auth_sys_gids_max> gids{};
};
template <class A>
constexpr void describe(A& ar, AuthSysParms& v) {
  ar.fields("stamp machine uid gid", v.stamp, xdr::bounded(v.machine_name, machine_name_bytes_max), v.uid,
            v.gid);
  ar.count("gids", v.gid_count, auth_sys_gids_max);
  for (uint32_t i = 0; i < v.gid_count && i < auth_sys_gids_max; ++i) ar(v.gids[i]);
}

enum class AuthFlavor : uint32_t { none = 0, sys = 1, gss = 6 };

// callback_sec_parms4.
struct CallbackSecParms {
  AuthFlavor flavor = AuthFlavor::none;
  AuthSysParms sys{};        // flavor sys
  uint32_t gss_service = 0;  // flavor gss, with both handles
  ByteView gss_handle_server{};
  ByteView gss_handle_client{};
};
template <class A>
constexpr void describe(A& ar, CallbackSecParms& v) {
  ar.discriminant("flavor", v.flavor, {AuthFlavor::none, AuthFlavor::sys, AuthFlavor::gss});
  if (v.flavor == AuthFlavor::sys) ar.fields("sys", v.sys);
  if (v.flavor != AuthFlavor::gss) return;
  ar.fields("service handle_server handle_client", v.gss_service,
            xdr::bounded(v.gss_handle_server, opaque_bytes_max),
            xdr::bounded(v.gss_handle_client, opaque_bytes_max));
}

// ---- EXCHANGE_ID ----

enum class StateProtect : uint32_t { none = 0, mach_cred = 1, ssv = 2 };

// state_protect_ops4.
struct StateProtectOps {
  BitSet must_enforce{};
  BitSet must_allow{};
};
template <class A>
constexpr void describe(A& ar, StateProtectOps& v) {
  ar.fields("must_enforce must_allow", v.must_enforce, v.must_allow);
}

struct Oid {
  ByteView bytes{};
};
template <class A>
constexpr void describe(A& ar, Oid& v) {
  ar.fields("", xdr::bounded(v.bytes, oid_bytes_max));
}

struct GssHandle {
  ByteView bytes{};
};
template <class A>
constexpr void describe(A& ar, GssHandle& v) {
  ar.fields("", xdr::bounded(v.bytes, opaque_bytes_max));
}

// state_protect4_a. ops belongs to mach_cred and ssv, the rest to ssv.
struct StateProtectArgs {
  StateProtect how = StateProtect::none;
  StateProtectOps ops{};
  xdr::Array<Oid> hash_algs{};
  xdr::Array<Oid> encr_algs{};
  uint32_t window = 0;
  uint32_t gss_handle_count = 0;
};
template <class A>
constexpr void describe(A& ar, StateProtectArgs& v) {
  ar.discriminant("how", v.how, {StateProtect::none, StateProtect::mach_cred, StateProtect::ssv});
  if (v.how == StateProtect::none) return;
  ar.fields("ops", v.ops);
  if (v.how != StateProtect::ssv) return;
  ar.fields("hash_algs encr_algs window gss_handles", xdr::bounded(v.hash_algs, sec_parms_max),
            xdr::bounded(v.encr_algs, sec_parms_max), v.window, v.gss_handle_count);
}

// state_protect4_r.
struct StateProtectResult {
  StateProtect how = StateProtect::none;
  StateProtectOps ops{};
  uint32_t hash_alg = 0;
  uint32_t encr_alg = 0;
  uint32_t ssv_length = 0;
  uint32_t window = 0;
  xdr::Array<GssHandle> gss_handles{};
};
template <class A>
constexpr void describe(A& ar, StateProtectResult& v) {
  ar.discriminant("how", v.how, {StateProtect::none, StateProtect::mach_cred, StateProtect::ssv});
  if (v.how == StateProtect::none) return;
  ar.fields("ops", v.ops);
  if (v.how != StateProtect::ssv) return;
  ar.fields("hash_alg encr_alg ssv_length window gss_handles", v.hash_alg, v.encr_alg, v.ssv_length, v.window,
            xdr::bounded(v.gss_handles, sec_parms_max));
}

struct ExchangeIdResult {
  static constexpr Op op = Op::exchange_id;
  ClientId clientid = 0;
  uint32_t sequenceid = 0;
  uint32_t flags = 0;  // exchange_flag
  StateProtectResult state_protect{};
  ServerOwner server_owner{};
  ByteView server_scope{};
  std::optional<ImplId> impl_id{};
};
template <class A>
constexpr void describe(A& ar, ExchangeIdResult& v) {
  ar.fields("clientid sequenceid flags state_protect server_owner scope impl_id", v.clientid, v.sequenceid,
            v.flags, v.state_protect, v.server_owner, xdr::bounded(v.server_scope, opaque_bytes_max),
            v.impl_id);
}

struct ExchangeIdArgs {
  static constexpr Op op = Op::exchange_id;
  using Result = ExchangeIdResult;
  ClientOwner client_owner{};
  uint32_t flags = 0;  // exchange_flag
  StateProtectArgs state_protect{};
  std::optional<ImplId> impl_id{};
};
template <class A>
constexpr void describe(A& ar, ExchangeIdArgs& v) {
  ar.fields("client_owner flags state_protect impl_id", v.client_owner, v.flags, v.state_protect, v.impl_id);
}

// ---- CREATE_SESSION, DESTROY_SESSION, DESTROY_CLIENTID ----

// channel_attrs4. Sizes count whole (unreduced) RPC messages.
struct ChannelAttrs {
  uint32_t header_pad_bytes = 0;
  uint32_t request_bytes_max = 0;
  uint32_t response_bytes_max = 0;
  uint32_t cached_response_bytes_max = 0;
  uint32_t operations_max = 0;
  uint32_t requests_max = 0;
  std::optional<uint32_t> rdma_ird{};
};
template <class A>
constexpr void describe(A& ar, ChannelAttrs& v) {
  ar.fields("header_pad request_max response_max cached_max operations_max requests_max rdma_ird",
            v.header_pad_bytes, v.request_bytes_max, v.response_bytes_max, v.cached_response_bytes_max,
            v.operations_max, v.requests_max, v.rdma_ird);
}

struct CreateSessionResult {
  static constexpr Op op = Op::create_session;
  SessionId session_id{};
  uint32_t sequenceid = 0;
  uint32_t flags = 0;  // create_session_flag
  ChannelAttrs fore{};
  ChannelAttrs back{};
};
template <class A>
constexpr void describe(A& ar, CreateSessionResult& v) {
  ar.fields("session_id sequenceid flags fore back", v.session_id, v.sequenceid, v.flags, v.fore, v.back);
}

struct CreateSessionArgs {
  static constexpr Op op = Op::create_session;
  using Result = CreateSessionResult;
  ClientId clientid = 0;
  uint32_t sequenceid = 0;
  uint32_t flags = 0;  // create_session_flag
  ChannelAttrs fore{};
  ChannelAttrs back{};
  uint32_t callback_program = 0;
  xdr::Array<CallbackSecParms> sec_parms{};
};
template <class A>
constexpr void describe(A& ar, CreateSessionArgs& v) {
  ar.fields("clientid sequenceid flags fore back callback_program sec_parms", v.clientid, v.sequenceid,
            v.flags, v.fore, v.back, v.callback_program, xdr::bounded(v.sec_parms, sec_parms_max));
}

using DestroySessionResult = NoBody<Op::destroy_session>;
struct DestroySessionArgs {
  static constexpr Op op = Op::destroy_session;
  using Result = DestroySessionResult;
  SessionId session_id{};
};
template <class A>
constexpr void describe(A& ar, DestroySessionArgs& v) {
  ar.fields("session_id", v.session_id);
}

using DestroyClientidResult = NoBody<Op::destroy_clientid>;
struct DestroyClientidArgs {
  static constexpr Op op = Op::destroy_clientid;
  using Result = DestroyClientidResult;
  ClientId clientid = 0;
};
template <class A>
constexpr void describe(A& ar, DestroyClientidArgs& v) {
  ar.fields("clientid", v.clientid);
}

// ---- BIND_CONN_TO_SESSION, BACKCHANNEL_CTL ----

// channel_dir_from_client4 and, as a result, channel_dir_from_server4 (which has only the first three).
enum class ChannelDirection : uint32_t { fore = 1, back = 2, fore_or_both = 3, back_or_both = 7 };
inline constexpr ChannelDirection channel_both =
    ChannelDirection::fore_or_both;  // a result's "BOTH" is 3 as well

struct BindConnToSessionResult {
  static constexpr Op op = Op::bind_conn_to_session;
  SessionId session_id{};
  ChannelDirection direction = ChannelDirection::fore;
  bool use_rdma_mode = false;
};
template <class A>
constexpr void describe(A& ar, BindConnToSessionResult& v) {
  ar.fields("session_id direction use_rdma_mode", v.session_id, v.direction, v.use_rdma_mode);
}

struct BindConnToSessionArgs {
  static constexpr Op op = Op::bind_conn_to_session;
  using Result = BindConnToSessionResult;
  SessionId session_id{};
  ChannelDirection direction = ChannelDirection::fore;
  bool use_rdma_mode = false;
};
template <class A>
constexpr void describe(A& ar, BindConnToSessionArgs& v) {
  ar.fields("session_id direction use_rdma_mode", v.session_id, v.direction, v.use_rdma_mode);
}

using BackchannelCtlResult = NoBody<Op::backchannel_ctl>;
struct BackchannelCtlArgs {
  static constexpr Op op = Op::backchannel_ctl;
  using Result = BackchannelCtlResult;
  uint32_t callback_program = 0;
  xdr::Array<CallbackSecParms> sec_parms{};
};
template <class A>
constexpr void describe(A& ar, BackchannelCtlArgs& v) {
  ar.fields("callback_program sec_parms", v.callback_program, xdr::bounded(v.sec_parms, sec_parms_max));
}

// ---- SEQUENCE, RECLAIM_COMPLETE ----

struct SequenceResult {
  static constexpr Op op = Op::sequence;
  SessionId session_id{};
  uint32_t sequenceid = 0;
  uint32_t slotid = 0;
  uint32_t highest_slotid = 0;
  uint32_t target_highest_slotid = 0;
  uint32_t status_flags = 0;  // sequence_flag
};
template <class A>
constexpr void describe(A& ar, SequenceResult& v) {
  ar.fields("session_id sequenceid slotid highest_slotid target_highest_slotid status_flags", v.session_id,
            v.sequenceid, v.slotid, v.highest_slotid, v.target_highest_slotid, v.status_flags);
}

struct SequenceArgs {
  static constexpr Op op = Op::sequence;
  using Result = SequenceResult;
  SessionId session_id{};
  uint32_t sequenceid = 0;
  uint32_t slotid = 0;
  uint32_t highest_slotid = 0;
  bool cache_this = false;
  bool operator==(const SequenceArgs&) const = default;
};
template <class A>
constexpr void describe(A& ar, SequenceArgs& v) {
  ar.fields("session_id sequenceid slotid highest_slotid cache_this", v.session_id, v.sequenceid, v.slotid,
            v.highest_slotid, v.cache_this);
}

using ReclaimCompleteResult = NoBody<Op::reclaim_complete>;
struct ReclaimCompleteArgs {
  static constexpr Op op = Op::reclaim_complete;
  using Result = ReclaimCompleteResult;
  bool one_fs = false;
};
template <class A>
constexpr void describe(A& ar, ReclaimCompleteArgs& v) {
  ar.fields("one_fs", v.one_fs);
}

}  // namespace nfsrdma::nfs4
