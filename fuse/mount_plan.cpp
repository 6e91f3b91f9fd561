// SPDX-License-Identifier: Apache-2.0
#include "mount_plan.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "filesystem.hpp"
#include "log.hpp"

namespace nfsrdma::fuse {
namespace {

struct FlagWord {
  std::string_view word;
  unsigned long set, clear;
};

constexpr FlagWord flag_words[] = {
    {"ro", MS_RDONLY, 0},
    {"rw", 0, MS_RDONLY},
    {"sync", MS_SYNCHRONOUS, 0},
    {"async", 0, MS_SYNCHRONOUS},
    {"dirsync", MS_DIRSYNC, 0},
    {"atime", 0, MS_NOATIME},
    {"noatime", MS_NOATIME, 0},
    {"diratime", 0, MS_NODIRATIME},
    {"nodiratime", MS_NODIRATIME, 0},
    {"relatime", MS_RELATIME, 0},
    {"norelatime", 0, MS_RELATIME},
    {"strictatime", MS_STRICTATIME, 0},
    {"suid", 0, MS_NOSUID},
    {"nosuid", MS_NOSUID, 0},
    {"dev", 0, MS_NODEV},
    {"nodev", MS_NODEV, 0},
    {"exec", 0, MS_NOEXEC},
    {"noexec", MS_NOEXEC, 0},
};

constexpr std::string_view security_words[] = {"context", "fscontext", "defcontext", "rootcontext", "seclabel"};

Error refused(std::string text) { return Error(EINVAL, ErrorOrigin::usage, std::move(text)); }

void append_word(std::string& list, std::string_view word) {
  if (!list.empty()) list += ',';
  list += word;
}

// fusermount3 splits at commas.
std::string escaped(const std::string& value) {
  std::string out;
  for (char c : value) {
    if (c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

Result<void> take_word(MountPlan& plan, const std::string& word) {
  std::string_view name = std::string_view(word).substr(0, word.find('='));
  for (const FlagWord& flag : flag_words) {
    if (flag.word != word) continue;
    plan.flags = (plan.flags & ~flag.clear) | flag.set;
    return {};
  }
  auto is = [&](std::string_view other) { return other == name; };
  if (std::any_of(std::begin(security_words), std::end(security_words), is)) {
    append_word(plan.kernel_data, word);
    append_word(plan.helper_options, word);
  } else if (is("default_permissions") || is("allow_other")) {
    if (plan.kernel_data.find(name) == std::string::npos) append_word(plan.kernel_data, name);
    append_word(plan.helper_options, name);
  } else if (is("fsname")) {
    plan.source = word.substr(std::min(word.size(), name.size() + 1));
  } else {
    return refused("the mount option \"" + word + "\" is not known");
  }
  return {};
}

std::string unescaped(const std::string& field) {
  std::string out;
  for (size_t i = 0; i < field.size(); i++) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      out += static_cast<char>(strtol(field.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += field[i];
    }
  }
  return out;
}

// realpath(3), also when a dead mount lies on the last component.
Result<std::string> absolute(const std::string& directory) {
  char resolved[PATH_MAX];
  if (realpath(directory.c_str(), resolved)) return std::string(resolved);
  int error = errno;
  if (error == ENOTCONN) {
    std::string plain = directory;
    while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
    size_t slash = plain.rfind('/');
    std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : plain.substr(0, slash);
    if (realpath(parent.c_str(), resolved)) {
      std::string out = resolved;
      if (out.back() != '/') out += '/';
      return out + plain.substr(slash == std::string::npos ? 0 : slash + 1);
    }
  }
  return Error(error, ErrorOrigin::usage,
               error == ENOENT ? "mount point " + (directory.empty() ? "\"\"" : directory) + " does not exist"
                               : "mount point " + directory + ": " + strerror(error));
}

Result<void> check_directory(MountPlan& plan) {
  const std::string& directory = plan.directory;
  auto mounted = find_mount(directory);
  if (mounted && mounted->type == "fuse.nfsrdma") {
    // Answered from memory by a living daemon, even while its server is silent.
    struct stat st;
    std::string control = directory + "/" + std::string(Control::directory_name);
    if (stat(control.c_str(), &st) == 0 || errno != ENOTCONN)
      return Error(EBUSY, ErrorOrigin::usage,
                   "mount point " + directory + " is busy: " + mounted->source + " is mounted there; unmount it first");
    plan.replaces_dead = true;
    return {};
  }
  struct stat st;
  if (stat(directory.c_str(), &st) != 0) {
    int error = errno;
    std::string hint = error == ENOTCONN ? "; a dead mount lies there: umount -l " + directory : "";
    return Error(error, ErrorOrigin::usage, "mount point " + directory + ": " + strerror(error) + hint);
  }
  if (!S_ISDIR(st.st_mode))
    return Error(ENOTDIR, ErrorOrigin::usage, "mount point " + directory + " is not a directory");
  return {};
}

bool parse_passed_fd(const std::string& directory, int& fd) {
  constexpr std::string_view prefix = "/dev/fd/";
  if (!directory.starts_with(prefix) || directory.size() == prefix.size()) return false;
  char* end = nullptr;
  long number = strtol(directory.c_str() + prefix.size(), &end, 10);
  if (*end || number < 0 || number > INT_MAX) return false;
  fd = static_cast<int>(number);
  return true;
}

Result<void> take_passed_fd(MountPlan& plan) {
  if (fcntl(plan.passed_fd, F_SETFD, FD_CLOEXEC) == 0) return {};
  return Error(EBADF, ErrorOrigin::usage, plan.directory + ": no such descriptor was passed to this process");
}

}  // namespace

std::optional<MountEntry> parse_mount_line(const std::string& line) {
  std::istringstream fields(line);
  std::string id, parent, device, root, directory, word;
  if (!(fields >> id >> parent >> device >> root >> directory)) return std::nullopt;
  while (fields >> word && word != "-") {
  }
  std::string type, source;
  if (!(fields >> type >> source)) return std::nullopt;
  return MountEntry{device, unescaped(directory), unescaped(type), unescaped(source)};
}

std::optional<MountEntry> find_mount(const std::string& directory) {
  std::ifstream table("/proc/self/mountinfo");
  std::optional<MountEntry> found;
  for (std::string line; std::getline(table, line);) {
    auto entry = parse_mount_line(line);
    if (entry && entry->directory == directory) found = std::move(entry);  // a later one lies above
  }
  return found;
}

Result<MountPlan> plan_mount(const Options& options, const std::string& directory) {
  MountPlan plan;
  plan.source = options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  plan.source += ":" + options.path;
  plan.flags = MS_NOSUID | MS_NODEV;
  bool root = geteuid() == 0;
  plan.kernel_data = text("rootmode=40000,user_id=%u,group_id=%u,max_read=%u", getuid(), getgid(), request_bytes_max);
  plan.helper_options = text("max_read=%u", request_bytes_max);
  if (root) append_word(plan.kernel_data, "allow_other");
  for (const std::string& word : options.mount_words)
    if (auto taken = take_word(plan, word); !taken) return taken.error();
  if (options.read_only) plan.flags |= MS_RDONLY;
  append_word(plan.helper_options, "subtype=nfsrdma,fsname=" + escaped(plan.source));
  if (plan.flags & MS_RDONLY) append_word(plan.helper_options, "ro");
  if (plan.flags & MS_NOEXEC) append_word(plan.helper_options, "noexec");
  if (plan.flags & MS_NOATIME) append_word(plan.helper_options, "noatime");
  if (parse_passed_fd(directory, plan.passed_fd)) {
    plan.directory = directory;
    if (auto taken = take_passed_fd(plan); !taken) return taken.error();
    return plan;
  }
  auto path = absolute(directory);
  if (!path) return path.error();
  plan.directory = *path;
  if (auto checked = check_directory(plan); !checked) return checked.error();
  return plan;
}

}  // namespace nfsrdma::fuse
