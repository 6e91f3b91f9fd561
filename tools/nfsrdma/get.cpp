// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "files.hpp"
#include "interrupt.hpp"
#include "record.hpp"
#include "report.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

constexpr unsigned depth_max = 512;

// One run of get: what was copied, and the worst that happened.
struct Get {
  const Call& call;
  Session& session;
  const mode_t mask = process_umask();
  uint64_t files = 0, bytes = 0;
  int code = exit_done;

  void fail(const std::string& path, const Error& error) { code = report(call, path, error); }
};

// What a server sends decides names and kinds here, so nothing is opened through a symbolic link and no name
// is more than one component.
void get_tree(Get& get, const Entry& from, const std::string& shown, int parent_fd, const std::string& name,
              unsigned depth);

void get_directory(Get& get, const Entry& from, const std::string& shown, int parent_fd,
                   const std::string& name, unsigned depth) {
  if (depth > depth_max)
    return get.fail(shown, Error(ELOOP, ErrorOrigin::local, "more directories deep than are copied"));
  const bool is_new = ::mkdirat(parent_fd, name.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return get.fail(shown, local_error(errno, name));
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0);
  UniqueFd fd(::openat(parent_fd, name.c_str(), flags));
  if (!fd) return get.fail(shown, local_error(errno, name));
  auto entries = read_all(get.session, from.node);
  if (!entries) return get.fail(shown, entries.error());
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = join(shown, entry.name);
    if (!is_plain_name(entry.name)) {
      get.fail(shown,
               Error(EPROTO, ErrorOrigin::protocol, "the server sent the name \"" + entry.name + "\""));
      continue;
    }
    Entry child{entry.node, entry.attributes};
    if (!child.node || child.attributes.type == NodeType::none) {
      auto found = get.session.mount().lookup(from.node, entry.name, get.session.who());
      if (!found) {
        get.fail(path, found.error());
        continue;
      }
      child = *found;
    }
    get_tree(get, child, path, fd.get(), entry.name, depth + 1);
  }
  // Only now: a mode without write permission would have kept the files out.
  const mode_t mode = from.attributes.mode & 0777 & ~get.mask;
  if (is_new && ::fchmod(fd.get(), mode) != 0) get.fail(shown, local_error(errno, name));
}

void get_tree(Get& get, const Entry& from, const std::string& shown, int parent_fd, const std::string& name,
              unsigned depth) {
  switch (from.attributes.type) {
    case NodeType::directory:
      return get_directory(get, from, shown, parent_fd, name, depth);
    case NodeType::regular: {
      auto copied = copy_to_local(get.session, from, parent_fd, name, false);
      if (!copied) return get.fail(shown, copied.error());
      ++get.files;
      get.bytes += *copied;
      return;
    }
    case NodeType::symlink: {
      auto target = get.session.mount().read_link(from.node, get.session.who());
      if (!target) return get.fail(shown, target.error());
      if (::symlinkat(target->c_str(), parent_fd, name.c_str()) != 0)
        get.fail(shown, local_error(errno, name));
      return;
    }
    default:
      return get.fail(shown,
                      Error(EINVAL, ErrorOrigin::server, "is not copied: neither file, directory nor link"));
  }
}

// Where in the local file system the copy goes: a directory that is there takes it under the remote name.
std::string local_path(const std::string& local, const std::string& remote_name) {
  struct stat status {};
  const bool directory = ::stat(local.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return directory || local.ends_with('/') ? join(local, remote_name) : local;
}

}  // namespace

int run_get(const Call& call) {
  catch_interrupts();
  auto target = parse_target(call, call.first);
  if (!target) return report(call, call.first, target.error());
  const std::string local = call.second.empty() ? "." : call.second;
  const bool to_stdout = local == "-";
  if (to_stdout && (call.recursive || call.json))
    return usage(call.command, "\"-\" takes the bytes of one file, without -r and --json");
  auto session = Session::open(*target);
  if (!session) return report(call, call.first, session.error());
  auto entry = session->resolve(target->path);
  if (!entry) return report(call, call.first, entry.error());
  Get get{call, *session};
  if (to_stdout) {
    auto copied = copy_to_fd(*session, *entry, STDOUT_FILENO, last_name(target->path));
    if (!copied)
      return copied.error().errno_value() == EPIPE ? exit_refused : report(call, call.first, copied.error());
    return exit_done;
  }
  std::string remote_name = last_name(target->path);
  if (entry->attributes.type == NodeType::directory && call.recursive) {
    // The server's root has no name of its own: its entries go into the directory given.
    get_tree(get, *entry, target->path, AT_FDCWD,
             remote_name.empty() ? local : local_path(local, remote_name), 0);
  } else {
    const std::string path = remote_name.empty() ? local : local_path(local, remote_name);
    auto copied = copy_to_local(*session, *entry, AT_FDCWD, path, true);
    if (!copied) return report(call, call.first, copied.error());
    get.files = 1;
    get.bytes = *copied;
  }
  if (call.json) print_json(Record{{"files", get.files}, {"bytes", get.bytes}});
  return finish_stdout(call, get.code);
}

}  // namespace cli
