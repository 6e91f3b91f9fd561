// SPDX-License-Identifier: Apache-2.0
// The store alone: it never leaves its directory, handles, cookies, change attribute, creation, data.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "server/posix/export_root.hpp"
#include "tests/server/harness.hpp"

namespace nfsrdma::server::testing {
namespace {

Caller root_caller() {
  Caller c;
  c.uid = c.gid = 0;
  return c;
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    // dir/export is exported; what lies beside it must stay unseen.
    std::filesystem::create_directory(outer_.path("export"));
    outer_.write("secret", "secret");
    open_store();
  }
  void open_store(SipKey key = {11, 22}, const std::string& state_dir = {}) {
    rig_.reset();
    PosixParams posix;
    posix.handle_key = key;
    posix.state_dir = state_dir;
    rig_ = std::make_unique<StoreRig>(outer_.path("export"), posix);
  }

  // Loop and store without a server.
  struct StoreRig {
    StoreRig(const std::string& directory, PosixParams posix) : loop(clock, io::LoopParams{}) {
      provider = rdma::make_loop_provider();
      pool = std::make_unique<mem::BufferPool>(*(*provider->resolve({}))->create_protection_domain(),
                                               mem::PoolParams{});
      posix.directory = directory;
      posix.worker_threads = 2;
      posix.boot_verifier = 1;
      auto opened = PosixStore::open(posix);
      EXPECT_TRUE(opened) << opened.error().text();
      store = std::move(*opened);
    }
    SkewedClock clock;
    io::IoLoop loop;
    std::shared_ptr<rdma::Provider> provider;
    std::unique_ptr<mem::BufferPool> pool;
    std::unique_ptr<PosixStore> store;
  };

  template <class T>
  T run(io::Task<T> task) {
    std::optional<T> value;
    io::spawn([](StoreRig& rig, io::Task<T> t, std::optional<T>& out) -> io::Task<void> {
      T result = co_await t;
      co_await rig.loop.enter();
      out.emplace(std::move(result));
    }(*rig_, std::move(task), value));
    base::TimeNs give_up = rig_->clock.now_ns() + base::seconds(20);
    while (!value && rig_->clock.now_ns() < give_up) rig_->loop.turn(rig_->clock.now_ns() + base::ms(50));
    EXPECT_TRUE(value.has_value());
    return std::move(*value);
  }
  PosixStore& store() { return *rig_->store; }
  Answer<ObjectRef> lookup(const ObjectRef& dir, const std::string& name) {
    return run(store().lookup(caller_, dir, name));
  }
  std::string exported(const std::string& name) { return outer_.path("export/" + name); }

