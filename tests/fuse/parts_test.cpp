// SPDX-License-Identifier: Apache-2.0
// Parts of the mount that need no mount: attributes, the mount table, processes, coroutines.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attributes.hpp"
#include "in_flight.hpp"
#include "mount_plan.hpp"
#include "task.hpp"

namespace nfsrdma::fuse {
namespace {

TEST(Attributes, KeepTheKernelsShape) {
  Attributes a;
  a.type = NodeType::character;
  a.mode = 04751;
  a.links = 3;
  a.uid = 1, a.gid = 2;
  a.size_bytes = 5000, a.used_bytes = 4097;
  a.rdev_major = 300, a.rdev_minor = 70000;
  a.fileid = 99;
  a.mtime = {-5, 999'999'999};
  struct stat st = to_stat(a, {}, 1 << 20, 1);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFCHR | 04751));
  EXPECT_EQ(st.st_nlink, 2u);
  EXPECT_EQ(st.st_rdev, makedev(300, 70000));
  EXPECT_EQ(st.st_blocks, 9);
  EXPECT_EQ(st.st_blksize, 1 << 20);
  EXPECT_EQ(st.st_ino, 99u);
  EXPECT_EQ(st.st_mtim.tv_sec, -5);
  EXPECT_EQ(st.st_mtim.tv_nsec, 999'999'999);
  a.size_bytes = ~uint64_t{0};
  EXPECT_EQ(to_stat(a, {}, 4096).st_size, INT64_MAX) << "a size that no file can have must not turn negative";
}

TEST(Attributes, EqualFileidsOfTwoFileSystemsAreTwoNumbers) {
  Numbering numbering{7, 8};
  Attributes root, other, third;
  root.fsid_major = 7, root.fsid_minor = 8, root.fileid = 2;
  other.fsid_major = 9, other.fsid_minor = 8, other.fileid = 2;
  third.fsid_major = 9, third.fsid_minor = 10, third.fileid = 2;
  EXPECT_EQ(numbering.number_of(root), 2u);
  EXPECT_NE(numbering.number_of(other), 2u);
  EXPECT_NE(numbering.number_of(other), numbering.number_of(third));
  EXPECT_EQ(numbering.number_of(other), numbering.number_of(other));
}

TEST(Attributes, ModesShowOnlyWhatTheyShow) {
  Attributes a;
  a.uid = 10;
  a.mode = 0641;
  EXPECT_TRUE(mode_shows(a, 10, false, 4));
  EXPECT_FALSE(mode_shows(a, 10, true, 1)) << "the owner's bits count for the owner";
  EXPECT_TRUE(mode_shows(a, 11, true, 4));
  EXPECT_FALSE(mode_shows(a, 11, false, 4));
  EXPECT_TRUE(mode_shows(a, 11, false, 1));
  EXPECT_FALSE(mode_shows(a, 0, false, 4)) << "root's rights are the server's to give";
}

TEST(MountTable, LinesAreParsed) {
  auto entry = parse_mount_line(
      "36 35 0:45 / /data/with\\040space rw,nosuid shared:7 master:1 - fuse.nfsrdma 10.0.0.1:/a\\011b rw,user_id=0");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->device, "0:45");
  EXPECT_EQ(entry->directory, "/data/with space");
  EXPECT_EQ(entry->type, "fuse.nfsrdma");
  EXPECT_EQ(entry->source, "10.0.0.1:/a\tb");
  EXPECT_FALSE(parse_mount_line("36 35 0:45 / /data rw"));
  EXPECT_FALSE(parse_mount_line(""));
  ASSERT_TRUE(find_mount("/proc"));
  EXPECT_EQ(find_mount("/proc")->type, "proc");
}

Options options_with(std::vector<std::string> words) {
  Options o;
  o.host = "fe80::1";
  o.path = "/a,b";
  o.mount_words = std::move(words);
  return o;
}

