// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <thread>
#include <vector>

#include "nfsrdma/nfsrdma.h"
#include "tests/capi/served.hpp"

namespace {

using served::pattern;
using testing::HasSubstr;

// The result of one asynchronous call, and a wait for it.
class Answer {
 public:
  static void callback(nfsrdma_ctx* ctx, int64_t result, void* self) {
    auto* answer = static_cast<Answer*>(self);
    std::lock_guard lock(answer->mutex_);
    answer->result_ = result;
    if (result < 0) answer->text_ = nfsrdma_strerror(ctx);
    ++answer->calls_;
    answer->changed_.notify_one();
  }
  int64_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return calls_ > 0; });
    return result_;
  }
  std::string text() { return text_; }
  int calls() const { return calls_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t result_ = 0;
  int calls_ = 0;
  std::string text_;
};

class CApi : public served::ServedTest {
 protected:
  void SetUp() override {
    ctx = nfsrdma_new();
    ASSERT_NE(ctx, nullptr);
  }
  void TearDown() override { nfsrdma_free(ctx); }

  nfsrdma_options options() {
    nfsrdma_options o = NFSRDMA_OPTIONS_INIT;
    o.url = server->url().c_str();
    return o;
  }
  void connect(uint32_t flags = 0) {
    nfsrdma_options o = options();
    o.flags = flags;
    ASSERT_EQ(nfsrdma_connect(ctx, &o), 0) << nfsrdma_strerror(ctx);
  }
  nfsrdma_file* open(const char* path, uint32_t flags) {
    nfsrdma_file* file = nullptr;
    EXPECT_EQ(nfsrdma_open(ctx, path, flags, 0644, &file), 0) << nfsrdma_strerror(ctx);
    return file;
  }

  nfsrdma_ctx* ctx = nullptr;
};

TEST_F(CApi, Versions) {
  const std::string text = std::to_string(NFSRDMA_VERSION_MAJOR) + "." +
                           std::to_string(NFSRDMA_VERSION_MINOR) + "." +
                           std::to_string(NFSRDMA_VERSION_PATCH);
  EXPECT_EQ(nfsrdma_version(), text);
  EXPECT_EQ(nfsrdma_version_number(), uint32_t{NFSRDMA_VERSION_NUMBER});
}

// Every function of the header is exported; every one that asks the server has its asynchronous twin.
TEST_F(CApi, HeaderAndLibraryAgree) {
  static const std::set<std::string> local = {
      "version",         "version_number", "set_log", "new",        "free",    "strerror",   "error_origin",
      "set_credentials", "get_info",       "get_fd",  "stats_json", "service", "mountstats", "free_text",
      "mem_register",    "mem_unregister", "closedir"};
  std::ifstream file(NFSRDMA_C_HEADER);
  const std::string header{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::set<std::string> names;
  const std::regex declaration("NFSRDMA_API [^;(]*nfsrdma_(\\w+)\\(");
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at)
    names.insert((*at)[1]);
  EXPECT_GT(names.size(), 60u);
  for (const std::string& name : names) {
    EXPECT_NE(dlsym(RTLD_DEFAULT, ("nfsrdma_" + name).c_str()), nullptr) << name;
    if (!name.ends_with("_async") && !local.contains(name)) {
      EXPECT_TRUE(names.contains(name + "_async")) << name;
    }
  }
}

TEST_F(CApi, ConnectingSaysWhatIsWrong) {
  nfsrdma_options o = options();
  o.option_list = "nconnect=99";
  EXPECT_EQ(nfsrdma_connect(ctx, &o), -EINVAL);
  EXPECT_THAT(nfsrdma_strerror(ctx), HasSubstr("1 to 16"));
  EXPECT_EQ(nfsrdma_error_origin(ctx), NFSRDMA_ORIGIN_USAGE);
  o = options();
  o.url = "nfsrdma://127.0.0.1:1/?provider=iwarp";
  EXPECT_EQ(nfsrdma_connect(ctx, &o), -ECONNREFUSED);
  EXPECT_EQ(nfsrdma_error_origin(ctx), NFSRDMA_ORIGIN_CONNECTION);
  o = options();
  o.url = nullptr;
  EXPECT_EQ(nfsrdma_connect(ctx, &o), -EINVAL);
  o = options();
  o.struct_size = 0;
  EXPECT_EQ(nfsrdma_connect(ctx, &o), -EINVAL);
  o = options();
  o.flags = 0x80;
  EXPECT_EQ(nfsrdma_connect(ctx, &o), -EINVAL);
  EXPECT_EQ(nfsrdma_connect(ctx, nullptr), -EINVAL);
  nfsrdma_stat_buf stat;
  EXPECT_EQ(nfsrdma_stat(ctx, "/", &stat), -ENOTCONN);
  EXPECT_THAT(nfsrdma_strerror(ctx), HasSubstr("not connected"));
  connect();
  o = options();
  EXPECT_EQ(nfsrdma_connect(ctx, &o), -EISCONN);
}

