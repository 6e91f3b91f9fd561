// SPDX-License-Identifier: Apache-2.0
#include "rpc/message.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace nfsrdma::rpc {
namespace {

std::vector<std::byte> words(std::initializer_list<uint32_t> list) {
  std::vector<std::byte> out(list.size() * 4);
  size_t at = 0;
  for (uint32_t w : list) {
    base::store_be(out.data() + at, w);
    at += 4;
  }
  return out;
}

AuthSys sample(size_t name_bytes, uint32_t groups) {
  static const std::string name(300, 'h');
  AuthSys a;
  a.stamp = 7;
  a.machine = std::string_view(name).substr(0, name_bytes);
  a.uid = 1000;
  a.gid = 100;
  a.group_count = groups;
  for (uint32_t i = 0; i < 16; i++) a.groups[i] = 5000 + i;
  return a;
}

TEST(RpcMessage, CallHeaderRoundTrip) {
  for (size_t name : {0u, 1u, 2u, 3u, 4u, 5u, 64u, 255u})
    for (uint32_t groups : {0u, 1u, 16u}) {
      const Credential c = Credential::sys(sample(name, groups));
      EXPECT_EQ(c.body().size(), 20 + (name + 3) / 4 * 4 + 4 * groups);
      std::vector<std::byte> out(call_header_bytes(c));
      ASSERT_EQ(encode_call_header(out, 0x1234, nfs_program, nfs_version, 1, c), out.size());
      uint32_t at = 0;
      auto h = decode_call_header(out, at);
      ASSERT_TRUE(h) << name << " " << groups;
      EXPECT_EQ(at, out.size());
      EXPECT_EQ(h->xid, 0x1234u);
      EXPECT_EQ(h->program, nfs_program);
      EXPECT_EQ(h->procedure, 1u);
      EXPECT_EQ(h->flavor, AuthFlavor::sys);
      EXPECT_EQ(h->sys.machine, sample(name, groups).machine);
      EXPECT_EQ(h->sys.uid, 1000u);
      EXPECT_EQ(h->sys.gid, 100u);
      EXPECT_EQ(h->sys.group_count, groups);
      for (uint32_t i = 0; i < groups; i++) EXPECT_EQ(h->sys.groups[i], 5000 + i);
      for (size_t n = 0; n < out.size(); n++) {
        std::vector<std::byte> cut(out.begin(), out.begin() + static_cast<ptrdiff_t>(n));
        EXPECT_FALSE(decode_call_header(cut, at)) << n;
      }
    }
}

TEST(RpcMessage, CredentialsCompareByBytes) {
  EXPECT_EQ(Credential::none(), Credential::none());
  EXPECT_EQ(Credential::sys(sample(4, 2)), Credential::sys(sample(4, 2)));
  EXPECT_FALSE(Credential::sys(sample(4, 2)) == Credential::sys(sample(4, 3)));
  EXPECT_FALSE(Credential::none() == Credential::sys(sample(4, 2)));
  EXPECT_EQ(call_header_bytes(Credential::none()), 40u);
  // Names are cut at 255 bytes, groups at 16: the body never exceeds its 400 bytes.
  AuthSys huge = sample(300, 16);
  huge.group_count = 99;
  EXPECT_EQ(Credential::sys(huge).body().size(), 20u + 256 + 64);
}

TEST(RpcMessage, CallsThatAreNone) {
  uint32_t at = 0;
  EXPECT_TRUE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 0, 0, 0, 0}), at));
  EXPECT_EQ(at, 40u);
  EXPECT_TRUE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 77, 4, 1, 0, 0}),
                                 at));  // an unknown flavour is opaque
  EXPECT_FALSE(decode_call_header(words({1, 1, 2, 100003, 4, 0, 0, 0, 0, 0}), at));  // a reply
  EXPECT_FALSE(decode_call_header(words({1, 0, 3, 100003, 4, 0, 0, 0, 0, 0}), at));  // RPC version 3
  EXPECT_FALSE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 0, 401, 0, 0}), at));
  EXPECT_FALSE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 0, 0xffffffff, 0, 0}), at));
  EXPECT_FALSE(
      decode_call_header(words({1, 0, 2, 100003, 4, 0, 1, 0, 0, 0}), at));  // AUTH_SYS without a body
  // 17 groups; a name longer than its body; words behind the groups.
  EXPECT_FALSE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 1,  88, 0,  0,  0,  0,  17, 1,  2, 3,
                                         4, 5, 6, 7,      8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 0, 0}),
                                  at));
  EXPECT_FALSE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 1, 20, 0, 200, 0, 0, 0, 0, 0}), at));
  EXPECT_FALSE(decode_call_header(words({1, 0, 2, 100003, 4, 0, 1, 24, 0, 0, 0, 0, 0, 0, 0, 0}), at));
}

