// SPDX-License-Identifier: Apache-2.0
#include "client/option_values.hpp"

#include "base/log.hpp"

namespace nfsrdma::client {

Error option_error(std::string text) { return Error(EINVAL, ErrorOrigin::usage, std::move(text)); }

std::string quoted(std::string_view text) {
  constexpr size_t shown_max = 64;
  std::string out = "\"";
  for (char c : text.substr(0, shown_max)) {
    unsigned char u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f)
      out += base::text("\\x%02x", u);
    else
      out += c;
  }
  return out + (text.size() > shown_max ? "...\"" : "\"");
}

std::optional<uint64_t> parse_number(std::string_view text, bool with_suffix) {
  uint64_t n = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (fault != std::errc{}) return std::nullopt;
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  if (rest.empty()) return n;
  if (!with_suffix || rest.size() != 1) return std::nullopt;
  unsigned shift = 0;
  switch (rest[0] | 0x20) {
    case 'k':
      shift = 10;
      break;
    case 'm':
      shift = 20;
      break;
    case 'g':
      shift = 30;
      break;
    default:
      return std::nullopt;
  }
  if (n > UINT64_MAX >> shift) return std::nullopt;
  return n << shift;
}

Result<uint64_t> number_of(const OptionWord& word, uint64_t min, uint64_t max, bool with_suffix) {
  auto n = word.has_value ? parse_number(word.value, with_suffix) : std::nullopt;
  if (n && *n >= min && *n <= max) return *n;
  const std::string range = std::to_string(min) + " to " + std::to_string(max);
  const std::string shown(word.info->default_text);
  bool usable = !shown.empty() && shown[0] >= '0' && shown[0] <= '9';
  return wrong_value(word, "a number from " + range + (with_suffix ? " (k, m, g may follow)" : ""),
                     usable ? shown : std::to_string(min));
}

Result<void> expect_flag(const OptionWord& word) {
  if (!word.has_value) return {};
  return option_error("option " + quoted(word_text(word)) + ": takes no value, write just " +
                      std::string(word.name));
}

void note_accepted(OptionContext& context, std::string word) {
  auto& list = context.options.accepted;
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(std::move(word));
}

Result<void> Accept::apply(OptionContext& context, const OptionWord& word) {
  note_accepted(context, word_text(word));
  return {};
}

Result<void> Vfs::apply(OptionContext& context, const OptionWord& word) {
  if (word.info->value.empty()) {
    if (auto r = expect_flag(word); !r) return r;
  } else if (word.value.empty()) {
    return option_error("option " + quoted(word_text(word)) + ": takes a value, " + std::string(word.name) +
                        "=" + std::string(word.info->value));
  }
  if (word.info->value == "N") {
    auto n = number_of(word, 0, UINT32_MAX);
    if (!n) return n.error();
  }
  // The last of equal words counts.
  auto& list = context.options.mount_words;
  std::string text = word_text(word);
  std::erase(list, text);
  list.push_back(std::move(text));
  return {};
}

Result<void> Refuse::apply(OptionContext&, const OptionWord& word) {
  return option_error("option " + quoted(word_text(word)) + " is refused: " + std::string(word.info->help));
}

}  // namespace nfsrdma::client
