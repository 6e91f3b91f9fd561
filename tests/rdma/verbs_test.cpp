// SPDX-License-Identifier: Apache-2.0
// What only a device has: queue pair attributes, silent peers, pinned memory, and revocation that ends the pair.
// Runs where rdma_verbs_contract does. Names with F are field cases of verbs users.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "rdma/verbs/queue_pair.hpp"
#include "tests/rdma/contract_harness.hpp"
#include "tests/rdma/verbs_options.hpp"

namespace nfsrdma::rdma::contract {
namespace {

class Verbs : public ContractTest {
 protected:
  void TearDown() override {
    client_.qp.reset();
    server_.qp.reset();
    owned_.clear();
    ContractTest::TearDown();
  }
  Memory& memory(End& end, size_t bytes) {
    owned_.push_back(std::make_unique<Memory>(*end.pd, bytes));
    return *owned_.back();
  }
  static verbs::VerbsQueuePair& pair(End& end) { return *static_cast<verbs::VerbsQueuePair*>(end.qp.get()); }
  static ibv_qp* hardware(End& end) { return pair(end).hardware(); }
  // Both ends anew, on the same queues and domains.
  void start_afresh() {
    for (End* end : {&client_, &server_}) {
      end->qp.reset();
      end->handler = Handler{};
      end->seen.clear();
    }
  }
  // One end's device stops to answer; the other, which sends, has to notice.
  void silence(End& silent, End& speaker);
  bool iwarp() { return device_->describe().find("iWARP") != std::string::npos; }

 private:
  std::vector<std::unique_ptr<Memory>> owned_;
};

// F15: the receiver-not-ready timer's default means 655 ms.
TEST_P(Verbs, F15_ReceiverNotReadyTimerIsBelowOneMillisecond) {
  if (iwarp()) GTEST_SKIP() << "iWARP has no such timer";
  connect_pair();
  for (End* end : {&client_, &server_}) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(hardware(*end), &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_RNR_RETRY, &init), 0);
    EXPECT_GE(attr.min_rnr_timer, 1);   // 0.01 ms; 0 is 655 ms
    EXPECT_LE(attr.min_rnr_timer, 13);  // 0.96 ms
    EXPECT_LT(attr.rnr_retry, 7) << "7 retries for ever";
  }
}

// F15: a burst of 100 messages towards 8 Receives, each posted before its credit is used.
TEST_P(Verbs, F15_BurstNeverMeetsAMissingReceive) {
  auto counter = [&] {
    std::ifstream file("/sys/class/infiniband/" + verbs_test_options().device + "/ports/1/hw_counters/rcvd_rnr_err");
    uint64_t value = 0;
    file >> value;
    return value;
  };
  connect_pair();
  open_both_ways();
  Memory& in = memory(client_, 8 * 64);
  Memory& out = memory(server_, 64);
  uint64_t before = counter();
  for (uint64_t i = 0; i < 8; i++) ASSERT_TRUE(receive(client_, i, in, i * 64, 64).ok());
  client_.seen.clear();
  size_t sent = 0, handled = 0, credits = 8;
  ASSERT_TRUE(until([&] {
    for (; credits > 0 && sent < 100; credits--, sent++) EXPECT_TRUE(send(server_, 1000 + sent, out, 0, 64).ok());
    for (; handled < client_.seen.size(); handled++) {
      EXPECT_EQ(client_.seen[handled].status, CompletionStatus::success);
      uint64_t slot = client_.seen[handled].id;
      EXPECT_TRUE(receive(client_, slot, in, slot * 64, 64).ok());
      credits++;
    }
    return handled == 100;
  }));
  EXPECT_EQ(counter(), before);
}

