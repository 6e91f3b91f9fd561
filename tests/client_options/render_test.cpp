// SPDX-License-Identifier: Apache-2.0
// The statistics texts, and what Debian's own programs make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "nfsrdma/stats.hpp"

namespace nfsrdma {
namespace {

using testing::HasSubstr;
using testing::Not;

ConnectionStats sample_connection() {
  ConnectionStats c;
  c.up = true;
  c.connect_count = 1;
  c.sends = 410;
  c.receives = 410;
  c.in_flight_sum = 3797;
  c.read_chunks = 192;
  c.write_chunks = 192;
  c.reply_chunks = 5;
  c.rdma_request_bytes = 201356624;
  c.rdma_reply_bytes = 201327884;
  c.hardway_register = 128080;
  c.failed_marshal = 7;
  c.allocated_mrs = 32;
  return c;
}

Stats sample() {
  Stats s;
  s.server = "10.100.0.1";
  s.export_path = "/export/data sets";
  s.implementation = "Linux 6.1 nfs nfs4, server's\nown";
  s.nconnect = 2;
  s.rsize_bytes = s.wsize_bytes = 1u << 20;
  s.lease_s = 90;
  s.age_s = 127;
  s.options.read_only = true;
  s.read_bytes = 68157440;
  s.direct_read_bytes = 1048576;
  s.write_bytes = 8192;
  s.connections = {sample_connection(), sample_connection()};
  s.operations = {{.name = "NULL", .calls = 2, .transmissions = 2, .bytes_sent = 88, .bytes_received = 48},
                  {.name = "READ",
                   .calls = 65,
                   .transmissions = 66,
                   .timeouts = 1,
                   .bytes_sent = 13520,
                   .bytes_received = 68165000,
                   .queue_ms = 12,
                   .response_ms = 410,
                   .execute_ms = 430,
                   .errors = 3},
                  {.name = "READ", .calls = 1, .transmissions = 1},
                  {.name = "OURS", .calls = 4}};
  return s;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

size_t numbers_in(const std::string& line, const std::string& prefix) {
  std::istringstream in(line.substr(prefix.size()));
  size_t n = 0;
  for (unsigned long long v; in >> v;) ++n;
  EXPECT_TRUE(in.eof()) << line;
  return n;
}

TEST(XprtLine, HasTheKernelsColumns) {
  EXPECT_EQ(
      render_xprt_line(sample_connection()),
      "xprt:\trdma 0 0 1 0 0 410 410 0 3797 0 192 192 5 201356624 201327884 0 0 128080 7 0 0 0 0 32 0 0 0");
  ConnectionStats tcp = sample_connection();
  tcp.rdma = false;
  tcp.connect_time_ms = 2999;
  tcp.credits_granted = 64;
  EXPECT_EQ(render_xprt_line(tcp), "xprt:\ttcp 0 0 1 2 0 410 410 0 3797 0 64 0 0");
}

TEST(Mountstats, Layout) {
  auto lines = lines_of(render_mountstats(sample(), "/mnt/my data"));
  EXPECT_EQ(
      lines[0],
      "device 10.100.0.1:/export/data\\040sets mounted on /mnt/my\\040data with fstype nfs4 statvers=1.1");
  EXPECT_EQ(
      lines[1],
      "\topts:\tro,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60,acdirmin=30,"
      "acdirmax=60,"
      "hard,proto=rdma,nconnect=2,port=20049,timeo=600,retrans=2,sec=sys,clientaddr=0.0.0.0,local_lock=none");
  EXPECT_EQ(lines[2], "\tage:\t127");
  size_t xprts = 0, operations = 0;
  std::vector<std::string> names;
  for (const std::string& line : lines) {
    if (line.starts_with("\tevents:\t")) {
      EXPECT_EQ(numbers_in(line, "\tevents:\t"), 27u);
    }
    if (line.starts_with("\tbytes:\t")) {
      EXPECT_EQ(line, "\tbytes:\t67108864 8192 1048576 0 68157440 8192 16640 2");
    }
    if (line.starts_with("\txprt:\trdma ")) {
      EXPECT_EQ(numbers_in(line, "\txprt:\trdma "), 27u);
      ++xprts;
    }
    std::smatch match;
    if (std::regex_match(line, match, std::regex("\t *([A-Z_]+): ([0-9 ]+)"))) {
      EXPECT_EQ(numbers_in(match[2], ""), 9u) << line;
      names.push_back(match[1]);
      ++operations;
    }
  }
  EXPECT_EQ(xprts, 2u);
  EXPECT_GT(operations, 60u);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << "an operation's name came twice";
  EXPECT_THAT(lines, testing::Contains("\t        READ: 66 67 1 13520 68165000 12 410 430 3"));
  EXPECT_EQ(lines.back(), "\t        OURS: 4 0 0 0 0 0 0 0 0");
}

// Parsers take a line with the word for a header, so no server may write it there.
TEST(Mountstats, WhatTheServerSaysMakesNoLineOrWordOfItsOwn) {
  auto lines = lines_of(render_mountstats(sample(), "/m\nnfs4"));
  size_t headers = 0;
  for (const std::string& line : lines) {
    std::istringstream in(line);
    for (std::string word; in >> word;) headers += word == "nfs" || word == "nfs4";
  }
  EXPECT_EQ(headers, 1u);
  EXPECT_EQ(lines[3],
            "\timpl_id:\tname='Linux\\0406.1\\040nfs\\040nfs4;\\040server\"s\\012own',domain='',date='0,0'");
}

TEST(Mountstats, OptionsOfTheMountAreShown) {
  Stats s = sample();
  ASSERT_TRUE(
      apply_option_list(s.options, "soft,noac,nocto,lookupcache=pos,nordirplus,noatime,port=2049,rw"));
  s.nconnect = 1;
  s.server = "fd00::1";
  std::string text = render_mountstats(s, "/mnt");
  EXPECT_THAT(text, HasSubstr("device [fd00::1]:/export"));
  EXPECT_THAT(text, HasSubstr("opts:\trw,sync,noatime,"));
  EXPECT_THAT(text, HasSubstr(",acdirmax=0,soft,nocto,noac,nordirplus,proto=rdma,timeo="));
  EXPECT_THAT(text, HasSubstr(",lookupcache=pos,"));
}

TEST(Json, HoldsTheCounters) {
  Stats s = sample();
  s.options.host = "h";
  s.implementation = "not \xff UTF-8";
  auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["server"], "10.100.0.1");
  EXPECT_EQ(json["connections"].size(), 2u);
  EXPECT_EQ(json["connections"][1]["rdma_reply_bytes"], 201327884);
  EXPECT_EQ(json["operations"]["OURS"]["calls"], 4);
  EXPECT_EQ(json["url"], "nfsrdma://h/?ro");
  EXPECT_EQ(json["implementation"], "not \xef\xbf\xbd UTF-8");
}

class NfsUtils : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mountstats-XXXXXX";
    int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    ::close(fd);
    path_ = name;
    std::ofstream(path_) << render_mountstats(sample(), "/data");
  }
  void TearDown() override { unlink(path_.c_str()); }

