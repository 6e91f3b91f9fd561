// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <cerrno>

#include "report.hpp"

namespace cli {

using namespace nfsrdma;

namespace {

// vers=4.2 is taken, and what it gets is said once however many URLs ask for it.
void note_version(const Call& call, const Options& options) {
  static bool said = false;
  for (const std::string& word : options.accepted) {
    if (said || !word.ends_with("4.1 is used)")) continue;
    warn(call, "the option " + word);
    said = true;
  }
}

}  // namespace

Result<Target> parse_target(const Call& call, const std::string& url) {
  auto options = parse_url(url);
  if (!options) return options.error();
  if (auto r = apply_option_list(*options, call.options); !r) return r.error();
  note_version(call, *options);
  if (!options->trace.empty()) log_from(LogLevel::trace);
  Target target;
  target.options = std::move(*options);
  target.path = target.options.path;
  target.wants_directory = target.path.ends_with('/');
  return target;
}

Result<Session> Session::open(const Target& target) {
  Options options = target.options;
  options.path.assign(1, '/');
  auto mount = Mount::connect(options);
  if (!mount) return mount.error();
  return Session(std::move(*mount));
}

Result<Entry> Session::resolve(const std::string& path, bool follow) {
  return mount_->resolve(path, follow, who());
}

Result<Place> Session::place(const std::string& path) {
  Place place;
  place.name = last_name(path);
  if (place.name.empty()) return Error(EEXIST, ErrorOrigin::server, "\"/\" is the server's root");
  const std::string bare = path.substr(0, path.find_last_not_of('/') + 1);
  auto parent = resolve(bare.substr(0, bare.size() - place.name.size()));
  if (!parent) return parent.error();
  if (parent->attributes.type != NodeType::directory)
    return Error(ENOTDIR, ErrorOrigin::server, "what should hold it is not a directory");
  place.parent = parent->node;
  return place;
}

Result<std::vector<DirectoryEntry>> read_all(Session& session, const Node& directory) {
  constexpr uint32_t page_bytes = 64 * 1024;
  constexpr int empty_pages_max = 16;
  std::vector<DirectoryEntry> entries;
  uint64_t cookie = 0, verifier = 0;
  for (int empty_pages = 0;;) {
    auto page = session.mount().read_directory(directory, cookie, verifier, page_bytes, true, session.who());
    if (!page) return page.error();
    if (page->entries.empty() && !page->eof && ++empty_pages > empty_pages_max)
      return Error(EIO, ErrorOrigin::protocol, "the server keeps sending empty pages of this directory");
    verifier = page->verifier;
    for (DirectoryEntry& entry : page->entries) {
      cookie = entry.cookie;
      entries.push_back(std::move(entry));
    }
    if (page->eof) return entries;
  }
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string last_name(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  size_t slash = path.find_last_of('/', end);
  size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

std::string join(const std::string& directory, const std::string& name) {
  std::string path = directory;
  if (!path.ends_with('/')) path += '/';
  return path += name;
}

}  // namespace cli
