// SPDX-License-Identifier: Apache-2.0
#include "show.hpp"

#include <grp.h>
#include <pwd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <map>

namespace cli {

using nfsrdma::Attributes;
using nfsrdma::NodeType;
using nfsrdma::Time;

namespace {

std::string formatted(const Time& t, const char* format, bool local) {
  auto seconds = static_cast<time_t>(t.seconds);
  tm parts{};
  if (!(local ? localtime_r(&seconds, &parts) : gmtime_r(&seconds, &parts))) return std::to_string(t.seconds);
  std::array<char, 64> text{};
  strftime(text.data(), text.size(), format, &parts);
  return text.data();
}

std::string fraction(const Time& t) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), ".%09u", t.nanoseconds);
  return text.data();
}

}  // namespace

std::string type_name(NodeType type) {
  switch (type) {
    case NodeType::none:
      return "unknown";
    case NodeType::regular:
      return "regular file";
    case NodeType::directory:
      return "directory";
    case NodeType::block:
      return "block special file";
    case NodeType::character:
      return "character special file";
    case NodeType::symlink:
      return "symbolic link";
    case NodeType::socket:
      return "socket";
    case NodeType::fifo:
      return "fifo";
  }
  return "unknown";
}

std::string mode_text(const Attributes& a) {
  constexpr char types[] = "?-dbclsp";
  std::string out(1, types[static_cast<size_t>(a.type) & 7]);
  for (int shift : {6, 3, 0}) {
    const uint32_t bits = a.mode >> shift;
    const bool special = a.mode & (shift == 6 ? 04000u : shift == 3 ? 02000u : 01000u);
    const bool execute = bits & 1;
    out += bits & 4 ? 'r' : '-';
    out += bits & 2 ? 'w' : '-';
    const char set = shift == 0 ? 't' : 's';
    out += !special ? (execute ? 'x' : '-') : execute ? set : static_cast<char>(set - 32);
  }
  return out;
}

std::string octal_mode(uint32_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode);
  return text.data();
}

std::string user_name(uint32_t uid) {
  static std::map<uint32_t, std::string> known;
  auto [at, is_new] = known.try_emplace(uid);
  if (is_new) {
    const passwd* entry = getpwuid(uid);
    at->second = entry ? entry->pw_name : std::to_string(uid);
  }
  return at->second;
}

std::string group_name(uint32_t gid) {
  static std::map<uint32_t, std::string> known;
  auto [at, is_new] = known.try_emplace(gid);
  if (is_new) {
    const group* entry = getgrgid(gid);
    at->second = entry ? entry->gr_name : std::to_string(gid);
  }
  return at->second;
}

std::string iso_time(const Time& t) { return formatted(t, "%Y-%m-%dT%H:%M:%S", false) + fraction(t) + "Z"; }

std::string local_time(const Time& t) {
  return formatted(t, "%Y-%m-%d %H:%M:%S", true) + fraction(t) + formatted(t, " %z", true);
}

std::string list_time(const Time& t) {
  constexpr int64_t half_year_s = 365 * 24 * 3600 / 2;
  const int64_t now = time(nullptr);
  const bool recent = t.seconds > now - half_year_s && t.seconds <= now + 60;
  return formatted(t, recent ? "%b %e %H:%M" : "%b %e  %Y", true);
}

std::string size_text(uint64_t bytes) {
  static const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

}  // namespace cli
