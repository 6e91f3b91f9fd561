// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "show.hpp"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Record& record) {
  Json json = Json::object();
  for (const auto& [key, value] : record) std::visit([&, &k = key](const auto& v) { json[k] = v; }, value);
  return json;
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool is_utf8(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    auto lead = static_cast<unsigned char>(text[at]);
    size_t more = lead < 0x80 ? 0 : lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || at + more >= text.size()) return false;
    for (size_t i = 1; i <= more; ++i)
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return false;
    at += 1 + more;
  }
  return true;
}

}  // namespace

void print_json(const Record& record) { std::printf("%s\n", text_of(json_of(record)).c_str()); }

void print_json(const std::vector<Record>& records) {
  std::fputc('[', stdout);
  const char* separator = "";
  for (const Record& record : records) {
    std::printf("%s%s", separator, text_of(json_of(record)).c_str());
    separator = ",\n";
  }
  std::fputs("]\n", stdout);
}

void add_text(Record& record, const std::string& key, const std::string& text) {
  record.emplace_back(key, text);
  if (is_utf8(text)) return;
  std::string hex;
  for (char c : text) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    hex += digits;
  }
  record.emplace_back(key + "_hex", hex);
}

void add_attributes(Record& record, const nfsrdma::Attributes& a) {
  record.emplace_back("type", type_name(a.type));
  record.emplace_back("mode", octal_mode(a.mode));
  record.emplace_back("links", uint64_t{a.links});
  record.emplace_back("uid", uint64_t{a.uid});
  record.emplace_back("gid", uint64_t{a.gid});
  record.emplace_back("size_bytes", a.size_bytes);
  record.emplace_back("used_bytes", a.used_bytes);
  record.emplace_back("fileid", a.fileid);
  record.emplace_back("atime", iso_time(a.atime));
  record.emplace_back("mtime", iso_time(a.mtime));
  record.emplace_back("ctime", iso_time(a.ctime));
}

}  // namespace cli