  TempDir outer_;
  Caller caller_ = root_caller();
  std::unique_ptr<StoreRig> rig_;
};

TEST_F(StoreTest, LooksUpOneComponentAtATime) {
  std::filesystem::create_directory(exported("d"));
  std::ofstream(exported("d/f")) << "x";
  Answer<ObjectRef> dir = lookup(store().root(), "d");
  ASSERT_EQ(dir.status, Status::ok);
  EXPECT_EQ((*dir)->type(), FileType::directory);
  Answer<ObjectRef> file = lookup(*dir, "f");
  ASSERT_EQ(file.status, Status::ok);
  EXPECT_EQ((*file)->type(), FileType::regular);
  EXPECT_EQ(lookup(*dir, "none").status, Status::noent);
  EXPECT_EQ(lookup(*file, "x").status, Status::notdir);
  // The same file is the same object.
  EXPECT_EQ(*lookup(*dir, "f"), *file);
}

TEST_F(StoreTest, DotDotNeverLeadsOut) {
  EXPECT_EQ(run(store().parent(caller_, store().root())).status, Status::noent);
  EXPECT_NE(lookup(store().root(), "..").status, Status::ok);
  EXPECT_NE(lookup(store().root(), "../secret").status, Status::ok);
  std::filesystem::create_directory(exported("d"));
  Answer<ObjectRef> dir = lookup(store().root(), "d");
  Answer<ObjectRef> up = run(store().parent(caller_, *dir));
  ASSERT_EQ(up.status, Status::ok);
  EXPECT_EQ(*up, store().root());
}

TEST_F(StoreTest, SymlinksAreObjectsAndNeverFollowed) {
  std::filesystem::create_symlink("../secret", exported("out"));
  std::filesystem::create_directory_symlink("/", exported("slash"));
  Answer<ObjectRef> link = lookup(store().root(), "out");
  ASSERT_EQ(link.status, Status::ok);
  EXPECT_EQ((*link)->type(), FileType::symlink);
  EXPECT_EQ(*run(store().readlink(caller_, *link)), "../secret");
  EXPECT_EQ(run(store().open(caller_, *link, true, false, false)).status, Status::symlink);
  Answer<ObjectRef> slash = lookup(store().root(), "slash");
  ASSERT_EQ(slash.status, Status::ok);
  EXPECT_EQ(lookup(*slash, "etc").status, Status::symlink);
  // Creating over a link does not write through it.
  CreateFile how;
  Answer<Created> created = run(store().create_file(caller_, store().root(), "out", how));
  ASSERT_EQ(created.status, Status::ok);
  EXPECT_FALSE(created->created);
  EXPECT_EQ(created->object->type(), FileType::symlink);
  EXPECT_EQ(outer_.read("secret"), "secret");
}

TEST_F(StoreTest, ADirectoryMovedOutsideIsNoLongerReachable) {
  std::filesystem::create_directories(exported("d/e"));
  std::ofstream(exported("d/f")) << "x";
  Answer<ObjectRef> dir = lookup(store().root(), "d");
  ASSERT_EQ(dir.status, Status::ok);
  FileHandle handle = (*dir)->handle();
  std::filesystem::rename(exported("d"), outer_.path("moved"));
  EXPECT_EQ(lookup(*dir, "f").status, Status::stale);
  EXPECT_EQ(lookup(*dir, "e").status, Status::stale);
  EXPECT_EQ(run(store().parent(caller_, *dir)).status, Status::stale);
  EXPECT_EQ(run(store().remove(caller_, *dir, "f")).status, Status::stale);
  EXPECT_EQ(run(store().create_file(caller_, *dir, "g", {})).status, Status::stale);
  EXPECT_TRUE(std::filesystem::exists(outer_.path("moved/f")));
  EXPECT_FALSE(std::filesystem::exists(outer_.path("moved/g")));
  // Nor by its handle, once nobody holds the object.
  dir = Status::ok;
  open_store();
  EXPECT_EQ(run(store().resolve(handle)).status, Status::stale);
}

TEST_F(StoreTest, RenamesUnderWayNeverLeadOut) {
  std::filesystem::create_directories(exported("a/b"));
  std::ofstream(exported("a/b/inner")) << "x";
  std::filesystem::create_directory(outer_.path("outside"));
  std::ofstream(outer_.path("outside/inner")) << "secret";
  struct stat secret {};
  ASSERT_EQ(stat(outer_.path("outside/inner").c_str(), &secret), 0);
  std::atomic<bool> stop{false};
  // b goes out of the export and back while it is walked, and "outside" stands in its place meanwhile.
  std::thread mover([&] {
    while (!stop) {
      ::rename(exported("a/b").c_str(), outer_.path("b").c_str());
      ::rename(outer_.path("outside").c_str(), exported("a/b").c_str());
      ::rename(exported("a/b").c_str(), outer_.path("outside").c_str());
      ::rename(outer_.path("b").c_str(), exported("a/b").c_str());
    }
  });
  Answer<ObjectRef> a = lookup(store().root(), "a");
  ASSERT_EQ(a.status, Status::ok);
  for (int i = 0; i < 300; ++i) {
    Answer<ObjectRef> b = lookup(*a, "b");
    if (!b.ok()) continue;
    Answer<ObjectRef> up = run(store().parent(caller_, *b));
    if (up.ok()) {
      EXPECT_TRUE(*up == *a || *up == store().root());
    }
    // What it finds may be the file from outside only while that stands inside.
    Answer<ObjectRef> inner = lookup(*b, "inner");
    EXPECT_TRUE(inner.ok() || inner.status == Status::stale || inner.status == Status::noent);
  }
  stop = true;
  mover.join();
}

TEST_F(StoreTest, ForgedAndForeignHandlesAreRefused) {
  std::ofstream(exported("f")) << "x";
  FileHandle good = (*lookup(store().root(), "f"))->handle();
  for (uint32_t i = 0; i < good.data.size; ++i) {
    FileHandle forged = good;
    forged.data.bytes[i] ^= std::byte{1};
    Status s = run(store().resolve(forged)).status;
    EXPECT_TRUE(s == Status::badhandle || s == Status::stale) << "byte " << i << ": " << to_string(s);
  }
  for (uint32_t size : {0u, 1u, 8u, 15u, good.data.size - 1}) {
    FileHandle cut = good;
    cut.data.size = size;
    EXPECT_NE(run(store().resolve(cut)).status, Status::ok);
  }
  // A server with another key did not make it.
  open_store({33, 44});
  EXPECT_NE(run(store().resolve(good)).status, Status::ok);
}

TEST_F(StoreTest, HandlesOutliveAnUnusedObjectAndARestart) {
  TempDir state;
  open_store({11, 22}, state.path());
  std::filesystem::create_directory(exported("d"));
  std::ofstream(exported("d/f")) << "hello";
  FileHandle handle = (*lookup(*lookup(store().root(), "d"), "f"))->handle();
  open_store({11, 22}, state.path());
  Answer<ObjectRef> again = run(store().resolve(handle));
  ASSERT_EQ(again.status, Status::ok);
  EXPECT_EQ((*again)->handle(), handle);
  EXPECT_EQ(run(store().attributes(*again))->size_bytes, 5u);
  // Removed and made again it is another file.
  again = Status::ok;
  std::filesystem::remove(exported("d/f"));
  open_store({11, 22}, state.path());
  EXPECT_EQ(run(store().resolve(handle)).status, Status::stale);
}

TEST_F(StoreTest, IndexHandlesNeedNoPrivilege) {
  auto root = ExportRoot::open(outer_.path("export"));
  ASSERT_TRUE(root);
  std::filesystem::create_directories(exported("d"));
  std::ofstream(exported("d/f")) << "x";
  TempDir state;
  auto key_of = [&](HandleMaker& maker, const std::string& path, const FileHandle& parent, const std::string& name) {
    Fd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW));
    struct statx st {};
    EXPECT_EQ(statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st), 0);
    return *maker.make(fd.get(), st, parent, name);
  };
  FileHandle file;
  {
    auto maker = make_index_handles(*root, {1, 2}, state.path());
    ASSERT_TRUE(maker);
    FileHandle top = key_of(**maker, outer_.path("export"), {}, "");
    FileHandle dir = key_of(**maker, exported("d"), top, "d");
    file = key_of(**maker, exported("d/f"), dir, "f");
    EXPECT_TRUE((*maker)->open(file).ok());
    std::filesystem::rename(exported("d/f"), exported("g"));
    EXPECT_EQ((*maker)->open(file).status, Status::stale);
    (*maker)->moved(file, top, "g");
    EXPECT_TRUE((*maker)->open(file).ok());
  }
  auto later = make_index_handles(*root, {1, 2}, state.path());
  ASSERT_TRUE(later);
  EXPECT_TRUE((*later)->open(file).ok());
  // Another file of the same name is not it.
  std::filesystem::remove(exported("g"));
  std::ofstream(exported("g")) << "y";
  EXPECT_EQ((*later)->open(file).status, Status::stale);
  // Without a state directory every process has a key of its own, and old handles are stale.
  auto without = make_index_handles(*root, {5, 6}, "");
  EXPECT_EQ((*without)->open(file).status, Status::stale);
}

