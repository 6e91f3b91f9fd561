// SPDX-License-Identifier: Apache-2.0
// A session::Server against a FakeServer: loops turned by one thread under a clock that only the test moves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fake_server.hpp"
#include "session/server.hpp"

namespace nfsrdma::session::test {

class World {
 public:
  explicit World(ServerParams p = {}, uint32_t loop_count = 1) {
    for (uint32_t i = 0; i < loop_count; i++)
      loops.push_back(std::make_unique<io::IoLoop>(clock, io::LoopParams{0, "test"}));
    std::vector<io::IoLoop*> plain;
    for (auto& loop : loops) plain.push_back(loop.get());
    p.auth = {"client", 0, 0};
    auto identity = ClientIdentity::make({"", ""}, random, clock);
    server = std::make_unique<Server>(plain, net, std::move(*identity), std::move(p), random);
  }
  ~World() {
    if (!server) return;
    EXPECT_TRUE(stop()) << "stop() hangs";
    settle();
    server.reset();
    // The loops go first: what is still posted runs while everything that it touches is there.
    loops.clear();
  }

  // Turns the loops until `ready`, moving the clock to the next deadline whenever nothing is left to do. False: nothing
  // would ever happen again, or `limit_ns` of virtual time have passed.
  template <class Ready>
  bool until(Ready ready, base::TimeNs limit_ns = base::seconds(3600)) {
    const base::TimeNs end_ns = clock.now_ns() + limit_ns;
    for (uint32_t spins = 0; !ready();) {
      bool worked = false;
      for (auto& loop : loops) worked |= loop->turn(0);
      if (worked) {
        // A loop that is always busy at one instant is a hang too.
        if (++spins > 100'000) return false;
        continue;
      }
      spins = 0;
      base::TimeNs next = base::never_ns;
      for (auto& loop : loops) {
        if (!loop->idle()) next = 0;
        next = std::min(next, loop->next_deadline_ns());
      }
      if (next == base::never_ns || next > end_ns) return false;
      if (next > clock.now_ns()) clock.advance(next - clock.now_ns());
    }
    return true;
  }
  // All that can happen within this time.
  void pass(base::TimeNs time_ns) {
    const base::TimeNs end_ns = clock.now_ns() + time_ns;
    (void)until([] { return false; }, time_ns);
    if (clock.now_ns() < end_ns) clock.advance(end_ns - clock.now_ns());
    settle();
  }
  // All that can happen without time passing.
  void settle() { (void)until([] { return false; }, 0); }

  template <class T>
  std::optional<T> await(io::Task<T> task, base::TimeNs limit_ns = base::seconds(3600)) {
    std::optional<T> out;
    io::Task<T>* t = &task;
    loops[0]->post([t, &out] { io::spawn(std::move(*t), [&out](T r) { out.emplace(std::move(r)); }); });
    (void)until([&] { return out.has_value(); }, limit_ns);
    return out;
  }
  Result<void> start() {
    auto r = await(server->start([this](const char* name, bool ok, uint64_t, const std::string& detail) {
      steps.push_back(std::string(name) + (ok ? ": " : " FAILED: ") + detail);
    }));
    return r ? std::move(*r) : Result<void>(Error(ETIME, ErrorOrigin::local, "start() hangs"));
  }
  bool stop() {
    bool done = false;
    loops[0]->post([this, &done] { io::spawn(stop_and_tell(done)); });
    return until([&] { return done; });
  }

  base::ManualClock clock;
  base::SeededRandom random{1};
  FakeServer far;
  FakeNet net{far};
  std::vector<std::unique_ptr<io::IoLoop>> loops;
  std::unique_ptr<Server> server;
  std::vector<std::string> steps;

 private:
  io::Task<void> stop_and_tell(bool& done) {
    co_await server->stop();
    done = true;
  }
};

// A compound under way: SEQUENCE, PUTROOTFH and, for removals, REMOVE.
class TestCall {
 public:
  static std::unique_ptr<TestCall> read() { return std::unique_ptr<TestCall>(new TestCall(Repeat::freely, "")); }
  static std::unique_ptr<TestCall> remove(const std::string& name) {
    return std::unique_ptr<TestCall>(new TestCall(Repeat::exactly_once, name));
  }

  void start(World& world, uint32_t loop = 0) {
    world.loops[loop]->post([this, &world] { io::spawn(go(*world.server)); });
  }
  // Until it is done; false when it never will be.
  bool run(World& world) {
    start(world);
    return world.until([this] { return done; });
  }
  bool ok() const { return done && result.ok() && status == nfs4::Status::ok; }
  std::string text() const { return !done ? "not done" : result ? "ok" : result.error().text(); }

  SmallCompound compound;
  bool done = false;
  Result<void> result;
  nfs4::Status status = nfs4::Status::ok;
  io::IoLoop* ended_on = nullptr;

 private:
  TestCall(Repeat repeat, const std::string& name)
      : compound(repeat == Repeat::freely ? nfs4::Op::getattr : nfs4::Op::remove, repeat, credential_) {
    compound.add_sequence();
    compound.add(nfs4::PutrootfhArgs{});
    if (!name.empty()) {
      compound.add(nfs4::RemoveArgs{name});
      compound.mark_main();
    }
    removes_ = !name.empty();
    EXPECT_TRUE(compound.seal());
  }
  io::Task<void> go(Server& server) {
    result = co_await server.run(compound);
    if (result) {
      bool good = compound.reader().next<nfs4::PutrootfhResult>();
      if (good && removes_) good = compound.reader().next<nfs4::RemoveResult>();
      if (!good) status = compound.reader().op_status();
    }
    ended_on = io::IoLoop::current();
    done = true;
  }

  rpc::Credential credential_ = rpc::Credential::none();
  bool removes_ = false;
};

}  // namespace nfsrdma::session::test
