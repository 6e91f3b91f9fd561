// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nfsrdma/options.hpp"

namespace nfsrdma {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& list, bool sloppy = false) {
  Options options;
  auto result = apply_option_list(options, list, sloppy);
  EXPECT_FALSE(result) << list;
  if (result) return {};
  EXPECT_EQ(result.error().errno_value(), EINVAL);
  EXPECT_EQ(result.error().origin(), ErrorOrigin::usage);
  return result.error().text();
}

Options taken(const std::string& list) {
  Options options;
  auto result = apply_option_list(options, list);
  EXPECT_TRUE(result) << list << ": " << result.error().text();
  return options;
}

TEST(OptionList, AppliesAListInOrder) {
  Options o = taken("vers=4.1,nconnect=4,rw,ro,timeo=50,provider=iwarp,soft,hard,port=20050");
  EXPECT_EQ(o.nconnect, 4u);
  EXPECT_TRUE(o.read_only);
  EXPECT_EQ(o.timeo_ds, 50u);
  EXPECT_EQ(o.provider, ProviderKind::iwarp);
  EXPECT_EQ(o.retry_policy, RetryPolicy::hard);
  EXPECT_EQ(o.port, 20050);
  EXPECT_THAT(o.mount_words, ElementsAre("rw", "ro"));
  EXPECT_TRUE(o.accepted.empty());
}

TEST(OptionList, TheLastOfEqualVfsWordsCounts) {
  EXPECT_THAT(taken("ro,rw,ro").mount_words, ElementsAre("rw", "ro"));
}

TEST(OptionList, EmptyListsAndEmptyWordsAreNothing) {
  EXPECT_EQ(taken(""), Options{});
  EXPECT_EQ(taken(",,"), Options{});
}

TEST(OptionList, RoundsTransferSizesAsNfs5) {
  EXPECT_EQ(taken("rsize=1").rsize_bytes, 4096u);
  EXPECT_EQ(taken("rsize=1023").rsize_bytes, 4096u);
  EXPECT_EQ(taken("rsize=1024").rsize_bytes, 1024u);
  EXPECT_EQ(taken("rsize=5000").rsize_bytes, 4096u);
  EXPECT_EQ(taken("wsize=65537").wsize_bytes, 65536u);
  EXPECT_EQ(taken("wsize=4m").wsize_bytes, 1u << 20);
  EXPECT_EQ(taken("wsize=256K").wsize_bytes, 256u << 10);
  EXPECT_EQ(taken("rsize=0").rsize_bytes, 1u << 20);
}

TEST(OptionList, NumbersOutOfRangeSayTheRangeAndAnExample) {
  EXPECT_EQ(refusal("nconnect=17"), "option \"nconnect=17\": takes a number from 1 to 16, as in nconnect=1");
  EXPECT_THAT(refusal("nconnect=0"), HasSubstr("1 to 16"));
  EXPECT_THAT(refusal("nconnect"), HasSubstr("nconnect=1"));
  EXPECT_THAT(refusal("port=65536"), HasSubstr("1 to 65535"));
  EXPECT_THAT(refusal("inline=1500"), HasSubstr("multiple of 1024"));
  EXPECT_THAT(refusal("pool=17179869184g"), HasSubstr("pool="));
}

TEST(OptionList, VersionsOtherThanFourOneGetANotice) {
  EXPECT_TRUE(taken("vers=4.1").accepted.empty());
  EXPECT_THAT(taken("vers=4.2").accepted, ElementsAre("vers=4.2 (operations of NFSv4.2 are not there yet: 4.1 is used)"));
  EXPECT_THAT(taken("nfsvers=4").accepted, ElementsAre("nfsvers=4 (4.1 is spoken)"));
  EXPECT_THAT(taken("v4.2").accepted, ElementsAre("v4.2 (operations of NFSv4.2 are not there yet: 4.1 is used)"));
  EXPECT_EQ(taken("vers=4.2").minor_version, 1u);
  for (const char* old : {"vers=3", "vers=4.0", "nfsvers=2", "v3", "v4.0", "minorversion=0"}) refusal(old);
}

TEST(OptionList, ContradictingVersionsAreRefused) {
  EXPECT_THAT(refusal("vers=4.1,minorversion=2"), HasSubstr("contradict"));
  EXPECT_THAT(refusal("minorversion=1,v4.2"), HasSubstr("contradict"));
  taken("vers=4,minorversion=1");
  taken("vers=4.2,minorversion=2");
}

TEST(OptionList, TransportsThatAreNotThereAreRefusedPlainly) {
  EXPECT_THAT(refusal("proto=tcp"), HasSubstr("proto=tcp is not there yet"));
  EXPECT_THAT(refusal("tcp"), HasSubstr("proto=tcp is not there yet"));
  EXPECT_THAT(refusal("proto=tcp6"), HasSubstr("not there yet"));
  EXPECT_THAT(refusal("proto=udp"), HasSubstr("UDP"));
  EXPECT_THAT(refusal("proto=rdma,proto=sctp"), HasSubstr("rdma"));
}

TEST(OptionList, SecurityFlavors) {
  taken("sec=sys");
  taken("sec=krb5p:sys");
  EXPECT_THAT(refusal("sec=krb5"), HasSubstr("only sec=sys"));
  EXPECT_THAT(refusal("sec=sys:"), HasSubstr("sec"));
  EXPECT_THAT(refusal("xprtsec=tls"), HasSubstr("TLS"));
}

TEST(OptionList, AttributeTimes) {
  Options o = taken("actimeo=7");
  EXPECT_EQ(o.acregmin_s, 7u);
  EXPECT_EQ(o.acdirmax_s, 7u);
  o = taken("acregmin=100,acregmax=10");
  EXPECT_EQ(o.acregmin_s, 10u);
  o = taken("acdirmax=1");
  EXPECT_EQ(o.acdirmin_s, 1u);
  o = taken("noac");
  EXPECT_TRUE(o.noac);
  EXPECT_TRUE(o.sync_writes);
}

