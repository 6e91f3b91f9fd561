// SPDX-License-Identifier: Apache-2.0
// The option table for people, for programs, for the manual page and for the shell's completion.
#include "nfsrdma/options.hpp"

#include <algorithm>
#include <cstdio>

#include "record.hpp"
#include "report.hpp"

namespace cli {

using nfsrdma::OptionInfo;
using nfsrdma::OptionVerdict;

namespace {

const char* verdict_name(OptionVerdict verdict) {
  switch (verdict) {
    case OptionVerdict::honour:
      return "honoured";
    case OptionVerdict::map:
      return "mapped";
    case OptionVerdict::accept:
      return "no effect";
    case OptionVerdict::silent:
      return "ignored";
    case OptionVerdict::refuse:
      return "refused";
    case OptionVerdict::vfs:
      return "mount only";
  }
  return "";
}

std::string word_of(const OptionInfo& row) {
  return std::string(row.name) +
         (row.value.empty() || row.name.ends_with('*') ? "" : "=" + std::string(row.value));
}

// scdoc gives underscores and asterisks a meaning.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '_' || c == '*' || c == '\\' || c == '<' || c == '#') out += '\\';
    out += c;
  }
  return out;
}

void print_manual() {
  for (const OptionInfo& row : nfsrdma::option_table()) {
    std::printf("*%s*\n\t%s (%s", escaped(word_of(row)).c_str(), escaped(row.help).c_str(),
                verdict_name(row.verdict));
    if (!row.default_text.empty()) std::printf("; default %s", escaped(row.default_text).c_str());
    std::printf(")\n\n");
  }
}

void print_text() {
  size_t widest = 0;
  for (const OptionInfo& row : nfsrdma::option_table()) widest = std::max(widest, word_of(row).size());
  for (const OptionInfo& row : nfsrdma::option_table())
    std::printf("%-*s %-11s %-10s %s\n", static_cast<int>(widest), word_of(row).c_str(), verdict_name(row.verdict),
                std::string(row.default_text).c_str(), std::string(row.help).c_str());
}

void print_names() {
  for (const OptionInfo& row : nfsrdma::option_table()) {
    if (row.name.ends_with('*') || row.verdict == OptionVerdict::refuse) continue;
    std::printf("%s%s\n", std::string(row.name).c_str(), row.value.empty() ? "" : "=");
  }
}

void print_records() {
  std::vector<Record> records;
  for (const OptionInfo& row : nfsrdma::option_table())
    records.push_back({{"name", std::string(row.name)},
                       {"value", std::string(row.value)},
                       {"default", std::string(row.default_text)},
                       {"verdict", std::string(verdict_name(row.verdict))},
                       {"help", std::string(row.help)}});
  print_json(records);
}

}  // namespace

int run_options(const Call& call) {
  if (call.json)
    print_records();
  else if (call.manual_form)
    print_manual();
  else if (call.names_only)
    print_names();
  else
    print_text();
  return finish_stdout(call, exit_done);
}

}  // namespace cli
