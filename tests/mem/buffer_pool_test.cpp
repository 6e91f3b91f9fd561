// SPDX-License-Identifier: Apache-2.0
#include "mem/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <thread>

#include "rdma/providers.hpp"

namespace nfsrdma::mem {
namespace {

std::shared_ptr<rdma::ProtectionDomain> domain() {
  static auto provider = rdma::make_loop_provider();
  static auto device = *provider->resolve({});
  return *device->create_protection_domain();
}

PoolParams small_pool() {
  PoolParams p;
  p.bytes_max = 4u << 20;
  p.large_bytes = 256u << 10;
  p.slab_bytes = 1u << 20;
  return p;
}

TEST(BufferPool, SizesAndAlignment) {
  BufferPool pool(domain(), small_pool());
  Buffer small = pool.try_borrow(1), edge = pool.try_borrow(8192), large = pool.try_borrow(8193);
  Buffer largest = pool.try_borrow(pool.largest_bytes());
  ASSERT_TRUE(small && edge && large && largest);
  EXPECT_EQ(small.size(), 8192u);
  EXPECT_EQ(edge.size(), 8192u);
  EXPECT_EQ(large.size(), (256u << 10) + 4096);
  EXPECT_EQ(largest.size(), pool.largest_bytes());
  EXPECT_FALSE(pool.try_borrow(pool.largest_bytes() + 1));
  for (Buffer* b : {&small, &edge, &large, &largest}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data()) % 4096, 0u);
    EXPECT_EQ(b->region()->host() + b->offset(), b->data());
    EXPECT_LE(b->offset() + b->size(), b->region()->length_bytes());
    b->data()[b->size() - 1] = std::byte{1};
    const rdma::Sge piece = b->sge(10, 20);
    EXPECT_EQ(piece.offset, b->offset() + 10);
    EXPECT_EQ(piece.length, 20u);
  }
}

TEST(BufferPool, BoundedAndWhole) {
  BufferPool pool(domain(), small_pool());
  std::vector<Buffer> held;
  std::set<std::byte*> places;
  while (Buffer b = pool.try_borrow(100'000)) {
    EXPECT_TRUE(places.insert(b.data()).second);
    held.push_back(std::move(b));
  }
  EXPECT_GE(held.size(), 12u);
  PoolStats stats = pool.stats();
  EXPECT_LE(stats.bytes_registered, stats.bytes_max);
  EXPECT_EQ(stats.bytes_used, held.size() * ((256u << 10) + 4096));
  EXPECT_EQ(stats.refusals, 1u);
  // No two overlap.
  std::byte* before = nullptr;
  for (std::byte* p : places) {
    if (before) {
      EXPECT_GE(p - before, (256 << 10) + 4096);
    }
    before = p;
  }
  held.pop_back();
  EXPECT_TRUE(pool.try_borrow(100'000));
  held.clear();
  stats = pool.stats();
  EXPECT_EQ(stats.bytes_used, 0u);
  EXPECT_GT(stats.bytes_used_peak, 3u << 20);
}

TEST(BufferPool, MovesGiveBackOnce) {
  BufferPool pool(domain(), small_pool());
  Buffer a = pool.try_borrow(10);
  Buffer b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_TRUE(b);
  a = pool.try_borrow(10);
  std::byte* kept = b.data();
  a = std::move(b);
  EXPECT_EQ(a.data(), kept);
  EXPECT_EQ(pool.stats().bytes_used, 8192u);
  a.reset();
  a.reset();
  EXPECT_EQ(pool.stats().bytes_used, 0u);
}

TEST(BufferPool, WarmRegistersTheFirstSlab) {
  BufferPool pool(domain(), small_pool());
  EXPECT_EQ(pool.stats().bytes_registered, 0u);
  ASSERT_TRUE(pool.warm(1));
  const uint64_t after_small = pool.stats().bytes_registered;
  EXPECT_GT(after_small, 0u);
  ASSERT_TRUE(pool.warm(100'000));
  EXPECT_GT(pool.stats().bytes_registered, after_small);
  ASSERT_TRUE(pool.warm(1));
  EXPECT_EQ(pool.warm(pool.largest_bytes() + 1).error().errno_value(), EINVAL);
  PoolParams none = small_pool();
  none.bytes_max = 4096;
  BufferPool empty(domain(), none);
  EXPECT_EQ(empty.warm(1).error().errno_value(), ENOBUFS);
  EXPECT_FALSE(empty.try_borrow(1));
}

TEST(BufferPool, FreedOnOtherThreads) {
  BufferPool pool(domain(), small_pool());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; i++) {
        Buffer b = pool.try_borrow(i % 2 ? 100 : 100'000);
        if (b) b.data()[0] = std::byte{1};
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(pool.stats().bytes_used, 0u);
}

}  // namespace
}  // namespace nfsrdma::mem
