// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <getopt.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

namespace nfsrdma::fuse {
namespace {

enum LongOption { option_foreground = 256, option_fake, option_log_level, option_log_file, option_core };

const option long_options[] = {
    {"help", no_argument, nullptr, 'h'},
    {"version", no_argument, nullptr, 'V'},
    {"options", required_argument, nullptr, 'o'},
    {"foreground", no_argument, nullptr, option_foreground},
    {"fake", no_argument, nullptr, option_fake},
    {"sloppy", no_argument, nullptr, 's'},
    {"verbose", no_argument, nullptr, 'v'},
    {"log-level", required_argument, nullptr, option_log_level},
    {"log-file", required_argument, nullptr, option_log_file},
    {"core-dumps", no_argument, nullptr, option_core},
    {nullptr, 0, nullptr, 0},
};

struct Words {
  std::vector<std::string> lists;  // of every -o
  bool sloppy = false;
};

Refusal usage(const Config& config, const std::string& what) {
  return {exit_usage, what + "; usage: " + config.program + " HOST:/PATH DIRECTORY [-o OPTIONS] (see --help)"};
}

Refusal take_long(int letter, Config& config) {
  switch (letter) {
    case option_foreground: config.foreground = true; break;
    case option_fake: config.fake = true; break;
    case option_core: config.core_dumps = true; break;
    case option_log_level:
      if (!parse_log_level(optarg, config.log.lowest))
        return usage(config, std::string("--log-level takes trace, debug, info, warn or error, not \"") + optarg + "\"");
      break;
    case option_log_file:
      config.log.where = std::string_view(optarg) == "-" ? "stderr" : optarg;
      config.log_target_given = true;
      break;
  }
  return {};
}

// Letters mean one thing to mount(8) and its helpers, and another to programs of libfuse.
Refusal take_letter(int letter, Config& config, Words& words) {
  switch (letter) {
    case 'h': config.help = true; return {};
    case 'V': config.version = true; return {};
    case 'o': words.lists.push_back(optarg); return {};
    case 'v': config.verbose = true; return {};
    case 'n': return {};  // there is no mtab to write
    case 't': return {};  // the type with its subtype: there is only one
    case 'N': config.mount_namespace = optarg; return {};
    case 'f': (config.helper ? config.fake : config.foreground) = true; return {};
    case 's':
      if (config.helper) words.sloppy = true;
      else config.options.loops = 1;
      return {};
    case 'd':
      config.foreground = true;
      config.log.lowest = LogLevel::debug;
      return {};
    default: return take_long(letter, config);
  }
}

Refusal take_positions(int argc, char** argv, Config& config) {
  int left = argc - optind;
  if (left < 2) return usage(config, left == 0 ? "no source and directory given" : "no directory given");
  if (left > 2) return usage(config, std::string("one argument too many: \"") + argv[optind + 2] + "\"");
  config.source = argv[optind];
  config.directory = argv[optind + 1];
  return {};
}

}  // namespace

Refusal parse_arguments(int argc, char** argv, Config& config) {
  if (argc > 0) {
    const char* slash = strrchr(argv[0], '/');
    config.program = slash ? slash + 1 : argv[0];
  }
  config.helper = config.program.starts_with("mount.");
  Words words;
  opterr = 0;
  optind = 1;
  for (;;) {
    int letter = getopt_long(argc, argv, "hVo:vnt:N:fsd", long_options, nullptr);
    if (letter < 0) break;
    if (letter == '?') {
      std::string flag = optopt > 0 && optopt < 256 ? std::string("-") + static_cast<char>(optopt) : argv[optind - 1];
      return usage(config, "unknown flag, or one without its value: \"" + flag + "\"");
    }
    if (Refusal refusal = take_letter(letter, config, words); refusal.exit_code) return refusal;
  }
  if (config.help || config.version) return {};
  if (Refusal refusal = take_positions(argc, argv, config); refusal.exit_code) return refusal;
  if (auto applied = apply_source(config.options, config.source); !applied)
    return {exit_code_of(applied.error()), applied.error().text()};
  for (const std::string& list : words.lists)
    if (auto applied = apply_option_list(config.options, list, words.sloppy); !applied)
      return {exit_code_of(applied.error()), applied.error().text()};
  return {};
}

int exit_code_of(const Error& error) {
  if (error.origin() == ErrorOrigin::usage) return exit_mount;
  if (error.errno_value() == ENODEV) return exit_system;
  if (error.origin() != ErrorOrigin::local) return exit_mount;
  return error.errno_value() == EPERM || error.errno_value() == EACCES ? exit_usage : exit_system;
}

std::string help_text() {
  std::string out =
      "usage: nfsrdma-fuse HOST:/PATH DIRECTORY [-o OPTIONS] [FLAGS]\n"
      "       mount -t nfsrdma HOST:/PATH DIRECTORY [-o OPTIONS]\n\n"
      "Mounts an export of an NFSv4.1 server over RDMA. Returns when the mount can be used.\n\n"
      "flags:\n"
      "  -o OPTIONS            a list with commas; may be given several times\n"
      "  -f, --foreground      stay in the foreground (as mount.nfsrdma: -f checks and mounts nothing)\n"
      "  --fake                check everything that needs no server, mount nothing\n"
      "  -s, --sloppy          tolerate unknown options (as nfsrdma-fuse, -s means one io thread)\n"
      "  -v, --verbose         say what is mounted where\n"
      "  -d                    as -f --log-level debug\n"
      "  -n, -t TYPE, -N NS    of mount(8); -N names a mount namespace by PID or path\n"
      "  --log-file WHERE      a path, syslog, or - for stderr (default: syslog, with -f stderr)\n"
      "  --log-level LEVEL     trace, debug, info (default), warn or error\n"
      "  --core-dumps          allow them, though they hold users' data\n"
      "  -h, --help; -V, --version\n\n"
      "options:\n";
  for (const OptionInfo& info : option_table()) {
    if (info.verdict == OptionVerdict::refuse || info.verdict == OptionVerdict::silent) continue;
    std::string name(info.name);
    if (!info.value.empty()) name.append("=").append(info.value);
    out.append("  ").append(name).append(name.size() < 34 ? 34 - name.size() : 1, ' ').append(info.help).append("\n");
  }
  return out;
}

}  // namespace nfsrdma::fuse
