// SPDX-License-Identifier: Apache-2.0
// Callback<void(T)>: a move-only callable that never allocates. What it captures must fit its inline storage.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace nfsrdma {

template <class Signature, size_t Bytes = 64>
class Callback;

// Rules: call it at most once per intended event; a default-constructed or moved-from Callback is false and must
// not be called. Not thread safe; may be moved between threads.
template <class R, class... Args, size_t Bytes>
class Callback<R(Args...), Bytes> {
 public:
  Callback() = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Callback> && std::is_invocable_r_v<R, F&, Args...>)
  Callback(F f) {
    static_assert(sizeof(F) <= Bytes, "the captures do not fit: capture a pointer to a struct instead");
    static_assert(alignof(F) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<F>);
    ::new (static_cast<void*>(storage_)) F(std::move(f));
    invoke_ = [](void* p, Args... args) -> R { return (*static_cast<F*>(p))(std::forward<Args>(args)...); };
    relocate_ = [](void* from, void* to) {
      F* f_from = static_cast<F*>(from);
      if (to) ::new (to) F(std::move(*f_from));
      f_from->~F();
    };
  }
  Callback(Callback&& other) noexcept { take(other); }
  Callback& operator=(Callback&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { reset(); }

  explicit operator bool() const { return invoke_ != nullptr; }
  R operator()(Args... args) { return invoke_(storage_, std::forward<Args>(args)...); }
  void reset() {
    if (relocate_) relocate_(storage_, nullptr);
    invoke_ = nullptr;
    relocate_ = nullptr;
  }

 private:
  void take(Callback& other) {
    if (!other.relocate_) return;
    other.relocate_(other.storage_, storage_);
    invoke_ = std::exchange(other.invoke_, nullptr);
    relocate_ = std::exchange(other.relocate_, nullptr);
  }

  alignas(std::max_align_t) std::byte storage_[Bytes];
  R (*invoke_)(void*, Args...) = nullptr;
  void (*relocate_)(void*, void*) = nullptr;
};

}  // namespace nfsrdma
