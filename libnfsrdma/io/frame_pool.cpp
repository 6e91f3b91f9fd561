// SPDX-License-Identifier: Apache-2.0
#include "io/frame_pool.hpp"

#include <array>
#include <new>

namespace nfsrdma::io {
namespace {

constexpr size_t class_bytes = 256;
constexpr size_t classes = 32;           // up to 8 KiB; larger frames go to the heap
constexpr size_t frames_kept_max = 1024; // per class and thread

struct Link {
  Link* next;
};

struct Lists {
  std::array<Link*, classes> head{};
  std::array<size_t, classes> count{};
  ~Lists() {
    for (Link*& link : head)
      while (link) {
        Link* next = link->next;
        ::operator delete(link);
        link = next;
      }
    count.fill(frames_kept_max);  // frames freed after this thread's end go straight to the heap
  }
};

thread_local Lists lists;

size_t class_of(size_t bytes) { return (bytes + class_bytes - 1) / class_bytes - 1; }

}  // namespace

void* frame_allocate(size_t bytes) {
  size_t c = class_of(bytes);
  if (c >= classes) return ::operator new(bytes);
  if (Link* link = lists.head[c]) {
    lists.head[c] = link->next;
    lists.count[c]--;
    return link;
  }
  return ::operator new((c + 1) * class_bytes);
}

void frame_free(void* frame, size_t bytes) noexcept {
  size_t c = class_of(bytes);
  if (c >= classes || lists.count[c] >= frames_kept_max) {
    ::operator delete(frame);
    return;
  }
  Link* link = static_cast<Link*>(frame);
  link->next = lists.head[c];
  lists.head[c] = link;
  lists.count[c]++;
}

}  // namespace nfsrdma::io
