// SPDX-License-Identifier: Apache-2.0
// Reads and writes: split, odd, short, past the end; placed directly or by the pool.
#include "rig.hpp"

#include <thread>

namespace nfsrdma::client::test {
namespace {

class ClientIo : public BothWays {};
NFSRDMA_BOTH_WAYS(ClientIo);

Options small_pieces() {
  Options o;
  o.rsize_bytes = o.wsize_bytes = 64u << 10;
  return o;
}

TEST_P(ClientIo, WritesAndReadsBackEveryOddLength) {
  Rig rig(rig_params(), small_pieces());
  auto data = random_bytes(300'000, 1);
  for (size_t n : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{1023}, size_t{4095}, size_t{4096}, size_t{4097},
                   size_t{65535}, size_t{65536}, size_t{65537}, size_t{131071}, size_t{299'999}}) {
    SCOPED_TRACE(n);
    std::string name = "f" + std::to_string(n);
    std::vector<std::byte> want(data.begin(), data.begin() + static_cast<ptrdiff_t>(n));
    File file = rig.open(name);
    auto written = rig.mount().write(file, 0, std::span<const std::byte>(want), Stability::unstable);
    ASSERT_TRUE(written) << written.error().text();
    EXPECT_EQ(*written, n);
    ASSERT_TRUE(rig.mount().sync(file));
    std::vector<std::byte> back(n + 10);
    auto got = rig.mount().read(file, 0, back);
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->length, n);
    EXPECT_TRUE(got->eof);
    back.resize(n);
    EXPECT_EQ(back, want);
    EXPECT_EQ(rig.dir().read(name), want);
    ASSERT_TRUE(rig.mount().close(file));
  }
}

// Registered memory at odd places: nothing outside of the slice is touched, nothing goes through the pool.
TEST_P(ClientIo, RegisteredMemoryIsReadAndWrittenInPlace) {
  Rig rig(rig_params(), small_pieces());
  auto data = random_bytes(1u << 20, 2);
  rig.dir().write("in", data);
  std::vector<std::byte> memory(1u << 20, std::byte{0xee});
  auto region = rig.mount().register_memory(memory.data(), memory.size());
  ASSERT_TRUE(region) << region.error().text();
  File in = rig.open("in", open_read), out = rig.open("out");
  Stats before = rig.mount().stats();
  for (size_t at : {size_t{1}, size_t{4099}, size_t{70'001}}) {
    std::ranges::fill(memory, std::byte{0xee});
    const size_t n = 210'003;
    auto got = rig.mount().read(in, 777, region->slice(at, n));
    ASSERT_TRUE(got) << got.error().text();
    ASSERT_EQ(got->length, n);
    EXPECT_TRUE(std::equal(data.begin() + 777, data.begin() + 777 + n, memory.begin() + static_cast<ptrdiff_t>(at)));
    EXPECT_EQ(memory[at - 1], std::byte{0xee});
    EXPECT_EQ(memory[at + n], std::byte{0xee});
    auto written = rig.mount().write(out, 0, region->slice(at, n), Stability::durable);
    ASSERT_TRUE(written) << written.error().text();
    auto stored = rig.dir().read("out");
    ASSERT_EQ(stored.size(), n);
    EXPECT_TRUE(std::equal(stored.begin(), stored.end(), data.begin() + 777));
  }
  Stats after = rig.mount().stats();
  EXPECT_EQ(after.direct_read_bytes - before.direct_read_bytes, 3u * 210'003);
  EXPECT_EQ(after.direct_write_bytes - before.direct_write_bytes, 3u * 210'003);
  EXPECT_EQ(after.bounced_bytes, before.bounced_bytes);
}

TEST_P(ClientIo, ReadsAtAndPastTheEnd) {
  Rig rig(rig_params(), small_pieces());
  auto data = random_bytes(200'000, 3);
  rig.dir().write("f", data);
  File file = rig.open("f", open_read);
  std::vector<std::byte> memory(400'000);
  auto region = rig.mount().register_memory(memory.data(), memory.size());
  ASSERT_TRUE(region);
  struct Case {
    uint64_t offset;
    size_t wanted, length;
    bool eof;
  };
  for (const Case& c : {Case{199'999, 10, 1, true}, {200'000, 10, 0, true}, {1u << 30, 70'000, 0, true},
                        {1u << 30, 300'000, 0, true}, {0, 400'000, 200'000, true}, {0, 200'000, 200'000, true},
                        {100'000, 50'000, 50'000, false}, {0, 150'000, 150'000, false}, {150'000, 50'000, 50'000, true}}) {
    SCOPED_TRACE(c.offset);
    auto got = rig.mount().read(file, c.offset, region->slice(0, c.wanted));
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->length, c.length);
    EXPECT_EQ(got->eof, c.eof) << c.wanted;
  }
}

// The Buffer form hands the memory over: it comes back to the pool once the data is durable.
TEST_P(ClientIo, BuffersReturnToThePoolWhenTheirDataIsDurable) {
  Rig rig(rig_params());
  File file = rig.open("f");
  uint64_t used = rig.mount().stats().pool_bytes_used;
  auto data = random_bytes(100'000, 4);
  Buffer buffer = rig.mount().borrow(data.size());
  ASSERT_TRUE(buffer);
  std::ranges::copy(data, buffer.data());
  auto written = rig.mount().write(file, 5, std::move(buffer), 0, data.size(), Stability::unstable);
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_GT(rig.mount().stats().pool_bytes_used, used);
  ASSERT_TRUE(rig.mount().sync(file));
  EXPECT_EQ(rig.mount().stats().pool_bytes_used, used);
  auto stored = rig.dir().read("f");
  ASSERT_EQ(stored.size(), data.size() + 5);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), stored.begin() + 5));
}

// A pool of four buffers under many files' writes and reads at once.
TEST_P(ClientIo, SmallPoolMakesProgress) {
  Options o;
  o.pool_bytes = 12u << 20;
  Rig rig(rig_params(), o);
  auto data = random_bytes(4u << 20, 5);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      File file = rig.open("f" + std::to_string(t));
      auto written = rig.mount().write(file, 0, std::span<const std::byte>(data), Stability::unstable);
      std::vector<std::byte> back(data.size());
      auto got = rig.mount().read(file, 0, back);
      good += written && *written == data.size() && got && back == data && rig.mount().close(file);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good.load(), 4);
  Stats s = rig.mount().stats();
  EXPECT_LE(s.pool_bytes_registered, o.pool_bytes);
}

TEST_P(ClientIo, EmptyTransfersAndEmptyHandles) {
  Rig rig(rig_params());
  File file = rig.open("f");
  auto nothing = rig.mount().write(file, 0, std::span<const std::byte>(), Stability::durable);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(*nothing, 0u);
  auto none = rig.mount().read(file, 0, std::span<std::byte>());
  ASSERT_TRUE(none);
  EXPECT_EQ(none->length, 0u);
  std::vector<std::byte> memory(10);
  EXPECT_FALSE(rig.mount().read(File(), 0, memory));
  EXPECT_FALSE(rig.mount().sync(File()));
  EXPECT_FALSE(rig.mount().close(File()));
  EXPECT_FALSE(rig.mount().get_attributes(Node(), rig.who()));
  EXPECT_FALSE(rig.mount().lookup(Node(), "x", rig.who()));
  EXPECT_FALSE(rig.mount().open(Node(), open_read, rig.who()));
}

}  // namespace
}  // namespace nfsrdma::client::test
