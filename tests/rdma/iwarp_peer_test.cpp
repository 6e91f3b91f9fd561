// SPDX-License-Identifier: Apache-2.0
// The iWARP provider on real sockets against a peer that is written by hand and misbehaves. Time is the
// test's own: poll() is told what the clock says, so that time-outs need no waiting.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>

#include "base/log.hpp"
#include "rdma/providers.hpp"
#include "tests/rdma/contract_harness.hpp"
#include "tests/rdma/iwarp_frames.hpp"

namespace nfsrdma::rdma::iwarp {
namespace {

using contract::Handler;

Octets text(const char* s) { return Octets(s, s + strlen(s)); }
Octets request(uint16_t flags_and_revision, const Octets& data) {
  Octets o = text("MPA ID Req Frame");
  put(o, flags_and_revision, 2);
  put(o, data.size(), 2);
  return o + data;
}
Octets reply(uint16_t flags_and_revision, const Octets& data) {
  Octets o = request(flags_and_revision, data);
  o[8] = 'e', o[9] = 'p';
  std::memcpy(o.data(), "MPA ID Rep Frame", 16);
  return o;
}
const Octets depths_16_16{0, 16, 0, 16};

// A plain TCP socket, used without waiting.
class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) { fcntl(fd_, F_SETFL, O_NONBLOCK); }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() { end(); }
  void send(const Octets& bytes) {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Appends what is there now.
  void take() {
    uint8_t buffer[65536];
    for (;;) {
      ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n == 0) closed = true;
      if (n < 0 && errno == ECONNRESET) closed = true;
      if (n <= 0) return;
      got.insert(got.end(), buffer, buffer + n);
    }
  }
  void reset_connection() {
    linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    end();
  }
  void end() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }
  Octets got;
  bool closed = false;

 private:
  int fd_;
};

class IwarpPeer : public testing::Test {
 protected:
  void SetUp() override {
    provider = make_iwarp_provider(options);
    cq = std::move(*provider->create_completion_queue(256));
    pd = *(*provider->resolve({}))->create_protection_domain();
    memory = std::make_unique<contract::Memory>(*pd, 1 << 20);
  }
  void TearDown() override {
    qp.reset();
    listener.reset();
    if (listen_fd >= 0) close(listen_fd);
  }
  void turn() {
    Completion out[32];
    size_t n = cq->poll(now, out);
    seen.insert(seen.end(), out, out + n);
  }
  bool until(const std::function<bool()>& done) {
    TimeNs stop = base::system_clock().now_ns() + base::seconds(8);
    while (!done()) {
      if (base::system_clock().now_ns() > stop) return false;
      turn();
      for (RawSocket* s : sockets) s->take();
    }
    return true;
  }
  // The kernel's loopback is fast, but not instant.
  void settle() {
    TimeNs stop = base::system_clock().now_ns() + base::ms(30);
    until([&] { return base::system_clock().now_ns() > stop; });
  }
  const Completion* find(uint64_t id) const {
    for (const Completion& c : seen)
      if (c.id == id) return &c;
    return nullptr;
  }

