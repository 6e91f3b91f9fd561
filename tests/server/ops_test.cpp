// SPDX-License-Identifier: Apache-2.0
// Operations on files and directories as clients send them: what each does, and with what it refuses.
#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "server/identity.hpp"
#include "tests/server/harness.hpp"

namespace nfsrdma::server::testing {
namespace {

constexpr uint32_t user_id = 1000;
constexpr uint64_t offset_max = INT64_MAX;

class OpsTest : public ::testing::Test {
 protected:
  void start(const PosixParams& posix = {}, bool root_squash = false) {
    client.reset();
    rig.reset();
    rig = std::make_unique<Rig>(dir, ServerParams{}, posix, nullptr, root_squash);
    client = std::make_unique<TestClient>(*rig, "c");
    client->establish();
  }
  // Makes everything until the end of the test come from this user.
  void become(uint32_t uid) {
    client->options.uid = client->options.gid = uid;
    client->options.groups.clear();
  }
  FileHandle handle_of(const std::string& path) {
    FileHandle fh = root();
    for (const auto& part : std::filesystem::path(path)) {
      LookupArgs args;
      std::string name = part.string();
      args.name = name;
      Reply reply = client->run(putfh(fh), args, GetfhArgs{});
      EXPECT_EQ(reply.status(), Status::ok) << path;
      if (reply.status() != Status::ok) return {};
      fh = reply.skip<PutfhResult, LookupResult>().next<GetfhResult>().fh;
    }
    return fh;
  }
  FileHandle root() {
    Reply reply = client->run(PutrootfhArgs{}, GetfhArgs{});
    return reply.skip<PutrootfhResult>().next<GetfhResult>().fh;
  }
  Status lookup(const std::string& name) {
    LookupArgs args;
    args.name = name;
    return client->run(PutrootfhArgs{}, args).status();
  }
  Reply open(const std::string& name, CreateMode mode, const Fattr& attributes, const Verifier& verifier = {},
             uint32_t access = share::access_both) {
    OpenArgs args;
    args.share_access = access;
    args.owner.owner = base::bytes_of("o");
    args.claim.name = name;
    args.how = {OpenType::create, mode, attributes, verifier};
    return client->run(PutrootfhArgs{}, args);
  }
  Status create(FileType type, const std::string& name, const Fattr& attributes = {}, const std::string& text = "to",
                Device device = {}) {
    CreateArgs args;
    args.type = type;
    args.name = name;
    args.link_text = xdr::DdpItem::of(base::bytes_of(text));
    args.device = device;
    args.attributes = attributes;
    return client->run(PutrootfhArgs{}, args).status();
  }
  Status set(const FileHandle& fh, const Fattr& attributes, const Stateid& stateid = anonymous_stateid) {
    SetattrArgs args;
    args.stateid = stateid;
    args.attributes = attributes;
    return client->run(putfh(fh), args).status();
  }
  Status set(const std::string& path, const Fattr& attributes) { return set(handle_of(path), attributes); }
  Status remove(const std::string& name) {
    RemoveArgs args;
    args.name = name;
    return client->run(PutrootfhArgs{}, args).status();
  }
  Status rename(const FileHandle& from_dir, const std::string& from, const FileHandle& to_dir, const std::string& to) {
    RenameArgs args;
    args.old_name = from;
    args.new_name = to;
    return client->run(putfh(from_dir), SavefhArgs{}, putfh(to_dir), args).status();
  }
  Status rename(const std::string& from, const std::string& to) { return rename(root(), from, root(), to); }
  Status link(const FileHandle& file, const std::string& name) {
    LinkArgs args;
    args.new_name = name;
    return client->run(putfh(file), SavefhArgs{}, PutrootfhArgs{}, args).status();
  }
  Reply read(const FileHandle& fh, uint64_t offset, uint32_t count) {
    ReadArgs args;
    args.offset = offset;
    args.count = count;
    return client->run(putfh(fh), args);
  }
  Reply write(const FileHandle& fh, uint64_t offset, const std::string& text) {
    WriteArgs args;
    args.offset = offset;
    args.data = xdr::DdpItem::of(base::bytes_of(text));
    return client->run(putfh(fh), args);
  }
  Reply readdir(const FileHandle& fh, uint64_t cookie, uint32_t maxcount, uint32_t dircount = 0,
                const Bitmap& mask = {}) {
    ReaddirArgs args;
    args.cookie = cookie;
    args.maxcount_bytes = maxcount;
    args.dircount_bytes = dircount;
    args.mask = mask;
    return client->run(putfh(fh), args);
  }
  struct stat status_of(const std::string& name) {
    struct stat st {};
    EXPECT_EQ(lstat(dir.path(name).c_str(), &st), 0) << name;
    return st;
  }
  uint32_t mode_of(const std::string& name) { return status_of(name).st_mode & 07777; }
  void make(const std::string& name, uint32_t mode, uint32_t uid, const std::string& text = "text") {
    dir.write(name, text);
    EXPECT_EQ(chown(dir.path(name).c_str(), uid, uid), 0);
    EXPECT_EQ(chmod(dir.path(name).c_str(), mode), 0);
  }