class Names final : public DirSink {
 public:
  explicit Names(size_t most) : most_(most) {}
  bool take(const DirEntryView& entry) override {
    if (names.size() >= most_) return false;
    names.emplace_back(entry.name);
    cookie = entry.cookie;
    EXPECT_GT(cookie, 2u);
    return true;
  }
  std::vector<std::string> names;
  uint64_t cookie = 0;

 private:
  size_t most_;
};

TEST_F(StoreTest, ListsEveryEntryOnceWhileOthersComeAndGo) {
  std::set<std::string> staying;
  for (int i = 0; i < 500; ++i) {
    std::string name = "stay" + std::to_string(i);
    staying.insert(name);
    std::ofstream(exported(name)) << "";
    std::ofstream(exported("go" + std::to_string(i))) << "";
  }
  std::multiset<std::string> seen;
  uint64_t cookie = 0;
  int gone = 0;
  for (bool eof = false; !eof;) {
    Names sink(7);
    Answer<DirDone> done = run(store().readdir(caller_, store().root(), cookie, true, sink));
    ASSERT_EQ(done.status, Status::ok);
    eof = done->eof;
    cookie = sink.cookie;
    for (const std::string& name : sink.names) seen.insert(name);
    for (int i = 0; i < 5 && gone < 500; ++i, ++gone) std::filesystem::remove(exported("go" + std::to_string(gone)));
  }
  for (const std::string& name : staying) EXPECT_EQ(seen.count(name), 1u) << name;
  for (const std::string& name : seen) EXPECT_EQ(seen.count(name), 1u) << name;
  EXPECT_EQ(seen.count("."), 0u);
  EXPECT_EQ(seen.count(".."), 0u);
}