  // The provider connects to a listener of ours.
  void be_server() {
    if (listen_fd >= 0) close(listen_fd);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SocketAddress a = contract::loopback();
    ASSERT_EQ(bind(listen_fd, a.get(), a.length()), 0);
    ASSERT_EQ(listen(listen_fd, 1), 0);
    socklen_t n = sizeof a.storage;
    getsockname(listen_fd, a.get(), &n);
    QueuePairParams params;
    params.ird = 8;
    params.ord = 8;
    qp = std::move(*pd->create_queue_pair(*cq, params, handler));
    receive(700);
    ConnectParams connect;
    connect.remote = a;
    connect.private_data = base::bytes_of("hello");
    ASSERT_TRUE(qp->connect(connect).ok());
    take_request();
  }
  void take_request() {
    sockets.clear();
    peer.emplace(accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_GE(peer->fd(), 0);
    sockets = {&*peer};
    ASSERT_TRUE(
        until([&] { return peer->got.size() >= 20 && peer->got.size() == 20 + get(peer->got, 18, 2); }));
  }
  void be_server_established(uint16_t flags = 0x1002) {
    be_server();
    peer->got.clear();
    peer->send(reply(flags, Octets{0, 8, 0, 8}));
    ASSERT_TRUE(until([&] { return handler.established; }));
  }
  // The provider listens; a socket of ours connects.
  void be_client(const Octets& first) {
    accepting.act = [this](std::unique_ptr<ConnectRequest> r) {
      requests++;
      private_seen.assign(r->private_data().begin(), r->private_data().end());
      if (reject) return r->reject(base::bytes_of("no"));
      QueuePairParams params;
      params.ird = 8;
      params.ord = 8;
      qp = std::move(*r->create_queue_pair(*pd, *cq, params, handler));
      receive(700);
      ASSERT_TRUE(qp->accept(base::bytes_of("welcome!")).ok());
    };
    listener = std::move(*provider->listen(contract::loopback(), *cq, accepting));
    peer.emplace(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockets = {&*peer};
    SocketAddress a = listener->local();
    connect(peer->fd(), a.get(), a.length());
    pollfd p{peer->fd(), POLLOUT, 0};
    ASSERT_EQ(::poll(&p, 1, 5000), 1);
    if (!first.empty()) peer->send(first);
  }
  void receive(uint64_t id) {
    ReceiveRequest r;
    r.id = id;
    r.sge = {memory->get(), 0, 4096};
    ASSERT_TRUE(qp->post_receive({&r, 1}).ok());
  }
  void send(uint64_t id, uint32_t bytes) {
    Sge piece{memory->get(), 8192, bytes};
    SendRequest r;
    r.id = id;
    r.sge = {&piece, 1};
    ASSERT_TRUE(qp->post_send({&r, 1}).ok());
    qp->flush();
  }
  bool failed_with(const char* part, int error) {
    if (!until([&] { return handler.failed.has_value(); })) return false;
    EXPECT_NE(handler.failed->text().find(part), std::string::npos) << handler.failed->text();
    EXPECT_EQ(handler.failed->errno_value(), error);
    EXPECT_FALSE(handler.established);
    return true;
  }

  struct Accepting final : ListenHandler {
    std::function<void(std::unique_ptr<ConnectRequest>)> act;
    void on_request(std::unique_ptr<ConnectRequest> r) override { act(std::move(r)); }
  };

  IwarpOptions options;
  TimeNs now = base::seconds(1000);
  std::shared_ptr<Provider> provider;
  std::unique_ptr<CompletionQueue> cq;
  std::shared_ptr<ProtectionDomain> pd;
  std::unique_ptr<contract::Memory> memory;
  Handler handler;
  Accepting accepting;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<QueuePair> qp;
  std::vector<Completion> seen;
  std::optional<RawSocket> peer;
  std::vector<RawSocket*> sockets;
  std::vector<std::byte> private_seen;
  int listen_fd = -1;
  int requests = 0;
  bool reject = false;
};

TEST_F(IwarpPeer, RequestIsAloneUntilTheReplyCame) {
  be_server();
  Octets expected = text("MPA ID Req Frame") + Octets{0x10, 0x02, 0x00, 17, 0, 8, 0, 8} + text("hello") +
                    text("nrdm") + Octets{1, 1, 0, 5};
  EXPECT_EQ(peer->got, expected);
  settle();
  EXPECT_EQ(peer->got.size(), expected.size());
  Octets answer = reply(0x1002, Octets{0, 3, 0, 8, 'y', 'o'});
  for (uint8_t byte : answer) {
    EXPECT_FALSE(handler.established);
    peer->send({byte});
    turn();
  }
  ASSERT_TRUE(until([&] { return handler.established; }));
  EXPECT_EQ(handler.ord, 3u);
  EXPECT_EQ(handler.peer_private.size(), 2u);
  EXPECT_EQ(peer->got.size(), expected.size());
}

TEST_F(IwarpPeer, ReplyOfRevision1IsTaken) {
  be_server();
  peer->send(reply(0x0001, text("old")));
  ASSERT_TRUE(until([&] { return handler.established; }));
  EXPECT_EQ(handler.ord, 8u);
  EXPECT_EQ(handler.peer_private.size(), 3u);
}

// A responder that knows only revision 1 rejects, and is asked again in its own words.
TEST_F(IwarpPeer, Revision1ResponderIsAskedAgain) {
  be_server();
  peer->send(reply(0x2001, {}));
  settle();
  EXPECT_TRUE(peer->closed);
  EXPECT_FALSE(handler.failed);
  take_request();
  EXPECT_EQ(peer->got, request(0x0001, text("hello")));
  peer->send(reply(0x0001, text("fine")));
  ASSERT_TRUE(until([&] { return handler.established; }));
  EXPECT_EQ(handler.ord, 8u);
  EXPECT_EQ(handler.peer_private.size(), 4u);
}

TEST_F(IwarpPeer, ASecondRejectionIsFinal) {
  be_server();
  peer->send(reply(0x2001, {}));
  settle();
  take_request();
  peer->send(reply(0x2001, text("no")));
  ASSERT_TRUE(failed_with("rejected the connection", ECONNREFUSED));
}

TEST_F(IwarpPeer, RefusalNamesThePortAndTheWayOut) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SocketAddress a = contract::loopback();
  ASSERT_EQ(bind(fd, a.get(), a.length()), 0);  // bound, but not listening
  socklen_t n = sizeof a.storage;
  getsockname(fd, a.get(), &n);
  qp = std::move(*pd->create_queue_pair(*cq, {}, handler));
  ConnectParams connect;
  connect.remote = a;
  ASSERT_TRUE(qp->connect(connect).ok());
  ASSERT_TRUE(failed_with("refused: normal for a healthy RoCE or InfiniBand server", ECONNREFUSED));
  EXPECT_NE(handler.failed->text().find(base::text("TCP port %u of 127.0.0.1", a.port())), std::string::npos);
  close(fd);
}

TEST_F(IwarpPeer, OtherProtocolIsNamed) {
  be_server();
  peer->send(text("HTTP/1.1 400 Bad Request\r\n\r\n"));
  ASSERT_TRUE(failed_with("speaks TCP but not MPA: it sent \"HTTP/1.1", EPROTO));
  ASSERT_TRUE(until([&] { return peer->closed; }));
}

TEST_F(IwarpPeer, OneWrongByteIsEnough) {
  be_server();
  peer->send({0x80});
  ASSERT_TRUE(failed_with("speaks TCP but not MPA", EPROTO));
}

TEST_F(IwarpPeer, ClosedDuringHandshake) {
  be_server();
  peer->send(text("MPA ID R"));
  peer->end();
  sockets.clear();
  ASSERT_TRUE(failed_with("closed the connection during the MPA handshake", ECONNRESET));
}

TEST_F(IwarpPeer, ResetDuringHandshake) {
  be_server();
  peer->reset_connection();
  sockets.clear();
  ASSERT_TRUE(failed_with("closed the connection during the MPA handshake", ECONNRESET));
}

TEST_F(IwarpPeer, RejectionShowsPrivateData) {
  be_server();
  peer->send(reply(0x3002, Octets{0, 0, 0, 0} + text("busy")));
  ASSERT_TRUE(failed_with("rejected the connection (private data \"busy\")", ECONNREFUSED));
}

TEST_F(IwarpPeer, NoReplyTimesOut) {
  be_server();
  now += base::seconds(9) + base::ms(900);
  settle();
  EXPECT_FALSE(handler.failed);
  now += base::ms(200);
  ASSERT_TRUE(failed_with("sent no MPA Reply within 10 s", ETIMEDOUT));
}

TEST_F(IwarpPeer, HalfAReplyTimesOut) {
  be_server();
  peer->send(text("MPA ID Rep"));
  settle();
  now += base::seconds(11);
  ASSERT_TRUE(failed_with("only part of an MPA Reply", ETIMEDOUT));
}

TEST_F(IwarpPeer, BadRepliesAreAnsweredByTerminate) {
  struct Row {
    const char* name;
    Octets frame;
    Octets control;
  };
  for (const Row& row : {Row{"markers", reply(0x9002, depths_16_16), {0x20, 0x04}},
                         Row{"revision 3", reply(0x1003, depths_16_16), {0x20, 0x04}},
                         Row{"no depths", reply(0x1002, {}), {0x20, 0x04}},
                         Row{"ORD above our IRD", reply(0x1002, Octets{0, 8, 0, 9}), {0x20, 0x06}}}) {
    SCOPED_TRACE(row.name);
    handler = Handler{};
    be_server();
    peer->got.clear();
    peer->send(row.frame);
    ASSERT_TRUE(failed_with("bad MPA Reply", EPROTO));
    ASSERT_TRUE(until([&] { return peer->closed; }));
    EXPECT_EQ(peer->got, fpdu(untagged(0x4147, 0, 2, 1, 0, row.control + Octets{0, 0})));
    qp.reset();
  }
}

// Linux siw may not look at its socket for a while after its Reply: silence first, then nudges, a bounded
// number.
TEST_F(IwarpPeer, SilenceThenNudges) {
  be_server_established();
  send(1, 40);
  settle();
  EXPECT_TRUE(peer->got.empty()) << "the first millisecond belongs to the peer";
  now += base::ms(2);
  const size_t send_bytes = 20 + 40 + 4, nudge_bytes = 16 + 4;
  ASSERT_TRUE(until([&] { return peer->got.size() >= send_bytes; }));
  settle();
  EXPECT_EQ(peer->got.size(), send_bytes);
  const Octets nudge = fpdu(tagged(0xc140, 0, 0, {}));
  size_t expected = send_bytes;
  for (int i = 0; i < 3; i++) {
    TimeNs wait = base::ms(100) << i;
    now += wait - base::ms(3);
    settle();
    EXPECT_EQ(peer->got.size(), expected) << "nudge " << i << " came early";
    now += base::ms(6);
    expected += nudge_bytes;
    ASSERT_TRUE(until([&] { return peer->got.size() >= expected; })) << "nudge " << i;
    EXPECT_TRUE(
        std::equal(nudge.begin(), nudge.end(), peer->got.end() - static_cast<ptrdiff_t>(nudge_bytes)));
  }
  now += base::seconds(30);
  settle();
  EXPECT_EQ(peer->got.size(), expected) << "nudges must end";
  EXPECT_EQ(seen.size(), 1u) << "a nudge is nobody's request";
}

TEST_F(IwarpPeer, AnAnswerStopsTheNudges) {
  be_server_established();
  now += base::ms(2);
  turn();
  send(1, 40);
  ASSERT_TRUE(until([&] { return peer->got.size() >= 64; }));
  peer->send(fpdu(send_segment(1, ramp(10))));
  ASSERT_TRUE(until([&] { return find(700) != nullptr; }));
  now += base::seconds(5);
  settle();
  EXPECT_EQ(peer->got.size(), 64u);
}

TEST_F(IwarpPeer, NoNudgeBeforeAnythingWasSent) {
  be_server_established();
  now += base::ms(2);
  settle();
  now += base::seconds(60);
  settle();
  EXPECT_TRUE(peer->got.empty());
}

TEST_F(IwarpPeer, KernelClientIsServed) {
  be_client(request(0x1002, Octets{0, 128, 0, 0, 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}));
  ASSERT_TRUE(until([&] { return handler.established && peer->got.size() >= 32; }));
  EXPECT_EQ(private_seen.size(), 8u);
  EXPECT_EQ(peer->got, reply(0x1002, Octets{0, 0, 0, 8} + text("welcome!")));
  EXPECT_EQ(handler.ord, 8u);
  send(1, 40);
  settle();
  EXPECT_EQ(peer->got.size(), 32u) << "no FPDU before the peer's first one";
  peer->send(fpdu(send_segment(1, ramp(86))));
  ASSERT_TRUE(until([&] { return find(700) && find(1); }));
  EXPECT_EQ(find(700)->length, 86u);
  ASSERT_TRUE(until([&] { return peer->got.size() == 32 + 64; }));
}

TEST_F(IwarpPeer, CrcIsUsedWhenThePeerAsks) {
  be_client(request(0x5002, depths_16_16));
  ASSERT_TRUE(until([&] { return peer->got.size() >= 32; }));
  EXPECT_EQ(peer->got[16], 0x50);
  EXPECT_NE(handler.path.find("crc on"), std::string::npos);
  peer->got.clear();
  peer->send(fpdu(send_segment(1, ramp(9)), true));
  ASSERT_TRUE(until([&] { return find(700) != nullptr; }));
  send(1, 5);
  Octets payload;
  for (size_t i = 0; i < 5; i++) payload.push_back(static_cast<uint8_t>((*memory)[8192 + i]));
  ASSERT_TRUE(until([&] { return peer->got.size() >= 32; }));
  EXPECT_EQ(peer->got, fpdu(send_segment(1, payload), true));
}

TEST_F(IwarpPeer, Revision1ClientIsServed) {
  be_client(request(0x0001, text("old")));
  ASSERT_TRUE(until([&] { return peer->got.size() >= 28; }));
  EXPECT_EQ(peer->got, reply(0x0001, text("welcome!")));
  EXPECT_EQ(private_seen.size(), 3u);
}

TEST_F(IwarpPeer, RequestInSingleBytesWithAnFpduBehind) {
  be_client({});
  for (uint8_t byte : request(0x1002, depths_16_16)) {
    peer->send({byte});
    turn();
  }
  peer->send(fpdu(send_segment(1, ramp(5))));
  ASSERT_TRUE(until([&] { return find(700) != nullptr; }));
}

TEST_F(IwarpPeer, ReadyToReceiveMessages) {
  struct Row {
    Octets depths;
    Octets answer;
    Octets first;
    Octets expected;
  };
  const Row rows[] = {
      {{0x80, 16, 0xc0, 16}, {0x80, 8, 0x80, 8}, fpdu(tagged(0xc140, 1, 0, {})), {}},
      {{0x80, 16, 0x40, 16},
       {0x80, 8, 0x40, 8},
       fpdu(read_request(1, 0, 0, 0, 1, 0)),
       fpdu(tagged(0xc142, 0, 0, {}))},
  };
  for (const Row& row : rows) {
    handler = Handler{};
    seen.clear();
    be_client(request(0x1002, row.depths));
    ASSERT_TRUE(until([&] { return peer->got.size() >= 32; }));
    EXPECT_EQ(peer->got, reply(0x1002, row.answer + text("welcome!")));
    peer->got.clear();
    peer->send(row.first);
    send(1, 4);
    ASSERT_TRUE(until([&] { return peer->got.size() >= row.expected.size() + 28; }));
    EXPECT_TRUE(std::equal(row.expected.begin(), row.expected.end(), peer->got.begin()));
    qp.reset();
    listener.reset();
  }
}

TEST_F(IwarpPeer, BadRequests) {
  struct Row {
    const char* name;
    Octets frame;
    Octets answer;
  };
  const Row rows[] = {
      {"markers", request(0x9002, depths_16_16), reply(0x3002, Octets{0, 0, 0, 0})},
      {"reject flag", request(0x3002, depths_16_16), reply(0x3002, Octets{0, 0, 0, 0})},
      {"revision 0", request(0x0000, {}), {}},
      {"revision 3", request(0x1003, depths_16_16), {}},
      {"too much private data", request(0x1002, Octets(513, 0)), {}},
      {"enhanced without depths", request(0x1002, {}), {}},
      {"TLS", {0x16, 0x03, 0x01, 0x02, 0x00}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    be_client(row.frame);
    ASSERT_TRUE(until([&] { return peer->closed; }));
    EXPECT_EQ(peer->got, row.answer);
    EXPECT_EQ(requests, 0);
    listener.reset();
  }
}

TEST_F(IwarpPeer, SilentClientIsDroppedAfterFiveSeconds) {
  be_client(text("MPA ID"));
  settle();
  now += base::seconds(4) + base::ms(900);
  settle();
  EXPECT_FALSE(peer->closed);
  now += base::ms(200);
  ASSERT_TRUE(until([&] { return peer->closed; }));
  EXPECT_EQ(requests, 0);
}

TEST_F(IwarpPeer, RejectedByTheConsumer) {
  reject = true;
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return peer->closed; }));
  EXPECT_EQ(peer->got, reply(0x3002, Octets{0, 0, 0, 0} + text("no")));
}

