// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "base/address.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "nfsrdma/callback.hpp"

namespace nfsrdma::base {
namespace {

struct OtherList;
struct Item : ListNode<>, ListNode<OtherList> {
  int value = 0;
};

std::vector<int> values(IntrusiveList<Item>& list) {
  std::vector<int> out;
  list.for_each([&](Item& i) { out.push_back(i.value); });
  return out;
}

TEST(IntrusiveList, OrderRemovalAndSplice) {
  Item items[5];
  for (int i = 0; i < 5; i++) items[i].value = i;
  IntrusiveList<Item> list, other;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(items[1]);
  list.push_back(items[2]);
  list.push_front(items[0]);
  EXPECT_EQ(values(list), (std::vector{0, 1, 2}));
  EXPECT_EQ(list.back(), &items[2]);
  static_cast<ListNode<>&>(items[1]).unlink();
  static_cast<ListNode<>&>(items[1]).unlink();  // harmless
  EXPECT_EQ(values(list), (std::vector{0, 2}));
  other.push_back(items[3]);
  other.push_back(items[4]);
  list.splice_back(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(values(list), (std::vector{0, 2, 3, 4}));
  list.for_each([](Item& i) {
    if (i.value % 2 == 0) static_cast<ListNode<>&>(i).unlink();
  });
  EXPECT_EQ(values(list), (std::vector{3}));
}

TEST(IntrusiveList, AnElementInTwoLists) {
  Item item;
  IntrusiveList<Item> one;
  IntrusiveList<Item, OtherList> two;
  one.push_back(item);
  two.push_back(item);
  EXPECT_EQ(one.pop_front(), &item);
  EXPECT_EQ(two.front(), &item);
  EXPECT_TRUE(static_cast<ListNode<OtherList>&>(item).linked());
  EXPECT_FALSE(static_cast<ListNode<>&>(item).linked());
}

TEST(IntrusiveList, DestructionUnlinks) {
  Item item;
  {
    IntrusiveList<Item> list;
    list.push_back(item);
  }
  EXPECT_FALSE(static_cast<ListNode<>&>(item).linked());
}

TEST(Bytes, BigEndianAtAnyAlignment) {
  std::byte space[16] = {};
  for (size_t at = 0; at < 8; at++) {
    store_be<uint16_t>(space + at, 0x1234);
    EXPECT_EQ(space[at], std::byte{0x12});
    EXPECT_EQ(load_be<uint16_t>(space + at), 0x1234);
    store_be<uint32_t>(space + at, 0x12345678);
    EXPECT_EQ(space[at + 3], std::byte{0x78});
    EXPECT_EQ(load_be<uint32_t>(space + at), 0x12345678u);
    store_be<uint64_t>(space + at, 0x123456789abcdef0);
    EXPECT_EQ(space[at + 7], std::byte{0xf0});
    EXPECT_EQ(load_be<uint64_t>(space + at), 0x123456789abcdef0u);
  }
  EXPECT_EQ(text_of(bytes_of("abc")), "abc");
  const uint32_t pads[] = {0, 3, 2, 1, 0};
  for (uint32_t n = 0; n < 5; n++) EXPECT_EQ(pad4(n), pads[n]);
  EXPECT_EQ(pad4(0xffffffff), 1u);
}

TEST(SocketAddress, ParseAndText) {
  for (auto [host, text] : {std::pair{"127.0.0.1", "127.0.0.1:20049"},
                            {"::1", "[::1]:20049"},
                            {"[::1]", "[::1]:20049"},
                            {"10.100.0.1", "10.100.0.1:20049"},
                            {"fe80::1", "[fe80::1]:20049"}}) {
    auto a = SocketAddress::parse(host, 20049);
    ASSERT_TRUE(a) << host;
    EXPECT_EQ(a->text(), text);
    EXPECT_EQ(a->port(), 20049);
    EXPECT_TRUE(a->valid());
    a->set_port(1);
    EXPECT_EQ(a->port(), 1);
  }
  EXPECT_TRUE(SocketAddress::parse("127.9.9.9", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::parse("::1", 1)->is_loopback());
  EXPECT_FALSE(SocketAddress::parse("10.0.0.1", 1)->is_loopback());
  EXPECT_FALSE(SocketAddress().valid());
  for (const char* bad : {"", "localhost", "[::1", "10.0.0.256", "a.b.c.d", "::g"}) {
    auto a = SocketAddress::parse(bad, 1);
    ASSERT_FALSE(a) << bad;
    EXPECT_EQ(a.error().origin(), ErrorOrigin::connection);
    EXPECT_NE(a.error().text().find(bad), std::string::npos);
  }
}

TEST(SocketAddress, ResolveOfNumericAndUnknownNames) {
  EXPECT_EQ(SocketAddress::resolve("[::1]", 5)->text(), "[::1]:5");
  auto unknown = SocketAddress::resolve("no-such-host.invalid", 5);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("no-such-host.invalid"), std::string::npos);
}

TEST(Clock, ManualStandsStillAndSystemDoesNot) {
  ManualClock manual;
  const TimeNs start = manual.now_ns();
  EXPECT_EQ(manual.now_ns(), start);
  manual.advance(ms(3));
  EXPECT_EQ(manual.now_ns(), start + 3'000'000);
  EXPECT_EQ(manual.wall_ns() - manual.now_ns(), 1'700'000'000'000'000'000u);
  const TimeNs before = system_clock().now_ns();
  while (system_clock().now_ns() == before) {
  }
  EXPECT_GT(system_clock().wall_ns(), seconds(1'600'000'000));
  EXPECT_EQ(seconds(2), ms(2000));
  EXPECT_EQ(ms(2), us(2000));
}

TEST(Random, SeededIsRepeatableAndBounded) {
  SeededRandom a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; i++) {
    const uint64_t v = a.next();
    EXPECT_EQ(v, b.next());
    differs |= v != c.next();
  }
  EXPECT_TRUE(differs);
  for (int i = 0; i < 1000; i++) EXPECT_LT(a.below(7), 7u);
  EXPECT_EQ(a.below(0), 0u);
  EXPECT_EQ(a.below(1), 0u);
  std::vector<std::byte> bytes(37);
  SeededRandom(9).fill(bytes);
  std::vector<std::byte> again(40);
  SeededRandom(9).fill({again.data(), 37});
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), again.begin()));
  for (size_t i = 37; i < 40; i++) EXPECT_EQ(again[i], std::byte{0});
  EXPECT_NE(system_random().next(), system_random().next());
}

std::vector<std::string>* lines = nullptr;

TEST(Log, OnlyWhatSomebodyListensTo) {
  std::vector<std::string> got;
  lines = &got;
  log(LogLevel::error, "test", "nobody hears %d", 1);
  set_log([](LogLevel, std::string_view room,
             std::string_view line) { lines->push_back(std::string(room) + ": " + std::string(line)); },
          LogLevel::info);
  EXPECT_TRUE(log_wants(LogLevel::info));
  EXPECT_FALSE(log_wants(LogLevel::debug));
  log(LogLevel::debug, "test", "too low");
  log(LogLevel::warn, "test", "%s has %u", "answer", 42u);
  log_line(LogLevel::trace, "test", "too low");
  log_line(LogLevel::info, "test", "100 % plain");
  set_log(nullptr, LogLevel::trace);
  log(LogLevel::error, "test", "gone");
  EXPECT_EQ(got, (std::vector<std::string>{"test: answer has 42", "test: 100 % plain"}));
  EXPECT_EQ(text("%s-%05d", "a", 7), "a-00007");
  EXPECT_EQ(text("%s", std::string(5000, 'x').c_str()).size(), 5000u);
  EXPECT_EQ(text("%s", ""), "");
}

TEST(Result, ValueErrorAndContext) {
  Result<int> good = 5;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 5);
  Result<int> bad = Error(EIO, ErrorOrigin::server, "it broke", 10008);
  ASSERT_FALSE(bad);
  const Error wrapped = bad.error().in("reading f");
  EXPECT_EQ(wrapped.text(), "reading f: it broke");
  EXPECT_EQ(wrapped.errno_value(), EIO);
  EXPECT_EQ(wrapped.nfs_status(), 10008u);
  EXPECT_EQ(wrapped.origin(), ErrorOrigin::server);
  EXPECT_EQ(Error(1, ErrorOrigin::local).in("x").text(), "x");
  Result<void> done;
  EXPECT_TRUE(done);
  Result<void> failed = wrapped;
  EXPECT_FALSE(failed.ok());
}