// A program built against a shorter structure of an older release.
TEST_F(CApi, ShorterOptionsAreTaken) {
  nfsrdma_options o = options();
  o.struct_size = offsetof(nfsrdma_options, option_list);
  o.option_list = reinterpret_cast<const char*>(16);  // beyond the size, so never looked at
  EXPECT_EQ(nfsrdma_connect(ctx, &o), 0) << nfsrdma_strerror(ctx);
}

TEST_F(CApi, ConnectAndDisconnectAsynchronously) {
  nfsrdma_options o = options();
  Answer connected, disconnected;
  ASSERT_EQ(nfsrdma_connect_async(ctx, &o, Answer::callback, &connected), 0);
  EXPECT_EQ(connected.wait(), 0) << connected.text();
  ASSERT_EQ(nfsrdma_disconnect_async(ctx, Answer::callback, &disconnected), 0);
  EXPECT_EQ(disconnected.wait(), 0) << disconnected.text();
  nfsrdma_stat_buf stat;
  EXPECT_EQ(nfsrdma_stat(ctx, "/", &stat), -ENOTCONN);
}

TEST_F(CApi, WritesAndReads) {
  connect();
  const std::string data = pattern(3'000'001);
  nfsrdma_file* file = open("/io", NFSRDMA_OPEN_READ | NFSRDMA_OPEN_WRITE | NFSRDMA_OPEN_CREATE);
  ASSERT_EQ(nfsrdma_pwrite(file, data.data(), data.size(), 0, 0), static_cast<int64_t>(data.size()));
  EXPECT_EQ(nfsrdma_fsync(file), 0);
  EXPECT_EQ(server->read("io"), data);
  std::string back(data.size() + 10, 'x');
  EXPECT_EQ(nfsrdma_pread(file, back.data(), back.size(), 0), static_cast<int64_t>(data.size()));
  EXPECT_EQ(back.substr(0, data.size()), data);
  EXPECT_EQ(nfsrdma_pread(file, back.data(), 10, data.size()), 0);
  EXPECT_EQ(nfsrdma_pwrite(file, "durable", 7, 5, NFSRDMA_WRITE_DURABLE), 7);
  nfsrdma_stat_buf stat;
  ASSERT_EQ(nfsrdma_fstat(file, &stat), 0);
  EXPECT_EQ(stat.size_bytes, data.size());
  EXPECT_EQ(stat.type, uint32_t{NFSRDMA_TYPE_REGULAR});
  EXPECT_EQ(nfsrdma_ftruncate(file, 12), 0);
  EXPECT_EQ(nfsrdma_pwrite(file, "x", 1, 0, 0x80), -EINVAL);
  EXPECT_EQ(nfsrdma_close(file), 0);
  EXPECT_EQ(server->read("io"), data.substr(0, 5) + "durable");
  EXPECT_EQ(nfsrdma_truncate(ctx, "/io", 3), 0);
  EXPECT_EQ(server->read("io"), data.substr(0, 3));
}

