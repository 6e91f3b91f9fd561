// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

constexpr uint32_t access_read = 0x01;       // RFC 8881, section 18.1
constexpr uint32_t page_bytes = 128u << 10;  // what the server is asked for at a time
// Places in a directory: 0 is before ".", 1 before "..", 2 before the first entry of the server, and from 3 on they
// are the server's cookies, which are never 1 or 2 (RFC 8881, section 18.23.3).
constexpr uint64_t before_dot = 0, before_dot_dot = 1, before_entries = 2;

// One READDIR or READDIRPLUS of the kernel.
struct Listing {
  RequestPtr request;
  std::shared_ptr<OpenDirectory> directory;
  size_t size;      // of the answer, at most
  uint64_t place;   // of the next entry
  bool plus;
  std::string out;
  std::vector<uint64_t> counted;  // lookups that the kernel gets with this answer
  OpenDirectory::Position position;
};

uint64_t cookie_of(uint64_t place) { return place == before_entries ? 0 : place; }

// A name that no directory can hold comes from a broken server; the kernel would refuse the whole answer.
bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 1024 && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

// False: it does not fit any more. lookup: count one for the kernel.
bool add_entry(Listing& l, const std::string& name, const DirectoryEntry* entry, uint64_t next) {
  fuse_req_t raw = l.request->raw();
  size_t need = l.plus ? fuse_add_direntry_plus(raw, nullptr, 0, name.c_str(), nullptr, 0)
                       : fuse_add_direntry(raw, nullptr, 0, name.c_str(), nullptr, 0);
  if (l.out.size() + need > l.size) return false;
  size_t at = l.out.size();
  l.out.resize(at + need);
  fuse_entry_param param = {};
  param.attr.st_ino = l.directory->inode->number;
  param.attr.st_mode = S_IFDIR;
  if (entry) {
    bool known = entry->attributes.type != NodeType::none;
    if (l.plus && entry->node && known) {
      InodePtr inode = l.request->fs.make_entry(*l.directory->inode, entry->node, entry->attributes, param);
      l.counted.push_back(inode->id);
    } else {
      param.attr = l.request->fs.stat_of(entry->attributes);
    }
    // readdir(3) takes number 0 for a removed entry.
    if (param.attr.st_ino == 0) param.attr.st_ino = UINT32_MAX;
  }
  auto off = static_cast<off_t>(next);
  if (l.plus)
    fuse_add_direntry_plus(raw, l.out.data() + at, need, name.c_str(), &param, off);
  else
    fuse_add_direntry(raw, l.out.data() + at, need, name.c_str(), &param.attr, off);
  return true;
}

// False: the answer is full.
bool add_dots(Listing& l) {
  if (l.place == before_dot) {
    if (!add_entry(l, ".", nullptr, before_dot_dot)) return false;
    l.place = before_dot_dot;
  }
  if (l.place == before_dot_dot) {
    if (!add_entry(l, "..", nullptr, before_entries)) return false;
    l.place = before_entries;
  }
  return true;
}

bool add_entries(Listing& l) {
  auto& p = l.position;
  for (; p.next < p.page.entries.size(); p.next++) {
    const DirectoryEntry& entry = p.page.entries[p.next];
    bool hidden = l.directory->is_root && entry.name == Control::directory_name;
    if (!hidden && is_name(entry.name) && !add_entry(l, entry.name, &entry, entry.cookie)) return false;
    l.place = p.place = entry.cookie;
  }
  return true;
}

Task<Result<DirectoryPage>> fetch(Listing& l) {
  Mount& mount = l.request->mount;
  const Node& node = l.directory->inode->node;
  uint64_t cookie = cookie_of(l.place);
  Wait<DirectoryPage> wait;
  mount.read_directory(node, cookie, cookie ? l.position.verifier : 0, page_bytes, l.plus, l.request->who(),
                       wait.done());
  Result<DirectoryPage> page = co_await wait;
  // The directory's cookies are of another age than the verifier: those of most servers are good for ever.
  if (!page && page.error().errno_value() == ESTALE && cookie && l.position.verifier) {
    Wait<DirectoryPage> again;
    mount.read_directory(node, cookie, 0, page_bytes, l.plus, l.request->who(), again.done());
    page = co_await again;
  }
  co_return page;
}

