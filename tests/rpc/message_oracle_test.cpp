// SPDX-License-Identifier: Apache-2.0
// Call and reply headers against libtirpc's own.
#include <gtest/gtest.h>
#include <rpc/rpc.h>

#include <vector>

#include "base/random.hpp"
#include "rpc/message.hpp"

namespace nfsrdma::rpc {
namespace {

std::vector<std::byte> oracle_bytes(rpc_msg& message, bool call) {
  std::vector<std::byte> out(1024);
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(out.data()), static_cast<u_int>(out.size()), XDR_ENCODE);
  EXPECT_TRUE(call ? xdr_callmsg(&xdr, &message) : xdr_replymsg(&xdr, &message));
  out.resize(xdr_getpos(&xdr));
  return out;
}

int no_results(XDR*, ...) { return 1; }

TEST(RpcOracle, CallHeadersAreTheSame) {
  base::SeededRandom random(5);
  const std::string letters(255, 'n');
  for (int i = 0; i < 500; i++) {
    AuthSys sys;
    sys.stamp = static_cast<uint32_t>(random.next());
    sys.machine = std::string_view(letters).substr(0, random.below(256));
    sys.uid = static_cast<uint32_t>(random.next());
    sys.gid = static_cast<uint32_t>(random.next());
    sys.group_count = static_cast<uint32_t>(random.below(17));
    for (uint32_t& g : sys.groups) g = static_cast<uint32_t>(random.next());
    const Credential credential = i % 5 ? Credential::sys(sys) : Credential::none();
    std::string name(sys.machine);
    authunix_parms parms{};
    parms.aup_time = sys.stamp;
    parms.aup_machname = name.data();
    parms.aup_uid = sys.uid;
    parms.aup_gid = sys.gid;
    parms.aup_len = sys.group_count;
    parms.aup_gids = sys.groups.data();
    std::vector<std::byte> body(MAX_AUTH_BYTES);
    XDR xdr;
    xdrmem_create(&xdr, reinterpret_cast<char*>(body.data()), MAX_AUTH_BYTES, XDR_ENCODE);
    ASSERT_TRUE(xdr_authunix_parms(&xdr, &parms));
    body.resize(i % 5 ? xdr_getpos(&xdr) : 0);
    EXPECT_TRUE(std::ranges::equal(credential.body(), body));

    rpc_msg message{};
    message.rm_xid = static_cast<uint32_t>(random.next());
    message.rm_direction = CALL;
    message.rm_call.cb_rpcvers = RPC_MSG_VERSION;
    message.rm_call.cb_prog = nfs_program;
    message.rm_call.cb_vers = nfs_version;
    message.rm_call.cb_proc = static_cast<uint32_t>(random.below(2));
    message.rm_call.cb_cred = {i % 5 ? AUTH_SYS : AUTH_NONE, reinterpret_cast<char*>(body.data()),
                               static_cast<u_int>(body.size())};
    std::vector<std::byte> ours(call_header_bytes(credential));
    encode_call_header(ours, static_cast<uint32_t>(message.rm_xid), nfs_program, nfs_version,
                       static_cast<uint32_t>(message.rm_call.cb_proc), credential);
    EXPECT_EQ(oracle_bytes(message, true), ours);
  }
}

TEST(RpcOracle, ReplyHeadersAreTheSame) {
  std::array<std::byte, 64> ours{};
  for (uint32_t status = 0; status <= 5; status++) {
    rpc_msg message{};
    message.rm_xid = 0x89abcdef;
    message.rm_direction = REPLY;
    message.rm_reply.rp_stat = MSG_ACCEPTED;
    message.acpted_rply.ar_stat = static_cast<accept_stat>(status);
    message.acpted_rply.ar_results.proc = no_results;
    if (status == PROG_MISMATCH) message.acpted_rply.ar_vers = {4, 4};
    const uint32_t n = encode_reply_header(ours, 0x89abcdef, static_cast<AcceptStatus>(status), 4, 4);
    EXPECT_EQ(oracle_bytes(message, false), std::vector<std::byte>(ours.begin(), ours.begin() + n)) << status;
  }
  rpc_msg denied{};
  denied.rm_xid = 5;
  denied.rm_direction = REPLY;
  denied.rm_reply.rp_stat = MSG_DENIED;
  denied.rjcted_rply.rj_stat = AUTH_ERROR;
  denied.rjcted_rply.rj_why = AUTH_TOOWEAK;
  const uint32_t n = encode_auth_error(ours, 5, AUTH_TOOWEAK);
  EXPECT_EQ(oracle_bytes(denied, false), std::vector<std::byte>(ours.begin(), ours.begin() + n));
}

}  // namespace
}  // namespace nfsrdma::rpc
