// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xdr/archive.hpp"
#include "xdr/sequence.hpp"

namespace nfsrdma::xdr {

// Counts the bytes that Encoder would write for the same values. Limits are Encoder's business.
class Sizer {
 public:
  static constexpr bool writes_value = false;
  explicit Sizer(Form form = Form::whole) : form_(form) {}

  uint64_t size() const { return bytes_; }

  template <class... Ts>
  void operator()(Ts&&... items) {
    (one(items), ...);
  }
  template <class... Ts>
  void fields(const char*, Ts&&... items) {
    (one(items), ...);
  }
  template <class E>
  void discriminant(const char*, E&, std::initializer_list<E>) {
    bytes_ += 4;
  }
  template <class E>
  void branch(const char*, E&) {
    bytes_ += 4;
  }
  void count(const char*, uint32_t&, uint32_t) { bytes_ += 4; }
  void ddp(const char*, DdpItem& v, uint32_t) {
    bytes_ += 4;
    if (form_ == Form::whole || left_out_) bytes_ += padded_bytes(v.length);
    left_out_ = true;
  }
  void fail(Fault) {}
  void raw(std::span<const std::byte> bytes) { bytes_ += bytes.size(); }

  void word(uint32_t) { bytes_ += 4; }
  void flag(uint32_t) { bytes_ += 4; }
  void presence(bool) { bytes_ += 4; }
  void hyper(uint64_t) { bytes_ += 8; }
  void fixed(const std::byte*, size_t n) { bytes_ += padded_bytes(n); }
  void inline_bytes(uint32_t size, const std::byte*, uint32_t) { bytes_ += 4 + padded_bytes(size); }
  void opaque(std::span<const std::byte> v, uint32_t) { bytes_ += 4 + padded_bytes(v.size()); }
  void text(std::string_view v, uint32_t) { bytes_ += 4 + padded_bytes(v.size()); }
  template <class T, ListForm F>
  void sequence(const List<T, F>& list, uint32_t) {
    bytes_ += 4;
    if (list.is_encoded()) {
      bytes_ += list.encoded().size();
      return;
    }
    for (const T& element : list.items()) {
      if constexpr (F == ListForm::linked) bytes_ += 4;
      one(element);
    }
  }

 private:
  template <class T>
  void one(T&& v) {
    if constexpr (fixed_bytes_v<T> != size_varies) {
      bytes_ += fixed_bytes_v<T>;
    } else {
      item(*this, v);
    }
  }

  uint64_t bytes_ = 0;
  Form form_;
  bool left_out_ = false;
};

template <class T>
uint64_t encoded_bytes(const T& value, Form form = Form::whole) {
  Sizer sizer(form);
  sizer(value);
  return sizer.size();
}

}  // namespace nfsrdma::xdr
