// SPDX-License-Identifier: Apache-2.0
// Opens: RFC 8881, 18.2, 18.16, 18.18.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

enum class OpenType : uint32_t { nocreate = 0, create = 1 };
enum class CreateMode : uint32_t { unchecked = 0, guarded = 1, exclusive = 2, exclusive4_1 = 3 };
enum class ClaimType : uint32_t {
  null = 0,
  previous = 1,
  delegate_cur = 2,
  delegate_prev = 3,
  fh = 4,
  deleg_cur_fh = 5,
  deleg_prev_fh = 6,
};
enum class DelegationType : uint32_t {
  none = 0,
  read = 1,
  write = 2,
  none_ext = 3,
  read_attrs = 4,  // read and write with delegated timestamps (RFC 9754)
  write_attrs = 5,
};
enum class WhyNoDelegation : uint32_t {
  not_wanted = 0,
  contention = 1,
  resource = 2,
  not_supp_ftype = 3,
  write_deleg_not_supp_ftype = 4,
  not_supp_upgrade = 5,
  not_supp_downgrade = 6,
  cancelled = 7,
  is_dir = 8,
};

// openflag4 with createhow4: attributes for every mode but exclusive, verifier for both exclusive modes.
struct OpenHow {
  OpenType type = OpenType::nocreate;
  CreateMode mode = CreateMode::unchecked;
  Fattr attributes{};
  Verifier verifier{};
};
template <class A>
constexpr void describe(A& ar, OpenHow& v) {
  // opentype4's default arm is void, but it has two values only.
  ar.discriminant("type", v.type, {OpenType::nocreate, OpenType::create});
  if (v.type != OpenType::create) return;
  ar.discriminant(
      "mode", v.mode,
      {CreateMode::unchecked, CreateMode::guarded, CreateMode::exclusive, CreateMode::exclusive4_1});
  if (v.mode == CreateMode::exclusive || v.mode == CreateMode::exclusive4_1)
    ar.fields("verifier", v.verifier);
  if (v.mode != CreateMode::exclusive) ar.fields("attributes", v.attributes);
}

// open_claim4: name for null, delegate_cur and delegate_prev; stateid for delegate_cur and deleg_cur_fh;
// delegation for previous.
struct OpenClaim {
  ClaimType type = ClaimType::null;
  std::string_view name{};
  Stateid stateid{};
  DelegationType delegation = DelegationType::none;
};
template <class A>
constexpr void describe(A& ar, OpenClaim& v) {
  ar.discriminant("claim", v.type,
                  {ClaimType::null, ClaimType::previous, ClaimType::delegate_cur, ClaimType::delegate_prev,
                   ClaimType::fh, ClaimType::deleg_cur_fh, ClaimType::deleg_prev_fh});
  switch (v.type) {
    case ClaimType::null:
    case ClaimType::delegate_prev:
      ar.fields("name", xdr::bounded(v.name, component_bytes_max));
      break;
    case ClaimType::previous:
      ar.fields("delegation", v.delegation);
      break;
    case ClaimType::delegate_cur:
      ar.fields("stateid name", v.stateid, xdr::bounded(v.name, component_bytes_max));
      break;
    case ClaimType::deleg_cur_fh:
      ar.fields("stateid", v.stateid);
      break;
    case ClaimType::fh:
    case ClaimType::deleg_prev_fh:
      break;
  }
}

// nfs_space_limit4.
enum class SpaceLimitBy : uint32_t { size = 1, blocks = 2 };
struct SpaceLimit {
  SpaceLimitBy by = SpaceLimitBy::size;
  uint64_t size_bytes = 0;  // by size
  uint32_t blocks = 0;      // by blocks
  uint32_t block_bytes = 0;
};
template <class A>
constexpr void describe(A& ar, SpaceLimit& v) {
  ar.discriminant("limit_by", v.by, {SpaceLimitBy::size, SpaceLimitBy::blocks});
  if (v.by == SpaceLimitBy::size) {
    ar.fields("size", v.size_bytes);
  } else {
    ar.fields("blocks block_bytes", v.blocks, v.block_bytes);
  }
}

