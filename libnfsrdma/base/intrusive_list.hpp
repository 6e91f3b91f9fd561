// SPDX-License-Identifier: Apache-2.0
// A doubly linked list whose links live in the elements: no allocation, O(1) removal from the middle.
#pragma once

#include <cstddef>

namespace nfsrdma::base {

// Derive from ListNode<Tag> for each list that an element can stand in at the same time.
template <class Tag = void>
struct ListNode {
  ListNode* prev = nullptr;
  ListNode* next = nullptr;
  bool linked() const { return next != nullptr; }
  void unlink() {
    if (!next) return;
    prev->next = next;
    next->prev = prev;
    prev = next = nullptr;
  }
};

// The list owns nothing. Elements must outlive their membership. Not thread safe.
template <class T, class Tag = void>
class IntrusiveList {
 public:
  using Node = ListNode<Tag>;

  IntrusiveList() { head_.prev = head_.next = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    while (pop_front()) {
    }
    head_.next = nullptr;
  }

  bool empty() const { return head_.next == &head_; }
  T* front() { return empty() ? nullptr : from(head_.next); }
  T* back() { return empty() ? nullptr : from(head_.prev); }
  void push_back(T& t) { insert(t, head_.prev); }
  void push_front(T& t) { insert(t, &head_); }
  T* pop_front() {
    T* t = front();
    if (t) static_cast<Node*>(t)->unlink();
    return t;
  }
  // Calls f(T&) for each element; f may unlink the element that it is given.
  template <class F>
  void for_each(F&& f) {
    for (Node* n = head_.next; n != &head_;) {
      Node* following = n->next;
      f(*from(n));
      n = following;
    }
  }
  // Moves all elements of other to the end of this list.
  void splice_back(IntrusiveList& other) {
    while (T* t = other.pop_front()) push_back(*t);
  }

 private:
  static T* from(Node* n) { return static_cast<T*>(n); }
  void insert(T& t, Node* after) {
    Node* n = &t;
    n->prev = after;
    n->next = after->next;
    after->next->prev = n;
    after->next = n;
  }

  Node head_;
};

}  // namespace nfsrdma::base