TEST_F(IwarpPeer, ProtocolErrorIsTerminateThenTheEnd) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established && peer->got.size() >= 32; }));
  peer->got.clear();
  peer->send(fpdu(send_segment(5, ramp(4))));
  ASSERT_TRUE(until([&] { return peer->closed; }));
  ASSERT_GE(peer->got.size(), 24u);
  EXPECT_EQ(get(peer->got, 2, 2), 0x4147u);
  EXPECT_EQ(get(peer->got, 20, 2), 0x1203u);
  peer->end();
  sockets.clear();
  ASSERT_TRUE(until([&] { return handler.disconnected.has_value(); }));
  EXPECT_NE(handler.disconnected->text().find("out of sequence"), std::string::npos)
      << handler.disconnected->text();
  ASSERT_TRUE(until([&] { return find(700) != nullptr; }));
  EXPECT_EQ(find(700)->status, CompletionStatus::flushed);
}

TEST_F(IwarpPeer, APeerThatDoesNotCloseIsLeftAfterOneSecond) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established; }));
  peer->send(fpdu(send_segment(5, ramp(4))));
  settle();
  EXPECT_FALSE(handler.disconnected);
  now += base::ms(1100);
  ASSERT_TRUE(until([&] { return handler.disconnected.has_value(); }));
}

