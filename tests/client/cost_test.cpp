// SPDX-License-Identifier: Apache-2.0
// What a READ or WRITE costs besides its bytes: no heap allocation on the client's threads, and no copy of payload
// where the provider can place it.
#include <semaphore>

#include "rig.hpp"
#include "tests/support/counting_new.hpp"

namespace nfsrdma::client::test {
namespace {

using nfsrdma::testing::watch_this_thread;
using nfsrdma::testing::watched_heap_allocations;

constexpr size_t file_bytes = 4u << 20;
constexpr int depth = 8, rounds = 20;

class ClientCost : public BothWays {
 protected:
  // The client's threads are watched; the server's, in the same process, are not.
  void start() {
    Options o;
    o.nconnect = 2;
    o.loops = 1;
    rig.emplace(rig_params(), o);
    watch_this_thread();
    for (Loop* loop : rig->mount().loops()) on_loop(*loop, [] { watch_this_thread(); });
    memory = random_bytes(file_bytes, 21);
    rig->dir().write("f", memory);
    auto registered = rig->mount().register_memory(memory.data(), memory.size());
    ASSERT_TRUE(registered) << registered.error().text();
    region = std::move(*registered);
    file = rig->open("f");
  }
  Mount& mount() { return rig->mount(); }
  Slice slice(int i, size_t n) { return region.slice(static_cast<size_t>(i) % (file_bytes / n) * n, n); }
  std::span<std::byte> span(int i, size_t n) {
    return std::span(memory).subspan(static_cast<size_t>(i) % (file_bytes / n) * n, n);
  }
  uint64_t offset(int i, size_t n) const { return static_cast<size_t>(i) % (file_bytes / n) * n; }

  // Allocations of `rounds` calls of once(i), after as many that fill pools and let tables grow. What a sync needs is
  // counted as well.
  template <class F>
  uint64_t counted(F once) {
    for (int warm = 0; warm < 3; warm++) {
      for (int i = 0; i < rounds; i++) once(i);
      EXPECT_TRUE(mount().sync(file));
    }
    const uint64_t before = watched_heap_allocations();
    for (int i = 0; i < rounds; i++) once(i);
    auto synced = mount().sync(file);
    const uint64_t after = watched_heap_allocations();
    EXPECT_TRUE(synced);
    return after - before;
  }

  // `depth` asynchronous calls at once, started on the loop or elsewhere.
  template <class Start>
  void together(bool on_the_loop, Start start) {
    struct Batch {
      std::counting_semaphore<depth> done{0};
      std::atomic<int> good{0};
    } batch;
    auto all = [&] {
      for (int i = 0; i < depth; i++) start(i, batch);
    };
    if (on_the_loop)
      mount().loops()[0]->post([&all] { all(); });
    else
      all();
    for (int i = 0; i < depth; i++) batch.done.acquire();
    EXPECT_EQ(batch.good.load(), depth);
  }

  std::optional<Rig> rig;
  std::vector<std::byte> memory;
  Region region;
  File file;