// open_delegation4. stateid, recall and permissions for the four real delegations, space_limit for write
// ones; why for none_ext, with will_push (contention) or will_signal (resource) in server_will.
struct OpenDelegation {
  DelegationType type = DelegationType::none;
  Stateid stateid{};
  bool recall = false;
  SpaceLimit space_limit{};
  Ace permissions{};
  WhyNoDelegation why = WhyNoDelegation::not_wanted;
  bool server_will = false;

  bool granted() const { return type != DelegationType::none && type != DelegationType::none_ext; }
  bool writable() const { return type == DelegationType::write || type == DelegationType::write_attrs; }
};
template <class A>
constexpr void describe(A& ar, OpenDelegation& v) {
  using enum DelegationType;
  ar.discriminant("delegation", v.type, {none, read, write, none_ext, read_attrs, write_attrs});
  switch (v.type) {
    case none:
      break;
    case read:
    case read_attrs:
      ar.fields("stateid recall permissions", v.stateid, v.recall, v.permissions);
      break;
    case write:
    case write_attrs:
      ar.fields("stateid recall limit permissions", v.stateid, v.recall, v.space_limit, v.permissions);
      break;
    case none_ext:
      ar.branch("why", v.why);
      if (v.why == WhyNoDelegation::contention || v.why == WhyNoDelegation::resource) {
        ar.fields("server_will", v.server_will);
      }
      break;
  }
}

struct OpenResult {
  static constexpr Op op = Op::open;
  Stateid stateid{};
  ChangeInfo dir_change{};
  uint32_t flags = 0;  // open_result_flag
  Bitmap attributes_set{};
  OpenDelegation delegation{};
};
template <class A>
constexpr void describe(A& ar, OpenResult& v) {
  ar.fields("stateid dir_change flags attributes_set delegation", v.stateid, v.dir_change, v.flags,
            v.attributes_set, v.delegation);
}

struct OpenArgs {
  static constexpr Op op = Op::open;
  using Result = OpenResult;
  uint32_t seqid = 0;         // 0 in minor version 1 and above
  uint32_t share_access = 0;  // share::access_*, with share::want_*
  uint32_t share_deny = 0;    // share::deny_*
  StateOwner owner{};
  OpenHow how{};
  OpenClaim claim{};
};
template <class A>
constexpr void describe(A& ar, OpenArgs& v) {
  ar.fields("seqid access deny owner how claim", v.seqid, v.share_access, v.share_deny, v.owner, v.how,
            v.claim);
}

struct OpenDowngradeResult {
  static constexpr Op op = Op::open_downgrade;
  Stateid stateid{};
};
template <class A>
constexpr void describe(A& ar, OpenDowngradeResult& v) {
  ar.fields("stateid", v.stateid);
}
struct OpenDowngradeArgs {
  static constexpr Op op = Op::open_downgrade;
  using Result = OpenDowngradeResult;
  Stateid stateid{};
  uint32_t seqid = 0;
  uint32_t share_access = 0;
  uint32_t share_deny = 0;
};
template <class A>
constexpr void describe(A& ar, OpenDowngradeArgs& v) {
  ar.fields("stateid seqid access deny", v.stateid, v.seqid, v.share_access, v.share_deny);
}

struct CloseResult {
  static constexpr Op op = Op::close;
  Stateid stateid{};  // meaningless in minor version 1
};
template <class A>
constexpr void describe(A& ar, CloseResult& v) {
  ar.fields("stateid", v.stateid);
}
struct CloseArgs {
  static constexpr Op op = Op::close;
  using Result = CloseResult;
  uint32_t seqid = 0;
  Stateid stateid{};
};
template <class A>
constexpr void describe(A& ar, CloseArgs& v) {
  ar.fields("seqid stateid", v.seqid, v.stateid);
}

}  // namespace nfsrdma::nfs4
