// SPDX-License-Identifier: Apache-2.0
// Data that was acknowledged as durable is on the server, or whoever wrote it hears that it is not.
#include "rig.hpp"

namespace nfsrdma::client::test {
namespace {

class ClientDurable : public BothWays {};
NFSRDMA_BOTH_WAYS(ClientDurable);

Options small_pieces() {
  Options o;
  o.rsize_bytes = o.wsize_bytes = 64u << 10;
  return o;
}

// The write verifier changes behind the data, as after a restart: it is sent again until a COMMIT agrees.
TEST_P(ClientDurable, ChangedVerifierSendsTheDataAgain) {
  for (int every : {3, 5, 9}) {
    SCOPED_TRACE(every);
    Rig rig(rig_params("verifier=" + std::to_string(every)), small_pieces());
    auto data = random_bytes(500'001, 7);
    File file = rig.open("f");
    auto written = rig.mount().write(file, 0, std::span<const std::byte>(data), Stability::unstable);
    ASSERT_TRUE(written) << written.error().text();
    auto synced = rig.mount().sync(file);
    ASSERT_TRUE(synced) << synced.error().text();
    EXPECT_EQ(rig.dir().read("f"), data);
    EXPECT_GT(rig.mount().stats().commits_resent, 0u);
  }
}

TEST_P(ClientDurable, SyncOnOneHandleMakesTheOthersDataDurable) {
  Rig rig(rig_params(), small_pieces());
  File a = rig.open("f"), b = rig.open("f");
  EXPECT_TRUE(a.node().same(b.node()));
  auto data = random_bytes(100'000, 8);
  ASSERT_TRUE(rig.mount().write(a, 0, std::span<const std::byte>(data), Stability::unstable));
  uint64_t held = rig.mount().stats().pool_bytes_used;
  ASSERT_TRUE(rig.mount().sync(b));
  EXPECT_LT(rig.mount().stats().pool_bytes_used, held) << "nothing of a's is kept for sending again";
}

// COMMIT fails: each handle of the file hears of it, once.
TEST_P(ClientDurable, FailedCommitReachesEveryWriter) {
  Rig rig(rig_params("refuse=commit:28"), small_pieces());
  File a = rig.open("f"), b = rig.open("f");
  auto data = random_bytes(10'000, 9);
  ASSERT_TRUE(rig.mount().write(a, 0, std::span<const std::byte>(data), Stability::unstable));
  auto synced = rig.mount().sync(a);
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().errno_value(), ENOSPC);
  EXPECT_TRUE(rig.mount().sync(a));
  auto closed = rig.mount().close(b);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().errno_value(), ENOSPC);
  EXPECT_TRUE(rig.mount().close(a));
}

TEST_P(ClientDurable, FailedWriteReachesTheCallerAtOnce) {
  Rig rig(rig_params("refuse=write:28"), small_pieces());
  File file = rig.open("f");
  auto data = random_bytes(300'000, 10);
  for (Stability stability : {Stability::unstable, Stability::durable}) {
    auto written = rig.mount().write(file, 0, std::span<const std::byte>(data), stability);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().errno_value(), ENOSPC);
  }
  EXPECT_TRUE(rig.mount().close(file));
}

// Durable writes need no sync: they are there when the answer is.
TEST_P(ClientDurable, DurableWritesAreThere) {
  Rig rig(rig_params(), small_pieces());
  for (size_t n : {size_t{10}, size_t{65'536}, size_t{300'001}}) {
    File file = rig.open("f" + std::to_string(n));
    auto data = random_bytes(n, n);
    uint64_t used = rig.mount().stats().pool_bytes_used;
    auto written = rig.mount().write(file, 0, std::span<const std::byte>(data), Stability::durable);
    ASSERT_TRUE(written) << written.error().text();
    EXPECT_EQ(rig.dir().read("f" + std::to_string(n)), data);
    EXPECT_EQ(rig.mount().stats().pool_bytes_used, used);
  }
}

TEST_P(ClientDurable, UnmountingCommitsWhatIsLeft) {
  Rig rig(rig_params(), small_pieces());
  auto data = random_bytes(200'000, 11);
  {
    File file = rig.open("f");
    ASSERT_TRUE(rig.mount().write(file, 0, std::span<const std::byte>(data), Stability::unstable));
  }
  auto ended = rig.mount().shut_down();
  EXPECT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(rig.dir().read("f"), data);
}

TEST_P(ClientDurable, UnmountingTellsOfDataThatCannotBeCommitted) {
  Rig rig(rig_params("refuse=commit:28"), small_pieces());
  auto data = random_bytes(20'000, 12);
  File file = rig.open("f");
  ASSERT_TRUE(rig.mount().write(file, 0, std::span<const std::byte>(data), Stability::unstable));
  auto ended = rig.mount().shut_down();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().errno_value(), ENOSPC);
}

}  // namespace
}  // namespace nfsrdma::client::test
