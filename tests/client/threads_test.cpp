// SPDX-License-Identifier: Apache-2.0
// Many threads and loops at once; where callbacks run; what must not be called where.
#include "rig.hpp"

#include <atomic>
#include <thread>

namespace nfsrdma::client::test {
namespace {

class ClientThreads : public BothWays {};
NFSRDMA_BOTH_WAYS(ClientThreads);

TEST_P(ClientThreads, CallbacksComeOnTheCallingLoop) {
  Options o;
  o.nconnect = 4;
  o.loops = 2;
  Rig rig(rig_params(), o);
  ASSERT_EQ(rig.mount().loops().size(), 2u);
  for (Loop* loop : rig.mount().loops())
    for (int i = 0; i < 5; i++) {
      Waiting<Attributes> waiting;
      loop->post([&] { rig.mount().get_attributes(rig.mount().root(), rig.who(), waiting.done()); });
      ASSERT_TRUE(waiting.take());
      EXPECT_EQ(waiting.loop(), loop);
    }
  Waiting<Attributes> elsewhere;
  rig.mount().get_attributes(rig.mount().root(), rig.who(), elsewhere.done());
  ASSERT_TRUE(elsewhere.take());
  EXPECT_NE(elsewhere.loop(), nullptr);
}

TEST_P(ClientThreads, BlockingOnALoopIsRefused) {
  Rig rig(rig_params());
  File file = rig.open("f");
  int code = 0;
  on_loop(*rig.mount().loops()[0], [&] {
    auto synced = rig.mount().sync(file);
    code = synced ? 0 : synced.error().errno_value();
  });
  EXPECT_EQ(code, EDEADLK);
}

TEST_P(ClientThreads, SyncAndAsyncCallsFromEverywhere) {
  Options o;
  o.nconnect = 4;
  o.loops = 2;
  RigParams p = rig_params();
  p.server_threads = 2;
  Rig rig(p, o);
  constexpr int threads_count = 6, rounds = 60;
  auto data = random_bytes(40'000, 3);
  std::atomic<int> good{0}, async_good{0}, async_left{threads_count * rounds};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; t++)
    threads.emplace_back([&, t] {
      std::string name = "f" + std::to_string(t);
      File file = rig.open(name);
      std::vector<std::byte> back(data.size());
      for (int i = 0; i < rounds; i++) {
        uint64_t offset = static_cast<uint64_t>(i) * 1000;
        auto written = rig.mount().write(file, offset, std::span<const std::byte>(data), Stability::unstable);
        auto got = rig.mount().read(file, offset, back);
        good += written && got && back == data;
        Loop& loop = *rig.mount().loops()[static_cast<size_t>(i) % 2];
        loop.post([&] {
          rig.mount().lookup(rig.mount().root(), "f0", rig.who(), [&](Result<Entry> r) {
            async_good += r.ok() || r.error().errno_value() == ENOENT;
            async_left--;
          });
        });
      }
      good += rig.mount().close(file).ok();
    });
  for (auto& t : threads) t.join();
  while (async_left.load() > 0) std::this_thread::yield();
  EXPECT_EQ(good.load(), threads_count * (rounds + 1));
  EXPECT_EQ(async_good.load(), threads_count * rounds);
  EXPECT_EQ(rig.mount().stats().reconnects, 0u);
}

// One file, many handles, writes and syncs at once: every byte is there in the end.
TEST_P(ClientThreads, ManyWritersOfOneFileWithSyncs) {
  Rig rig(rig_params());
  auto data = random_bytes(64'000, 4);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (size_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      File file = rig.open("f");
      for (size_t at = t * 1000; at < data.size(); at += 4000) {
        auto piece = std::span<const std::byte>(data).subspan(at, 1000);
        good += rig.mount().write(file, at, piece, Stability::unstable).ok();
        if (at % 12'000 == 0) good -= !rig.mount().sync(file).ok();
      }
      good -= !rig.mount().close(file).ok();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good.load(), 64);
  EXPECT_EQ(rig.dir().read("f"), data);
}

TEST_P(ClientThreads, PostedTimersGoWithTheMount) {
  Rig rig(rig_params());
  std::atomic<int> soon{0};
  auto token = std::make_shared<int>(1);
  rig.mount().loops()[0]->post_after(0, [&] { soon++; });
  rig.mount().loops()[0]->post_after(3'600'000, [token] { FAIL() << "an hour has not passed"; });
  while (soon.load() == 0) std::this_thread::yield();
  EXPECT_EQ(token.use_count(), 2);
  rig.unmount();
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace nfsrdma::client::test
