// SPDX-License-Identifier: Apache-2.0
// Mounts that do not come about: each ends in time, with one line that says why.
#include "rig.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace nfsrdma::client::test {
namespace {

// Accepts TCP connections and answers what it is told, or nothing.
class Peer {
 public:
  explicit Peer(std::string answer) : answer_(std::move(answer)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    socklen_t size = sizeof a;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &size), 0);
    port = ntohs(a.sin_port);
    EXPECT_EQ(listen(fd_, 8), 0);
    thread_ = std::thread([this] {
      for (int c; (c = accept(fd_, nullptr, nullptr)) >= 0;) {
        if (!answer_.empty()) (void)!write(c, answer_.data(), answer_.size());
        clients_.push_back(c);
      }
    });
  }
  ~Peer() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    for (int c : clients_) close(c);
    close(fd_);
  }
  uint16_t port = 0;

 private:
  std::string answer_;
  int fd_ = -1;
  std::vector<int> clients_;
  std::thread thread_;
};

Options to_port(uint16_t port) {
  Options o;
  o.host = "127.0.0.1";
  o.port = port;
  o.provider = ProviderKind::iwarp;
  o.connect_timeout_ms = 1500;
  return o;
}

Error failure(const Options& o) {
  auto begin = std::chrono::steady_clock::now();
  auto mounted = Mount::connect(o);
  auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took, std::chrono::milliseconds(o.connect_timeout_ms + 4000));
  if (mounted) {
    ADD_FAILURE() << "it mounted";
    return Error(0, ErrorOrigin::local);
  }
  Error e = mounted.error();
  EXPECT_FALSE(e.text().empty());
  EXPECT_EQ(e.text().find('\n'), std::string::npos) << e.text();
  EXPECT_LT(e.text().size(), 400u) << e.text();
  return e;
}

TEST(ClientConnect, PortThatNobodyListensOn) {
  uint16_t port = 0;
  {
    Peer gone("");
    port = gone.port;
  }
  Error e = failure(to_port(port));
  EXPECT_EQ(e.origin(), ErrorOrigin::connection);
  EXPECT_NE(e.text().find(std::to_string(port)), std::string::npos) << e.text();
  EXPECT_NE(e.text().find("refused"), std::string::npos) << e.text();
}

TEST(ClientConnect, ServerThatSaysNothing) {
  Peer silent("");
  Error e = failure(to_port(silent.port));
  EXPECT_EQ(e.origin(), ErrorOrigin::connection) << e.text();
}

TEST(ClientConnect, ServerThatSpeaksSomethingElse) {
  Peer web("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  Error e = failure(to_port(web.port));
  EXPECT_NE(e.origin(), ErrorOrigin::server) << e.text();
}

TEST(ClientConnect, NameThatDoesNotExistAndNoNameAtAll) {
  Options o = to_port(1);
  o.host = "no-such-host.invalid";
  Error e = failure(o);
  EXPECT_NE(e.text().find("no-such-host.invalid"), std::string::npos) << e.text();
  o.host.clear();
  EXPECT_EQ(failure(o).origin(), ErrorOrigin::usage);
}

// RPC-over-RDMA works, NFS does not answer: the mount's own limit ends it.
TEST(ClientConnect, ServerThatNeverAnswersACall) {
  RigParams p;
  p.way = Way::iwarp;
  p.faults = "drop=1";
  p.connect = false;
  Rig rig(p);
  Options o = to_port(rig.options().port);
  Error e = failure(o);
  EXPECT_EQ(e.errno_value(), ETIMEDOUT);
  EXPECT_NE(e.text().find("127.0.0.1"), std::string::npos) << e.text();
}

TEST(ClientConnect, ExportThatDoesNotExistIsNamed) {
  RigParams p;
  p.way = Way::iwarp;
  p.connect = false;
  Rig rig(p);
  rig.dir().write("file", random_bytes(10, 1));
  Options o = to_port(rig.options().port);
  o.path = "/no/such";
  Error e = failure(o);
  EXPECT_EQ(e.errno_value(), ENOENT);
  EXPECT_NE(e.text().find("/no"), std::string::npos) << e.text();
  o.path = "/file";
  e = failure(o);
  EXPECT_EQ(e.errno_value(), ENOTDIR);
}

TEST(ClientConnect, OldServerIsTold) {
  RigParams p;
  p.way = Way::iwarp;
  p.faults = "refuse=exchange_id:10021";
  p.connect = false;
  Rig rig(p);
  Error e = failure(to_port(rig.options().port));
  EXPECT_EQ(e.errno_value(), EPROTONOSUPPORT);
  EXPECT_NE(e.text().find("NFSv4.1"), std::string::npos) << e.text();
}

TEST(ClientConnect, ProbeStopsAtTheStepThatFails) {
  RigParams p;
  p.way = Way::iwarp;
  p.connect = false;
  Rig rig(p);
  auto steps = Mount::probe(to_port(rig.options().port));
  ASSERT_FALSE(steps.empty());
  for (auto& s : steps) EXPECT_TRUE(s.ok) << s.name << ": " << s.detail;
  EXPECT_EQ(steps.back().name, "root");
  Options o = to_port(rig.options().port);
  o.path = "/missing";
  steps = Mount::probe(o);
  EXPECT_EQ(steps.back().name, "root");
  EXPECT_FALSE(steps.back().ok);
  rig.stop_server();
  steps = Mount::probe(o);
  EXPECT_EQ(steps.back().name, "connect");
  EXPECT_FALSE(steps.back().ok);
}

// The server goes while it is mounted: the end is bounded all the same.
TEST(ClientConnect, UnmountingFromAServerThatIsGone) {
  RigParams p;
  p.way = Way::iwarp;
  Options o;
  o.connect_timeout_ms = 1500;
  Rig rig(p, o);
  File file = rig.open("f");
  rig.stop_server();
  auto begin = std::chrono::steady_clock::now();
  (void)rig.mount().shut_down();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

}  // namespace
}  // namespace nfsrdma::client::test
