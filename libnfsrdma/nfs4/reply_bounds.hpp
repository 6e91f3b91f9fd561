// SPDX-License-Identifier: Apache-2.0
// reply_bytes_max(args, form): bound of an operation's result in a compound's reply, with its number and
// status. A requester must offer that much room before it sends (RFC 8166, 4.4): a reply that does not fit
// costs the connection. form reduced: READ's data goes by RDMA and does not count. A bound may exceed what
// the session allows (ACLs have no limit of their own): callers cap the sum with the session's largest
// response.
#pragma once

#include "nfs4/attributes.hpp"
#include "nfs4/op_table.hpp"

namespace nfsrdma::nfs4 {

inline constexpr uint32_t result_header_bytes = 8;           // operation number and status
inline constexpr uint32_t compound_reply_header_bytes = 12;  // status, tag length, result count; plus the tag
// What a server that keeps to login and host name limits puts into an ACE or an owner attribute at most.
inline constexpr uint32_t principal_bytes_bound = 512;
inline constexpr uint32_t attributes_set_bytes_bound = 4 + 4 * 3;
inline constexpr uint32_t lock_denied_bytes_max = 8 + 8 + 4 + 8 + 4 + opaque_bytes_max;
inline constexpr uint32_t channel_attrs_bytes_max = 7 * 4 + 4;

// The default: results whose size does not vary.
template <class Args>
requires(xdr::fixed_bytes_v<typename Args::Result> != xdr::size_varies) constexpr uint64_t
    reply_bytes_max(const Args&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + xdr::fixed_bytes_v<typename Args::Result>;
}
constexpr uint64_t reply_bytes_max(const GetfhArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 4 + file_handle_bytes_max;
}
inline uint64_t reply_bytes_max(const GetattrArgs& args, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + fattr_bytes_max(args.mask);
}
constexpr uint64_t reply_bytes_max(const SetattrArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + attributes_set_bytes_bound;
}
constexpr uint64_t reply_bytes_max(const CreateArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 20 + attributes_set_bytes_bound;
}
constexpr uint64_t reply_bytes_max(const OpenArgs&, xdr::Form = xdr::Form::whole) {
  // stateid, change info, flags, attributes set; delegation: type, stateid, recall, limit, ACE.
  return result_header_bytes + 16 + 20 + 4 + attributes_set_bytes_bound + 4 + 16 + 4 + 12 + 12 + 4 +
         principal_bytes_bound;
}
constexpr uint64_t reply_bytes_max(const LockArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + lock_denied_bytes_max;
}
constexpr uint64_t reply_bytes_max(const LocktArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + lock_denied_bytes_max;
}
constexpr uint64_t reply_bytes_max(const ReadArgs& args, xdr::Form form = xdr::Form::whole) {
  return result_header_bytes + 8 + (form == xdr::Form::whole ? xdr::padded_bytes(args.count) : 0);
}
constexpr uint64_t reply_bytes_max(const ReadlinkArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 4 + 4096;
}
constexpr uint64_t reply_bytes_max(const ReaddirArgs& args, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + xdr::padded_bytes(args.maxcount_bytes) + readdir_overhead_bytes;
}
constexpr uint64_t reply_bytes_max(const SecinfoArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 4 + 1024;
}
constexpr uint64_t reply_bytes_max(const SecinfoNoNameArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 4 + 1024;
}
constexpr uint64_t reply_bytes_max(const TestStateidArgs& args, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 4 + uint64_t{4} * args.stateids.size();
}
constexpr uint64_t reply_bytes_max(const ExchangeIdArgs&, xdr::Form = xdr::Form::whole) {
  // State protection as for SP4_MACH_CRED, owner, scope, implementation id.
  return result_header_bytes + 16 + 4 + 2 * (4 + 4 * bitmap_words_max) + 8 + 2 * (4 + opaque_bytes_max) + 4 +
         2 * (4 + opaque_bytes_max) + 12;
}
constexpr uint64_t reply_bytes_max(const CreateSessionArgs&, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + 24 + 2 * channel_attrs_bytes_max;
}
inline uint64_t reply_bytes_max(const CbGetattrArgs& args, xdr::Form = xdr::Form::whole) {
  return result_header_bytes + fattr_bytes_max(args.mask);
}

}  // namespace nfsrdma::nfs4
