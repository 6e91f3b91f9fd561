// SPDX-License-Identifier: Apache-2.0
// nfsrdma-serve over a folder of its own, for one test suite.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace served {

class Server {
 public:
  Server() {
    char name[] = "/tmp/nfsrdma-api-XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ready[1], STDOUT_FILENO);
      ::close(ready[0]);
      ::close(ready[1]);
      execl(NFSRDMA_SERVE, NFSRDMA_SERVE, folder_.c_str(), "--listen", "127.0.0.1:0", "--no-root-squash",
            nullptr);
      _exit(127);
    }
    ::close(ready[1]);
    url_ = read_line(ready[0]);
    ready_fd_ = ready[0];  // open, so that the server can go on writing
    if (url_.starts_with("ready ")) url_.erase(0, 6);
  }
  ~Server() {
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
    }
    ::close(ready_fd_);
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  const std::string& url() const { return url_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  static std::string read_line(int fd) {
    constexpr int start_ms = 20000;
    std::string line;
    pollfd wait{fd, POLLIN, 0};
    for (char c; poll(&wait, 1, start_ms) == 1 && ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  std::string folder_, url_;
  pid_t pid_ = -1;
  int ready_fd_ = -1;
};

class ServedTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<Server>();
    ASSERT_TRUE(server->url().starts_with("nfsrdma://")) << server->url();
  }
  static void TearDownTestSuite() { server.reset(); }

  static inline std::unique_ptr<Server> server;
};

inline std::string pattern(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 12345;
  for (char& c : text) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

}  // namespace served