TEST_F(CApi, RegisteredMemory) {
  connect();
  std::string memory = pattern(2'000'000);
  const std::string before = memory;
  nfsrdma_mem* mem = nullptr;
  EXPECT_EQ(nfsrdma_mem_register(ctx, memory.data(), memory.size(), NFSRDMA_MEM_CUDA, 0, &mem), -EOPNOTSUPP);
  EXPECT_EQ(nfsrdma_mem_register(ctx, memory.data(), memory.size(), 77, 0, &mem), -EINVAL);
  EXPECT_EQ(nfsrdma_mem_register(ctx, nullptr, 1, NFSRDMA_MEM_HOST, 0, &mem), -EINVAL);
  ASSERT_EQ(nfsrdma_mem_register(ctx, memory.data(), memory.size(), NFSRDMA_MEM_HOST, 0, &mem), 0)
      << nfsrdma_strerror(ctx);
  nfsrdma_file* file = open("/mem", NFSRDMA_OPEN_READ | NFSRDMA_OPEN_WRITE | NFSRDMA_OPEN_CREATE);
  EXPECT_EQ(nfsrdma_pwrite_mem(file, mem, 0, memory.size(), 0, 0), static_cast<int64_t>(memory.size()));
  EXPECT_EQ(nfsrdma_fsync(file), 0);
  std::memset(memory.data(), 0, memory.size());
  EXPECT_EQ(nfsrdma_pread_mem(file, mem, 1000, 500'000, 300), 500'000);
  EXPECT_EQ(memory.substr(1000, 500'000), before.substr(300, 500'000));
  EXPECT_EQ(memory[999], 0);
  EXPECT_EQ(memory[501'000], 0);
  EXPECT_EQ(nfsrdma_pread_mem(file, mem, memory.size() - 5, 6, 0), -EINVAL);
  EXPECT_EQ(nfsrdma_pread_mem(file, mem, SIZE_MAX, 6, 0), -EINVAL);
  EXPECT_EQ(nfsrdma_pread_mem(file, nullptr, 0, 6, 0), -EINVAL);
  EXPECT_EQ(nfsrdma_disconnect(ctx), -EBUSY);
  EXPECT_THAT(nfsrdma_strerror(ctx), HasSubstr("2 handles"));
  EXPECT_EQ(nfsrdma_close(file), 0);
  nfsrdma_mem_unregister(mem);
  EXPECT_EQ(nfsrdma_disconnect(ctx), 0);
}

TEST_F(CApi, Names) {
  connect();
  nfsrdma_stat_buf stat;
  EXPECT_EQ(nfsrdma_mkdir(ctx, "/names", 0750), 0) << nfsrdma_strerror(ctx);
  EXPECT_EQ(nfsrdma_mkdir(ctx, "/names", 0750), -EEXIST);
  ASSERT_EQ(nfsrdma_stat(ctx, "/names", &stat), 0);
  EXPECT_EQ(stat.type, uint32_t{NFSRDMA_TYPE_DIRECTORY});
  EXPECT_EQ(stat.mode, 0750u);
  nfsrdma_close(open("/names/a", NFSRDMA_OPEN_WRITE | NFSRDMA_OPEN_CREATE | NFSRDMA_OPEN_EXCLUSIVE));
  nfsrdma_file* again = nullptr;
  EXPECT_EQ(nfsrdma_open(ctx, "/names/a", NFSRDMA_OPEN_WRITE | NFSRDMA_OPEN_CREATE | NFSRDMA_OPEN_EXCLUSIVE,
                         0, &again),
            -EEXIST);
  EXPECT_EQ(nfsrdma_open(ctx, "/names", NFSRDMA_OPEN_READ, 0, &again), -EISDIR);
  EXPECT_EQ(nfsrdma_open(ctx, "/names/a", 0, 0, &again), -EINVAL);
  EXPECT_EQ(nfsrdma_link(ctx, "/names/a", "/names/b"), 0);
  EXPECT_EQ(nfsrdma_rename(ctx, "/names/b", "/c"), 0);
  EXPECT_EQ(nfsrdma_symlink(ctx, "../c", "/names/l"), 0);
  char text[3];
  EXPECT_EQ(nfsrdma_readlink(ctx, "/names/l", text, sizeof text), 4);
  EXPECT_STREQ(text, "..");
  ASSERT_EQ(nfsrdma_lstat(ctx, "/names/l", &stat), 0);
  EXPECT_EQ(stat.type, uint32_t{NFSRDMA_TYPE_SYMLINK});
  ASSERT_EQ(nfsrdma_stat(ctx, "/names/l", &stat), 0);
  EXPECT_EQ(stat.links, 2u);
  EXPECT_EQ(nfsrdma_chmod(ctx, "/c", 0600), 0);
  EXPECT_EQ(nfsrdma_chown(ctx, "/c", 12345, UINT32_MAX), 0);
  const nfsrdma_time time = {1'700'000'000, 5, 0};
  EXPECT_EQ(nfsrdma_utimens(ctx, "/c", nullptr, &time), 0);
  ASSERT_EQ(nfsrdma_stat(ctx, "/c", &stat), 0);
  EXPECT_EQ(stat.mode, 0600u);
  EXPECT_EQ(stat.uid, 12345u);
  EXPECT_EQ(stat.mtime.seconds, time.seconds);
  EXPECT_EQ(stat.mtime.nanoseconds, 5u);
  EXPECT_EQ(nfsrdma_rmdir(ctx, "/c"), -ENOTDIR);
  EXPECT_EQ(nfsrdma_unlink(ctx, "/names"), -EISDIR);
  EXPECT_EQ(nfsrdma_rmdir(ctx, "/names"), -ENOTEMPTY);
  for (const char* path : {"/names/l", "/names/a", "/c"}) EXPECT_EQ(nfsrdma_unlink(ctx, path), 0) << path;
  EXPECT_EQ(nfsrdma_rmdir(ctx, "/names/"), 0);
  EXPECT_EQ(nfsrdma_stat(ctx, "/names", &stat), -ENOENT);
  EXPECT_EQ(nfsrdma_error_origin(ctx), NFSRDMA_ORIGIN_SERVER);
}

TEST_F(CApi, WrongPathsAndPointers) {
  connect();
  nfsrdma_stat_buf stat;
  for (const char* path : {"", "relative"}) EXPECT_EQ(nfsrdma_stat(ctx, path, &stat), -EINVAL);
  EXPECT_EQ(nfsrdma_stat(ctx, nullptr, &stat), -EINVAL);
  EXPECT_EQ(nfsrdma_stat(ctx, "/", nullptr), -EINVAL);
  EXPECT_EQ(nfsrdma_stat(nullptr, "/", &stat), -EINVAL);
  for (const char* path : {"/", "//", "/.", "/a/.."})
    EXPECT_EQ(nfsrdma_mkdir(ctx, path, 0755), -EINVAL) << path;
  EXPECT_EQ(nfsrdma_mkdir(ctx, ("/" + std::string(256, 'n')).c_str(), 0755), -ENAMETOOLONG);
  EXPECT_EQ(nfsrdma_stat_async(ctx, "/", &stat, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(nfsrdma_pread(nullptr, &stat, 1, 0), -EINVAL);
  EXPECT_EQ(nfsrdma_readdir(nullptr, nullptr), -EINVAL);
  nfsrdma_closedir(nullptr);
  nfsrdma_mem_unregister(nullptr);
  nfsrdma_free(nullptr);
}

TEST_F(CApi, AccessAndStatvfs) {
  server->write("private", "x");
  std::filesystem::permissions(server->path("private"), std::filesystem::perms::owner_read);
  connect();
  EXPECT_EQ(nfsrdma_set_credentials(ctx, 12345, 12345, nullptr, 0), 0);
  EXPECT_EQ(nfsrdma_access(ctx, "/private", 0), 0);
  EXPECT_EQ(nfsrdma_access(ctx, "/private", 4), -EACCES);
  EXPECT_EQ(nfsrdma_access(ctx, "/", 1), 0);
  EXPECT_EQ(nfsrdma_access(ctx, "/", 2), -EACCES);
  EXPECT_EQ(nfsrdma_set_credentials(ctx, 0, 0, nullptr, 0), 0);
  EXPECT_EQ(nfsrdma_access(ctx, "/private", 4), 0);
  EXPECT_EQ(nfsrdma_access(ctx, "/private", 8), -EINVAL);
  nfsrdma_statvfs_buf space;
  ASSERT_EQ(nfsrdma_statvfs(ctx, "/", &space), 0);
  EXPECT_GT(space.total_bytes, space.available_bytes);
}

TEST_F(CApi, Directories) {
  connect();
  ASSERT_EQ(nfsrdma_mkdir(ctx, "/many", 0755), 0);
  std::set<std::string> expected;
  for (int i = 0; i < 2000; ++i) {
    expected.insert("entry-with-a-long-name-" + std::to_string(i));
    server->write("many/entry-with-a-long-name-" + std::to_string(i), "");
  }
  nfsrdma_dir* dir = nullptr;
  EXPECT_EQ(nfsrdma_opendir(ctx, "/many/entry-with-a-long-name-1", &dir), -ENOTDIR);
  ASSERT_EQ(nfsrdma_opendir(ctx, "/many", &dir), 0);
  std::set<std::string> found;
  nfsrdma_dirent entry;
  int rc;
  while ((rc = nfsrdma_readdir(dir, &entry)) == 1) {
    EXPECT_TRUE(found.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.has_attributes);
    EXPECT_EQ(entry.attributes.type, uint32_t{NFSRDMA_TYPE_REGULAR});
  }
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(nfsrdma_readdir(dir, &entry), 0);
  EXPECT_EQ(found, expected);
  nfsrdma_closedir(dir);
}

// Reads a directory by a callback that reads on.
struct Walk {
  nfsrdma_dir* dir = nullptr;
  nfsrdma_dirent entry{};
  size_t entries = 0;
  Answer end;

  static void step(nfsrdma_ctx* ctx, int64_t result, void* self) {
    auto* walk = static_cast<Walk*>(self);
    if (result != 1) return Answer::callback(ctx, result, &walk->end);
    ++walk->entries;
    if (int rc = nfsrdma_readdir_async(walk->dir, &walk->entry, step, self))
      Answer::callback(ctx, rc, &walk->end);
  }
};

TEST_F(CApi, DirectoriesAsynchronously) {
  connect();
  ASSERT_EQ(nfsrdma_mkdir(ctx, "/walk", 0755), 0);
  for (int i = 0; i < 3000; ++i) server->write("walk/" + std::to_string(i), "");
  Walk walk;
  Answer opened;
  ASSERT_EQ(nfsrdma_opendir_async(ctx, "/walk", &walk.dir, Answer::callback, &opened), 0);
  ASSERT_EQ(opened.wait(), 0) << opened.text();
  ASSERT_EQ(nfsrdma_readdir_async(walk.dir, &walk.entry, Walk::step, &walk), 0);
  EXPECT_EQ(walk.end.wait(), 0) << walk.end.text();
  EXPECT_EQ(walk.entries, 3000u);
  nfsrdma_closedir(walk.dir);
}

TEST_F(CApi, AsynchronousCallsInFlightTogether) {
  connect();
  const std::string data = pattern(4 << 20);
  server->write("together", data);
  nfsrdma_file* file = open("/together", NFSRDMA_OPEN_READ);
  constexpr size_t calls = 64, piece = (4 << 20) / calls;
  std::string back(data.size(), '\0');
  std::vector<Answer> answers(calls);
  for (size_t i = 0; i < calls; ++i)
    ASSERT_EQ(
        nfsrdma_pread_async(file, back.data() + i * piece, piece, i * piece, Answer::callback, &answers[i]),
        0);
  for (Answer& answer : answers) EXPECT_EQ(answer.wait(), static_cast<int64_t>(piece)) << answer.text();
  EXPECT_EQ(back, data);
  Answer closed;
  EXPECT_EQ(nfsrdma_close_async(file, Answer::callback, &closed), 0);
  EXPECT_EQ(closed.wait(), 0);
  for (Answer& answer : answers) EXPECT_EQ(answer.calls(), 1);
}

TEST_F(CApi, AsynchronousFailuresBringTheirText) {
  connect();
  nfsrdma_stat_buf stat;
  Answer answer;
  ASSERT_EQ(nfsrdma_stat_async(ctx, "/not/there", &stat, Answer::callback, &answer), 0);
  EXPECT_EQ(answer.wait(), -ENOENT);
  EXPECT_THAT(answer.text(), HasSubstr("NOENT"));
}

TEST_F(CApi, BlockingInsideACallbackIsRefused) {
  connect();
  struct Inside {
    Answer answer;
    nfsrdma_stat_buf stat;
    static void step(nfsrdma_ctx* c, int64_t, void* self) {
      auto* inside = static_cast<Inside*>(self);
      nfsrdma_stat_buf other;
      Answer::callback(c, nfsrdma_stat(c, "/", &other), &inside->answer);
    }
  } inside;
  ASSERT_EQ(nfsrdma_stat_async(ctx, "/", &inside.stat, Inside::step, &inside), 0);
  EXPECT_EQ(inside.answer.wait(), -EDEADLK);
}

TEST_F(CApi, CallbacksByServiceComeOnThatThread) {
  EXPECT_EQ(nfsrdma_get_fd(ctx), -EINVAL);
  connect(NFSRDMA_CALLBACKS_BY_SERVICE);
  const int fd = nfsrdma_get_fd(ctx);
  ASSERT_GE(fd, 0);
  struct Count {
    std::thread::id thread = std::this_thread::get_id();
    int good = 0, bad = 0;
    std::string text;
    static void step(nfsrdma_ctx* c, int64_t result, void* self) {
      auto* count = static_cast<Count*>(self);
      EXPECT_EQ(std::this_thread::get_id(), count->thread);
      result < 0 ? ++count->bad : ++count->good;
      if (result < 0) count->text = nfsrdma_strerror(c);
    }
  } count;
  std::vector<nfsrdma_stat_buf> stats(20);
  for (size_t i = 0; i < stats.size(); ++i)
    ASSERT_EQ(nfsrdma_stat_async(ctx, i % 2 ? "/" : "/nothing", &stats[i], Count::step, &count), 0);
  int called = 0;
  while (called < 20) {
    pollfd wait{fd, POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 20000), 1);
    called += nfsrdma_service(ctx);
  }
  EXPECT_EQ(nfsrdma_service(ctx), 0);
  EXPECT_EQ(count.good, 10);
  EXPECT_EQ(count.bad, 10);
  EXPECT_THAT(count.text, HasSubstr("NOENT"));
  nfsrdma_stat_buf stat;
  EXPECT_EQ(nfsrdma_stat(ctx, "/", &stat), 0) << "the blocking form needs no service";
}

TEST_F(CApi, InfoAndCounters) {
  nfsrdma_options o = options();
  o.nconnect = 2;
  o.rsize_bytes = 65536;
  ASSERT_EQ(nfsrdma_connect(ctx, &o), 0) << nfsrdma_strerror(ctx);
  nfsrdma_info info{};
  EXPECT_EQ(nfsrdma_get_info(ctx, &info), -EINVAL);
  info.struct_size = sizeof info;
  ASSERT_EQ(nfsrdma_get_info(ctx, &info), 0);
  EXPECT_EQ(info.connections, 2u);
  EXPECT_EQ(info.rsize_bytes, 65536u);
  EXPECT_GT(info.slots, 0u);
  EXPECT_GT(info.pool_bytes_max, 0u);
  char* json = nfsrdma_stats_json(ctx);
  ASSERT_NE(json, nullptr);
  EXPECT_EQ(nlohmann::json::parse(json)["connections"].size(), 2u);
  nfsrdma_free_text(json);
  char* text = nfsrdma_mountstats(ctx, "/mnt");
  ASSERT_NE(text, nullptr);
  EXPECT_THAT(text, HasSubstr(" mounted on /mnt with fstype nfs4 "));
  nfsrdma_free_text(text);
}

std::atomic<int> log_lines{0};

TEST_F(CApi, Log) {
  nfsrdma_set_log(
      [](int level, const char* part, const char* line) {
        if (level <= NFSRDMA_LOG_ERROR && *part && !std::strchr(line, '\n')) ++log_lines;
      },
      NFSRDMA_LOG_TRACE);
  nfsrdma_options o = options();
  o.option_list = "trace=rdma";
  ASSERT_EQ(nfsrdma_connect(ctx, &o), 0) << nfsrdma_strerror(ctx);
  nfsrdma_set_log(nullptr, NFSRDMA_LOG_OFF);
  EXPECT_GT(log_lines.load(), 0);
}

TEST_F(CApi, AHandleThatIsLeftKeepsTheContext) {
  connect();
  server->write("left", "text");
  nfsrdma_file* file = open("/left", NFSRDMA_OPEN_READ);
  nfsrdma_free(ctx);  // says so in the log, and frees nothing
  char text[4];
  EXPECT_EQ(nfsrdma_pread(file, text, 4, 0), 4);
  EXPECT_EQ(nfsrdma_close(file), 0);
}

}  // namespace
