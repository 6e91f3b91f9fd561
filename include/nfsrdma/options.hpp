// SPDX-License-Identifier: Apache-2.0
// What a mount wants. One table (option_table) names every option; the -o list, URL arguments, man page and tests
// all come from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nfsrdma/error.hpp"
#include "nfsrdma/export.hpp"

namespace nfsrdma {

enum class ProviderKind : uint8_t {
  automatic,  // verbs when an RDMA device routes to the server, else an error: software RDMA is chosen by name
  verbs,
  iwarp,
};
enum class Protocol : uint8_t { rdma, tcp };
enum class RetryPolicy : uint8_t { hard, soft, softerr };
enum class Switch : uint8_t { automatic, off, on };
enum class LookupCache : uint8_t { all, none, positive };

struct Options {
  // where
  std::string host;               // name or numeric address
  uint16_t port = 0;              // 0 = 20049 (rdma) or 2049 (tcp)
  std::string path = "/";         // of the export, as the server names it
  // how
  Protocol protocol = Protocol::rdma;
  ProviderKind provider = ProviderKind::automatic;
  uint32_t minor_version = 1;     // 1 or 2
  uint32_t nconnect = 1;          // 1..16 connections, all in one session
  uint32_t rsize_bytes = 1u << 20;
  uint32_t wsize_bytes = 1u << 20;
  RetryPolicy retry_policy = RetryPolicy::hard;
  uint32_t timeo_ds = 600;        // tenths of a second without an answer before the connection is replaced
  uint32_t retrans = 2;
  bool read_only = false;
  bool sync_writes = false;       // every write stable before it is answered
  std::string source_address;     // numeric, "" = by route
  std::string rdma_device;        // "rxe0" or "mlx5_0/1", "" = by route
  uint32_t credits = 128;         // asked per connection
  uint32_t inline_bytes = 4096;   // announced Send and Receive size, multiple of 1024
  bool crc = false;               // iwarp: ask for CRC32C
  bool fpdu_large = false;        // iwarp: frames up to 64 KiB whatever the MSS
  bool memory_windows = true;     // verbs: type-2 windows where there are some
  // who
  std::string client_id;          // co_ownerid, 1..1024 bytes; "" = host name and 128 random bits
  std::string state_dir;          // keeps the client id over restarts, under an exclusive lock
  bool have_uid = false, have_gid = false;
  uint32_t uid = 0, gid = 0;      // of the default credentials
  // caching (seconds; used by the mount)
  uint32_t acregmin_s = 3, acregmax_s = 60, acdirmin_s = 30, acdirmax_s = 60;
  bool noac = false;
  LookupCache lookup_cache = LookupCache::all;
  bool close_to_open = true;      // attributes fetched at open, data flushed at close
  Switch rdirplus = Switch::automatic;
  // mounting
  bool background = false;        // bg
  int32_t retry_min = -1;         // minutes of trying to mount; -1 = not given: one try
  // this process
  uint32_t loops = 0;             // io threads; 0 = at least 2, at most nconnect or the number of cores
  int32_t spin_us = -1;           // polling before sleep; -1 = 20 where cores are free, else 0
  uint64_t pool_bytes = 256u << 20;
  uint32_t connect_timeout_ms = 15000;
  std::string trace;              // "" off, "rdma" one log line per work request
  // words that were taken without effect, for one notice each ("intr", "sharecache")
  std::vector<std::string> accepted;
  // words of the VFS and of libfuse, kept in order for whoever mounts ("ro", "nosuid", "allow_other")
  std::vector<std::string> mount_words;

  bool operator==(const Options&) const = default;
  uint16_t effective_port() const { return port ? port : protocol == Protocol::tcp ? uint16_t{2049} : uint16_t{20049}; }
};

enum class OptionVerdict : uint8_t { honour, map, accept, silent, refuse, vfs };

struct OptionInfo {
  std::string_view name;
  std::string_view value;         // "" flag, "N" number, "SIZE" number with k, m or g, "WORD", "PATH", "a|b|c"
  std::string_view default_text;
  OptionVerdict verdict;
  std::string_view help;          // one line
};

// A name ending in "*" stands for every word that begins so ("x-*").
NFSRDMA_API std::span<const OptionInfo> option_table();

// Applies a comma-separated list ("vers=4.1,nconnect=4,ro"). EINVAL, origin usage: which word, what it takes. With
// sloppy unknown words go to options.accepted instead.
NFSRDMA_API Result<void> apply_option_list(Options& options, std::string_view list, bool sloppy = false);
// "host:/path", "[::1]:/path", or a URL as parse_url takes it, whose arguments then apply to the options given.
NFSRDMA_API Result<void> apply_source(Options& options, std::string_view source);
// nfsrdma://[uid@]host[:port]/path[?option=value&...], %xx escapes; every option is an argument. A "#" has no special
// meaning; "?" in a path and "&" in a value are written %3F and %26. EINVAL, origin usage.
NFSRDMA_API Result<Options> parse_url(std::string_view url);
// The URL that parse_url turns into the same options; what has its default value is left out.
NFSRDMA_API std::string format_url(const Options& options);

}  // namespace nfsrdma
