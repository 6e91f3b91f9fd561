// SPDX-License-Identifier: Apache-2.0
// A command's way to a server: the URL's options, a mount of the server's root, and the path below it.
#pragma once

#include <memory>
#include <string>

#include "command.hpp"
#include "nfsrdma/mount.hpp"

namespace cli {

// Where a URL points, and what it asks for.
struct Target {
  nfsrdma::Options options;
  std::string path;
  bool wants_directory = false;  // the path ends in a slash
};

// The URL's arguments, then those of -o.
nfsrdma::Result<Target> parse_target(const Call& call, const std::string& url);

// An object's parent and its name there.
struct Place {
  nfsrdma::Node parent;
  std::string name;
};

class Session {
 public:
  // Mounts the server's root: the URL's path is walked from there, since it is an export's path and a file's
  // in one.
  static nfsrdma::Result<Session> open(const Target& target);

  nfsrdma::Mount& mount() { return *mount_; }
  const nfsrdma::Credentials& who() const { return mount_->default_credentials(); }
  nfsrdma::Result<nfsrdma::Entry> resolve(const std::string& path, bool follow = true);
  // EEXIST for the root, which has no name.
  nfsrdma::Result<Place> place(const std::string& path);

 private:
  explicit Session(std::unique_ptr<nfsrdma::Mount> mount) : mount_(std::move(mount)) {}
  std::unique_ptr<nfsrdma::Mount> mount_;
};

// A directory's entries, all pages, with attributes where the server gives them.
nfsrdma::Result<std::vector<nfsrdma::DirectoryEntry>> read_all(Session& session,
                                                               const nfsrdma::Node& directory);
// false for names that no honest server sends: empty, ".", "..", with a slash.
bool is_plain_name(const std::string& name);

std::string last_name(const std::string& path);
std::string join(const std::string& directory, const std::string& name);

}  // namespace cli
