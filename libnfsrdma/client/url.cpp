// SPDX-License-Identifier: Apache-2.0
// nfsrdma://[uid@]host[:port]/path[?option=value&...]
#include <algorithm>

#include "base/address.hpp"
#include "base/log.hpp"
#include "client/option_table.hpp"
#include "client/option_values.hpp"
#include "nfsrdma/options.hpp"

namespace nfsrdma::client {
namespace {

constexpr size_t url_bytes_max = 65536;
constexpr size_t host_bytes_max = 255;
constexpr size_t path_bytes_max = 4096;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    int high = at + 2 < text.size() ? hex_value(text[at + 1]) : -1;
    int low = at + 2 < text.size() ? hex_value(text[at + 2]) : -1;
    if (at + 2 >= text.size() || high < 0 || low < 0)
      return option_error("URL: a % wants two hexadecimal digits, as in %20, here is " +
                          quoted(text.substr(at, 3)) + "; a % itself is written %25");
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

// Everything but the unreserved characters of RFC 3986 and those in `also` becomes %xx.
std::string escape(std::string_view text, std::string_view also) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || std::string_view("-._~").find(c) != std::string_view::npos ||
        also.find(c) != std::string_view::npos)
      out += c;
    else
      out += base::text("%%%02X", static_cast<unsigned char>(c));
  }
  return out;
}

std::string_view take_until(std::string_view& text, std::string_view stops) {
  std::string_view head = text.substr(0, text.find_first_of(stops));
  text.remove_prefix(head.size());
  return head;
}

// What stands in front of "://", in small letters.
std::string scheme_of(std::string_view url) {
  size_t colon = url.substr(0, 20).find("://");
  if (colon == std::string_view::npos) return {};
  std::string scheme(url.substr(0, colon));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return scheme;
}

Result<void> apply_user(OptionContext& context, std::string_view user) {
  auto text = unescape(user);
  if (!text) return text.error();
  auto n = parse_number(*text, false);
  if (!n || *n >= UINT32_MAX)
    return option_error("URL: the user is a numeric uid, as in nfsrdma://1000@host/path, not " +
                        quoted(*text));
  context.options.have_uid = true;
  context.options.uid = static_cast<uint32_t>(*n);
  return {};
}

Result<void> apply_authority(OptionContext& context, std::string_view authority) {
  if (size_t at = authority.rfind('@'); at != std::string_view::npos) {
    if (auto r = apply_user(context, authority.substr(0, at)); !r) return r;
    authority.remove_prefix(at + 1);
  }
  const bool bracketed = authority.starts_with('[');
  size_t host_end = bracketed ? authority.find(']') : authority.find(':');
  if (bracketed && host_end == std::string_view::npos)
    return option_error("URL: no ] behind the address " + quoted(authority));
  auto host = unescape(authority.substr(bracketed ? 1 : 0, bracketed ? host_end - 1 : host_end));
  if (!host) return host.error();
  std::string_view rest = host_end == std::string_view::npos
                              ? std::string_view()
                              : authority.substr(host_end + (bracketed ? 1 : 0));
  if (!bracketed && std::count(rest.begin(), rest.end(), ':') > 1)
    return option_error("URL: an IPv6 address stands in brackets, as in nfsrdma://[fd00::1]/path, not " +
                        quoted(authority));
  if (auto r = apply_host(context.options, *host, bracketed); !r) return r;
  if (rest.empty()) return {};
  if (rest[0] != ':')
    return option_error("URL: " + quoted(rest) + " stands behind the address; a port follows a colon");
  return apply_option(context, "port", rest.substr(1), true);
}

Result<void> apply_arguments(OptionContext& context, std::string_view query) {
  while (!query.empty()) {
    std::string_view argument = take_until(query, "&");
    query.remove_prefix(std::min<size_t>(1, query.size()));
    if (argument.empty()) continue;
    size_t equals = argument.find('=');
    auto name = unescape(argument.substr(0, equals));
    if (!name) return name.error();
    const bool has_value = equals != std::string_view::npos;
    auto value = unescape(has_value ? argument.substr(equals + 1) : std::string_view());
    if (!value) return value.error();
    if (auto r = apply_option(context, *name, *value, has_value); !r) return r;
  }
  return {};
}