  void TearDown() override {
    file = File();
    region = Region();
    rig.reset();
  }
};
NFSRDMA_BOTH_WAYS(ClientCost);

TEST_P(ClientCost, NoAllocationInBlockingCalls) {
  start();
  for (size_t n : {size_t{4096}, size_t{1} << 20}) {
    SCOPED_TRACE(n);
    EXPECT_EQ(counted([&](int i) { EXPECT_TRUE(mount().read(file, offset(i, n), slice(i, n))); }), 0u) << "READ";
    EXPECT_EQ(counted([&](int i) {
                EXPECT_TRUE(mount().write(file, offset(i, n), slice(i, n), Stability::unstable));
              }),
              0u)
        << "WRITE unstable";
    EXPECT_EQ(counted([&](int i) {
                EXPECT_TRUE(mount().write(file, offset(i, n), slice(i, n), Stability::durable));
              }),
              0u)
        << "WRITE durable";
    EXPECT_EQ(counted([&](int i) { EXPECT_TRUE(mount().read(file, offset(i, n), span(i, n))); }), 0u)
        << "READ into memory that is not registered";
    EXPECT_EQ(counted([&](int i) {
                EXPECT_TRUE(mount().write(file, offset(i, n), std::span<const std::byte>(span(i, n)),
                                          Stability::unstable));
              }),
              0u)
        << "WRITE from memory that is not registered";
    EXPECT_EQ(counted([&](int i) {
                Buffer buffer = mount().borrow(n);
                ASSERT_TRUE(buffer);
                EXPECT_TRUE(mount().write(file, offset(i, n), std::move(buffer), 0, n, Stability::unstable));
              }),
              0u)
        << "WRITE of a Buffer";
  }
}

TEST_P(ClientCost, NoAllocationInAsynchronousCalls) {
  start();
  for (bool on_the_loop : {true, false})
    for (size_t n : {size_t{4096}, size_t{1} << 20}) {
      SCOPED_TRACE(n);
      SCOPED_TRACE(on_the_loop ? "on the loop" : "from another thread");
      EXPECT_EQ(counted([&](int) {
                  together(on_the_loop, [&](int i, auto& batch) {
                    mount().read(file, offset(i, n), slice(i, n), [&batch, n](Result<ReadResult> r) {
                      batch.good += r.ok() && r->length == n;
                      batch.done.release();
                    });
                  });
                }),
                0u)
          << "READ";
      EXPECT_EQ(counted([&](int) {
                  together(on_the_loop, [&](int i, auto& batch) {
                    mount().write(file, offset(i, n), slice(i, n), Stability::unstable,
                                  [&batch, n](Result<size_t> r) {
                                    batch.good += r.ok() && *r == n;
                                    batch.done.release();
                                  });
                  });
                }),
                0u)
          << "WRITE";
      EXPECT_EQ(counted([&](int) {
                  together(on_the_loop, [&](int i, auto& batch) {
                    Buffer buffer = mount().borrow(n);
                    mount().write(file, offset(i, n), std::move(buffer), 0, n, Stability::durable,
                                  [&batch, n](Result<size_t> r) {
                                    batch.good += r.ok() && *r == n;
                                    batch.done.release();
                                  });
                  });
                }),
                0u)
          << "WRITE of a Buffer";
    }
}

// Registered memory: what the provider copied in user space, staging and fix-ups included. Over `loop` the placement
// itself is the link, and nothing else moves a byte; over iWARP the bytes that came with a header into the peek are moved.
TEST_P(ClientCost, PayloadIsNotCopied) {
  start();
  for (size_t n : {size_t{64} << 10, size_t{1} << 20}) {
    SCOPED_TRACE(n);
    Stats before = mount().stats();
    const uint64_t total = uint64_t{rounds} * depth * n;
    for (int i = 0; i < rounds; i++)
      together(true, [&](int k, auto& batch) {
        mount().read(file, offset(k, n), slice(k, n), [&batch, n](Result<ReadResult> r) {
          batch.good += r.ok() && r->length == n;
          batch.done.release();
        });
      });
    Stats between = mount().stats();
    for (int i = 0; i < rounds; i++)
      together(true, [&](int k, auto& batch) {
        mount().write(file, offset(k, n), slice(k, n), Stability::unstable, [&batch, n](Result<size_t> r) {
          batch.good += r.ok() && *r == n;
          batch.done.release();
        });
      });
    ASSERT_TRUE(mount().sync(file));
    Stats after = mount().stats();
    EXPECT_EQ(after.bounced_bytes, before.bounced_bytes);
    EXPECT_EQ(between.direct_read_bytes - before.direct_read_bytes, total);
    EXPECT_EQ(after.direct_write_bytes - between.direct_write_bytes, total);
    const uint64_t allowed = GetParam() == Way::loop ? 0 : total / 100;
    EXPECT_LE(between.payload_copied_bytes - before.payload_copied_bytes, allowed) << "READ";
    EXPECT_LE(after.payload_copied_bytes - between.payload_copied_bytes, allowed) << "WRITE";
    RecordProperty("read_copied_" + std::to_string(n),
                   std::to_string(between.payload_copied_bytes - before.payload_copied_bytes));
  }
}

}  // namespace
}  // namespace nfsrdma::client::test
