// SPDX-License-Identifier: Apache-2.0
// Variable-length lists of described items without heap memory: a list is a view, either of the caller's
// items (to encode) or of encoded bytes that a Decoder has checked and that are decoded again while
// iterating.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "xdr/decoder.hpp"

namespace nfsrdma::xdr {

// counted: T<>, a count and the items. linked: "1 item 1 item ... 0", XDR's optional-pointer list.
enum class ListForm : uint8_t { counted, linked };

// A view; the items or bytes belong to someone else and must outlive it. for (T item : list) copies each item
// out.
template <class T, ListForm FormValue>
class List {
 public:
  using value_type = T;
  static constexpr ListForm form = FormValue;

  constexpr List() = default;
  // From anything that is a contiguous row of T: an array, a vector, a span.
  template <class Row>
  requires(std::is_convertible_v<Row&&, std::span<const T>> &&
           !std::is_same_v<std::remove_cvref_t<Row>, List>) constexpr List(Row&& row) {
    const std::span<const T> items = row;
    items_ = items.data();
    count_ = static_cast<uint32_t>(items.size());
  }
  // bytes: `count` encoded items, for linked lists each after its word 1, without the count or the final 0.
  // They must have come from a Decoder or Encoder for this type: iteration trusts them.
  static constexpr List from_encoded(std::span<const std::byte> bytes, uint32_t count) {
    List list;
    list.encoded_ = bytes;
    list.count_ = count;
    return list;
  }

  constexpr uint32_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr bool is_encoded() const { return items_ == nullptr; }
  constexpr std::span<const T> items() const { return {items_, items_ ? count_ : 0}; }
  constexpr std::span<const std::byte> encoded() const { return encoded_; }

  class Iterator {
   public:
    Iterator(const T* items, std::span<const std::byte> bytes, uint32_t left)
        : items_(items), decoder_(bytes), left_(left) {
      load();
    }
    const T& operator*() const { return items_ ? *items_ : current_; }
    const T* operator->() const { return &**this; }
    Iterator& operator++() {
      --left_;
      if (items_) ++items_;
      load();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return left_ != other.left_; }
    bool operator==(const Iterator& other) const { return left_ == other.left_; }

   private:
    void load() {
      if (items_ || left_ == 0) return;
      if constexpr (FormValue == ListForm::linked) {
        uint32_t follows;
        decoder_(follows);
      }
      current_ = T{};
      decoder_(current_);
    }
    const T* items_;
    Decoder decoder_;
    uint32_t left_;
    T current_{};
  };
  Iterator begin() const { return Iterator(items_, encoded_, count_); }
  Iterator end() const { return Iterator(nullptr, {}, 0); }

 private:
  const T* items_ = nullptr;
  std::span<const std::byte> encoded_;
  uint32_t count_ = 0;
};

template <class T>
using Array = List<T, ListForm::counted>;
template <class T>
using Chain = List<T, ListForm::linked>;

}  // namespace nfsrdma::xdr
