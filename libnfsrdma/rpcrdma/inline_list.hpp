// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace nfsrdma::rpcrdma {

// A list whose first N elements need no heap. Past N everything moves to a vector, which clear() keeps for
// the next use, so that a list that is used again and again stops allocating.
template <class T, uint32_t N>
class InlineList {
 public:
  void clear() {
    heap_.clear();
    size_ = 0;
  }
  void push_back(const T& value) {
    if (size_ < N) {
      fixed_[size_] = value;
    } else {
      if (size_ == N) heap_.assign(fixed_.begin(), fixed_.end());
      heap_.push_back(value);
    }
    size_++;
  }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<T> span() { return {size_ <= N ? fixed_.data() : heap_.data(), size_}; }
  std::span<const T> span() const { return {size_ <= N ? fixed_.data() : heap_.data(), size_}; }
  T& operator[](uint32_t i) { return span()[i]; }
  const T& operator[](uint32_t i) const { return span()[i]; }
  const T* begin() const { return span().data(); }
  const T* end() const { return span().data() + size_; }

 private:
  std::array<T, N> fixed_{};
  std::vector<T> heap_;
  uint32_t size_ = 0;
};

}  // namespace nfsrdma::rpcrdma