TEST_F(IwarpPeer, EndInTheMiddleOfAMessage) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established; }));
  Octets part = fpdu(send_segment(1, ramp(100)));
  part.resize(50);
  peer->send(part);
  settle();
  peer->end();
  sockets.clear();
  ASSERT_TRUE(until([&] { return handler.disconnected && find(700); }));
  EXPECT_NE(handler.disconnected->text().find("in the middle of a message"), std::string::npos);
  EXPECT_EQ(find(700)->status, CompletionStatus::flushed);
}

TEST_F(IwarpPeer, DataAndEndTogetherAreBothSeen) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established; }));
  peer->send(fpdu(send_segment(1, ramp(100))));
  peer->end();
  sockets.clear();
  ASSERT_TRUE(until([&] { return handler.disconnected && find(700); }));
  EXPECT_EQ(find(700)->status, CompletionStatus::success);
  EXPECT_NE(handler.disconnected->text().find("closed the connection"), std::string::npos);
  EXPECT_EQ(handler.disconnected->text().find("middle"), std::string::npos);
}

TEST_F(IwarpPeer, ResetOfAnEstablishedConnection) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established; }));
  peer->reset_connection();
  sockets.clear();
  ASSERT_TRUE(until([&] { return handler.disconnected && find(700); }));
  EXPECT_EQ(find(700)->status, CompletionStatus::flushed);
}

