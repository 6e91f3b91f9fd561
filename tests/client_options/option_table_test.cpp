// SPDX-License-Identifier: Apache-2.0
// Everything here runs over the whole table, so that a new row is tested without a line more.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "nfsrdma/options.hpp"

namespace nfsrdma {
namespace {

std::vector<std::string> alternatives(std::string_view value) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= value.size();) {
    size_t bar = std::min(value.find('|', at), value.size());
    out.emplace_back(value.substr(at, bar - at));
    at = bar + 1;
  }
  return out;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// A word that a user could write for the row: "timeo=600", "soft", "x-systemd.automount".
std::string example_of(const OptionInfo& row) {
  std::string name(row.name);
  if (name.ends_with('*')) return name.substr(0, name.size() - 1) + "systemd.automount";
  if (row.value.empty()) return name;
  if (!row.default_text.empty()) return name + "=" + std::string(row.default_text);
  if (row.value == "N" || row.value == "SIZE") return name + "=7";
  if (row.value == "ADDRESS") return name + "=10.100.0.1";
  if (row.value == "PATH") return name + "=/var/lib/somewhere";
  if (row.value == "WORD") return name + "=word";
  return name + "=" + alternatives(row.value).front();
}

class EachRow : public testing::TestWithParam<OptionInfo> {};

TEST_P(EachRow, TakesWhatTheTableSays) {
  const OptionInfo& row = GetParam();
  const std::string word = example_of(row);
  Options options;
  auto result = apply_option_list(options, word);
  if (row.verdict == OptionVerdict::refuse) {
    ASSERT_FALSE(result) << word;
    EXPECT_EQ(result.error().errno_value(), EINVAL);
    EXPECT_EQ(result.error().origin(), ErrorOrigin::usage);
    EXPECT_NE(result.error().text().find(std::string(row.name)), std::string::npos) << result.error().text();
    EXPECT_EQ(options, Options{});
    return;
  }
  ASSERT_TRUE(result) << result.error().text();
  if (row.verdict == OptionVerdict::accept) {
    EXPECT_TRUE(contains(options.accepted, word)) << word;
  }
  if (row.verdict == OptionVerdict::silent) {
    EXPECT_EQ(options, Options{}) << word;
  }
  if (row.verdict == OptionVerdict::vfs) {
    EXPECT_TRUE(contains(options.mount_words, word)) << word;
  }
}

TEST_P(EachRow, TakesEachOfItsAlternatives) {
  const OptionInfo& row = GetParam();
  if (row.value.find('|') == std::string_view::npos) return;
  for (std::string value : alternatives(row.value)) {
    if (value == "N") value = "7";
    Options options;
    auto result = apply_option_list(options, std::string(row.name) + "=" + value);
    EXPECT_TRUE(result) << row.name << "=" << value << ": " << result.error().text();
  }
}

TEST_P(EachRow, DefaultTextIsTheDefault) {
  const OptionInfo& row = GetParam();
  if (row.default_text.empty() || row.verdict == OptionVerdict::accept) return;
  Options options;
  ASSERT_TRUE(apply_option_list(options, std::string(row.name) + "=" + std::string(row.default_text)));
  options.accepted.clear();
  if (row.name == "port") {
    EXPECT_EQ(options.port, Options{}.effective_port());
    options.port = 0;
  }
  EXPECT_EQ(options, Options{}) << row.name;
}

TEST_P(EachRow, RefusesWrongValuesInOneLineThatNamesTheWord) {
  const OptionInfo& row = GetParam();
  if (row.verdict == OptionVerdict::silent || row.verdict == OptionVerdict::accept) return;
  std::vector<std::string> wrong;
  if (row.value.empty() && row.name != "rdirplus") wrong = {"=1", "="};
  if (row.value == "N" || row.value == "SIZE")
    wrong = {"", "=", "=-1", "=+1", "= 1", "=1 ", "=x", "=1x", "=0x10"};
  if (row.value == "N" || row.value == "SIZE") wrong.push_back("=99999999999999999999999");
  if (row.value.find('|') != std::string_view::npos) wrong = {"=", "=nonsense", "=1e9"};
  for (const std::string& tail : wrong) {
    Options options;
    const std::string word = std::string(row.name) + tail;
    auto result = apply_option_list(options, word);
    ASSERT_FALSE(result) << word;
    const std::string& text = result.error().text();
    EXPECT_EQ(result.error().origin(), ErrorOrigin::usage);
    EXPECT_NE(text.find(std::string(row.name)), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_NE(text.back(), '.');
    EXPECT_EQ(options, Options{}) << "a refused list must change nothing: " << word;
  }
}

// What a URL says of the options is enough to make them again.
TEST_P(EachRow, SurvivesTheWayThroughAUrl) {
  const OptionInfo& row = GetParam();
  if (row.verdict == OptionVerdict::refuse) return;
  std::vector<std::string> words{example_of(row)};
  if (row.value.find('|') != std::string_view::npos)
    for (const std::string& value : alternatives(row.value))
      words.push_back(std::string(row.name) + "=" + (value == "N" ? "7" : value));
  if (row.value == "N") words.push_back(std::string(row.name) + "=9");
  if (row.value == "SIZE") words.push_back(std::string(row.name) + "=64m");
  for (const std::string& word : words) {
    Options options;
    if (!apply_option_list(options, word)) continue;  // 9 or 64m are out of some rows' range
    if (options.host.empty()) options.host = "server";
    options.accepted.clear();
    auto again = parse_url(format_url(options));
    ASSERT_TRUE(again) << word << ": " << format_url(options) << ": " << again.error().text();
    again->accepted.clear();
    // noac writes "sync" out, which is a word of the VFS too.
    if (row.name == "noac" || row.name == "write") again->mount_words.clear();
    EXPECT_EQ(*again, options) << word << ": " << format_url(options);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EachRow, testing::ValuesIn(option_table().begin(), option_table().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name + "_" + std::to_string(info.index);
                         });

TEST(OptionTable, NamesAreUniqueAndHelpIsOneLine) {
  std::set<std::string_view> names;
  for (const OptionInfo& row : option_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_EQ(row.help.find('\n'), std::string_view::npos) << row.name;
    EXPECT_FALSE(row.help.ends_with('.')) << row.name;
  }
}

// The words of nfs(5), of libmount and of libfuse that people have in their fstab.
TEST(OptionTable, HoldsTheWordsOfNfs5) {
  std::istringstream expected(
      "nfsvers vers v4.1 minorversion proto rdma tcp udp port addr clientaddr hard soft softerr "
      "softreval nosoftreval intr nointr timeo retrans rsize wsize bsize ac noac acregmin acregmax "
      "acdirmin acdirmax actimeo bg fg retry nconnect max_connect trunkdiscovery notrunkdiscovery "
      "rdirplus nordirplus sec xprtsec sharecache nosharecache resvport noresvport lookupcache fsc "
      "nofsc cto nocto lock nolock local_lock acl noacl namlen migration nomigration posix noposix "
      "mountport mountproto mounthost mountvers mountaddr write alignwrite noalignwrite sloppy source "
      "ro rw sync async dirsync noatime nodiratime relatime strictatime nosuid suid nodev dev noexec "
      "exec _netdev nofail auto noauto user users owner group defaults comment x-* X-* context "
      "fscontext defcontext rootcontext seclabel allow_other allow_root default_permissions max_read "
      "fsname subtype auto_unmount clone_fd max_threads max_idle_threads max_background "
      "congestion_threshold max_readahead io_uring ");
  std::set<std::string_view> names;
  for (const OptionInfo& row : option_table()) names.insert(row.name);
  for (std::string name; expected >> name;) EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace nfsrdma
