// SPDX-License-Identifier: Apache-2.0
// Handlers for the kinds of values that options take. Each has apply() and, where the value can be written
// again, show(); the table names them as types.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "client/option_table.hpp"

namespace nfsrdma::client {

inline std::string word_text(const OptionWord& word) {
  return std::string(word.name) + (word.has_value ? "=" + std::string(word.value) : "");
}

inline Error wrong_value(const OptionWord& word, const std::string& takes, const std::string& example) {
  return option_error("option " + quoted(word_text(word)) + ": takes " + takes + ", as in " +
                      std::string(word.name) + "=" + example);
}

// Decimal digits only, with k, m or g behind them where sizes are meant.
std::optional<uint64_t> parse_number(std::string_view text, bool with_suffix);

Result<uint64_t> number_of(const OptionWord& word, uint64_t min, uint64_t max, bool with_suffix = false);
Result<void> expect_flag(const OptionWord& word);

template <auto Field>
using FieldType = std::remove_reference_t<decltype(std::declval<Options>().*Field)>;

template <auto Field>
std::optional<std::string> show_number(const Options& options) {
  if (options.*Field == Options{}.*Field) return std::nullopt;
  return std::to_string(options.*Field);
}

template <auto Field, uint64_t Min, uint64_t Max>
struct Number {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, Min, Max);
    if (!n) return n.error();
    context.options.*Field = static_cast<FieldType<Field>>(*n);
    return {};
  }
  static constexpr ShowOption show = show_number<Field>;
};

// A number of bytes; Multiple says what it must be a multiple of.
template <auto Field, uint64_t Min, uint64_t Max, uint64_t Multiple = 1>
struct Size {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, Min, Max, true);
    if (!n) return n.error();
    if (*n % Multiple)
      return wrong_value(word, "a multiple of " + std::to_string(Multiple),
                         std::string(word.info->default_text));
    context.options.*Field = static_cast<FieldType<Field>>(*n);
    return {};
  }
  static constexpr ShowOption show = show_number<Field>;
};

// nfs(5): rounded down to a multiple of 1024; below 1024 becomes 4096; above 1 MiB becomes 1 MiB; 0 is the
// default.
template <auto Field>
struct TransferSize {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    auto n = number_of(word, 0, UINT32_MAX, true);
    if (!n) return n.error();
    const uint64_t largest = 1u << 20;
    uint64_t bytes = *n == 0 ? largest : *n < 1024 ? 4096 : std::min(*n, largest);
    context.options.*Field = static_cast<uint32_t>(bytes / 1024 * 1024);
    return {};
  }
  static constexpr ShowOption show = show_number<Field>;
};

// A flag that gives Field the value V. It is written when Written, which one flag of a pair is.
template <auto Field, auto V, bool Written = true>
struct Flag {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (auto r = expect_flag(word); !r) return r;
    context.options.*Field = V;
    return {};
  }
  static std::optional<std::string> show_it(const Options& options) {
    if (options.*Field != V || Options{}.*Field == V) return std::nullopt;
    return "";
  }
  static constexpr ShowOption show = Written ? show_it : nullptr;
};

template <class T>
struct Choice {
  std::string_view word;
  T value;
};

// One of some words, by a constexpr array of Choice.
template <auto Field, const auto& Choices>
struct OneOf {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    std::string takes = "one of";
    for (const auto& choice : Choices) {
      if (word.has_value && word.value == choice.word) {
        context.options.*Field = choice.value;
        return {};
      }
      takes += " " + std::string(choice.word);
    }
    return wrong_value(word, takes, std::string(Choices[0].word));
  }
  static std::optional<std::string> show(const Options& options) {
    if (options.*Field == Options{}.*Field) return std::nullopt;
    for (const auto& choice : Choices)
      if (choice.value == options.*Field) return std::string(choice.word);
    return std::nullopt;
  }
};

template <auto Field>
std::optional<std::string> show_text(const Options& options) {
  if ((options.*Field).empty()) return std::nullopt;
  return options.*Field;
}

// Another name of an option: applied alike, never written.
template <class Handler>
struct Alias {
  static constexpr ApplyOption apply = Handler::apply;
  static constexpr ShowOption show = nullptr;
};

// Taken without effect; listed for one notice.
struct Accept {
  static Result<void> apply(OptionContext& context, const OptionWord& word);
  static constexpr ShowOption show = nullptr;
};

struct Silent {
  static Result<void> apply(OptionContext&, const OptionWord&) { return {}; }
  static constexpr ShowOption show = nullptr;
};

// Kept for whoever mounts.
struct Vfs {
  static Result<void> apply(OptionContext& context, const OptionWord& word);
  static constexpr ShowOption show = nullptr;
};

// A flag of the VFS that the client heeds too.
template <auto Field, bool V>
struct VfsFlag {
  static Result<void> apply(OptionContext& context, const OptionWord& word) {
    if (auto r = Vfs::apply(context, word); !r) return r;
    context.options.*Field = V;
    return {};
  }
  static std::optional<std::string> show_it(const Options& options) {
    if (!(options.*Field)) return std::nullopt;
    return "";
  }
  static constexpr ShowOption show = V ? show_it : nullptr;
};

// Refused; the row's help says why.
struct Refuse {
  static Result<void> apply(OptionContext& context, const OptionWord& word);
  static constexpr ShowOption show = nullptr;
};

// For reports: adds the word to the accepted list once.
void note_accepted(OptionContext& context, std::string word);

}  // namespace nfsrdma::client