TEST(MountPlan, WordsBecomeFlags) {
  auto plan = plan_mount(options_with({"noatime", "noexec", "suid", "exec", "default_permissions", "context=a:b"}), "/tmp");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->flags, static_cast<unsigned long>(MS_NODEV | MS_NOATIME));
  EXPECT_EQ(plan->source, "[fe80::1]:/a,b");
  EXPECT_NE(plan->kernel_data.find(",default_permissions"), std::string::npos);
  EXPECT_NE(plan->kernel_data.find(",context=a:b"), std::string::npos);
  EXPECT_NE(plan->helper_options.find("fsname=[fe80::1]:/a\\,b"), std::string::npos);
  for (const char* word : {"remount", "auto_unmount", "allow_root", "unheard_of"})
    EXPECT_FALSE(plan_mount(options_with({word}), "/tmp")) << word;
}

TEST(MountPlan, TheDirectoryIsLookedAt) {
  auto missing = plan_mount(options_with({}), "/no/such/place");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().errno_value(), ENOENT);
  EXPECT_EQ(missing.error().origin(), ErrorOrigin::usage);
  auto file = plan_mount(options_with({}), "/proc/self/status");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().errno_value(), ENOTDIR);
  auto relative = plan_mount(options_with({}), "/tmp/../tmp/.");
  ASSERT_TRUE(relative);
  EXPECT_EQ(relative->directory[0], '/');
  auto passed = plan_mount(options_with({}), "/dev/fd/0");
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->passed_fd, 0);
}

TEST(Processes, SignalsOfOthersAreRead) {
  EXPECT_FALSE(has_sigkill_pending(static_cast<uint32_t>(getpid())));
  EXPECT_FALSE(has_sigkill_pending(0));
  EXPECT_FALSE(is_exiting(static_cast<uint32_t>(getpid())));
  pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_exiting(static_cast<uint32_t>(child))) << "a dead process has PF_EXITING until it is reaped";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_exiting(static_cast<uint32_t>(child)));
}

struct Probe final : InFlight {
  int gave_up = 0;
  void give_up() override { answered = true, gave_up++; }
};

TEST(InFlight, OnlyTheKilledAreGivenUp) {
  WorkCount work;
  InFlightList list(work);
  {
    Probe one, two;
    one.unique = 11, two.unique = 12;
    one.pid = two.pid = static_cast<uint32_t>(getpid());
    list.add(one);
    list.add(two);
    EXPECT_EQ(work.count(), 2u);
    EXPECT_FALSE(list.interrupt(13)) << "another loop's";
    EXPECT_TRUE(list.interrupt(12));
    EXPECT_TRUE(two.interrupted);
    EXPECT_EQ(two.gave_up, 0) << "no SIGKILL is pending";
    EXPECT_TRUE(list.tick()) << "it has to be looked at again";
    two.answered = true;
    EXPECT_FALSE(list.tick());
    EXPECT_FALSE(list.interrupt(12)) << "answered already";
    list.give_up_all();
    EXPECT_EQ(one.gave_up, 1);
  }
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(work.count(), 0u);
}

TEST(InFlight, AnExitingCallersFlushIsGivenUpAfterASecond) {
  WorkCount work;
  InFlightList list(work);
  pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  Probe flush;
  flush.pid = static_cast<uint32_t>(child);
  flush.exit_watch_ticks = 3;
  list.add(flush);
  EXPECT_TRUE(list.tick());
  EXPECT_EQ(flush.gave_up, 0);
  EXPECT_FALSE(list.tick());
  EXPECT_EQ(flush.gave_up, 1);
  waitpid(child, nullptr, 0);
}

Task<int> twice(Wait<int>& wait) {
  Result<int> got = co_await wait;
  co_return got ? *got * 2 : -1;
}

Detached run(Wait<int>& wait, int& out) {
  auto doubling = twice(wait);
  out = co_await doubling;
}

TEST(Coroutines, AnswersComeBeforeOrAfterTheyAreAwaited) {
  int out = 0;
  {
    Wait<int> wait;
    wait.complete(21);
    run(wait, out);
    EXPECT_EQ(out, 42);
  }
  Wait<int> later;
  auto done = later.done();
  run(later, out);
  EXPECT_EQ(out, 42);
  done(Result<int>(5));
  EXPECT_EQ(out, 10);
  Wait<int> failing;
  run(failing, out);
  failing.complete(Error(EIO, ErrorOrigin::server));
  EXPECT_EQ(out, -1);
}

}  // namespace
}  // namespace nfsrdma::fuse