  bool found(const std::string& program) {
    return run("PATH=$PATH:/usr/sbin:/sbin command -v " + program).first == 0;
  }
  // Exit code and both outputs.
  std::pair<int, std::string> run(const std::string& command) {
    FILE* pipe = popen(("{ PATH=$PATH:/usr/sbin:/sbin; " + command + "; } 2>&1").c_str(), "r");
    std::string text;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
    int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
  }

  std::string path_;
};

TEST_F(NfsUtils, MountstatsReadsIt) {
  if (!found("mountstats")) GTEST_SKIP() << "mountstats is not installed (package nfs-common)";
  auto [rc, text] = run("mountstats -f " + path_);
  EXPECT_EQ(rc, 0) << text;
  EXPECT_THAT(text, HasSubstr("Stats for 10.100.0.1:/export/data\\040sets mounted on /data:"));
  EXPECT_THAT(text, HasSubstr("410 RPC requests sent, 410 RPC replies received"));
  EXPECT_THAT(run("mountstats mountstats --xprt -f " + path_).second, HasSubstr("201327884"));
  for (const char* form : {"--nfs", "--rpc", "--raw", "--xprt"}) {
    auto [form_rc, form_text] = run(std::string("mountstats mountstats ") + form + " -f " + path_);
    EXPECT_EQ(form_rc, 0) << form << form_text;
    EXPECT_THAT(form_text, Not(HasSubstr("Traceback"))) << form;
  }
  for (const char* form : {"nfsstat", "iostat"}) {
    auto [form_rc, form_text] = run(std::string("mountstats ") + form + " -f " + path_);
    EXPECT_EQ(form_rc, 0) << form << form_text;
    EXPECT_THAT(form_text, Not(HasSubstr("Traceback"))) << form;
  }
}

TEST_F(NfsUtils, NfsiostatReadsIt) {
  if (!found("nfsiostat")) GTEST_SKIP() << "nfsiostat is not installed (package nfs-common)";
  if (run("unshare -Urm true").first != 0) GTEST_SKIP() << "user namespaces are not allowed here";
  auto [rc, text] =
      run("unshare -Urm sh -c 'mount --bind " + path_ + " /proc/$$/mountstats && exec nfsiostat'");
  EXPECT_EQ(rc, 0) << text;
  EXPECT_THAT(text, HasSubstr("10.100.0.1:/export/data\\040sets mounted on /data:"));
}

}  // namespace
}  // namespace nfsrdma