// F12: the path's MTU is what the connection manager agreed on, never a constant.
TEST_P(Verbs, F12_PathMtuIsTheOneThatWasAgreed) {
  if (iwarp()) GTEST_SKIP() << "iWARP leaves it to TCP";
  connect_pair();
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(hardware(client_)->context, 1, &port), 0);
  for (End* end : {&client_, &server_}) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(hardware(*end), &attr, IBV_QP_PATH_MTU, &init), 0);
    EXPECT_EQ(attr.path_mtu, port.active_mtu);
    std::string wanted = " mtu " + std::to_string(128u << attr.path_mtu);
    EXPECT_NE(end->handler.path.find(wanted), std::string::npos) << end->handler.path;
  }
  // More than one packet of it, both ways.
  open_both_ways();
  Memory& from = memory(server_, 20'000);
  Memory& to = memory(client_, 20'000);
  from.fill(4);
  ASSERT_TRUE(receive(client_, 1, to, 0, 20'000).ok());
  ASSERT_TRUE(send(server_, 2, from, 0, 20'000).ok());
  ASSERT_TRUE(until([&] { return client_.find(1) != nullptr; }));
  EXPECT_TRUE(to.has(4, 0, 20'000));
}

void Verbs::silence(End& silent, End& speaker) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(hardware(speaker), &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, &init), 0);
  EXPECT_GT(attr.timeout, 0) << "0 waits for ever";
  EXPECT_LT(attr.retry_cnt, 7) << "on rxe 7 retries without end";
  attr = {};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(hardware(silent), &attr, IBV_QP_STATE), 0);
  Memory& out = memory(speaker, 64);
  ASSERT_TRUE(send(speaker, 1, out, 0, 64).ok());
  ASSERT_TRUE(send(speaker, 2, out, 0, 64).ok());
  // The bound is until()'s 8 s: seven time-outs of 0.54 s, and room for a slow machine.
  ASSERT_TRUE(until([&] { return speaker.handler.disconnected.has_value(); }));
  EXPECT_EQ(speaker.handler.disconnected->errno_value(), ETIMEDOUT);
  EXPECT_NE(speaker.handler.disconnected->text().find("MTU"), std::string::npos);
  ASSERT_TRUE(until([&] { return speaker.find(1) && speaker.find(2); }));
  EXPECT_EQ(speaker.find(1)->status, CompletionStatus::retry_exceeded);
  EXPECT_EQ(speaker.find(2)->status, CompletionStatus::flushed);
  EXPECT_EQ(speaker.handler.disconnected_calls, 1);
}

// F12: a peer that went silent is noticed within 8 s, reported once, with a hint at the MTU; a new connection works.
TEST_P(Verbs, F12_SilentPeerIsReportedOnceWithAHint) {
  if (iwarp()) GTEST_SKIP() << "TCP retransmits for longer";
  connect_pair();
  open_both_ways();
  silence(server_, client_);
  start_afresh();
  connect_pair();
  open_both_ways();
}

// The side that accepted has its number of retries from the peer's request, its time-out from itself.
TEST_P(Verbs, F12_SilentPeerIsNoticedByTheAcceptingSide) {
  if (iwarp()) GTEST_SKIP() << "TCP retransmits for longer";
  connect_pair();
  open_both_ways();
  silence(client_, server_);
}

// What the connection manager may say of a connection that stands ends it, once, with its own reason.
TEST_P(Verbs, EachEventOfTheConnectionManagerThatEndsAConnection) {
  struct Ending {
    rdma_cm_event_type type;
    int status;
    int error;
    const char* words;
  };
  const Ending endings[] = {{RDMA_CM_EVENT_DISCONNECTED, 0, ECONNRESET, "closed"},
                            {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ETIMEDOUT, "unreachable"},
                            {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ENODEV, "removed"},
                            {RDMA_CM_EVENT_ADDR_CHANGE, 0, ENETDOWN, "moved away"}};
  for (const Ending& ending : endings) {
    start_afresh();
    connect_pair();
    open_both_ways();
    Memory& in = memory(client_, 64);
    ASSERT_TRUE(receive(client_, 7, in, 0, 64).ok());
    verbs::CmEvent event;
    event.type = ending.type;
    event.status = ending.status;
    pair(client_).on_cm_event(event);
    EXPECT_FALSE(client_.handler.disconnected) << "inside of the event";
    pair(client_).on_cm_event(event);
    ASSERT_TRUE(both_down());
    settle();
    EXPECT_EQ(client_.handler.disconnected->errno_value(), ending.error);
    EXPECT_NE(client_.handler.disconnected->text().find(ending.words), std::string::npos)
        << client_.handler.disconnected->text();
    EXPECT_EQ(client_.handler.disconnected_calls, 1);
    EXPECT_EQ(client_.count(7), 1u);
    EXPECT_EQ(client_.find(7)->status, CompletionStatus::flushed);
  }
}

// A message that does not fit ends the connection with that reason.
TEST_P(Verbs, MessageThatDoesNotFitIsNamed) {
  connect_pair();
  open_both_ways();
  Memory& in = memory(server_, 64);
  Memory& out = memory(client_, 128);
  ASSERT_TRUE(receive(server_, 3, in, 0, 64).ok());
  ASSERT_TRUE(send(client_, 4, out, 0, 128).ok());
  ASSERT_TRUE(both_down());
  ASSERT_TRUE(until([&] { return server_.find(3) != nullptr; }));
  if (server_.find(3)->status == CompletionStatus::length_error) {
    EXPECT_EQ(server_.handler.disconnected->errno_value(), EMSGSIZE);
    EXPECT_NE(server_.handler.disconnected->text().find("longer"), std::string::npos);
  } else {
    EXPECT_TRUE(iwarp()) << "siw only flushes";
  }
}

// The same on the accepting side before it was told that the connection stands: it is over then, and no completion after
// that one says so.
TEST_P(Verbs, FailureBeforeTheAcceptingSideIsToldEndsTheConnection) {
  if (iwarp()) GTEST_SKIP() << "siw does not show when its queue pair has failed";
  std::unique_ptr<Memory> in = std::make_unique<Memory>(*server_.pd, 64);
  Memory& out = memory(client_, 128);
  before_accept_ = [&] { ASSERT_TRUE(receive(server_, 3, *in, 0, 64).ok()); };
  server_params_ = default_params();
  listen();
  auto qp = client_.pd->create_queue_pair(*client_.cq, default_params(), client_.handler);
  ASSERT_TRUE(qp.ok());
  client_.qp = std::move(*qp);
  ConnectParams params;
  params.remote = listener_->local();
  ASSERT_TRUE(client_.qp->connect(params).ok());
  auto within = [&](End* polled, auto&& done) {
    TimeNs limit = base::system_clock().now_ns() + base::seconds(8);
    for (; !done() && base::system_clock().now_ns() < limit;) polled ? drain(*polled) : std::this_thread::yield();
    return done();
  };
  // The server's loop stops with the accept; the client's, so that it does not tell, with its message.
  ASSERT_TRUE(until([&] { return server_.qp != nullptr; }));
  ASSERT_TRUE(within(&client_, [&] { return client_.handler.established; }));
  ASSERT_TRUE(send(client_, 4, out, 0, 128).ok());
  ASSERT_TRUE(within(nullptr, [&] {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    return ibv_query_qp(hardware(server_), &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
  }));
  server_.cq->arm();  // takes the failed Receive from the device, and leaves the connection manager's word unread
  EXPECT_FALSE(server_.handler.established);
  ASSERT_TRUE(within(&server_, [&] { return server_.handler.disconnected || server_.handler.failed; }));
  ASSERT_TRUE(within(&server_, [&] { return server_.find(3) != nullptr; }));
  EXPECT_NE(server_.find(3)->status, CompletionStatus::success);
  server_.qp.reset();
}

// The device takes no more Receives than it was asked for: all that were named come back, also those that were behind
// the one that it refused.
TEST_P(Verbs, ReceivesThatTheDeviceRefusesComeBackFlushed) {
  connect_pair();
  open_both_ways();
  Memory& in = memory(client_, 64);
  ibv_sge piece{reinterpret_cast<uint64_t>(in.bytes().data()), 64, static_cast<verbs::VerbsRegion*>(in.get())->lkey()};
  ibv_recv_wr filler{};
  filler.wr_id = ~uint64_t{0};
  filler.sg_list = &piece;
  filler.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  int error = 0;
  for (int i = 0; i < 100'000 && error == 0; i++) error = ibv_post_recv(hardware(client_), &filler, &refused);
  ASSERT_NE(error, 0) << "the device's queue has no end";
  std::vector<ReceiveRequest> requests(50);
  for (size_t i = 0; i < requests.size(); i++) {
    requests[i].id = 100 + i;
    requests[i].sge = {in.get(), 0, 64};
  }
  ASSERT_TRUE(client_.qp->post_receive(requests).ok());
  ASSERT_TRUE(until([&] { return client_.handler.disconnected.has_value(); }));
  EXPECT_EQ(client_.handler.disconnected->errno_value(), ENOMEM);
  EXPECT_NE(client_.handler.disconnected->text().find("posting a Receive"), std::string::npos);
  settle();
  for (const ReceiveRequest& request : requests) {
    ASSERT_EQ(client_.count(request.id), 1u) << request.id;
    EXPECT_EQ(client_.find(request.id)->status, CompletionStatus::flushed);
  }
}

// F13: a child that lives on while the device writes takes neither memory nor descriptors along.
TEST_P(Verbs, F13_MemoryStaysTheParentsAfterAFork) {
  connect_pair();
  open_both_ways();
  EXPECT_NE(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
  Memory& in = memory(client_, 4096);
  Memory& out = memory(server_, 4096);
  ASSERT_TRUE(receive(client_, 1, in, 0, 4096).ok());
  out.fill(3);
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(pipe_fds[1]);
    _exit(static_cast<int>(read(pipe_fds[0], &byte, 1)));
  }
  in.fill(9);  // the parent writes first: where pages are shared with the child, it now has a copy of its own
  ASSERT_TRUE(send(server_, 2, out, 0, 4096).ok());
  EXPECT_TRUE(until([&] { return client_.find(1) != nullptr; }));
  EXPECT_TRUE(in.has(3, 0, 4096));
  close(pipe_fds[0]);
  close(pipe_fds[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_P(Verbs, F13_NoDescriptorReachesAProgramThatIsRun) {
  connect_pair();
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find("infiniband") == std::string::npos && target.find("event") == std::string::npos) continue;
    seen++;
    EXPECT_TRUE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) << entry.path() << " " << target;
  }
  EXPECT_GE(seen, 4u) << "the device, its events, the connection manager, a loop";
}

TEST_P(Verbs, RevocationBeforeConnectIsHeardOnce) {
  auto qp = client_.pd->create_queue_pair(*client_.cq, default_params(), client_.handler);
  ASSERT_TRUE(qp.ok());
  client_.qp = std::move(*qp);
  Memory& inbox = memory(client_, 64);
  ASSERT_TRUE(receive(client_, 1, inbox, 0, 64).ok());
  (*inbox).revoke();
  settle();
  ASSERT_TRUE(client_.handler.failed);
  EXPECT_EQ(client_.handler.failed->errno_value(), EIO);
  ASSERT_EQ(client_.count(1), 1u);
  EXPECT_EQ(client_.find(1)->status, CompletionStatus::flushed);
  ConnectParams params;
  params.remote = GetParam().address;
  EXPECT_EQ(client_.qp->connect(params).error().errno_value(), ENOTCONN);
  EXPECT_EQ(client_.handler.failed_calls, 1);
}

// Takes what arrives at the server as a loop does, on a thread of its own: it sleeps on the descriptor alone, for
// longer than the test has patience, so that a wake-up that is lost fails the test.
class Sleeper {
 public:
  Sleeper(End& end, Memory& in) : end_(end), in_(in), thread_([this] { run(); }) {}
  ~Sleeper() { thread_.join(); }
  void stop() { stop_ = true; }
  size_t arrived() const { return arrived_; }
  size_t wakeups() const { return wakeups_; }

 private:
  void run() {
    while (!stop_) {
      Completion batch[8];
      TimeNs now_ns = base::system_clock().now_ns();
      size_t n = end_.cq->poll(now_ns, batch);
      for (size_t i = 0; i < n; i++) repost(batch[i]);
      arrived_ += n;  // after the Receives are posted again: whoever sees it may send
      if (n > 0 || !end_.cq->arm()) continue;
      TimeNs until_ns = std::min(end_.cq->deadline_ns(), now_ns + base::seconds(20));
      pollfd waiting{end_.cq->fd(), POLLIN, 0};
      ::poll(&waiting, 1, static_cast<int>((until_ns - std::min(until_ns, now_ns)) / 1'000'000 + 1));
      wakeups_++;
    }
  }
  void repost(const Completion& completion) {
    ReceiveRequest request;
    request.id = completion.id;
    request.sge = {in_.get(), 0, 64};
    EXPECT_EQ(completion.status, CompletionStatus::success);
    EXPECT_TRUE(end_.qp->post_receive({&request, 1}).ok());
  }

  End& end_;
  Memory& in_;
  std::atomic<size_t> arrived_{0};
  std::atomic<size_t> wakeups_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// F14: 1, 16 and 200 completions for one wake-up, and one message more in the moment in which the loop goes to sleep.
TEST_P(Verbs, F14_NoCompletionIsLostAndIdleIsQuiet) {
  QueuePairParams params = default_params();
  params.send_depth = params.receive_depth = 256;
  connect_pair(params, params);
  open_both_ways();
  Memory& in = memory(server_, 64);
  Memory& out = memory(client_, 64);
  const size_t bursts[] = {1, 16, 200};
  for (size_t i = 0; i < 240; i++) ASSERT_TRUE(receive(server_, i, in, 0, 64).ok());
  client_.seen.clear();
  size_t sent = 0, told = 0;
  Sleeper sleeper(server_, in);
  auto send_some = [&](size_t n) {
    for (size_t i = 0; i < n; i++, sent++) EXPECT_TRUE(send(client_, sent, out, 0, 8, i + 1 == n).ok());
    told++;
  };
  // The other end belongs to the sleeper: until() would poll it too.
  auto await = [&](size_t arrivals, size_t completions, TimeNs patience_ns) {
    TimeNs limit = base::system_clock().now_ns() + patience_ns;
    auto there = [&] { return sleeper.arrived() >= arrivals && client_.seen.size() >= completions; };
    while (!there() && base::system_clock().now_ns() < limit) drain(client_);
    return there();
  };
  bool good = true;
  for (size_t round = 0; round < 300 && good && !HasFailure(); round++) {
    send_some(bursts[round % 3]);
    good = await(sent - std::min<size_t>(round % 4, bursts[round % 3]), 0, base::seconds(8));
    send_some(1);
    // Both ends are done with all: neither queue is ever asked for more than its depth.
    good = good && await(sent, told, base::seconds(8));
  }
  EXPECT_TRUE(good) << "sent " << sent << ", arrived " << sleeper.arrived() << ", completions of the sender: "
                    << client_.seen.size() << " of " << told;
  for (const Completion& completion : client_.seen) EXPECT_EQ(completion.status, CompletionStatus::success);
  size_t before = sleeper.wakeups();
  await(sent + 1, 0, base::ms(200));
  EXPECT_LE(sleeper.wakeups() - before, 1u) << "woken while nothing happened";
  sleeper.stop();
  send_some(1);  // wakes it up
}

TEST_P(Verbs, RevocationEndsThePairThatExposesTheMemory) {
  connect_pair();
  open_both_ways();
  Memory& target = memory(client_, 4096);
  Memory& local = memory(server_, 4096);
  local.fill(1);
  auto exposure = expose(client_, target, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  (*target).revoke();
  std::byte one[1];
  EXPECT_EQ((*target).copy_out(0, one).error().errno_value(), EIO);
  EXPECT_EQ((*target).copy_in(0, one).error().errno_value(), EIO);
  EXPECT_EQ((*target).make_visible(0, 1).error().errno_value(), EIO);
  (void)tagged(server_, Opcode::write, 1, {{local.get(), 0, 4096}}, {exposure->key, exposure->base});
  ASSERT_TRUE(both_down());
  EXPECT_EQ(client_.handler.disconnected->errno_value(), EIO);
  EXPECT_NE(client_.handler.disconnected->text().find("revoked"), std::string::npos);
  EXPECT_TRUE(target.all(std::byte{0}, 0, 4096));
}

TEST_P(Verbs, RevokedReceiveMemoryIsNotWritten) {
  connect_pair();
  open_both_ways();
  Memory& inbox = memory(client_, 4096);
  Memory& local = memory(server_, 4096);
  local.fill(1);
  ASSERT_TRUE(receive(client_, 1, inbox, 0, 4096).ok());
  (*inbox).revoke();
  (void)send(server_, 2, local, 0, 100);
  ASSERT_TRUE(both_down());
  ASSERT_TRUE(until([&] { return client_.find(1) != nullptr; }));
  EXPECT_NE(client_.find(1)->status, CompletionStatus::success);
  EXPECT_TRUE(inbox.all(std::byte{0}, 0, 4096));
}

TEST_P(Verbs, RevocationSparesPairsThatDoNotUseTheMemory) {
  connect_pair();
  open_both_ways();
  Memory& idle = memory(client_, 4096);
  auto used = expose(client_, idle, 0, 4096, Purpose::write_target);
  ASSERT_TRUE(used.ok());
  ASSERT_TRUE(fence(client_, *used, 50));
  (*idle).revoke();
  settle();
  EXPECT_FALSE(client_.handler.disconnected);
  EXPECT_EQ(send(client_, 1, idle, 0, 16).error().errno_value(), EIO);
  EXPECT_EQ(receive(client_, 1, idle, 0, 16).error().errno_value(), EIO);
  EXPECT_EQ(client_.qp->expose(*idle, 0, 16, Purpose::read_source).error().errno_value(), EIO);
  client_.seen.clear();
  server_.seen.clear();
  open_both_ways();
}

TEST_P(Verbs, RevocationByAnotherThreadStopsTheBytes) {
  connect_pair();
  open_both_ways();
  constexpr uint32_t bytes = 1 << 20;
  Memory& target = memory(client_, bytes);
  Memory& source = memory(server_, bytes);
  auto exposure = expose(client_, target, 0, bytes, Purpose::write_target);
  ASSERT_TRUE(exposure.ok());
  std::atomic<bool> give_up{false}, revoked{false};
  bool changed = false;
  std::thread owner([&] {
    volatile const std::byte* middle = &target[bytes / 2];
    while (*middle == std::byte{0} && !give_up) std::this_thread::yield();
    (*target).revoke();
    std::vector<std::byte> before(target.bytes().begin(), target.bytes().end());
    revoked = true;
    for (int i = 0; i < 20; i++) changed |= !std::equal(before.begin(), before.end(), target.bytes().begin());
  });
  for (uint8_t round = 1; round < 60 && !revoked && !client_.handler.disconnected; round++) {
    source.fill(round);
    if (!tagged(server_, Opcode::write, round, {{source.get(), 0, bytes}}, {exposure->key, exposure->base})) break;
    until([&] { return server_.find(round) != nullptr || server_.handler.disconnected; });
  }
  give_up = !until([&] { return revoked.load(); });
  owner.join();
  EXPECT_FALSE(changed);
  EXPECT_TRUE(both_down());
}

// F9: registering beyond RLIMIT_MEMLOCK. The case in tests/vm runs this without CAP_IPC_LOCK.
TEST_P(Verbs, F9_MemlockLimitIsNamed) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) GTEST_SKIP() << "no limit here: tests/vm/cases/13_verbs_memlock sets one";
  constexpr size_t bytes = 256 << 20;
  void* at = aligned_alloc(4096, bytes);
  ASSERT_NE(at, nullptr);
  MemoryRange range;
  range.address = at;
  range.length_bytes = bytes;
  auto region = client_.pd->register_memory(range);
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().errno_value(), ENOMEM);
  const std::string& text = region.error().text();
  EXPECT_NE(text.find(std::to_string(bytes)), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(limit.rlim_cur)), std::string::npos) << text;
  EXPECT_NE(text.find("RLIMIT_MEMLOCK"), std::string::npos) << text;
  EXPECT_NE(text.find(verbs_test_options().device), std::string::npos) << text;
  free(at);
}

INSTANTIATE_TEST_SUITE_P(Device, Verbs, testing::ValuesIn(contract_providers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nfsrdma::rdma::contract
