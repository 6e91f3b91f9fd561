// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace nfsrdma::fuse {
namespace {

struct Parsed {
  Config config;
  Refusal refusal;
};

Parsed parse(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Parsed out;
  out.refusal = parse_arguments(static_cast<int>(words.size()), arguments.data(), out.config);
  return out;
}

TEST(Arguments, TakesTheFormThatPeopleType) {
  auto p = parse({"/usr/bin/nfsrdma-fuse", "10.0.0.1:/export/data", "/data", "-o", "nconnect=8,ro", "-o", "sync"});
  EXPECT_EQ(p.refusal.exit_code, 0) << p.refusal.line;
  EXPECT_EQ(p.config.program, "nfsrdma-fuse");
  EXPECT_EQ(p.config.options.host, "10.0.0.1");
  EXPECT_EQ(p.config.options.path, "/export/data");
  EXPECT_EQ(p.config.directory, "/data");
  EXPECT_EQ(p.config.options.nconnect, 8u);
  EXPECT_TRUE(p.config.options.read_only);
  EXPECT_TRUE(p.config.options.sync_writes);
  EXPECT_FALSE(p.config.foreground);
}

TEST(Arguments, TakesFlagsBeforeAndBehind) {
  auto p = parse({"nfsrdma-fuse", "-f", "h:/p", "--log-file", "/tmp/x", "/d", "--log-level=debug", "-v"});
  EXPECT_EQ(p.refusal.exit_code, 0) << p.refusal.line;
  EXPECT_TRUE(p.config.foreground && p.config.verbose);
  EXPECT_EQ(p.config.log.where, "/tmp/x");
  EXPECT_EQ(p.config.log.lowest, LogLevel::debug);
}

// mount(8): -f is fake and -s sloppy. Programs of libfuse: foreground and single thread.
TEST(Arguments, LettersMeanWhatTheNameSays) {
  auto helper = parse({"/sbin/mount.nfsrdma", "h:/p", "/d", "-s", "-f", "-n", "-v", "-o", "rw,unheard_of"});
  EXPECT_EQ(helper.refusal.exit_code, 0) << helper.refusal.line;
  EXPECT_TRUE(helper.config.helper && helper.config.fake);
  EXPECT_FALSE(helper.config.foreground);
  auto also = parse({"/sbin/mount.fuse.nfsrdma", "h:/p", "/d", "-f", "-t", "fuse.nfsrdma", "-N", "77"});
  EXPECT_TRUE(also.config.helper && also.config.fake);
  EXPECT_EQ(also.config.mount_namespace, "77");
  auto program = parse({"nfsrdma-fuse", "h:/p", "/d", "-s", "-f"});
  EXPECT_TRUE(program.config.foreground);
  EXPECT_EQ(program.config.options.loops, 1u);
}

TEST(Arguments, UsageEndsWithOne) {
  EXPECT_EQ(parse({"nfsrdma-fuse"}).refusal.exit_code, exit_usage);
  EXPECT_EQ(parse({"nfsrdma-fuse", "h:/p"}).refusal.exit_code, exit_usage);
  EXPECT_EQ(parse({"nfsrdma-fuse", "h:/p", "/d", "/e"}).refusal.exit_code, exit_usage);
  auto p = parse({"nfsrdma-fuse", "h:/p", "/d", "--unheard-of"});
  EXPECT_EQ(p.refusal.exit_code, exit_usage);
  EXPECT_NE(p.refusal.line.find("--unheard-of"), std::string::npos);
  EXPECT_NE(parse({"nfsrdma-fuse", "h:/p", "/d", "-X"}).refusal.line.find("-X"), std::string::npos);
  EXPECT_EQ(parse({"nfsrdma-fuse", "h:/p", "/d", "--log-level", "loud"}).refusal.exit_code, exit_usage);
}

TEST(Arguments, BadOptionsEndWithThirtyTwo) {
  for (const char* words : {"unheard_of", "nconnect=99", "vers=3", "proto=udp"})
    EXPECT_EQ(parse({"nfsrdma-fuse", "h:/p", "/d", "-o", words}).refusal.exit_code, exit_mount) << words;
  EXPECT_EQ(parse({"nfsrdma-fuse", "no-colon", "/d"}).refusal.exit_code, exit_mount);
}

TEST(Arguments, HelpAndVersionNeedNothingElse) {
  EXPECT_TRUE(parse({"nfsrdma-fuse", "--help"}).config.help);
  EXPECT_TRUE(parse({"mount.nfsrdma", "-V"}).config.version);
  EXPECT_NE(help_text().find("nconnect=N"), std::string::npos);
}

TEST(Arguments, ErrorsHaveTheExitCodesOfMount) {
  EXPECT_EQ(exit_code_of(Error(EINVAL, ErrorOrigin::usage)), exit_mount);
  EXPECT_EQ(exit_code_of(Error(ECONNREFUSED, ErrorOrigin::connection)), exit_mount);
  EXPECT_EQ(exit_code_of(Error(EACCES, ErrorOrigin::server)), exit_mount);
  EXPECT_EQ(exit_code_of(Error(EPROTO, ErrorOrigin::protocol)), exit_mount);
  EXPECT_EQ(exit_code_of(Error(ENODEV, ErrorOrigin::connection)), exit_system);
  EXPECT_EQ(exit_code_of(Error(ENOENT, ErrorOrigin::local)), exit_system);
  EXPECT_EQ(exit_code_of(Error(EPERM, ErrorOrigin::local)), exit_usage);
}

}  // namespace
}  // namespace nfsrdma::fuse
