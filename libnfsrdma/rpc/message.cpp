// SPDX-License-Identifier: Apache-2.0
#include "rpc/message.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::rpc {
namespace {

constexpr uint32_t type_call = 0, type_reply = 1, rpc_version = 2;

// Walks 32-bit words with bounds; reading past the end gives zeros and sets `bad`.
struct Reader {
  ConstBytes in;
  size_t at = 0;
  bool bad = false;
  uint32_t u32() {
    if (in.size() - at < 4) {
      bad = true;
      at = in.size();
      return 0;
    }
    uint32_t v = base::load_be<uint32_t>(in.data() + at);
    at += 4;
    return v;
  }
  ConstBytes opaque(uint32_t length_max) {
    uint32_t n = u32();
    if (n > length_max || in.size() - at < n + base::pad4(n)) {
      bad = true;
      return {};
    }
    ConstBytes v = in.subspan(at, n);
    at += n + base::pad4(n);
    return v;
  }
};

struct Writer {
  Bytes out;
  uint32_t at = 0;
  void u32(uint32_t v) {
    base::store_be(out.data() + at, v);
    at += 4;
  }
  void opaque(ConstBytes b) {
    u32(static_cast<uint32_t>(b.size()));
    if (!b.empty()) std::memcpy(out.data() + at, b.data(), b.size());
    uint32_t pad = base::pad4(static_cast<uint32_t>(b.size()));
    std::memset(out.data() + at + b.size(), 0, pad);
    at += static_cast<uint32_t>(b.size()) + pad;
  }
};

Error malformed(const char* what) { return Error(EBADMSG, ErrorOrigin::protocol, base::text("malformed RPC %s", what)); }

bool decode_sys(ConstBytes body, AuthSys& sys) {
  Reader r{body};
  sys.stamp = r.u32();
  sys.machine = base::text_of(r.opaque(255));
  sys.uid = r.u32();
  sys.gid = r.u32();
  sys.group_count = r.u32();
  if (sys.group_count > auth_sys_groups_max) return false;
  for (uint32_t i = 0; i < sys.group_count; i++) sys.groups[i] = r.u32();
  return !r.bad && r.at == body.size();
}

const char* auth_text(uint32_t stat) {
  switch (stat) {
    case 1: return "bad credential";
    case 2: return "credential rejected";
    case 3: return "bad verifier";
    case 4: return "verifier rejected";
    case 5: return "credential too weak: the export wants another sec=";
    default: return "authentication refused";
  }
}

Error accept_error(uint32_t stat, Reader& r) {
  switch (static_cast<AcceptStatus>(stat)) {
    case AcceptStatus::program_unavailable:
      return Error(EPROTONOSUPPORT, ErrorOrigin::server, "the server does not offer this RPC program");
    case AcceptStatus::program_mismatch: {
      uint32_t low = r.u32(), high = r.u32();
      return Error(EPROTONOSUPPORT, ErrorOrigin::server,
                   base::text("the server offers versions %u to %u of this RPC program, not this one", low, high));
    }
    case AcceptStatus::procedure_unavailable:
      return Error(EPROTONOSUPPORT, ErrorOrigin::server, "the server does not offer this RPC procedure");
    case AcceptStatus::garbage_args:
      return Error(EREMOTEIO, ErrorOrigin::server, "the server could not decode the call's arguments");
    default: return Error(EREMOTEIO, ErrorOrigin::server, base::text("RPC system error at the server (status %u)", stat));
  }
}

}  // namespace

Credential Credential::sys(const AuthSys& auth) {
  Credential c;
  c.flavor_ = AuthFlavor::sys;
  Writer w{c.body_};
  w.u32(auth.stamp);
  w.opaque(base::bytes_of(auth.machine.substr(0, 255)));
  w.u32(auth.uid);
  w.u32(auth.gid);
  uint32_t n = std::min(auth.group_count, auth_sys_groups_max);
  w.u32(n);
  for (uint32_t i = 0; i < n; i++) w.u32(auth.groups[i]);
  c.length_ = w.at;
  return c;
}

bool Credential::operator==(const Credential& other) const {
  return flavor_ == other.flavor_ && std::ranges::equal(body(), other.body());
}

uint32_t encode_call_header(Bytes out, uint32_t xid, uint32_t program, uint32_t version, uint32_t procedure,
                            const Credential& credential) {
  Writer w{out};
  for (uint32_t v : {xid, type_call, rpc_version, program, version, procedure}) w.u32(v);
  w.u32(static_cast<uint32_t>(credential.flavor()));
  w.opaque(credential.body());
  w.u32(static_cast<uint32_t>(AuthFlavor::none));
  w.u32(0);
  return w.at;
}

uint32_t encode_reply_header(Bytes out, uint32_t xid, AcceptStatus status, uint32_t low, uint32_t high) {
  Writer w{out};
  for (uint32_t v : {xid, type_reply, 0u, 0u, 0u, static_cast<uint32_t>(status)}) w.u32(v);
  if (status == AcceptStatus::program_mismatch) {
    w.u32(low);
    w.u32(high);
  }
  return w.at;
}

uint32_t encode_auth_error(Bytes out, uint32_t xid, uint32_t auth_stat) {
  Writer w{out};
  for (uint32_t v : {xid, type_reply, 1u, 1u, auth_stat}) w.u32(v);
  return w.at;
}

Result<CallHeader> decode_call_header(ConstBytes message, uint32_t& args_at) {
  Reader r{message};
  CallHeader h;
  h.xid = r.u32();
  uint32_t type = r.u32();
  uint32_t version = r.u32();
  h.program = r.u32();
  h.version = r.u32();
  h.procedure = r.u32();
  h.flavor = static_cast<AuthFlavor>(r.u32());
  h.credential = r.opaque(auth_body_bytes_max);
  r.u32();
  r.opaque(auth_body_bytes_max);
  if (r.bad || type != type_call || version != rpc_version) return malformed("call header");
  if (h.flavor == AuthFlavor::sys && !decode_sys(h.credential, h.sys)) return malformed("AUTH_SYS credential");
  args_at = static_cast<uint32_t>(r.at);
  return h;
}

Result<void> decode_reply_header(ConstBytes message, uint32_t xid, uint32_t& results_at) {
  Reader r{message};
  uint32_t got_xid = r.u32(), type = r.u32(), reply_stat = r.u32();
  if (r.bad || got_xid != xid || type != type_reply || reply_stat > 1) return malformed("reply header");
  if (reply_stat == 1) {
    uint32_t reject = r.u32(), detail = r.u32();
    if (r.bad) return malformed("reply header");
    if (reject == 0)
      return Error(EPROTONOSUPPORT, ErrorOrigin::server, "the server does not speak RPC version 2");
    return Error(EACCES, ErrorOrigin::server, base::text("RPC denied: %s", auth_text(detail)));
  }
  r.u32();
  r.opaque(auth_body_bytes_max);
  uint32_t accept = r.u32();
  if (r.bad) return malformed("reply header");
  if (accept != 0) {
    Error e = accept_error(accept, r);
    return r.bad ? malformed("reply header") : e;
  }
  results_at = static_cast<uint32_t>(r.at);
  return {};
}

}  // namespace nfsrdma::rpc