Task<int> fill(Listing& l) {
  if (!add_dots(l)) co_return 0;
  auto& p = l.position;
  for (;;) {
    bool usable = p.filled && p.place == l.place && (p.with_attributes || !l.plus);
    if (usable) {
      if (!add_entries(l)) co_return 0;
      if (p.page.eof || !l.out.empty()) co_return 0;
    }
    auto fetching = fetch(l);
    Result<DirectoryPage> page = co_await fetching;
    if (!page) co_return l.out.empty() ? page.error().errno_value() : 0;
    if (page->entries.empty() && !page->eof) co_return EIO;  // would never end
    p.verifier = page->verifier;
    p.page = std::move(*page);
    p.place = l.place;
    p.next = 0;
    p.with_attributes = l.plus;
    p.filled = true;
  }
}

// Takes the handle's position, unless another request is using it; rewinding begins anew.
bool take_position(Listing& l) {
  std::scoped_lock lock(l.directory->mutex);
  if (l.directory->busy) return false;
  l.directory->busy = true;
  l.position = std::move(l.directory->position);
  l.directory->position = {};
  if (l.place == before_dot) l.position.filled = false;
  return true;
}

Detached read_entries(std::unique_ptr<Listing> l) {
  bool owner = take_position(*l);
  auto filling = fill(*l);
  int failed = co_await filling;
  if (owner) {
    std::scoped_lock lock(l->directory->mutex);
    l->directory->position = std::move(l->position);
    l->directory->busy = false;
  }
  bool taken = failed ? l->request->error(failed) : l->request->bytes(l->out);
  if (taken && !failed) co_return;
  for (uint64_t id : l->counted) l->request->fs.inodes.forget(id, 1);
}

Detached opendir(RequestPtr request, InodePtr inode, fuse_file_info info) {
  Wait<uint32_t> wait;
  request->mount.access(inode->node, access_read, request->who(), wait.done());
  Result<uint32_t> granted = co_await wait;
  if (!granted || !(*granted & access_read)) {
    request->error(granted ? EACCES : granted.error().errno_value());
    co_return;
  }
  auto directory = std::make_shared<OpenDirectory>();
  directory->is_root = inode->id == InodeTable::root_id;
  directory->inode = std::move(inode);
  info.fh = request->fs.directories.add(std::move(directory));
  if (!request->opened(info)) request->fs.directories.remove(info.fh);
}

void begin_listing(fuse_req_t raw, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* info, bool plus) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) return request->fs.control.readdir(*request, id, size, offset, plus);
  auto directory = request->fs.directories.get(info->fh);
  if (!directory) return void(request->error(EBADF));
  auto listing = std::make_unique<Listing>();
  listing->request = std::move(request);
  listing->directory = std::move(directory);
  listing->size = std::min<size_t>(size, request_bytes_max);
  listing->place = static_cast<uint64_t>(offset);
  listing->plus = plus;
  read_entries(std::move(listing));
}

}  // namespace

void ops::opendir(fuse_req_t raw, fuse_ino_t id, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  if (Control::owns(id)) return void(request->opened(*info));
  if (InodePtr inode = inode_or_answer(*request, id)) fuse::opendir(std::move(request), std::move(inode), *info);
}

void ops::readdir(fuse_req_t raw, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* info) {
  begin_listing(raw, id, size, offset, info, false);
}

void ops::readdirplus(fuse_req_t raw, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* info) {
  begin_listing(raw, id, size, offset, info, true);
}

void ops::releasedir(fuse_req_t raw, fuse_ino_t id, fuse_file_info* info) {
  auto request = std::make_unique<Request>(raw);
  if (!Control::owns(id)) request->fs.directories.remove(info->fh);
  request->ok();
}

// NFS servers make a change of names durable before they answer it (RFC 1813, section 4.8).
void ops::fsyncdir(fuse_req_t raw, fuse_ino_t, int, fuse_file_info*) {
  auto request = std::make_unique<Request>(raw);
  request->ok();
}

}  // namespace nfsrdma::fuse
