// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>

#include "xdr/archive.hpp"
#include "xdr/sequence.hpp"

namespace nfsrdma::xdr {

// Turns values into one line of text for traces: name=value pairs, structures in braces, long byte strings
// cut. Peers choose the contents, so what is not printable ASCII is escaped. Allocates: not for the data
// path. Enumerations print by to_string() where ADL finds one, and a type may bring its own `void
// print_to(Printer&, const T&)`.
class Printer {
 public:
  static constexpr bool writes_value = false;

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

  template <class... Ts>
  void operator()(Ts&&... items) {
    (field({}, items), ...);
  }
  // names: one for each item, separated by spaces; an empty list leaves the items without names and braces.
  template <class... Ts>
  void fields(const char* names, Ts&&... items) {
    std::string_view rest(names);
    (field(next_name(rest), items), ...);
  }
  template <class E>
  void discriminant(const char* name, E& v, std::initializer_list<E>) {
    field(name, v);
  }
  template <class E>
  void branch(const char* name, E& v) {
    field(name, v);
  }
  void count(const char* name, uint32_t& n, uint32_t) { field(name, n); }
  void ddp(const char* name, DdpItem& v, uint32_t);
  void fail(Fault) {}

  // Appends text as it is.
  void literal(std::string_view text) { text_ += text; }
  // Appends "name=value", or the value alone when the name is empty.
  template <class T>
  void field(std::string_view name, T&& v) {
    space();
    if (!name.empty()) {
      text_ += name;
      text_ += '=';
    }
    value(v, !name.empty());
  }

  // Primitives that item() calls.
  void word(uint32_t v) { text_ += std::to_string(v); }
  void flag(uint32_t v) { text_ += v ? "true" : "false"; }
  void presence(bool) {}
  void hyper(uint64_t v) { text_ += std::to_string(v); }
  void fixed(const std::byte* bytes, size_t n) { hex({bytes, n}); }
  void inline_bytes(uint32_t size, const std::byte* bytes, uint32_t) { hex({bytes, size}); }
  void opaque(std::span<const std::byte> v, uint32_t) { hex(v); }
  void text(std::string_view v, uint32_t);
  template <class T, ListForm F>
  void sequence(const List<T, F>& list, uint32_t) {
    text_ += '[';
    uint32_t left = elements_max;
    for (const T& element : list) {
      if (left-- == 0) {
        literal(" ...");
        break;
      }
      space();
      value(element, true);
    }
    text_ += ']';
    if (list.size() > elements_max) length(list.size());
  }

 private:
  // braces: around structures.
  template <class T>
  void value(T&& v, bool braces) {
    using V = std::remove_cvref_t<T>;
    if constexpr (requires { print_to(*this, v); }) {
      print_to(*this, v);
    } else if constexpr (requires {
                           { to_string(v) } -> std::convertible_to<std::string_view>;
                         }) {
      text_ += to_string(v);
    } else if constexpr (std::is_same_v<V, int64_t> || std::is_same_v<V, int32_t>) {
      text_ += std::to_string(v);
    } else if constexpr (OptionalItem<V>::value) {
      v ? value(*v, true) : literal("none");
    } else if constexpr (FixedArray<V>::value && !std::is_same_v<typename ElementOf<V>::type, std::byte>) {
      text_ += '[';
      for (const auto& element : v) field({}, element);
      text_ += ']';
    } else if constexpr (requires { describe(*this, const_cast<V&>(v)); }) {
      if (braces) text_ += '{';
      item(*this, v);
      if (braces) text_ += '}';
    } else {
      item(*this, v);
    }
  }

  static constexpr uint32_t elements_max = 16;
  static std::string_view next_name(std::string_view& rest);
  void space();
  void length(size_t n);  // "(n)", behind something that was cut
  void hex(std::span<const std::byte> bytes);

  std::string text_;
};

template <class T>
std::string print(const T& value) {
  Printer printer;
  printer(value);
  return printer.take();
}

}  // namespace nfsrdma::xdr
