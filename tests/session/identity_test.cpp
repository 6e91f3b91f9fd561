// SPDX-License-Identifier: Apache-2.0
#include "session/identity.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/random.hpp"

namespace nfsrdma::session {
namespace {

class Identity : public ::testing::Test {
 protected:
  Identity() {
    std::string pattern = ::testing::TempDir() + "/identityXXXXXX";
    dir = mkdtemp(pattern.data());
  }
  ~Identity() override { std::filesystem::remove_all(dir); }

  Result<ClientIdentity> make(const std::string& client_id, const std::string& state_dir) {
    return ClientIdentity::make({client_id, state_dir}, random, clock);
  }

  std::string dir;
  base::SeededRandom random{3};
  base::ManualClock clock;
};

TEST_F(Identity, DefaultDiffersPerProcessAndNamesTheHost) {
  auto a = make("", ""), b = make("", "");
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->owner(), b->owner());
  EXPECT_NE(a->verifier(), b->verifier());
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  EXPECT_NE(a->owner().find(host.data()), std::string::npos);
  EXPECT_GE(a->owner().size(), 32u);
  EXPECT_LE(a->owner().size(), 1024u);
}

TEST_F(Identity, GivenIdIsTakenAndItsLengthIsChecked) {
  auto a = make("node-17", "");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->owner(), "node-17");
  EXPECT_TRUE(make(std::string(1024, 'x'), ""));
  auto too_long = make(std::string(1025, 'x'), "");
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().errno_value(), EINVAL);
  EXPECT_EQ(too_long.error().origin(), ErrorOrigin::usage);
}

TEST_F(Identity, StateDirKeepsTheOwnerButNeverTheVerifier) {
  std::string owner;
  nfs4::Verifier verifier;
  {
    auto first = make("", dir + "/state");
    ASSERT_TRUE(first) << first.error().text();
    owner = first->owner();
    verifier = first->verifier();
  }
  auto second = make("", dir + "/state");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->owner(), owner);
  EXPECT_NE(second->verifier(), verifier);
}

TEST_F(Identity, StateDirIsHeldByOneAtATime) {
  auto holder = make("", dir);
  ASSERT_TRUE(holder);
  auto other = make("", dir);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().errno_value(), EBUSY);
  EXPECT_NE(other.error().text().find(dir), std::string::npos);
  EXPECT_EQ(other.error().text().find('\n'), std::string::npos);
  // The lock moves with the object and goes with it.
  {
    ClientIdentity moved = std::move(*holder);
    EXPECT_FALSE(make("", dir));
  }
  EXPECT_TRUE(make("", dir));
}

TEST_F(Identity, StateDirWorksTogetherWithAGivenId) {
  auto a = make("mine", dir);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->owner(), "mine");
  EXPECT_FALSE(make("mine", dir));
}

TEST_F(Identity, DamagedStateIsReplaced) {
  for (size_t bytes : {size_t{0}, size_t{5000}}) {
    std::ofstream(dir + "/client_id", std::ios::trunc) << std::string(bytes, 'z');
    auto a = make("", dir);
    ASSERT_TRUE(a);
    EXPECT_LE(a->owner().size(), 1024u);
    EXPECT_EQ(a->owner().find("zzz"), std::string::npos);
    std::string owner = a->owner();
    a = make("x", "");  // lets go of the lock
    auto b = make("", dir);
    ASSERT_TRUE(b);
    EXPECT_EQ(b->owner(), owner) << "and what replaced it is kept";
  }
}

TEST_F(Identity, UnusableStateDirIsNamed) {
  std::ofstream(dir + "/file") << "x";
  auto a = make("", dir + "/file");
  ASSERT_FALSE(a);
  EXPECT_NE(a.error().text().find(dir), std::string::npos) << a.error().text();
  EXPECT_FALSE(make("", dir + "/no/such/parent"));
  ASSERT_EQ(symlink("/tmp/elsewhere", (dir + "/client_id").c_str()), 0);
  EXPECT_FALSE(make("", dir)) << "a link planted there is not followed";
}

}  // namespace
}  // namespace nfsrdma::session
