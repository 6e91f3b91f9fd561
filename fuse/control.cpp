// SPDX-License-Identifier: Apache-2.0
#include "control.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "log.hpp"
#include "nfsrdma/stats.hpp"
#include "nfsrdma/version.hpp"
#include "request.hpp"

namespace nfsrdma::fuse {
namespace {

constexpr std::string_view names[] = {"mountstats", "stats.json", "options", "version", "health"};
constexpr double seconds = 3600;  // names and attributes never change

uint64_t id_of(size_t index) { return Control::directory_id + 1 + index; }
size_t index_of(uint64_t id) { return static_cast<size_t>(id - Control::directory_id - 1); }

std::string_view word(Switch value) {
  switch (value) {
    case Switch::off: return "off";
    case Switch::on: return "on";
    case Switch::automatic: break;
  }
  return "auto";
}

std::string_view word(RetryPolicy policy) {
  switch (policy) {
    case RetryPolicy::soft: return "soft";
    case RetryPolicy::softerr: return "softerr";
    case RetryPolicy::hard: break;
  }
  return "hard";
}

std::string_view word(LookupCache cache) {
  switch (cache) {
    case LookupCache::none: return "none";
    case LookupCache::positive: return "positive";
    case LookupCache::all: break;
  }
  return "all";
}

std::string_view word(ProviderKind provider) {
  switch (provider) {
    case ProviderKind::verbs: return "verbs";
    case ProviderKind::iwarp: return "iwarp";
    case ProviderKind::automatic: break;
  }
  return "auto";
}

class Lines {
 public:
  void add(std::string_view key, std::string_view value) { out_.append(key).append("=").append(value).append("\n"); }
  void add(std::string_view key, uint64_t value) { add(key, std::to_string(value)); }
  void note(std::string_view key, std::string_view note) { out_.append(key).append("  # ").append(note).append("\n"); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// What is in effect, which is not always what was asked for.
std::string options_text(const Options& o, const MountInfo& info) {
  Lines lines;
  lines.add("source", o.host + ":" + o.path);
  lines.add("addr", info.address);
  lines.add("vers", "4." + std::to_string(info.minor_version));
  lines.add("proto", o.protocol == Protocol::tcp ? "tcp" : "rdma");
  lines.add("provider", word(o.provider));
  lines.add("port", o.effective_port());
  lines.add("nconnect", o.nconnect);
  lines.add("rsize", info.rsize_bytes);
  lines.add("wsize", info.wsize_bytes);
  lines.add("retry_policy", word(o.retry_policy));
  lines.add("timeo", o.timeo_ds);
  lines.add("retrans", o.retrans);
  lines.add("ro", o.read_only ? "1" : "0");
  lines.add("sync", o.sync_writes ? "1" : "0");
  lines.add("noac", o.noac ? "1" : "0");
  lines.add("acregmin", o.acregmin_s);
  lines.add("acregmax", o.acregmax_s);
  lines.add("acdirmin", o.acdirmin_s);
  lines.add("acdirmax", o.acdirmax_s);
  lines.add("lookupcache", word(o.lookup_cache));
  lines.add("cto", o.close_to_open ? "1" : "0");
  lines.add("rdirplus", word(o.rdirplus));
  lines.add("credits", o.credits);
  lines.add("inline", o.inline_bytes);
  lines.add("crc", o.crc ? "on" : "off");
  lines.add("pool", info.pool_bytes_max);
  for (const std::string& path : info.paths) lines.add("path", path);
  for (const std::string& taken : o.accepted) lines.note(taken, "taken without effect");
  return lines.take();
}

std::string health_text(const Stats& stats) {
  bool up = std::any_of(stats.connections.begin(), stats.connections.end(), [](const auto& c) { return c.up; });
  return up ? "ok\n" : "no connection to " + stats.server_address + "\n";
}

}  // namespace

Control::Control(Filesystem& fs) : fs_(fs), since_s_(time(nullptr)) {}

struct stat Control::stat_of(uint64_t id) const {
  struct stat st = {};
  st.st_ino = id;
  st.st_mode = id == directory_id ? S_IFDIR | 0555 : S_IFREG | 0444;
  st.st_nlink = id == directory_id ? 2 : 1;
  st.st_blksize = 4096;
  st.st_atim.tv_sec = st.st_mtim.tv_sec = st.st_ctim.tv_sec = since_s_;
  return st;
}

std::string Control::text_of(uint64_t id, const Stats& stats) const {
  switch (index_of(id)) {
    case 0: return render_mountstats(stats, fs_.directory);
    case 1: return render_json(stats);
    case 2: return options_text(fs_.options, fs_.info);
    case 3: return text("nfsrdma %s\ncontrol 1\n", version_with_commit());
    default: return health_text(stats);
  }
}

void Control::lookup(Request& request, uint64_t parent, std::string_view name) {
  fuse_entry_param entry = {};
  entry.attr_timeout = entry.entry_timeout = seconds;
  if (parent != directory_id) {
    entry.ino = directory_id;
  } else {
    auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) return void(request.error(ENOENT));
    entry.ino = id_of(static_cast<size_t>(found - std::begin(names)));
  }
  entry.attr = stat_of(entry.ino);
  request.entry(entry);
}

void Control::getattr(Request& request, uint64_t id) { request.attributes(stat_of(id), seconds); }

void Control::open(RequestPtr request, uint64_t id, fuse_file_info info) {
  if ((info.flags & O_ACCMODE) != O_RDONLY || (info.flags & O_TRUNC)) return void(request->error(EACCES));
  open_text(*this, std::move(request), id, std::make_shared<fuse_file_info>(info));
}

// Counters lie with the loops that count; no server is asked for them.
Detached Control::open_text(Control& control, RequestPtr request, uint64_t id, std::shared_ptr<fuse_file_info> info) {
  Wait<Stats> wait;
  request->mount.stats(wait.done());
  Result<Stats> stats = co_await wait;
  if (!stats) {
    request->error(stats.error());
    co_return;
  }
  auto text = std::make_shared<OpenText>(OpenText{control.text_of(id, *stats)});
  info->fh = request->fs.texts.add(std::move(text));
  info->direct_io = 1;
  if (!request->opened(*info)) request->fs.texts.remove(info->fh);
}

void Control::readdir(Request& request, uint64_t id, size_t size, off_t offset, bool plus) {
  if (id != directory_id) return void(request.error(ENOTDIR));
  std::string out;
  constexpr off_t count = static_cast<off_t>(std::size(names)) + 2;
  for (off_t i = std::max<off_t>(offset, 0); i < count; i++) {
    std::string name(i == 0 ? "." : i == 1 ? ".." : names[i - 2]);
    fuse_entry_param entry = {};  // no inode number: the kernel looks the name up when it is used
    entry.attr = stat_of(i < 2 ? directory_id : id_of(static_cast<size_t>(i - 2)));
    auto add = [&](char* to, size_t bytes) {
      return plus ? fuse_add_direntry_plus(request.raw(), to, bytes, name.c_str(), &entry, i + 1)
                  : fuse_add_direntry(request.raw(), to, bytes, name.c_str(), &entry.attr, i + 1);
    };
    size_t need = add(nullptr, 0), at = out.size();
    if (at + need > size) break;
    out.resize(at + need);
    add(out.data() + at, need);
  }
  request.bytes(out);
}

void Control::read(Channel& channel, uint64_t unique, uint64_t handle, uint64_t offset, uint32_t size) {
  auto open = fs_.texts.get(handle);
  if (!open) return void(channel.answer(unique, EBADF));
  size_t from = static_cast<size_t>(std::min<uint64_t>(offset, open->text.size()));
  iovec part = {open->text.data() + from, std::min<size_t>(size, open->text.size() - from)};
  channel.answer(unique, 0, &part, 1);
}

}  // namespace nfsrdma::fuse