TEST(RpcMessage, RepliesRoundTrip) {
  std::array<std::byte, 64> out{};
  uint32_t at = 0;
  ASSERT_EQ(encode_reply_header(out, 9, AcceptStatus::success), reply_header_bytes);
  ASSERT_TRUE(decode_reply_header({out.data(), 24}, 9, at));
  EXPECT_EQ(at, 24u);
  EXPECT_FALSE(decode_reply_header({out.data(), 24}, 8, at));
  struct Row {
    AcceptStatus status;
    int errno_value;
  };
  for (Row row : {Row{AcceptStatus::program_unavailable, EPROTONOSUPPORT},
                  {AcceptStatus::program_mismatch, EPROTONOSUPPORT},
                  {AcceptStatus::procedure_unavailable, EPROTONOSUPPORT},
                  {AcceptStatus::garbage_args, EREMOTEIO},
                  {AcceptStatus::system_error, EREMOTEIO}}) {
    const uint32_t n = encode_reply_header(out, 9, row.status, 2, 4);
    EXPECT_EQ(n, row.status == AcceptStatus::program_mismatch ? 32u : 24u);
    auto verdict = decode_reply_header({out.data(), n}, 9, at);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().errno_value(), row.errno_value);
    EXPECT_EQ(verdict.error().origin(), ErrorOrigin::server);
    for (uint32_t cut = 0; cut < n; cut++) {
      auto short_one = decode_reply_header({out.data(), cut}, 9, at);
      ASSERT_FALSE(short_one);
      EXPECT_EQ(short_one.error().origin(), ErrorOrigin::protocol) << cut;
    }
  }
  for (uint32_t stat = 1; stat <= 14; stat++) {
    const uint32_t n = encode_auth_error(out, 9, stat);
    auto verdict = decode_reply_header({out.data(), n}, 9, at);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().errno_value(), EACCES);
    EXPECT_EQ(verdict.error().origin(), ErrorOrigin::server);
  }
}

TEST(RpcMessage, RepliesThatAreNone) {
  uint32_t at = 0;
  auto origin = [&](std::initializer_list<uint32_t> list) {
    auto m = words(list);
    auto verdict = decode_reply_header(m, 9, at);
    return verdict ? ErrorOrigin::usage : verdict.error().origin();
  };
  EXPECT_EQ(origin({9, 0, 0, 0, 0, 0}), ErrorOrigin::protocol);     // a call
  EXPECT_EQ(origin({9, 1, 2, 0, 0, 0}), ErrorOrigin::protocol);     // neither accepted nor denied
  EXPECT_EQ(origin({9, 1, 0, 0, 401, 0}), ErrorOrigin::protocol);   // verifier too long
  EXPECT_EQ(origin({9, 1, 0, 0, 8, 0, 0}), ErrorOrigin::protocol);  // verifier cut short
  EXPECT_EQ(origin({9, 1, 1, 0, 2, 2}), ErrorOrigin::server);       // RPC_MISMATCH
  EXPECT_EQ(origin({9, 1, 0, 0, 0, 77}), ErrorOrigin::server);      // a status that nobody knows
  auto with_verifier = words({9, 1, 0, 6, 5, 0x61626364, 0x65000000, 0, 42});
  ASSERT_TRUE(decode_reply_header(with_verifier, 9, at));
  EXPECT_EQ(at, 32u);
}

}  // namespace
}  // namespace nfsrdma::rpc