  TempDir dir;
  std::unique_ptr<Rig> rig;
  std::unique_ptr<TestClient> client;
};

AttributeSet owner(const std::string& uid) {
  Attributes a;
  a.owner = uid;
  return AttributeSet({attr::owner}, a);
}
AttributeSet group(const std::string& gid) {
  Attributes a;
  a.owner_group = gid;
  return AttributeSet({attr::owner_group}, a);
}
AttributeSet modified(TimeHow how, Time time) {
  Attributes a;
  a.time_modify_set = {how, time};
  return AttributeSet({attr::time_modify_set}, a);
}

TEST_F(OpsTest, NamesThatAreNone) {
  dir.write("f", "");
  start();
  const std::pair<std::string, Status> cases[] = {{"", Status::inval},
                                                  {".", Status::badname},
                                                  {"..", Status::badname},
                                                  {"a/b", Status::badchar},
                                                  {"/", Status::badchar},
                                                  {std::string("a\0b", 3), Status::badchar},
                                                  {std::string(256, 'n'), Status::nametoolong}};
  for (const auto& [name, status] : cases) {
    EXPECT_EQ(lookup(name), status) << name;
    EXPECT_EQ(create(FileType::directory, name), status) << name;
    EXPECT_EQ(remove(name), status) << name;
    EXPECT_EQ(rename("f", name), status) << name;
    EXPECT_EQ(rename(name, "f"), status) << name;
    EXPECT_EQ(link(handle_of("f"), name), status) << name;
    AttributeSet mode = AttributeSet::mode(0600);
    EXPECT_EQ(open(name, CreateMode::unchecked, mode.fattr).status(), status) << name;
  }
  std::string longest(255, 'n');
  EXPECT_EQ(lookup(longest), Status::noent);
  EXPECT_EQ(create(FileType::directory, longest), Status::ok);
  // What is no UTF-8 and what looks odd are names like others.
  for (const char* name : {"\xff\xfe", "...", " ", "-", "a\nb", "\\"}) {
    EXPECT_EQ(create(FileType::directory, name), Status::ok) << name;
    EXPECT_EQ(lookup(name), Status::ok) << name;
  }
  LookupArgs below;
  below.name = "x";
  EXPECT_EQ(client->run(putfh(handle_of("f")), below).status(), Status::notdir);
}

TEST_F(OpsTest, UncheckedCreateTakesWhatIsThere) {
  start();
  AttributeSet mode = AttributeSet::mode(0640);
  ASSERT_EQ(open("f", CreateMode::unchecked, mode.fattr).status(), Status::ok);
  EXPECT_EQ(mode_of("f"), 0640u);
  dir.write("f", "hello");
  // Another mode changes nothing, and nor does a size other than 0.
  AttributeSet other = AttributeSet::mode(0600);
  Reply reply = open("f", CreateMode::unchecked, other.fattr);
  ASSERT_EQ(reply.status(), Status::ok);
  EXPECT_TRUE(reply.skip<PutrootfhResult>().next<OpenResult>().attributes_set.none());
  EXPECT_EQ(mode_of("f"), 0640u);
  AttributeSet longer = AttributeSet::size(3);
  EXPECT_EQ(open("f", CreateMode::unchecked, longer.fattr).status(), Status::ok);
  EXPECT_EQ(dir.read("f"), "hello");
  AttributeSet nothing = AttributeSet::size(0);
  EXPECT_EQ(open("f", CreateMode::unchecked, nothing.fattr).status(), Status::ok);
  EXPECT_EQ(dir.read("f"), "");
}

TEST_F(OpsTest, GuardedCreateIsTheOnlyOne) {
  start();
  AttributeSet mode = AttributeSet::mode(0600);
  EXPECT_EQ(open("f", CreateMode::guarded, mode.fattr).status(), Status::ok);
  EXPECT_EQ(open("f", CreateMode::guarded, mode.fattr).status(), Status::exist);
  ASSERT_EQ(symlink("nowhere", dir.path("l").c_str()), 0);
  EXPECT_EQ(open("l", CreateMode::guarded, mode.fattr).status(), Status::exist);
  EXPECT_EQ(open("l", CreateMode::unchecked, mode.fattr).status(), Status::symlink);
  EXPECT_FALSE(std::filesystem::exists(dir.path("nowhere")));
}

TEST_F(OpsTest, ExclusiveCreateIsFoundAgainByItsVerifier) {
  start();
  Verifier verifier{std::byte{0xff}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{0x80}};
  AttributeSet mode = AttributeSet::mode(0604);
  ASSERT_EQ(open("f", CreateMode::exclusive4_1, mode.fattr, verifier).status(), Status::ok);
  EXPECT_EQ(mode_of("f"), 0604u);
  EXPECT_EQ(open("f", CreateMode::exclusive4_1, mode.fattr, verifier).status(), Status::ok);
  Verifier other = verifier;
  other[1] = std::byte{9};
  EXPECT_EQ(open("f", CreateMode::exclusive4_1, mode.fattr, other).status(), Status::exist);
  // Once it holds data it is no longer what the create made.
  dir.write("f", "x");
  EXPECT_EQ(open("f", CreateMode::exclusive4_1, mode.fattr, verifier).status(), Status::exist);
  // A size that came along belongs to what the create made.
  AttributeSet sized = AttributeSet::size(5);
  ASSERT_EQ(open("g", CreateMode::exclusive4_1, sized.fattr, verifier).status(), Status::ok);
  EXPECT_EQ(status_of("g").st_size, 5);
  EXPECT_EQ(open("g", CreateMode::exclusive4_1, sized.fattr, verifier).status(), Status::ok);
  EXPECT_EQ(open("h", CreateMode::exclusive, {}, verifier).status(), Status::ok);
  EXPECT_EQ(open("h", CreateMode::exclusive, {}, verifier).status(), Status::ok);
}

TEST_F(OpsTest, AFileIsMadeWithAModeThatForbidsItsUse) {
  if (!can_assume_identity()) GTEST_SKIP() << "needs root";
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  start();
  become(user_id);
  AttributeSet none = AttributeSet::mode(0);
  EXPECT_EQ(open("f", CreateMode::guarded, none.fattr).status(), Status::ok);
  EXPECT_EQ(mode_of("f"), 0u);
  EXPECT_EQ(status_of("f").st_uid, user_id);
  // Whoever comes later meets the mode.
  EXPECT_EQ(client->open("f", share::access_read, 0, false).status, Status::access);
}

TEST_F(OpsTest, CreatesEachType) {
  start();
  AttributeSet mode = AttributeSet::mode(0750);
  EXPECT_EQ(create(FileType::directory, "d", mode.fattr), Status::ok);
  EXPECT_TRUE(S_ISDIR(status_of("d").st_mode));
  EXPECT_EQ(mode_of("d"), 0750u);
  EXPECT_EQ(create(FileType::symlink, "l", {}, "../over/there"), Status::ok);
  EXPECT_EQ(std::filesystem::read_symlink(dir.path("l")), "../over/there");
  EXPECT_EQ(create(FileType::fifo, "p", mode.fattr), Status::ok);
  EXPECT_TRUE(S_ISFIFO(status_of("p").st_mode));
  EXPECT_EQ(mode_of("p"), 0750u);
  EXPECT_EQ(create(FileType::socket, "s"), Status::ok);
  EXPECT_TRUE(S_ISSOCK(status_of("s").st_mode));
  if (can_assume_identity()) {
    EXPECT_EQ(create(FileType::character, "c", mode.fattr, {}, {1, 3}), Status::ok);
    EXPECT_TRUE(S_ISCHR(status_of("c").st_mode));
    EXPECT_EQ(status_of("c").st_rdev, (1u << 8) + 3u);
    EXPECT_EQ(create(FileType::block, "b", mode.fattr, {}, {7, 9}), Status::ok);
    EXPECT_TRUE(S_ISBLK(status_of("b").st_mode));
  }
  EXPECT_EQ(create(FileType::regular, "f"), Status::badtype);
  EXPECT_EQ(create(static_cast<FileType>(99), "f"), Status::badtype);
  EXPECT_EQ(create(FileType::directory, "d"), Status::exist);
  EXPECT_EQ(create(FileType::symlink, "l"), Status::exist);
  EXPECT_EQ(create(FileType::symlink, "m", {}, ""), Status::inval);
  EXPECT_EQ(create(FileType::symlink, "m", {}, std::string("a\0b", 3)), Status::inval);
  EXPECT_EQ(create(FileType::symlink, "m", {}, std::string(4096, 'a')), Status::nametoolong);
  EXPECT_EQ(create(FileType::symlink, "m", {}, std::string(4095, 'a')), Status::ok);
}

TEST_F(OpsTest, WhatCannotBeSetLeavesNothingBehind) {
  if (!can_assume_identity()) GTEST_SKIP() << "needs root";
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  start();
  become(user_id);
  AttributeSet to_root = owner("0");
  EXPECT_EQ(create(FileType::directory, "d", to_root.fattr), Status::perm);
  EXPECT_EQ(create(FileType::symlink, "l", to_root.fattr), Status::perm);
  EXPECT_EQ(open("f", CreateMode::guarded, to_root.fattr).status(), Status::perm);
  EXPECT_EQ(create(FileType::character, "c", {}, {}, {1, 3}), Status::perm);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST_F(OpsTest, SetsSizeModeAndTimes) {
  dir.write("f", "hello");
  std::filesystem::create_directory(dir.path("d"));
  start();
  FileHandle f = handle_of("f");
  EXPECT_EQ(set(f, AttributeSet::size(3).fattr), Status::ok);
  EXPECT_EQ(dir.read("f"), "hel");
  EXPECT_EQ(set(f, AttributeSet::size(5).fattr), Status::ok);
  EXPECT_EQ(dir.read("f"), std::string("hel\0\0", 5));
  EXPECT_EQ(set(f, AttributeSet::size(offset_max + 1).fattr), Status::fbig);
  EXPECT_EQ(set(f, AttributeSet::size(UINT64_MAX).fattr), Status::fbig);
  EXPECT_EQ(status_of("f").st_size, 5);
  EXPECT_EQ(set("d", AttributeSet::size(0).fattr), Status::isdir);
  EXPECT_EQ(set(f, AttributeSet::mode(0123).fattr), Status::ok);
  EXPECT_EQ(mode_of("f"), 0123u);
  EXPECT_EQ(set(f, AttributeSet::mode(010000).fattr), Status::inval);
  EXPECT_EQ(set(f, modified(TimeHow::client_time, {-5, 7}).fattr), Status::ok);
  EXPECT_EQ(status_of("f").st_mtim.tv_sec, -5);
  EXPECT_EQ(status_of("f").st_mtim.tv_nsec, 7);
  EXPECT_EQ(set(f, modified(TimeHow::client_time, {1, 1000000000}).fattr), Status::inval);
  EXPECT_EQ(set(f, modified(TimeHow::server_time, {}).fattr), Status::ok);
  EXPECT_GT(status_of("f").st_mtim.tv_sec, 1000000000);
  // Nothing to set is no failure; what only the server sets is one, and so is what nobody knows.
  EXPECT_EQ(set(f, {}), Status::ok);
  Attributes values;
  AttributeSet fileid({attr::fileid}, values);
  EXPECT_EQ(set(f, fileid.fattr), Status::inval);
  Fattr unknown;
  unknown.mask.set(60);
  EXPECT_EQ(set(f, unknown), Status::attrnotsupp);
  // A value that ends too early, and one with something behind it.
  AttributeSet mode = AttributeSet::mode(0600);
  Fattr cut = mode.fattr;
  cut.values = cut.values.first(0);
  EXPECT_EQ(set(f, cut), Status::badxdr);
  Fattr more = AttributeSet::size(0).fattr;
  std::array<std::byte, 8> bytes{};
  more.mask = mode.fattr.mask;
  more.values = bytes;
  EXPECT_EQ(set(f, more), Status::badxdr);
}

TEST_F(OpsTest, SetsOwnersByNumber) {
  if (!can_assume_identity()) GTEST_SKIP() << "needs root";
  make("f", 0644, user_id);
  start();
  FileHandle f = handle_of("f");
  EXPECT_EQ(set(f, owner("1234").fattr), Status::ok);
  EXPECT_EQ(set(f, group("4321").fattr), Status::ok);
  EXPECT_EQ(status_of("f").st_uid, 1234u);
  EXPECT_EQ(status_of("f").st_gid, 4321u);
  for (const char* text : {"", "x", "-1", "12x", "root@example.org", "4294967296", " 5"}) {
    EXPECT_EQ(set(f, owner(text).fattr), Status::badowner) << text;
  }
  become(user_id);
  EXPECT_EQ(set(f, owner("1000").fattr), Status::perm);
  EXPECT_EQ(set(f, AttributeSet::mode(0666).fattr), Status::perm);
  EXPECT_EQ(set(f, AttributeSet::size(0).fattr), Status::access);
  EXPECT_EQ(dir.read("f"), "text");
}

TEST_F(OpsTest, RemovesFilesAndEmptyDirectories) {
  std::filesystem::create_directories(dir.path("d/e"));
  dir.write("f", "x");
  start();
  EXPECT_EQ(remove("d"), Status::notempty);
  EXPECT_EQ(remove("none"), Status::noent);
  EXPECT_EQ(remove("f"), Status::ok);
  EXPECT_EQ(remove("f"), Status::noent);
  RemoveArgs args;
  args.name = "e";
  EXPECT_EQ(client->run(putfh(handle_of("d")), args).status(), Status::ok);
  EXPECT_EQ(remove("d"), Status::ok);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST_F(OpsTest, RenamesOverWhatIsThere) {
  std::filesystem::create_directories(dir.path("d/e/deep"));
  std::filesystem::create_directory(dir.path("empty"));
  dir.write("a", "a");
  dir.write("b", "b");
  start();
  FileHandle old = handle_of("b");
  EXPECT_EQ(rename("a", "b"), Status::ok);
  EXPECT_EQ(dir.read("b"), "a");
  EXPECT_EQ(client->run(putfh(old)).status(), Status::stale);
  EXPECT_EQ(rename("none", "b"), Status::noent);
  EXPECT_EQ(rename("b", "b"), Status::ok);
  // Into itself and below itself.
  EXPECT_EQ(rename(root(), "d", handle_of("d"), "d"), Status::inval);
  EXPECT_EQ(rename(root(), "d", handle_of("d/e/deep"), "x"), Status::inval);
  // Only an empty directory gives way, and only to a directory.
  EXPECT_EQ(rename("empty", "d"), Status::notempty);
  EXPECT_EQ(rename("b", "d"), Status::exist);
  EXPECT_EQ(rename("d", "b"), Status::exist);
  EXPECT_EQ(rename(handle_of("d"), "e", root(), "empty"), Status::ok);
  EXPECT_TRUE(std::filesystem::exists(dir.path("empty/deep")));
  // Over another name of the same file nothing happens (POSIX, RFC 8881, 18.26.3).
  EXPECT_EQ(link(handle_of("b"), "c"), Status::ok);
  EXPECT_EQ(rename("b", "c"), Status::ok);
  EXPECT_EQ(rename(handle_of("b"), "x", root(), "y"), Status::notdir);
  EXPECT_EQ(client->run(PutrootfhArgs{}, RenameArgs{}).status(), Status::nofilehandle);
}

TEST_F(OpsTest, LinksAndReadsLinks) {
  std::filesystem::create_directory(dir.path("d"));
  std::filesystem::create_symlink("some/where", dir.path("l"));
  dir.write("f", "x");
  start();
  EXPECT_EQ(link(handle_of("f"), "g"), Status::ok);
  EXPECT_EQ(status_of("f").st_ino, status_of("g").st_ino);
  EXPECT_EQ(handle_of("f"), handle_of("g"));
  EXPECT_EQ(link(handle_of("f"), "g"), Status::exist);
  EXPECT_EQ(link(handle_of("d"), "e"), Status::isdir);
  EXPECT_EQ(link(handle_of("l"), "m"), Status::ok);
  EXPECT_EQ(std::filesystem::read_symlink(dir.path("m")), "some/where");
  Reply text = client->run(putfh(handle_of("l")), ReadlinkArgs{});
  EXPECT_EQ(text.status(), Status::ok);
  EXPECT_EQ(text.payload(), "some/where");
  EXPECT_EQ(client->run(putfh(handle_of("f")), ReadlinkArgs{}).status(), Status::wrong_type);
  EXPECT_EQ(client->run(putfh(handle_of("d")), ReadlinkArgs{}).status(), Status::wrong_type);
}

TEST_F(OpsTest, ReadsToTheEndAndBehindIt) {
  dir.write("f", "0123456789");
  std::filesystem::create_directory(dir.path("d"));
  start();
  FileHandle f = handle_of("f");
  struct Case {
    uint64_t offset;
    uint32_t count;
    const char* text;
    bool eof;
  };
  for (const Case& c : {Case{0, 4, "0123", false}, Case{0, 10, "0123456789", true}, Case{8, UINT32_MAX, "89", true},
                        Case{10, 1, "", true}, Case{1000, 10, "", true}, Case{0, 0, "", false}, Case{10, 0, "", true},
                        Case{offset_max, 10, "", true}, Case{offset_max - 1, 10, "", true},
                        Case{offset_max + 1, 1, "", true}, Case{UINT64_MAX, UINT32_MAX, "", true}}) {
    Reply reply = read(f, c.offset, c.count);
    ASSERT_EQ(reply.status(), Status::ok) << c.offset;
    EXPECT_EQ(reply.payload(), c.text) << c.offset;
    EXPECT_EQ(reply.skip<PutfhResult>().next<ReadResult>().eof, c.eof) << c.offset;
  }
  EXPECT_EQ(read(handle_of("d"), 0, 1).status(), Status::isdir);
}

TEST_F(OpsTest, WritesNoFurtherThanAFileCanReach) {
  dir.write("f", "0123");
  std::filesystem::create_directory(dir.path("d"));
  start();
  FileHandle f = handle_of("f");
  EXPECT_EQ(write(f, 2, "xyz").skip<PutfhResult>().next<WriteResult>().count, 3u);
  EXPECT_EQ(dir.read("f"), "01xyz");
  EXPECT_EQ(write(f, 100, "").skip<PutfhResult>().next<WriteResult>().count, 0u);
  EXPECT_EQ(dir.read("f"), "01xyz");
  for (uint64_t offset : {offset_max - 1, offset_max, offset_max + 1, UINT64_MAX - 1, UINT64_MAX}) {
    EXPECT_EQ(write(f, offset, "xyz").status(), Status::fbig) << offset;
  }
  EXPECT_EQ(status_of("f").st_size, 5);
  EXPECT_EQ(write(handle_of("d"), 0, "x").status(), Status::isdir);
  CommitArgs commit;
  commit.offset = UINT64_MAX;
  commit.count = 2;
  EXPECT_EQ(client->run(putfh(f), commit).status(), Status::inval);
}

std::vector<std::string> names_of(Reply reply, uint64_t& cookie, bool& eof) {
  ReaddirResult result = reply.skip<PutfhResult>().next<ReaddirResult>();
  std::vector<std::string> names;
  for (const DirEntry& entry : result.entries) {
    names.emplace_back(entry.name);
    cookie = entry.cookie;
  }
  eof = result.eof;
  return names;
}

TEST_F(OpsTest, ListsADirectoryThatChangesMeanwhile) {
  std::set<std::string> staying;
  for (int i = 0; i < 200; ++i) {
    staying.insert("stay" + std::to_string(i));
    dir.write("stay" + std::to_string(i), "");
    dir.write("go" + std::to_string(i), "");
  }
  start();
  FileHandle top = root();
  std::multiset<std::string> seen;
  uint64_t cookie = 0;
  bool eof = false;
  for (int round = 0; !eof; ++round) {
    Reply reply = readdir(top, cookie, 600, 0, {attr::fileid, attr::rdattr_error});
    ASSERT_EQ(reply.status(), Status::ok);
    EXPECT_LE(reply.caught().results.size(), 700u);
    std::vector<std::string> names = names_of(reply, cookie, eof);
    ASSERT_TRUE(eof || !names.empty());
    seen.insert(names.begin(), names.end());
    remove("go" + std::to_string(round));
    dir.write("new" + std::to_string(round), "");
    ASSERT_LT(round, 1000);
  }
  for (const std::string& name : staying) EXPECT_EQ(seen.count(name), 1u) << name;
  for (const std::string& name : seen) EXPECT_EQ(seen.count(name), 1u) << name;
}

TEST_F(OpsTest, ListsWithinWhateverLimitsAreGiven) {
  for (int i = 0; i < 50; ++i) dir.write(std::string(200, 'n') + std::to_string(i), "");
  std::filesystem::create_directory(dir.path("empty"));
  dir.write("f", "");
  start();
  FileHandle top = root();
  for (uint32_t maxcount : {0u, 1u, 15u, 16u, 17u, 60u}) {
    EXPECT_EQ(readdir(top, 0, maxcount).status(), Status::toosmall) << maxcount;
  }
  uint64_t cookie = 0;
  bool eof = false;
  for (uint32_t dircount : {0u, 1u, UINT32_MAX}) {
    EXPECT_EQ(names_of(readdir(top, 0, UINT32_MAX, dircount), cookie, eof).size(), 52u);
    EXPECT_TRUE(eof);
  }
  // The end again, and again.
  EXPECT_TRUE(names_of(readdir(top, cookie, 4096), cookie, eof).empty());
  EXPECT_TRUE(eof);
  EXPECT_TRUE(names_of(readdir(handle_of("empty"), 0, 17), cookie, eof).empty());
  EXPECT_TRUE(eof);
  EXPECT_EQ(readdir(top, 1, 4096).status(), Status::bad_cookie);
  EXPECT_EQ(readdir(top, 2, 4096).status(), Status::bad_cookie);
  // Cookies that nobody gave: refused or some place in the directory, never anything else.
  for (uint64_t made_up : {uint64_t{3}, uint64_t{12345}, offset_max, offset_max + 1, UINT64_MAX, uint64_t{1} << 62}) {
    Status s = readdir(top, made_up, 65536).status();
    EXPECT_TRUE(s == Status::ok || s == Status::bad_cookie) << made_up << ": " << to_string(s);
  }
  EXPECT_EQ(readdir(handle_of("f"), 0, 4096).status(), Status::notdir);
  Bitmap write_only{attr::time_modify_set};
  EXPECT_EQ(readdir(top, 0, 4096, 0, write_only).status(), Status::inval);
}

TEST_F(OpsTest, HandlesThatAreForgedOrStale) {
  dir.write("f", "x");
  std::filesystem::create_directory(dir.path("d"));
  start();
  FileHandle good = handle_of("f");
  for (uint32_t at = 0; at < good.data.size; ++at) {
    FileHandle forged = good;
    forged.data.bytes[at] ^= std::byte{0x40};
    Status s = client->run(putfh(forged)).status();
    EXPECT_TRUE(s == Status::badhandle || s == Status::stale) << "byte " << at << ": " << to_string(s);
  }
  FileHandle none;
  EXPECT_EQ(client->run(putfh(none)).status(), Status::badhandle);
  FileHandle longest;
  longest.data.size = static_cast<uint32_t>(longest.data.bytes.size());
  EXPECT_EQ(client->run(putfh(longest)).status(), Status::badhandle);
  FileHandle gone = handle_of("d");
  ASSERT_EQ(remove("f"), Status::ok);
  ASSERT_EQ(remove("d"), Status::ok);
  EXPECT_EQ(client->run(putfh(good)).status(), Status::stale);
  EXPECT_EQ(client->run(putfh(gone)).status(), Status::stale);
}

TEST_F(OpsTest, NoWayLeadsOut) {
  std::filesystem::create_directory(dir.path("export"));
  dir.write("secret", "secret");
  std::filesystem::create_symlink("../secret", dir.path("export/out"));
  std::filesystem::create_directory_symlink("..", dir.path("export/up"));
  PosixParams posix;
  posix.directory = dir.path("export");
  start(posix);
  EXPECT_EQ(client->run(PutrootfhArgs{}, LookuppArgs{}).status(), Status::noent);
  LookupArgs secret;
  secret.name = "secret";
  EXPECT_EQ(client->run(putfh(handle_of("up")), secret).status(), Status::symlink);
  EXPECT_EQ(client->run(putfh(handle_of("up")), LookuppArgs{}).status(), Status::symlink);
  EXPECT_EQ(readdir(handle_of("up"), 0, 4096).status(), Status::notdir);
  FileHandle out = handle_of("out");
  EXPECT_EQ(read(out, 0, 100).status(), Status::wrong_type);
  EXPECT_EQ(write(out, 0, "x").status(), Status::wrong_type);
  EXPECT_EQ(set(out, AttributeSet::size(0).fattr), Status::inval);
  EXPECT_EQ(client->open("out", share::access_both, 0, false).status, Status::symlink);
  EXPECT_EQ(client->open("out", share::access_both, 0, true).status, Status::symlink);
  // Attributes are the link's own.
  struct stat before {};
  ASSERT_EQ(stat(dir.path("secret").c_str(), &before), 0);
  EXPECT_NE(set(out, AttributeSet::mode(0).fattr), Status::ok);
  set(out, owner("1").fattr);
  set(out, modified(TimeHow::client_time, {5, 0}).fattr);
  struct stat after {};
  ASSERT_EQ(stat(dir.path("secret").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_mtime, before.st_mtime);
  EXPECT_EQ(dir.read("secret"), "secret");
  // A name below a link, as a target too.
  EXPECT_EQ(rename(root(), "out", handle_of("up"), "x"), Status::notdir);
}

TEST_F(OpsTest, ReadOnlyRefusesEachChange) {
  dir.write("f", "x");
  std::filesystem::create_directory(dir.path("d"));
  PosixParams posix;
  posix.read_only = true;
  start(posix);
  FileHandle f = handle_of("f");
  AttributeSet mode = AttributeSet::mode(0600);
  EXPECT_EQ(open("new", CreateMode::unchecked, mode.fattr).status(), Status::rofs);
  EXPECT_EQ(open("f", CreateMode::guarded, mode.fattr).status(), Status::rofs);
  EXPECT_EQ(client->open("f", share::access_write, 0, false).status, Status::rofs);
  EXPECT_EQ(client->open("f", share::access_read, 0, false).status, Status::ok);
  for (FileType type : {FileType::directory, FileType::symlink, FileType::fifo, FileType::socket, FileType::block}) {
    EXPECT_EQ(create(type, "new"), Status::rofs);
  }
  EXPECT_EQ(set(f, mode.fattr), Status::rofs);
  EXPECT_EQ(set(f, AttributeSet::size(0).fattr), Status::rofs);
  EXPECT_EQ(remove("f"), Status::rofs);
  EXPECT_EQ(remove("d"), Status::rofs);
  EXPECT_EQ(rename("f", "g"), Status::rofs);
  EXPECT_EQ(link(f, "g"), Status::rofs);
  EXPECT_EQ(write(f, 0, "y").status(), Status::rofs);
  EXPECT_EQ(read(f, 0, 10).payload(), "x");
  AccessArgs access;
  access.access = access_bit::read | access_bit::modify | access_bit::extend;
  EXPECT_EQ(client->run(putfh(f), access).skip<PutfhResult>().next<AccessResult>().access, access_bit::read);
  EXPECT_EQ(dir.read("f"), "x");
}

TEST_F(OpsTest, RootIsNobodyUnlessItIsSaidOtherwise) {
  if (!can_assume_identity()) GTEST_SKIP() << "needs root";
  make("private", 0600, 0);
  make("grouped", 0040, 0);
  make("open", 0666, 0);
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  start({}, true);
  client->options.groups = {0};
  EXPECT_EQ(read(handle_of("private"), 0, 10).status(), Status::access);
  EXPECT_EQ(read(handle_of("grouped"), 0, 10).status(), Status::access);
  EXPECT_EQ(set("open", AttributeSet::mode(04777).fattr), Status::perm);
  EXPECT_EQ(set("open", owner("65534").fattr), Status::perm);
  EXPECT_EQ(create(FileType::directory, "d"), Status::ok);
  EXPECT_EQ(status_of("d").st_uid, nobody_id);
  EXPECT_EQ(status_of("d").st_gid, nobody_id);
  // A user who says that he is in root's group is not.
  client->options.uid = user_id;
  EXPECT_EQ(read(handle_of("grouped"), 0, 10).status(), Status::access);
  start({}, false);
  EXPECT_EQ(read(handle_of("private"), 0, 10).payload(), "text");
}

// As the kernel does it for programs on this machine.
TEST_F(OpsTest, SuidAndSgidGoWithAChangeByAnother) {
  if (!can_assume_identity()) GTEST_SKIP() << "needs root";
  constexpr uint32_t both = 06777;
  start();
  make("written", both, 0);
  make("opened", both, 0);
  make("cut", both, 0);
  make("emptied", both, 0);
  make("chowned", both, user_id);
  make("by_root", both, 0);
  // Root's worker threads come first: what they do for a user must be done as the user.
  ASSERT_EQ(write(handle_of("by_root"), 0, "x").status(), Status::ok);
  EXPECT_EQ(mode_of("by_root"), both);
  become(user_id);
  ASSERT_EQ(write(handle_of("written"), 0, "x").status(), Status::ok);
  EXPECT_EQ(mode_of("written"), 0777u);
  auto opened = client->open("opened", share::access_write, 0, false);
  ASSERT_EQ(opened.status, Status::ok);
  WriteArgs args;
  args.stateid = opened.open.stateid;
  args.data = xdr::DdpItem::of(base::bytes_of("x"));
  ASSERT_EQ(client->run(putfh(opened.handle), args).status(), Status::ok);
  EXPECT_EQ(mode_of("opened"), 0777u);
  ASSERT_EQ(set("cut", AttributeSet::size(1).fattr), Status::ok);
  EXPECT_EQ(mode_of("cut"), 0777u);
  ASSERT_EQ(open("emptied", CreateMode::unchecked, AttributeSet::size(0).fattr).status(), Status::ok);
  EXPECT_EQ(mode_of("emptied"), 0777u);
  client->options.groups = {2000};
  ASSERT_EQ(set("chowned", group("2000").fattr), Status::ok);
  EXPECT_EQ(mode_of("chowned"), 0777u);
  // sgid of a group that he is not in.
  make("other_group", 0777, user_id);
  ASSERT_EQ(chown(dir.path("other_group").c_str(), user_id, 3000), 0);
  ASSERT_EQ(set("other_group", AttributeSet::mode(02777).fattr), Status::ok);
  EXPECT_EQ(mode_of("other_group"), 0777u);
  become(0);
  make("chowned_by_root", both, 0);
  ASSERT_EQ(set("chowned_by_root", owner("1000").fattr), Status::ok);
  EXPECT_EQ(mode_of("chowned_by_root"), 0777u);
}

}  // namespace
}  // namespace nfsrdma::server::testing