struct Counted {
  int* live;
  explicit Counted(int& n) : live(&n) { ++*live; }
  Counted(Counted&& other) noexcept : live(other.live) { ++*live; }
  Counted(const Counted&) = delete;
  ~Counted() { --*live; }
};

TEST(Callback, OwnsMovesAndDestroysItsCaptures) {
  int live = 0;
  {
    Callback<int(int)> empty;
    EXPECT_FALSE(empty);
    Callback<int(int)> f = [c = Counted(live)](int x) { return x + *c.live; };
    EXPECT_EQ(live, 1);
    EXPECT_EQ(f(10), 11);
    Callback<int(int)> g = std::move(f);
    EXPECT_FALSE(f);
    EXPECT_EQ(g(20), 21);
    EXPECT_EQ(live, 1);
    g = [](int x) { return -x; };
    EXPECT_EQ(live, 0);
    EXPECT_EQ(g(3), -3);
    g.reset();
    EXPECT_FALSE(g);
    f = [c = Counted(live)](int) { return 0; };
    EXPECT_EQ(live, 1);
  }
  EXPECT_EQ(live, 0);
  Callback<std::unique_ptr<int>(std::unique_ptr<int>)> pass = [](std::unique_ptr<int> p) { return p; };
  EXPECT_EQ(*pass(std::make_unique<int>(4)), 4);
}

}  // namespace
}  // namespace nfsrdma::base