TEST(OptionList, UnknownWordsAreRefusedOrNotedWhenSloppy) {
  EXPECT_EQ(refusal("nconect=4"), "unknown option \"nconect\"; did you mean nconnect");
  EXPECT_THAT(refusal("zzzzzzzz"), HasSubstr("`nfsrdma options`"));
  Options o = taken("frobnicate=7,sloppy,nconnect=2");
  EXPECT_THAT(o.accepted, ElementsAre("frobnicate=7"));
  EXPECT_EQ(o.nconnect, 2u);
  Options by_argument;
  ASSERT_TRUE(apply_option_list(by_argument, "frobnicate,frobnicate", true));
  EXPECT_THAT(by_argument.accepted, ElementsAre("frobnicate"));
  refusal("nconnect=99,sloppy");  // tolerates unknown words, not wrong values
}

TEST(OptionList, QuotesKeepCommas) {
  Options o = taken("context=\"system_u:object_r:nfs_t:s0:c1,c2\",nosuid");
  EXPECT_THAT(o.mount_words, ElementsAre("context=system_u:object_r:nfs_t:s0:c1,c2", "nosuid"));
  EXPECT_THAT(refusal("context=\"a,b"), HasSubstr("no end"));
}

TEST(OptionList, HostileTextIsRefusedInOnePrintableLine) {
  const std::string zero("ro\0x", 4);
  EXPECT_THAT(refusal(zero), HasSubstr("zero byte"));
  EXPECT_THAT(refusal(std::string("client_id=a\0b", 13)), HasSubstr("zero byte"));
  std::string text = refusal("two\nlines");
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("two\\x0alines"));
  EXPECT_LT(refusal(std::string(20000, 'x')).size(), 200u);
  EXPECT_THAT(refusal(std::string(70000, ',')), HasSubstr("65536"));
  EXPECT_THAT(refusal("\x1b[31mred"), HasSubstr("\\x1b"));
}

TEST(OptionList, F23_ClientIdFrom1To1024Bytes) {
  for (size_t n : {size_t{1}, size_t{63}, size_t{64}, size_t{1024}})
    EXPECT_EQ(taken("client_id=" + std::string(n, 'x')).client_id.size(), n);
  EXPECT_EQ(taken("client_id=k\xc3\xb6ln 7").client_id, "k\xc3\xb6ln 7");
  EXPECT_THAT(refusal("client_id=" + std::string(1025, 'x')), HasSubstr("1 to 1024 bytes, here are 1025"));
  EXPECT_THAT(refusal("client_id="), HasSubstr("1 to 1024 bytes"));
}

TEST(OptionList, AddressesAndDevices) {
  EXPECT_EQ(taken("addr=10.0.0.7").host, "10.0.0.7");
  EXPECT_EQ(taken("addr=fd00::7").host, "fd00::7");
  EXPECT_EQ(taken("srcaddr=fd00::8").source_address, "fd00::8");
  EXPECT_THAT(refusal("srcaddr=myhost"), HasSubstr("numeric local address"));
  EXPECT_EQ(taken("rdma_dev=mlx5_0/1").rdma_device, "mlx5_0/1");
  for (const char* wrong : {"rdma_dev=", "rdma_dev=/1", "rdma_dev=a/0", "rdma_dev=a/x", "rdma_dev=../x"})
    refusal(wrong);
}

TEST(OptionList, ConnectTimeout) {
  EXPECT_EQ(taken("connect_timeout=3").connect_timeout_ms, 3000u);
  EXPECT_EQ(taken("connect_timeout=250ms").connect_timeout_ms, 250u);
  for (const char* wrong :
       {"connect_timeout=0", "connect_timeout=ms", "connect_timeout=3601", "connect_timeout=1s"})
    refusal(wrong);
}

TEST(Source, HostAndPath) {
  Options o;
  ASSERT_TRUE(apply_source(o, "10.100.0.1:/export/data sets"));
  EXPECT_EQ(o.host, "10.100.0.1");
  EXPECT_EQ(o.path, "/export/data sets");
  ASSERT_TRUE(apply_source(o, "[fd00::1]:/"));
  EXPECT_EQ(o.host, "fd00::1");
  EXPECT_EQ(o.path, "/");
  ASSERT_TRUE(apply_source(o, "host.example:/a:/b"));
  EXPECT_EQ(o.host, "host.example");
  EXPECT_EQ(o.path, "/a:/b");
}

TEST(Source, UrlKeepsWhatWasSetBefore) {
  Options o = taken("nosuid,nconnect=2");
  ASSERT_TRUE(apply_source(o, "nfsrdma://127.0.0.1:7001/x?provider=iwarp"));
  EXPECT_EQ(o.nconnect, 2u);
  EXPECT_EQ(o.port, 7001);
  EXPECT_EQ(o.provider, ProviderKind::iwarp);
  EXPECT_THAT(o.mount_words, ElementsAre("nosuid"));
}

TEST(Source, Refusals) {
  for (const char* wrong : {"", "/export", "host", "host:", "host:export", ":/export", "fd00::1:/x",
                            "[fd00::1]/x", "[nonsense:]:/x", "ho st:/x", "nfs://host/x", "[]:/x"}) {
    Options o;
    auto r = apply_source(o, wrong);
    ASSERT_FALSE(r) << wrong;
    EXPECT_EQ(r.error().origin(), ErrorOrigin::usage);
    EXPECT_EQ(o, Options{}) << wrong;
  }
}

}  // namespace
}  // namespace nfsrdma
