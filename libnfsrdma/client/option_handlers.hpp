// SPDX-License-Identifier: Apache-2.0
// Handlers of options that are like no other. Only the table includes them.
#pragma once

#include "base/address.hpp"
#include "client/option_values.hpp"

namespace nfsrdma::client {

inline constexpr Choice<ProviderKind> provider_words[] = {
    {"auto", ProviderKind::automatic}, {"verbs", ProviderKind::verbs}, {"iwarp", ProviderKind::iwarp}};
inline constexpr Choice<bool> on_off[] = {{"on", true}, {"off", false}};
inline constexpr Choice<bool> frame_words[] = {{"mss", false}, {"large", true}};
inline constexpr Choice<LookupCache> lookup_cache_words[] = {{"all", LookupCache::all},
                                                             {"none", LookupCache::none},
                                                             {"pos", LookupCache::positive},
                                                             {"positive", LookupCache::positive}};

inline constexpr uint64_t seconds_max = INT32_MAX;

// Programs look for it among options.accepted, to say it where it is read.
inline constexpr std::string_view minor_2_note = " (operations of NFSv4.2 are not there yet: 4.1 is used)";

// "4", "4.1", "4.2": the version that is spoken is 4.1, and whoever asked for another word is told so.
inline Result<void> apply_version(OptionContext& context, const OptionWord& word, std::string_view version) {
  static constexpr std::string_view old_ones[] = {"2", "3", "4.0"};
  for (std::string_view old : old_ones)
    if (version == old)
      return option_error("option " + quoted(word_text(word)) + " is refused: this client speaks NFS 4.1, " +
                          "which has sessions; as in vers=4.1");
  if (version != "4" && version != "4.1" && version != "4.2")
    return option_error("option " + quoted(word_text(word)) + ": takes 4, 4.1 or 4.2, as in vers=4.1");
  if (version != "4") {
    context.version_word = word_text(word);
    context.version_minor = version == "4.2" ? 2 : 1;
  }
  context.options.minor_version = 1;
  if (version == "4") note_accepted(context, word_text(word) + " (4.1 is spoken)");
  if (version == "4.2") note_accepted(context, word_text(word).append(minor_2_note));
  return {};
}

struct Version {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    return apply_version(context, word, word.value);
  }
  static constexpr ShowOption show = nullptr;
};

struct VersionFlag {  // "v4.1"
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (auto r = expect_flag(word); !r) return r;
    return apply_version(context, word, word.name.substr(1));
  }
  static constexpr ShowOption show = nullptr;
};

struct MinorVersion {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, 1, 2);
    if (!n) return n.error();
    context.minor_word = word_text(word);
    context.minor = static_cast<uint32_t>(*n);
    if (*n == 2) note_accepted(context, word_text(word).append(minor_2_note));
    return {};
  }
  static constexpr ShowOption show = nullptr;
};

inline Result<void> apply_protocol(OptionContext& context, const OptionWord& word,
                                   std::string_view protocol) {
  if (protocol == "rdma" || protocol == "rdma6") {
    context.options.protocol = Protocol::rdma;
    return {};
  }
  if (protocol == "tcp" || protocol == "tcp6")
    return option_error("option " + quoted(word_text(word)) +
                        " is refused: proto=tcp is not there yet; as in proto=rdma,provider=iwarp");
  if (protocol == "udp" || protocol == "udp6")
    return option_error("option " + quoted(word_text(word)) + " is refused: NFS 4.1 does not run over UDP");
  return wrong_value(word, "rdma or rdma6", "rdma");
}

struct Proto {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    return apply_protocol(context, word, word.value);
  }
  static constexpr ShowOption show = nullptr;
};

struct ProtoFlag {  // "rdma", "tcp", "udp"
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (auto r = expect_flag(word); !r) return r;
    return apply_protocol(context, word, word.name);
  }
  static constexpr ShowOption show = nullptr;
};

inline bool is_numeric_address(std::string_view text) {
  // 64 is above the longest IPv6 address with a zone name of an interface.
  return !text.empty() && text.size() <= 64 && text.find('\0') == std::string_view::npos &&
         base::SocketAddress::parse(text, 0).ok();
}

struct ServerAddress {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (!is_numeric_address(word.value)) return wrong_value(word, "a numeric address", "10.100.0.1");
    return apply_host(context.options, word.value, true);
  }
  static constexpr ShowOption show = nullptr;
};

struct SourceAddress {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (!is_numeric_address(word.value)) return wrong_value(word, "a numeric local address", "10.100.0.2");
    context.options.source_address = word.value;
    return {};
  }
  static constexpr ShowOption show = show_text<&Options::source_address>;
};

struct RdmaDevice {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    std::string_view device = word.value.substr(0, word.value.find('/'));
    bool good = !device.empty() && device.size() < 64;
    for (char c : device)
      good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.');
    if (device.size() < word.value.size()) {
      auto port = parse_number(word.value.substr(device.size() + 1), false);
      good = good && port && *port >= 1 && *port <= 255;
    }
    if (!good) return wrong_value(word, "a device and perhaps its port", "mlx5_0/1");
    context.options.rdma_device = word.value;
    return {};
  }
  static constexpr ShowOption show = show_text<&Options::rdma_device>;
};

struct ClientId {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (word.value.empty() || word.value.size() > 1024)
      return option_error("option client_id: takes 1 to 1024 bytes, here are " +
                          std::to_string(word.value.size()) + "; as in client_id=node17");
    context.options.client_id = word.value;
    return {};
  }
  static constexpr ShowOption show = show_text<&Options::client_id>;
};

struct StateDir {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (word.value.empty() || word.value[0] != '/' || word.value.size() > 4000)
      return wrong_value(word, "the absolute path of a directory", "/var/lib/nfsrdma");
    context.options.state_dir = word.value;
    return {};
  }
  static constexpr ShowOption show = show_text<&Options::state_dir>;
};