TEST_F(StoreTest, ListingGoesOnFromAnyCookieInANewStream) {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) {
    all.insert("f" + std::to_string(i));
    std::ofstream(exported("f" + std::to_string(i))) << "";
  }
  std::vector<std::string> listed;
  uint64_t cookie = 0;
  for (bool eof = false; !eof;) {
    Names sink(9);
    eof = run(store().readdir(caller_, store().root(), cookie, false, sink))->eof;
    listed.insert(listed.end(), sink.names.begin(), sink.names.end());
    cookie = sink.cookie;
    // Nothing kept: as after a restart.
    open_store();
  }
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()), all);
  EXPECT_EQ(listed.size(), all.size());
}

TEST_F(StoreTest, ChangeAttributeNeverMissesAChange) {
  CreateFile how;
  Answer<Created> created = run(store().create_file(caller_, store().root(), "f", how));
  ASSERT_EQ(created.status, Status::ok);
  std::string text = "x";
  ByteView piece = base::bytes_of(text);
  uint64_t last = run(store().attributes(created->object))->change;
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(run(store().write(caller_, created->file, i, {&piece, 1}, StableHow::unstable)).status, Status::ok);
    uint64_t change = run(store().attributes(created->object))->change;
    EXPECT_NE(change, last);
    last = change;
  }
  EXPECT_EQ(run(store().attributes(created->object))->change, last);
}

TEST_F(StoreTest, ExclusiveCreateIsFoundAgainByItsVerifierOnly) {
  CreateFile how;
  how.how = CreateHow::exclusive;
  how.verifier = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                  std::byte{5}, std::byte{6}, std::byte{7}, std::byte{0xff}};
  ASSERT_TRUE(run(store().create_file(caller_, store().root(), "f", how))->created);
  Answer<Created> again = run(store().create_file(caller_, store().root(), "f", how));
  ASSERT_EQ(again.status, Status::ok);
  EXPECT_TRUE(again->created);
  how.verifier[0] = std::byte{9};
  EXPECT_EQ(run(store().create_file(caller_, store().root(), "f", how)).status, Status::exist);
}

