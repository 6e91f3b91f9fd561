// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nfsrdma/options.hpp"

namespace nfsrdma {
namespace {

using testing::HasSubstr;

Options parsed(const std::string& url) {
  auto r = parse_url(url);
  EXPECT_TRUE(r) << url << ": " << r.error().text();
  return r ? *r : Options{};
}

std::string refusal(const std::string& url) {
  auto r = parse_url(url);
  EXPECT_FALSE(r) << url;
  if (r) return {};
  EXPECT_EQ(r.error().origin(), ErrorOrigin::usage);
  EXPECT_EQ(r.error().text().find('\n'), std::string::npos);
  return r.error().text();
}

TEST(Url, AllParts) {
  Options o = parsed("nfsrdma://1000@10.100.0.1:20050/export/a%20b?provider=iwarp&nconnect=4&ro");
  EXPECT_TRUE(o.have_uid);
  EXPECT_EQ(o.uid, 1000u);
  EXPECT_EQ(o.host, "10.100.0.1");
  EXPECT_EQ(o.effective_port(), 20050);
  EXPECT_EQ(o.path, "/export/a b");
  EXPECT_EQ(o.provider, ProviderKind::iwarp);
  EXPECT_EQ(o.nconnect, 4u);
  EXPECT_TRUE(o.read_only);
}

TEST(Url, DefaultsAndShortForms) {
  EXPECT_EQ(parsed("nfsrdma://host").path, "/");
  EXPECT_EQ(parsed("nfsrdma://host").effective_port(), 20049);
  EXPECT_EQ(parsed("nfsrdma://host?nconnect=2").nconnect, 2u);
  EXPECT_EQ(parsed("nfsrdma://host/?").path, "/");
  EXPECT_EQ(parsed("nfsrdma://host/x?&&ro&").read_only, true);
  EXPECT_EQ(parsed("NFS+RDMA://host/x").path, "/x");
}

TEST(Url, Ipv6) {
  EXPECT_EQ(parsed("nfsrdma://[::1]:7/x").host, "::1");
  EXPECT_EQ(parsed("nfsrdma://[::1]:7/x").port, 7);
  EXPECT_EQ(parsed("nfsrdma://[fd00::1]").host, "fd00::1");
  EXPECT_THAT(refusal("nfsrdma://fd00::1/x"), HasSubstr("brackets"));
  EXPECT_THAT(refusal("nfsrdma://[::1/x"), HasSubstr("]"));
  EXPECT_THAT(refusal("nfsrdma://[::1]7/x"), HasSubstr("colon"));
  EXPECT_THAT(refusal("nfsrdma://[::zz]/x"), HasSubstr("IPv6"));
}

TEST(Url, Escapes) {
  EXPECT_EQ(parsed("nfsrdma://h/%3f%26%25%2F").path, "/?&%/");
  EXPECT_EQ(parsed("nfsrdma://h/a%0Ab").path, "/a\nb");
  EXPECT_EQ(parsed("nfsrdma://h/a#b+c").path, "/a#b+c");
  EXPECT_EQ(parsed("nfsrdma://h/?client_id=a%26b%3Dc%2Cd").client_id, "a&b=c,d");
  EXPECT_EQ(parsed("nfsrdma://h/?nconn%65ct=3").nconnect, 3u);
  for (const char* wrong :
       {"nfsrdma://h/%", "nfsrdma://h/%4", "nfsrdma://h/%zz", "nfsrdma://h/?client_id=%g1"})
    EXPECT_THAT(refusal(wrong), HasSubstr("%20"));
  EXPECT_THAT(refusal("nfsrdma://h/a%00b"), HasSubstr("zero byte"));
  EXPECT_THAT(refusal("nfsrdma://h/?client_id=a%00b"), HasSubstr("zero byte"));
  EXPECT_THAT(refusal("nfsrdma://h%00/"), HasSubstr("server name"));
}

TEST(Url, Refusals) {
  EXPECT_THAT(refusal("http://host/x"), HasSubstr("nfsrdma://HOST"));
  EXPECT_THAT(refusal("host:/x"), HasSubstr("nfsrdma://HOST"));
  EXPECT_THAT(refusal(""), HasSubstr("nfsrdma://HOST"));
  EXPECT_THAT(refusal("nfsrdma:///x"), HasSubstr("no server"));
  EXPECT_THAT(refusal("nfsrdma://"), HasSubstr("no server"));
  EXPECT_THAT(refusal("nfsrdma://host:/x"), HasSubstr("port"));
  EXPECT_THAT(refusal("nfsrdma://host:0/x"), HasSubstr("port"));
  EXPECT_THAT(refusal("nfsrdma://host:99999/x"), HasSubstr("1 to 65535"));
  EXPECT_THAT(refusal("nfsrdma://ho st/x"), HasSubstr("server name"));
  EXPECT_THAT(refusal("nfsrdma://host/x?nconnect=99"), HasSubstr("1 to 16"));
  EXPECT_THAT(refusal("nfsrdma://host/x?proto=tcp"), HasSubstr("not there yet"));
  EXPECT_THAT(refusal("nfsrdma://host/x?vers=4.1&minorversion=2"), HasSubstr("contradict"));
  EXPECT_THAT(refusal("nfsrdma://root@host/x"), HasSubstr("numeric uid"));
  EXPECT_THAT(refusal("nfsrdma://" + std::string(300, 'h') + "/x"), HasSubstr("255"));
  EXPECT_THAT(refusal("nfsrdma://h/" + std::string(70000, 'x')), HasSubstr("65536"));
  EXPECT_EQ(parse_url("nfsrdma://h/" + std::string(5000, 'x')).error().errno_value(), ENAMETOOLONG);
}

TEST(Url, SloppyIsAnArgument) {
  EXPECT_EQ(parsed("nfsrdma://h/x?frob=1&sloppy").accepted.size(), 1u);
  refusal("nfsrdma://h/x?frob=1");
}

TEST(Url, WritesWhatItReads) {
  for (const char* url :
       {"nfsrdma://host/", "nfsrdma://host:7/a%20b", "nfsrdma://[fd00::1]:7/x?nconnect=4&provider=iwarp",
        "nfsrdma://host/x?soft&uid=0&ro&nosuid", "nfsrdma://host/x?connect_timeout=1500ms&spin=0"}) {
    Options o = parsed(url);
    EXPECT_EQ(parsed(format_url(o)), o) << format_url(o);
  }
  EXPECT_EQ(format_url(parsed("nfsrdma://1000@host/a%3Fb")), "nfsrdma://host/a%3Fb?uid=1000");
}

}  // namespace
}  // namespace nfsrdma