TEST_F(IwarpPeer, TerminateFromThePeerIsExplained) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established; }));
  peer->send(fpdu(untagged(0x4147, 0, 2, 1, 0, {0x21, 0x02, 0x03, 0x00})));
  ASSERT_TRUE(until([&] { return handler.disconnected.has_value(); }));
  EXPECT_NE(handler.disconnected->text().find("Terminate: no Receive posted"), std::string::npos)
      << handler.disconnected->text();
  EXPECT_NE(handler.disconnected->text().find("21020300"), std::string::npos);
}

TEST_F(IwarpPeer, SlowReaderGetsEveryByte) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established && peer->got.size() >= 32; }));
  peer->send(fpdu(tagged(0xc140, 0, 0, {})));
  settle();
  peer->got.clear();
  sockets.clear();  // reads nothing for now
  memory->fill(4);
  constexpr uint64_t writes = 40;
  for (uint64_t i = 0; i < writes; i++) {
    Sge piece{memory->get(), i, (1 << 20) - 64};
    SendRequest r;
    r.id = 1000 + i;
    r.op = Opcode::write;
    r.sge = {&piece, 1};
    r.remote = {0x5000, i << 32};
    ASSERT_TRUE(qp->post_send({&r, 1}).ok());
  }
  qp->flush();
  settle();
  EXPECT_EQ(find(1000 + writes - 1), nullptr) << "the socket cannot have taken 40 MiB";
  sockets = {&*peer};
  ASSERT_TRUE(until([&] { return find(1000 + writes - 1) != nullptr; }));
  size_t at = 0, total = 0;
  ASSERT_TRUE(until([&] {
    while (at + 16 <= peer->got.size()) {
      size_t payload = get(peer->got, at, 2) - 14, whole = (16 + payload + 3) / 4 * 4 + 4;
      if (at + whole > peer->got.size()) break;
      uint64_t offset = get(peer->got, at + 8, 8);
      size_t from = (offset & 0xffffffff) + (offset >> 32);
      if (std::memcmp(&peer->got[at + 16], &(*memory)[from], payload) != 0) return true;
      at += whole;
      total += payload;
    }
    return total == writes * ((1 << 20) - 64);
  }));
  EXPECT_EQ(total, writes * ((1 << 20) - 64));
}

