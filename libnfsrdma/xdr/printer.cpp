// SPDX-License-Identifier: Apache-2.0
#include "xdr/printer.hpp"

#include <algorithm>

namespace nfsrdma::xdr {
namespace {

constexpr size_t hex_bytes_max = 40;
constexpr size_t text_bytes_max = 120;
constexpr char digits[] = "0123456789abcdef";

}  // namespace

std::string_view Printer::next_name(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view name = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return name;
}

void Printer::space() {
  if (!text_.empty() && text_.back() != ' ' && text_.back() != '{' && text_.back() != '[' &&
      text_.back() != '=') {
    text_ += ' ';
  }
}

void Printer::length(size_t n) {
  text_ += '(';
  text_ += std::to_string(n);
  text_ += ')';
}

void Printer::hex(std::span<const std::byte> bytes) {
  const size_t shown = std::min(bytes.size(), hex_bytes_max);
  for (std::byte b : bytes.first(shown)) {
    text_ += digits[static_cast<unsigned>(b) >> 4];
    text_ += digits[static_cast<unsigned>(b) & 15];
  }
  if (bytes.empty()) text_ += "''";
  if (shown < bytes.size()) {
    text_ += "...";
    length(bytes.size());
  }
}

void Printer::text(std::string_view v, uint32_t) {
  text_ += '"';
  for (char c : v.substr(0, text_bytes_max)) {
    if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
      text_ += c;
      continue;
    }
    text_ += "\\x";
    text_ += digits[static_cast<unsigned char>(c) >> 4];
    text_ += digits[static_cast<unsigned char>(c) & 15];
  }
  text_ += '"';
  if (v.size() > text_bytes_max) {
    text_ += "...";
    length(v.size());
  }
}

void Printer::ddp(const char* name, DdpItem& v, uint32_t) {
  space();
  text_ += name;
  text_ += '=';
  text_ += std::to_string(v.length);
  text_ += v.inline_bytes.size() == v.length ? " bytes inline" : " bytes by rdma";
}

}  // namespace nfsrdma::xdr
