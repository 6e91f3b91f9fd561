// SPDX-License-Identifier: Apache-2.0
// ONC RPC (RFC 5531) call and reply headers, AUTH_NONE and AUTH_SYS.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::rpc {

using base::Bytes;
using base::ConstBytes;

constexpr uint32_t nfs_program = 100003, nfs_version = 4;
constexpr uint32_t procedure_null = 0, procedure_compound = 1;
constexpr uint32_t callback_program = 0x40000000, callback_version = 1;

enum class AuthFlavor : uint32_t { none = 0, sys = 1, gss = 6 };
constexpr uint32_t auth_body_bytes_max = 400;  // RFC 5531 section 8.2
constexpr uint32_t auth_sys_groups_max = 16;

// AUTH_SYS as it came or goes; names at most 255 bytes.
struct AuthSys {
  uint32_t stamp = 0;
  std::string_view machine;  // a view into the message when decoded
  uint32_t uid = 65534;
  uint32_t gid = 65534;
  uint32_t group_count = 0;
  std::array<uint32_t, auth_sys_groups_max> groups{};
};

// A credential encoded once and sent many times. A replay must carry the identical bytes.
class Credential {
 public:
  static Credential none() { return Credential(); }
  static Credential sys(const AuthSys& auth);  // groups past 16 are the caller's to cut
  AuthFlavor flavor() const { return flavor_; }
  ConstBytes body() const { return {body_.data(), length_}; }
  bool operator==(const Credential& other) const;

 private:
  AuthFlavor flavor_ = AuthFlavor::none;
  uint32_t length_ = 0;
  std::array<std::byte, auth_body_bytes_max> body_{};
};

struct CallHeader {
  uint32_t xid = 0, program = 0, version = 0, procedure = 0;
  AuthFlavor flavor = AuthFlavor::none;
  ConstBytes credential;  // undecoded body
  AuthSys sys;            // filled when flavor is sys
};

enum class AcceptStatus : uint32_t {
  success = 0, program_unavailable = 1, program_mismatch = 2, procedure_unavailable = 3, garbage_args = 4, system_error = 5
};

// Bytes of a call header with this credential and an AUTH_NONE verifier.
inline uint32_t call_header_bytes(const Credential& c) { return 40 + static_cast<uint32_t>(c.body().size() + 3) / 4 * 4; }
constexpr uint32_t reply_header_bytes = 24;  // accepted, AUTH_NONE verifier

// Writes the header; out must hold call_header_bytes(). Returns the bytes written.
uint32_t encode_call_header(Bytes out, uint32_t xid, uint32_t program, uint32_t version, uint32_t procedure,
                            const Credential& credential);
// Accepted reply; for program_mismatch low and high follow. Returns the bytes written (24 or 32).
uint32_t encode_reply_header(Bytes out, uint32_t xid, AcceptStatus status, uint32_t low = 0, uint32_t high = 0);
// Denied reply, AUTH_ERROR(auth_stat).
uint32_t encode_auth_error(Bytes out, uint32_t xid, uint32_t auth_stat);

// EBADMSG when it is not a well-formed call of RPC version 2. args_at: offset of the arguments.
Result<CallHeader> decode_call_header(ConstBytes message, uint32_t& args_at);

// Checks an RPC reply for xid. On success results_at is the offset of the results. A refusal becomes an Error of
// origin server (EACCES for AUTH_ERROR, EPROTONOSUPPORT for version or program mismatch, EREMOTEIO else); malformed:
// EBADMSG, origin protocol.
Result<void> decode_reply_header(ConstBytes message, uint32_t xid, uint32_t& results_at);

}  // namespace nfsrdma::rpc
