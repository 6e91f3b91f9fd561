// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "files.hpp"
#include "interrupt.hpp"
#include "record.hpp"
#include "report.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

constexpr unsigned depth_max = 512;

struct Put {
  const Call& call;
  Session& session;
  const mode_t mask = process_umask();
  uint64_t files = 0, bytes = 0;
  int code = exit_done;

  void fail(const std::string& path, const Error& error) { code = report(call, path, error); }
};

// The names in a local directory, sorted. Takes the descriptor.
Result<std::vector<std::string>> local_names(UniqueFd fd) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), ::closedir);
  if (!directory) return local_error(errno, "opendir");
  fd.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (!entry && errno) return local_error(errno, "readdir");
    if (!entry) break;
    if (is_plain_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void put_file(Put& put, int fd, const struct stat& status, const std::string& shown, const Place& place) {
  auto there = put.session.mount().lookup(place.parent, place.name, put.session.who());
  if (!there && there.error().errno_value() != ENOENT) return put.fail(shown, there.error());
  auto copied = copy_to_remote(put.session, fd, static_cast<uint64_t>(status.st_size),
                               status.st_mode & 0777 & ~put.mask, place, there ? &*there : nullptr);
  if (!copied) return put.fail(shown, copied.error());
  ++put.files;
  put.bytes += *copied;
}

Result<Node> make_or_find_directory(Put& put, const Place& place) {
  auto made =
      put.session.mount().make_directory(place.parent, place.name, 0777 & ~put.mask, put.session.who());
  if (made) return made->node;
  if (made.error().errno_value() != EEXIST) return made.error();
  auto there = put.session.mount().lookup(place.parent, place.name, put.session.who());
  if (!there) return there.error();
  if (there->attributes.type != NodeType::directory)
    return Error(ENOTDIR, ErrorOrigin::server, "\"" + place.name + "\" is there on the server and is no directory");
  return there->node;
}

void put_tree(Put& put, int parent_fd, const std::string& name, const std::string& shown, const Place& place,
              unsigned depth) {
  if (depth > depth_max)
    return put.fail(shown, Error(ELOOP, ErrorOrigin::local, "more directories deep than are copied"));
  struct stat status {};
  const int flags = depth ? AT_SYMLINK_NOFOLLOW : 0;
  if (::fstatat(parent_fd, name.c_str(), &status, flags) != 0)
    return put.fail(shown, local_error(errno, "stat"));
  if (S_ISLNK(status.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t n = ::readlinkat(parent_fd, name.c_str(), target.data(), target.size());
    if (n < 0) return put.fail(shown, local_error(errno, "readlink"));
    target.resize(static_cast<size_t>(n));
    auto made = put.session.mount().make_symlink(place.parent, place.name, target, put.session.who());
    if (!made) put.fail(shown, made.error());
    return;
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return put.fail(shown,
                    Error(EINVAL, ErrorOrigin::local, "is not copied: neither file, directory nor link"));
  UniqueFd fd(
      ::openat(parent_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (depth ? O_NOFOLLOW : 0)));
  if (!fd) return put.fail(shown, local_error(errno, "open"));
  if (S_ISREG(status.st_mode)) return put_file(put, fd.get(), status, shown, place);
  auto directory = make_or_find_directory(put, place);
  if (!directory) return put.fail(shown, directory.error());
  UniqueFd again(::openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto names = local_names(std::move(again));
  if (!names) return put.fail(shown, names.error());
  for (const std::string& child : *names)
    put_tree(put, fd.get(), child, join(shown, child), Place{*directory, child}, depth + 1);
}

// The place in the remote tree: a directory that is there takes the copy under the local name.
struct Destination {
  Place place;
  std::optional<Entry> existing;
};

Result<Destination> find_destination(Session& session, const Target& target, const std::string& local_name) {
  Destination destination;
  auto there = session.resolve(target.path);
  if (!there && there.error().errno_value() != ENOENT) return there.error();
  const bool directory = there && there->attributes.type == NodeType::directory;
  if (!there && target.wants_directory) return there.error();
  if (there && !directory && target.wants_directory)
    return Error(ENOTDIR, ErrorOrigin::server, "is not a directory");
  if (!directory) {
    auto place = session.place(target.path);
    if (!place) return place.error();
    destination.place = *place;
    if (there) destination.existing = *there;
    return destination;
  }
  if (local_name.empty())
    return Error(EISDIR, ErrorOrigin::usage,
                 "is a directory, and standard input has no name: add one to the URL");
  destination.place = Place{there->node, local_name};
  auto inside = session.resolve(join(target.path, local_name));
  if (!inside && inside.error().errno_value() != ENOENT) return inside.error();
  if (inside) destination.existing = *inside;
  return destination;
}

int put_single(Put& put, UniqueFd fd, const std::string& local, const Destination& destination) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return report(put.call, local, local_error(errno, "stat"));
  const bool regular = S_ISREG(status.st_mode);
  const uint32_t mode = (regular ? status.st_mode & 0777 : 0666) & ~put.mask;
  auto copied =
      copy_to_remote(put.session, fd.get(), regular ? static_cast<uint64_t>(status.st_size) : 0, mode,
                     destination.place, destination.existing ? &*destination.existing : nullptr);
  if (!copied) return report(put.call, put.call.second, copied.error());
  put.files = 1;
  put.bytes = *copied;
  return exit_done;
}

}  // namespace

int run_put(const Call& call) {
  catch_interrupts();
  auto target = parse_target(call, call.second);
  if (!target) return report(call, call.second, target.error());
  const bool from_stdin = call.first == "-";
  if (from_stdin && call.recursive) return usage(call.command, "\"-\" is one file, without -r");
  // The local file first: nothing is created for one that cannot be read.
  UniqueFd fd(from_stdin ? ::dup(STDIN_FILENO) : ::open(call.first.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return report(call, call.first, local_error(errno, "open"));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return report(call, call.first, local_error(errno, "stat"));
  const bool directory = S_ISDIR(status.st_mode);
  if (directory && !call.recursive)
    return report(call, call.first, Error(EISDIR, ErrorOrigin::local, "is a directory; -r copies it"));
  auto session = Session::open(*target);
  if (!session) return report(call, call.second, session.error());
  auto destination = find_destination(*session, *target, from_stdin ? std::string() : last_name(call.first));
  if (!destination) return report(call, call.second, destination.error());
  Put put{call, *session};
  if (directory)
    put_tree(put, AT_FDCWD, call.first, call.first, destination->place, 0);
  else
    put.code = put_single(put, std::move(fd), call.first, *destination);
  if (call.json && (directory || put.code == exit_done))
    print_json(Record{{"files", put.files}, {"bytes", put.bytes}});
  return finish_stdout(call, put.code);
}

}  // namespace cli