TEST_F(StoreTest, CallersActWithTheirOwnRights) {
  if (!can_assume_identity()) GTEST_SKIP() << "needs root";
  std::ofstream(exported("private")) << "x";
  chmod(exported("private").c_str(), 0600);
  std::ofstream(exported("grouped")) << "x";
  chmod(exported("grouped").c_str(), 0640);
  ASSERT_EQ(chown(exported("grouped").c_str(), 0, 4242), 0);
  chmod(outer_.path("export").c_str(), 0777);
  Caller user;
  user.uid = 1000;
  user.gid = 1000;
  Answer<ObjectRef> object = run(store().lookup(user, store().root(), "private"));
  ASSERT_EQ(object.status, Status::ok);
  EXPECT_EQ(run(store().open(user, *object, true, false, false)).status, Status::access);
  EXPECT_EQ(*run(store().access(user, *object, access_bit::read)), 0u);
  Answer<ObjectRef> grouped = run(store().lookup(user, store().root(), "grouped"));
  EXPECT_EQ(run(store().open(user, *grouped, true, false, false)).status, Status::access);
  user.groups[user.group_count++] = 4242;
  EXPECT_EQ(run(store().open(user, *grouped, true, false, false)).status, Status::ok);
  EXPECT_EQ(*run(store().access(user, *grouped, access_bit::read | access_bit::modify)), access_bit::read);
  // What he makes is his.
  Answer<Created> created = run(store().create_file(user, store().root(), "mine", {}));
  ASSERT_EQ(created.status, Status::ok);
  struct stat st {};
  ASSERT_EQ(stat(exported("mine").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 1000u);
  EXPECT_EQ(st.st_gid, 1000u);
  SetAttributes chown_to_root;
  chown_to_root.what = SetAttributes::uid;
  EXPECT_EQ(run(store().set_attributes(user, created->object, chown_to_root, {})).status, Status::perm);
}

TEST_F(StoreTest, ReadOnlyRefusesEveryChange) {
  std::ofstream(exported("f")) << "x";
  PosixParams posix;
  posix.handle_key = {1, 2};
  posix.read_only = true;
  rig_ = std::make_unique<StoreRig>(outer_.path("export"), posix);
  ObjectRef root = store().root();
  ObjectRef file = *lookup(root, "f");
  EXPECT_EQ(run(store().create_file(caller_, root, "g", {})).status, Status::rofs);
  EXPECT_EQ(run(store().create_special(caller_, root, "g", {})).status, Status::rofs);
  EXPECT_EQ(run(store().remove(caller_, root, "f")).status, Status::rofs);
  EXPECT_EQ(run(store().rename(caller_, root, "f", root, "g")).status, Status::rofs);
  EXPECT_EQ(run(store().link(caller_, file, root, "g")).status, Status::rofs);
  EXPECT_EQ(run(store().open(caller_, file, false, true, false)).status, Status::rofs);
  SetAttributes mode;
  mode.what = SetAttributes::mode;
  EXPECT_EQ(run(store().set_attributes(caller_, file, mode, {})).status, Status::rofs);
  EXPECT_EQ(*run(store().access(caller_, file, access_bit::read | access_bit::modify)), access_bit::read);
}

TEST_F(StoreTest, AttributesOfLinksThemselvesCanBeSet) {
  std::filesystem::create_symlink("nowhere", exported("l"));
  ObjectRef link = *lookup(store().root(), "l");
  SetAttributes times;
  times.what = SetAttributes::modified;
  times.modified_time = {1234567, 0};
  EXPECT_EQ(run(store().set_attributes(caller_, link, times, {})).status, Status::ok);
  struct stat st {};
  ASSERT_EQ(lstat(exported("l").c_str(), &st), 0);
  EXPECT_EQ(st.st_mtime, 1234567);
  EXPECT_EQ(run(store().link(caller_, link, store().root(), "l2")).status, Status::ok);
  ASSERT_EQ(lstat(exported("l2").c_str(), &st), 0);
  EXPECT_TRUE(S_ISLNK(st.st_mode));
}

TEST_F(StoreTest, ARemovedFileLetsItsSpaceGo) {
  Answer<Created> created = run(store().create_file(caller_, store().root(), "f", {}));
  ASSERT_EQ(created.status, Status::ok);
  FileHandle handle = created->object->handle();
  ASSERT_EQ(run(store().remove(caller_, store().root(), "f")).status, Status::ok);
  // Held open it still works, and is found.
  EXPECT_EQ(store().find(handle), created->object);
  EXPECT_EQ(run(store().attributes(created->object))->links, 0u);
  std::weak_ptr<Object> object = created->object;
  created = Status::ok;
  EXPECT_TRUE(object.expired());
  EXPECT_EQ(run(store().resolve(handle)).status, Status::stale);
}

TEST_F(StoreTest, ReadsToTheEndAndSaysSo) {
  std::string text(300000, 'a');
  std::ofstream(exported("f")) << text;
  ObjectRef file = *lookup(store().root(), "f");
  OpenFileRef open = *run(store().open(caller_, file, true, false, false));
  Answer<ReadData> data = run(store().read(open, 0, 1 << 20, {*rig_->pool}));
  ASSERT_EQ(data.status, Status::ok);
  EXPECT_EQ(data->length, text.size());
  EXPECT_TRUE(data->eof);
  data = run(store().read(open, 10, 100, {*rig_->pool}));
  EXPECT_EQ(data->length, 100u);
  EXPECT_FALSE(data->eof);
  data = run(store().read(open, text.size(), 100, {*rig_->pool}));
  EXPECT_EQ(data->length, 0u);
  EXPECT_TRUE(data->eof);
  data = run(store().read(open, text.size() - 1, 1, {*rig_->pool}));
  EXPECT_EQ(data->length, 1u);
  EXPECT_TRUE(data->eof);
}

TEST_F(StoreTest, OpensNoFifoAndNoDevice) {
  ASSERT_EQ(mkfifo(exported("fifo").c_str(), 0666), 0);
  ObjectRef fifo = *lookup(store().root(), "fifo");
  EXPECT_EQ(fifo->type(), FileType::fifo);
  EXPECT_NE(run(store().open(caller_, fifo, true, false, false)).status, Status::ok);
  EXPECT_NE(run(store().commit(caller_, fifo)).status, Status::ok);
}

}  // namespace
}  // namespace nfsrdma::server::testing