bool contains_argument(std::string_view query, std::string_view wanted) {
  while (!query.empty()) {
    if (take_until(query, "&") == wanted) return true;
    query.remove_prefix(std::min<size_t>(1, query.size()));
  }
  return false;
}

}  // namespace

// "host://path" is a source with an odd path, so only these.
bool is_url(std::string_view text) {
  const std::string scheme = scheme_of(text);
  return scheme == "nfsrdma" || scheme == "nfs+rdma" || scheme == "nfs";
}

Result<void> apply_host(Options& options, std::string_view host, bool bracketed) {
  if (host.empty()) return option_error("no server is named; as in nfsrdma://10.100.0.1/export");
  if (host.size() > host_bytes_max)
    return option_error("server name of " + std::to_string(host.size()) + " bytes, at most " +
                        std::to_string(host_bytes_max) + " are taken");
  if (host.find(':') != std::string_view::npos) {
    if (!bracketed)
      return option_error("address " + quoted(host) +
                          ": an IPv6 address stands in brackets, as in [fd00::1]");
    if (host.find('\0') != std::string_view::npos || !base::SocketAddress::parse(host, 0))
      return option_error(quoted(host) + " is no numeric IPv6 address");
    options.host = host;
    return {};
  }
  for (char c : host) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                c == '-' || c == '_';
    if (!good)
      return option_error("server name " + quoted(host) + ": letters, digits, dots and hyphens are taken");
  }
  options.host = host;
  return {};
}

Result<void> apply_path(Options& options, std::string_view path) {
  if (path.find('\0') != std::string_view::npos)
    return option_error("path " + quoted(path) + " has a zero byte in it");
  if (path.size() > path_bytes_max)
    return Error(ENAMETOOLONG, ErrorOrigin::usage,
                 "path of " + std::to_string(path.size()) + " bytes, at most " +
                     std::to_string(path_bytes_max) + " are taken");
  options.path = path.empty() ? "/" : path;
  return {};
}

Result<void> apply_url(Options& options, std::string_view url) {
  if (url.size() > url_bytes_max)
    return option_error("URL of " + std::to_string(url.size()) + " bytes, at most " +
                        std::to_string(url_bytes_max) + " are taken");
  const std::string scheme = scheme_of(url);
  if (scheme != "nfsrdma" && scheme != "nfs+rdma")
    return option_error("URL " + quoted(url) +
                        ": takes nfsrdma://HOST[:PORT]/PATH, as in nfsrdma://10.100.0.1/export");
  std::string_view rest = url.substr(scheme.size() + 3);
  std::string_view authority = take_until(rest, "/?");
  auto path = unescape(take_until(rest, "?"));
  if (!path) return path.error();
  std::string_view query = rest.empty() ? rest : rest.substr(1);
  OptionContext context{options, contains_argument(query, "sloppy"), {}, {}, 0, 0};
  if (auto r = apply_authority(context, authority); !r) return r;
  if (auto r = apply_path(options, *path); !r) return r;
  if (auto r = apply_arguments(context, query); !r) return r;
  return finish_options(context);
}

}  // namespace nfsrdma::client

namespace nfsrdma {

using namespace client;

Result<Options> parse_url(std::string_view url) {
  Options options;
  if (auto r = apply_url(options, url); !r) return r.error();
  return options;
}

std::string format_url(const Options& options) {
  const bool brackets = options.host.find(':') != std::string::npos;
  std::string url = "nfsrdma://" + (brackets ? "[" + escape(options.host, ":") + "]" : options.host);
  if (options.port) url += ":" + std::to_string(options.port);
  if (!options.path.starts_with('/')) url += '/';
  url += escape(options.path, "/:@!$'()*+,;=");
  std::string separator = "?";
  auto add = [&](std::string_view name, std::string_view value) {
    url += separator + escape(name, "") + (value.empty() ? "" : "=" + escape(value, "/:@,"));
    separator = "&";
  };
  for (const OptionRow& row : option_rows()) {
    if (!row.show) continue;
    const auto& words = options.mount_words;
    if (std::find(words.begin(), words.end(), row.info.name) != words.end()) continue;
    if (auto value = row.show(options)) add(row.info.name, *value);
  }
  for (const std::string& word : options.mount_words) {
    size_t equals = word.find('=');
    add(word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1));
  }
  return url;
}

}  // namespace nfsrdma