TEST_F(IwarpPeer, DisconnectEndsAtAnFpduBoundary) {
  be_client(request(0x1002, depths_16_16));
  ASSERT_TRUE(until([&] { return handler.established && peer->got.size() >= 32; }));
  peer->send(fpdu(tagged(0xc140, 0, 0, {})));
  settle();
  peer->got.clear();
  sockets.clear();
  for (uint64_t i = 0; i < 40; i++) {
    Sge piece{memory->get(), 0, 1 << 20};
    SendRequest r;
    r.op = Opcode::write;
    r.sge = {&piece, 1};
    ASSERT_TRUE(qp->post_send({&r, 1}).ok());
  }
  qp->flush();
  settle();
  qp->disconnect();
  turn();
  std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{0x77});  // nobody may need it any more
  sockets = {&*peer};
  ASSERT_TRUE(until([&] { return peer->closed; }));
  size_t at = 0;
  while (at + 16 <= peer->got.size()) at += (get(peer->got, at, 2) + 2 + 3) / 4 * 4 + 4;
  EXPECT_EQ(at, peer->got.size());
  EXPECT_EQ(std::count(peer->got.begin(), peer->got.end(), 0x77), 0) << "bytes were taken after the flush";
  peer->end();
  sockets.clear();
  ASSERT_TRUE(until([&] { return handler.disconnected.has_value(); }));
}

TEST_F(IwarpPeer, DeviceNamesBelongToVerbs) {
  ResolveParams params;
  params.device_name = "mlx5_0";
  auto device = provider->resolve(params);
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.error().text().find("provider=verbs"), std::string::npos);
}

TEST_F(IwarpPeer, DeviceMemoryIsRefused) {
  MemoryRange range;
  range.kind = MemoryKind::cuda;
  range.address = memory->bytes().data();
  range.length_bytes = 4096;
  auto region = pd->register_memory(range);
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().errno_value(), ENOTSUP);
}

}  // namespace
}  // namespace nfsrdma::rdma::iwarp
