// SPDX-License-Identifier: Apache-2.0
// Option lists and mount sources.
#include "nfsrdma/options.hpp"

#include <algorithm>

#include "client/option_table.hpp"
#include "client/option_values.hpp"

namespace nfsrdma::client {
namespace {

const OptionRow* find_row(std::string_view name) {
  for (const OptionRow& row : option_rows()) {
    std::string_view have = row.info.name;
    if (have.ends_with('*') ? name.starts_with(have.substr(0, have.size() - 1)) : name == have) return &row;
  }
  return nullptr;
}

// Changes of one letter between a and b: Levenshtein's distance, in one row.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view name) {
  std::string_view best;
  size_t best_edits = 3;
  if (name.size() < 3 || name.size() > 32) return best;
  for (const OptionRow& row : option_rows()) {
    size_t edits = edits_between(name, row.info.name);
    if (edits < best_edits) {
      best_edits = edits;
      best = row.info.name;
    }
  }
  return best;
}

struct ListWord {
  std::string_view name;
  std::string value;
  bool has_value = false;
};

// Takes the word up to the next comma off the list. A value, or a part of one, may stand in double quotes,
// which keep commas (libmount writes SELinux labels so).
Result<ListWord> take_word(std::string_view& list) {
  ListWord word;
  bool inside = false;
  size_t at = 0, name_end = std::string_view::npos;
  for (; at < list.size(); ++at) {
    char c = list[at];
    if (c == '"') {
      inside = !inside;
      continue;
    }
    if (c == ',' && !inside) break;
    if (c == '=' && name_end == std::string_view::npos) {
      name_end = at;
      continue;
    }
    if (name_end != std::string_view::npos) word.value += c;
  }
  if (inside) return option_error("option list: a double quote has no end in " + quoted(list.substr(0, at)));
  word.has_value = name_end != std::string_view::npos;
  word.name = list.substr(0, word.has_value ? name_end : at);
  list.remove_prefix(std::min(at + 1, list.size()));
  return word;
}

}  // namespace

Result<void> apply_option(OptionContext& context, std::string_view name, std::string_view value,
                          bool has_value) {
  if (name.find('\0') != std::string_view::npos || value.find('\0') != std::string_view::npos)
    return option_error("option " + quoted(name) + " has a zero byte in it");
  OptionWord word{name, value, has_value, nullptr};
  const OptionRow* row = find_row(name);
  if (!row) {
    if (context.sloppy) {
      note_accepted(context, word_text(word));
      return {};
    }
    std::string_view near = nearest_name(name);
    return option_error("unknown option " + quoted(name) +
                        (near.empty() ? std::string("; `nfsrdma options` lists them")
                                      : "; did you mean " + std::string(near)));
  }
  word.info = &row->info;
  return row->apply(context, word);
}

Result<void> finish_options(OptionContext& context) {
  Options& o = context.options;
  if (!context.version_word.empty() && !context.minor_word.empty() && context.version_minor != context.minor)
    return option_error("options " + quoted(context.version_word) + " and " + quoted(context.minor_word) +
                        " contradict each other; leave one of them out");
  o.acregmin_s = std::min(o.acregmin_s, o.acregmax_s);
  o.acdirmin_s = std::min(o.acdirmin_s, o.acdirmax_s);
  return {};
}

}  // namespace nfsrdma::client

namespace nfsrdma {

using namespace client;

std::span<const OptionInfo> option_table() {
  static const std::vector<OptionInfo> table = [] {
    std::vector<OptionInfo> infos;
    for (const OptionRow& row : option_rows()) infos.push_back(row.info);
    return infos;
  }();
  return table;
}

Result<void> apply_option_list(Options& options, std::string_view list, bool sloppy) {
  if (list.size() > option_list_bytes_max)
    return option_error("option list: " + std::to_string(list.size()) + " bytes, at most " +
                        std::to_string(option_list_bytes_max) + " are taken");
  // Nothing is changed by a list that has a fault.
  Options changed = options;
  OptionContext context{changed, sloppy, {}, {}, 0, 0};
  // "sloppy" counts for the whole list, wherever it stands.
  for (std::string_view rest = list; !rest.empty();) {
    auto word = take_word(rest);
    if (!word) return word.error();
    if (word->name == "sloppy" && !word->has_value) context.sloppy = true;
  }
  for (std::string_view rest = list; !rest.empty();) {
    auto word = take_word(rest);
    if (word->name.empty() && !word->has_value) continue;
    if (auto r = apply_option(context, word->name, word->value, word->has_value); !r) return r;
  }
  if (auto r = finish_options(context); !r) return r;
  options = std::move(changed);
  return {};
}

Result<void> apply_source(Options& options, std::string_view source) {
  Options changed = options;
  if (is_url(source)) {
    if (auto r = apply_url(changed, source); !r) return r;
    options = std::move(changed);
    return {};
  }
  const bool bracketed = source.starts_with('[');
  size_t colon = bracketed ? source.find("]:/") : source.find(":/");
  if (colon == std::string_view::npos || colon == 0)
    return option_error("source " + quoted(source) +
                        ": takes HOST:/PATH, as in 10.100.0.1:/export or [fd00::1]:/export");
  std::string_view host = source.substr(bracketed ? 1 : 0, colon - (bracketed ? 1 : 0));
  std::string_view path = source.substr(colon + (bracketed ? 2 : 1));
  if (auto r = apply_host(changed, host, bracketed); !r) return r;
  if (auto r = apply_path(changed, path); !r) return r;
  options = std::move(changed);
  return {};
}

}  // namespace nfsrdma