// UINT32_MAX is chown(2)'s "leave it", not an id.
template <auto Field, auto Have>
struct Id {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, 0, UINT32_MAX - 1);
    if (!n) return n.error();
    context.options.*Field = static_cast<uint32_t>(*n);
    context.options.*Have = true;
    return {};
  }
  static std::optional<std::string> show(const Options& options) {
    if (!(options.*Have)) return std::nullopt;
    return std::to_string(options.*Field);
  }
};

struct AllTimeouts {  // actimeo
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, 0, seconds_max);
    if (!n) return n.error();
    Options& o = context.options;
    o.acregmin_s = o.acregmax_s = o.acdirmin_s = o.acdirmax_s = static_cast<uint32_t>(*n);
    return {};
  }
  static constexpr ShowOption show = nullptr;
};

struct NoAttributeCache {  // nfs(5): noac also makes writes synchronous
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (auto r = expect_flag(word); !r) return r;
    context.options.noac = true;
    context.options.sync_writes = true;
    return {};
  }
  static constexpr ShowOption show = Flag<&Options::noac, true>::show;
};

struct ReadDirPlus {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    Switch& value = context.options.rdirplus;
    if (!word.has_value)
      value = Switch::automatic;
    else if (word.value == "none")
      value = Switch::off;
    else if (word.value == "force")
      value = Switch::on;
    else
      return wrong_value(word, "no value, none or force", "force");
    return {};
  }
  static std::optional<std::string> show(const Options& options) {
    if (options.rdirplus == Switch::automatic) return std::nullopt;
    return options.rdirplus == Switch::on ? "force" : "none";
  }
};

struct WriteMode {  // nfs(5)'s successor in the kernel: write=lazy|eager|wait
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (word.value == "wait") {
      context.options.sync_writes = true;
      return {};
    }
    if (word.value != "lazy" && word.value != "eager")
      return wrong_value(word, "lazy, eager or wait", "wait");
    return Accept::apply(context, word);
  }
  static constexpr ShowOption show = nullptr;
};

struct Security {
  static Result<void> apply(OptionContext&, const OptionWord& word) {
    static constexpr std::string_view known[] = {"none", "sys", "krb5", "krb5i", "krb5p"};
    bool sys = false;
    for (std::string_view rest = word.value;;) {
      std::string_view flavor = rest.substr(0, rest.find(':'));
      if (std::find(std::begin(known), std::end(known), flavor) == std::end(known))
        return wrong_value(word, "sys", "sys");
      sys = sys || flavor == "sys";
      if (flavor.size() == rest.size()) break;
      rest.remove_prefix(flavor.size() + 1);
    }
    if (sys) return {};
    return option_error("option " + quoted(word_text(word)) + " is refused: only sec=sys is there yet");
  }
  static constexpr ShowOption show = nullptr;
};

struct TransportSecurity {
  static Result<void> apply(OptionContext&, const OptionWord& word) {
    if (word.value == "none") return {};
    return option_error("option " + quoted(word_text(word)) +
                        " is refused: TLS does not run over RDMA; as in xprtsec=none");
  }
  static constexpr ShowOption show = nullptr;
};

struct Spin {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (word.value == "auto") {
      context.options.spin_us = -1;
      return {};
    }
    auto n = number_of(word, 0, 1'000'000);
    if (!n) return n.error();
    context.options.spin_us = static_cast<int32_t>(*n);
    return {};
  }
  static std::optional<std::string> show(const Options& options) {
    if (options.spin_us < 0) return std::nullopt;
    return std::to_string(options.spin_us);
  }
};

struct ConnectTimeout {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    const bool ms = word.value.ends_with("ms");
    OptionWord number = word;
    if (ms) number.value.remove_suffix(2);
    auto n = word.has_value ? parse_number(number.value, false) : std::nullopt;
    const uint64_t factor = ms ? 1 : 1000, most = 3'600'000;
    if (!n || *n == 0 || *n > most / factor)
      return wrong_value(word, "1 to 3600 seconds, or milliseconds with ms behind",
                         "15 or " + std::string(word.name) + "=500ms");
    context.options.connect_timeout_ms = static_cast<uint32_t>(*n * factor);
    return {};
  }
  static std::optional<std::string> show(const Options& options) {
    const uint32_t ms = options.connect_timeout_ms;
    if (ms == Options{}.connect_timeout_ms) return std::nullopt;
    return ms % 1000 ? std::to_string(ms) + "ms" : std::to_string(ms / 1000);
  }
};

struct Trace {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (word.value != "rdma" && word.value != "off") return wrong_value(word, "rdma or off", "rdma");
    context.options.trace = word.value == "off" ? std::string() : std::string(word.value);
    return {};
  }
  static constexpr ShowOption show = show_text<&Options::trace>;
};

struct Retry {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, 0, 1'000'000);
    if (!n) return n.error();
    context.options.retry_min = static_cast<int32_t>(*n);
    return {};
  }
  static std::optional<std::string> show(const Options& options) {
    if (options.retry_min < 0) return std::nullopt;
    return std::to_string(options.retry_min);
  }
};

struct Sloppy {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (auto r = expect_flag(word); !r) return r;
    context.sloppy = true;
    return {};
  }
  static constexpr ShowOption show = nullptr;
};

struct Port {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (word.value == "0")
      return option_error("option \"port=0\" is refused: rpcbind is not asked over RDMA; as in port=20049");
    return Number<&Options::port, 1, 65535>::apply(context, word);
  }
  static constexpr ShowOption show = nullptr;  // stands in front of the path
};

}  // namespace nfsrdma::client
