// SPDX-License-Identifier: Apache-2.0
// A queue in one block of memory that grows when it must: no allocation in steady state. Not thread safe.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace nfsrdma::rdma {

template <class T>
class Ring {
 public:
  explicit Ring(size_t capacity = 0) { reserve(capacity); }
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  T& front() { return slots_[head_ & mask_]; }
  T& back() { return slots_[(tail_ - 1) & mask_]; }
  T& operator[](size_t i) { return slots_[(head_ + i) & mask_]; }
  const T& operator[](size_t i) const { return slots_[(head_ + i) & mask_]; }
  T& push(T value) {
    if (size() == slots_.size()) reserve(slots_.size() + 1);
    T& slot = slots_[tail_++ & mask_];
    slot = std::move(value);
    return slot;
  }
  void pop() { head_++; }
  void clear() { head_ = tail_; }
  void reserve(size_t capacity) {
    if (capacity <= slots_.size()) return;
    std::vector<T> larger(std::bit_ceil(capacity));
    size_t n = size();
    for (size_t i = 0; i < n; i++) larger[i] = std::move((*this)[i]);
    slots_.swap(larger);
    mask_ = slots_.size() - 1;
    head_ = 0;
    tail_ = n;
  }
  template <class F>
  void remove_if(F&& unwanted) {
    size_t kept = head_;
    for (size_t i = head_; i != tail_; i++) {
      T& slot = slots_[i & mask_];
      if (unwanted(slot)) continue;
      if (kept != i) slots_[kept & mask_] = std::move(slot);
      kept++;
    }
    tail_ = kept;
  }

 private:
  std::vector<T> slots_;
  size_t mask_ = 0;
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace nfsrdma::rdma
