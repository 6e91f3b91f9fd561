// SPDX-License-Identifier: Apache-2.0
// Handles: of closed, abandoned and forgotten files, and such that outlive their mount. And names, as far as they give
// handles.
#include "rig.hpp"

#include <chrono>
#include <thread>

#include "server/state.hpp"

namespace nfsrdma::client::test {
namespace {

class ClientHandle : public BothWays {};
NFSRDMA_BOTH_WAYS(ClientHandle);

uint64_t calls(Rig& rig, const std::string& op) {
  for (auto& o : rig.mount().stats().operations)
    if (o.name == op) return o.calls;
  return 0;
}

TEST_P(ClientHandle, ClosedFilesAreClosed) {
  Rig rig(rig_params());
  File file = rig.open("f");
  ASSERT_TRUE(rig.mount().close(file));
  auto again = rig.mount().close(file);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().errno_value(), EBADF);
  std::vector<std::byte> memory(10);
  EXPECT_FALSE(rig.mount().read(file, 0, memory));
  EXPECT_FALSE(rig.mount().write(file, 0, std::span<const std::byte>(memory), Stability::durable));
  EXPECT_EQ(calls(rig, "CLOSE"), 1u);
}

TEST_P(ClientHandle, AbandonedFilesAreClosedInTheBackground) {
  Rig rig(rig_params());
  for (int i = 0; i < 20; i++) (void)rig.open("f" + std::to_string(i));
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (calls(rig, "CLOSE") < 20 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_EQ(calls(rig, "CLOSE"), 20u);
}

// What is still open when the mount ends is closed: the server is left with no state of ours.
TEST_P(ClientHandle, UnmountingClosesWhatIsOpen) {
  Rig rig(rig_params());
  std::vector<File> files;
  for (int i = 0; i < 5; i++) files.push_back(rig.open("f" + std::to_string(i)));
  ASSERT_TRUE(rig.mount().shut_down());
  auto left = rig.host().server().state().counts();
  EXPECT_EQ(left.opens, 0u);
  EXPECT_EQ(left.sessions, 0u);
  EXPECT_EQ(left.clients, 0u);
}

TEST_P(ClientHandle, HandlesOutliveTheMount) {
  Rig rig(rig_params());
  File file = rig.open("f");
  auto data = random_bytes(5'000, 1);
  ASSERT_TRUE(rig.mount().write(file, 0, std::span<const std::byte>(data), Stability::unstable));
  Node root = rig.mount().root(), node = file.node();
  rig.unmount();
  EXPECT_NE(node.key(), 0u);
  EXPECT_FALSE(node.same(root));
  File copy = file;
  file = File();
  copy = File();
  node = Node();
  EXPECT_EQ(rig.dir().read("f"), data);
}

TEST_P(ClientHandle, CallsAfterTheEndAreErrors) {
  Rig rig(rig_params());
  File file = rig.open("f");
  Credentials who = rig.who();
  ASSERT_TRUE(rig.mount().shut_down());
  std::vector<std::byte> memory(10);
  EXPECT_FALSE(rig.mount().read(file, 0, memory));
  EXPECT_FALSE(rig.mount().lookup(rig.mount().root(), "f", who));
  Waiting<void> waiting;
  rig.mount().sync(file, waiting.done());
  EXPECT_FALSE(waiting.take());
  EXPECT_TRUE(rig.mount().shut_down()) << "again is no error";
  (void)rig.mount().info();
  (void)rig.mount().stats();
}

TEST_P(ClientHandle, TwoLookupsGiveTheSameNode) {
  Rig rig(rig_params());
  rig.dir().write("f", random_bytes(10, 1));
  auto a = rig.mount().lookup(rig.mount().root(), "f", rig.who());
  auto b = rig.mount().lookup(rig.mount().root(), "f", rig.who());
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(a->node.same(b->node));
  EXPECT_EQ(a->node.key(), b->node.key());
}

// Truncation goes by OPEN; a file of the same name that is made exclusively must not be there.
TEST_P(ClientHandle, OpenFlags) {
  Rig rig(rig_params());
  rig.dir().write("f", random_bytes(1000, 1));
  auto entry = rig.mount().lookup(rig.mount().root(), "f", rig.who());
  ASSERT_TRUE(entry);
  auto opened = rig.mount().open(entry->node, open_write | open_truncate, rig.who());
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_EQ(opened->attributes.size_bytes, 0u);
  EXPECT_FALSE(opened->created);
  auto made = rig.mount().create(rig.mount().root(), "f", open_write | open_exclusive, 0600, rig.who());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().errno_value(), EEXIST);
  made = rig.mount().create(rig.mount().root(), "g", open_write | open_exclusive, 0640, rig.who());
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->attributes.mode, 0640u);
  EXPECT_FALSE(rig.mount().open(entry->node, 0, rig.who()));
  // A handle for reading alone does not write.
  auto reader = rig.mount().open(entry->node, open_read, rig.who());
  ASSERT_TRUE(reader);
  std::vector<std::byte> bytes(3);
  EXPECT_FALSE(rig.mount().write(reader->file, 0, std::span<const std::byte>(bytes), Stability::durable));
}

}  // namespace
}  // namespace nfsrdma::client::test
