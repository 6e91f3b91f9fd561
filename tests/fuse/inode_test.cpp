// SPDX-License-Identifier: Apache-2.0
#include "inode.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>

#include "client/node_state.hpp"
#include "handles.hpp"

namespace nfsrdma::fuse {
namespace {

// The library's own nodes; it makes them from file handles.
class Nodes {
 public:
  Node make(uint8_t number, uint64_t fsid = 1) {
    std::array<std::byte, 8> bytes{std::byte{number}};
    nfs4::FileHandle handle{std::span<const std::byte>(bytes)};
    return Node(table_->get(handle, nfs4::Fsid{fsid, 0}, number, NodeType::regular));
  }

 private:
  std::shared_ptr<client::NodeTable> table_ = std::make_shared<client::NodeTable>();
};

TEST(InodeTable, OneNumberPerObject) {
  Nodes nodes;
  InodeTable table(nodes.make(1));
  EXPECT_EQ(table.get(1), table.root());
  EXPECT_EQ(table.remember(nodes.make(1)), table.root());
  InodePtr a = table.remember(nodes.make(2)), b = table.remember(nodes.make(3));
  EXPECT_NE(a->id, b->id);
  EXPECT_EQ(table.remember(nodes.make(2)), a);
  EXPECT_EQ(table.find(nodes.make(3)), b);
  EXPECT_EQ(table.find(nodes.make(4)), nullptr);
  EXPECT_NE(table.remember(nodes.make(2, 9))->id, a->id) << "the same handle in another file system";
  EXPECT_EQ(table.get(a->id), a);
  EXPECT_EQ(table.get(0), nullptr);
  EXPECT_EQ(table.get(~uint64_t{0}), nullptr);
}

TEST(InodeTable, ForgetsWhatTheKernelForgets) {
  Nodes nodes;
  InodeTable table(nodes.make(1));
  uint64_t id = table.remember(nodes.make(2))->id;
  table.remember(nodes.make(2));
  table.remember(nodes.make(2));
  table.forget(id, 2);
  EXPECT_NE(table.get(id), nullptr);
  table.forget(id, 1);
  EXPECT_EQ(table.get(id), nullptr);
  EXPECT_EQ(table.find(nodes.make(2)), nullptr);
  EXPECT_NE(table.remember(nodes.make(2))->id, id) << "a number is never used twice";
  table.forget(id, 5);
  table.forget(1, 100);
  EXPECT_EQ(table.get(1), table.root());
  uint64_t more = table.remember(nodes.make(5))->id;
  table.forget(more, 1000);
  EXPECT_EQ(table.get(more), nullptr) << "a count too high is no harm";
  EXPECT_EQ(table.size(), 2u);
}

TEST(InodeTable, ManyThreads) {
  Nodes nodes;
  InodeTable table(nodes.make(1));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; round++) {
        Node node = nodes.make(static_cast<uint8_t>(2 + round % 50));
        InodePtr inode = table.remember(node);
        EXPECT_TRUE(inode->node.same(node));
        EXPECT_EQ(table.get(inode->id), inode);
        table.forget(inode->id, 1);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(table.size(), 1u);
}

TEST(HandleTable, NumbersAreNeverUsedTwice) {
  HandleTable<OpenText> table;
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; i++) {
    uint64_t id = table.add(std::make_shared<OpenText>(OpenText{std::to_string(i)}));
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_EQ(table.get(id)->text, std::to_string(i));
    EXPECT_NE(table.remove(id), nullptr);
    EXPECT_EQ(table.get(id), nullptr);
    EXPECT_EQ(table.remove(id), nullptr);
  }
  EXPECT_TRUE(table.all().empty());
  EXPECT_EQ(table.get(12345), nullptr);
}

}  // namespace
}  // namespace nfsrdma::fuse
