// SPDX-License-Identifier: Apache-2.0
// What the iWARP provider costs above bare frames: the same READs, once written by hand for this one
// exchange, once through the provider (calls and replies as Sends, data by RDMA Write, an exposure made and
// fenced per READ), in alternating runs. Prints medians and their ratio.
//
// usage: iwarp_bound [--seconds S] [--rounds N] [--spin US] [--crc] [--only PART_OF_A_ROW]
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/comparison.hpp"
#include "rdma/providers.hpp"

namespace nfsrdma::bench {
namespace {

using namespace rdma;

constexpr uint32_t call_bytes = 176;  // 200 with its frame, as in the bare run

struct Call {
  uint32_t slot;
  uint32_t key;
  uint64_t base;
  uint64_t offset;
};

struct Connected final : ConnectionHandler {
  bool up = false;
  bool down = false;
  void on_established(const ConnectionInfo&) override { up = true; }
  void on_failed(const Error& why) override { must(false, why.text().c_str()); }
  void on_disconnected(const Error&) override { down = true; }
};

void sleep_on(int fd) {
  pollfd p{fd, POLLIN, 0};
  ::poll(&p, 1, 1000);
}

// One end: its queue, domain and pair.
class End {
 public:
  End(Provider& provider, uint32_t spin_us) : spin_us_(spin_us) {
    cq = take(provider.create_completion_queue(4096));
    pd = take(take(provider.resolve({}))->create_protection_domain());
  }
  std::unique_ptr<Region> memory(void* at, size_t bytes) {
    MemoryRange range;
    range.address = at;
    range.length_bytes = bytes;
    return take(pd->register_memory(range));
  }
  std::span<Completion> poll() {
    size_t n = 0;
    double stop = seconds_now() + spin_us_ / 1e6;
    for (;;) {
      n = cq->poll(static_cast<TimeNs>(seconds_now() * 1e9), out_);
      if (n > 0 || handler.down) break;
      if (cq->moved()) stop = seconds_now() + spin_us_ / 1e6;
      if (seconds_now() >= stop && cq->arm()) {
        if (cq->deadline_ns() != base::never_ns) continue;
        sleep_on(cq->fd());
      }
    }
    return std::span(out_).first(n);
  }
  static QueuePairParams params() {
    QueuePairParams p;
    p.send_depth = 1024;
    p.receive_depth = 256;
    return p;
  }

  std::unique_ptr<CompletionQueue> cq;
  std::shared_ptr<ProtectionDomain> pd;
  Connected handler;
  std::unique_ptr<QueuePair> qp;

 private:
  uint32_t spin_us_;
  Completion out_[64];
};

char* pages(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  must(at != MAP_FAILED, "mmap");
  return static_cast<char*>(at);
}

struct Acceptor final : ListenHandler {
  End* end = nullptr;
  void on_request(std::unique_ptr<ConnectRequest> request) override {
    end->qp = take(request->create_queue_pair(*end->pd, *end->cq, End::params(), end->handler));
    ready();
    take(end->qp->accept({}));
  }
  void (*ready_function)(void*) = nullptr;
  void* context = nullptr;
  void ready() { ready_function(context); }
};

class Server {
 public:
  Server(Provider& provider, int file, const ReadLoad& load) : end_(provider, load.spin_us), load_(load) {
    void* at = mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    must(at != MAP_FAILED, "mmap");
    file_ = end_.memory(at, file_bytes);
    slots_ = 2 * load.queue_depth;
    batch_bytes_ = load.read_bytes >= 65536 ? 1 << 20 : 16 << 10;  // as the bare server
    inbox_bytes_ = pages(slots_ * 256);
    inbox_ = end_.memory(inbox_bytes_, slots_ * 256);
    acceptor_.end = &end_;
    acceptor_.context = this;
    acceptor_.ready_function = [](void* self) {
      for (uint64_t i = 0; i < static_cast<Server*>(self)->slots_; i++)
        static_cast<Server*>(self)->post_receive(i);
    };
    listener_ = take(provider.listen(*base::SocketAddress::parse("127.0.0.1", 0), *end_.cq, acceptor_));
  }
  uint16_t port() const { return listener_->local().port(); }
  void run() {
    while (!end_.handler.down) {
      size_t queued = 0;
      for (const Completion& c : end_.poll()) {
        if (c.op != Opcode::receive || c.status != CompletionStatus::success) continue;
        answer(c.id);
        queued += load_.read_bytes + call_bytes;
        if (queued < batch_bytes_) continue;
        end_.qp->flush();
        queued = 0;
      }
      if (queued) end_.qp->flush();
    }
  }

 private:
  void post_receive(uint64_t i) {
    ReceiveRequest r{i, {inbox_.get(), i * 256, 256}};
    take(end_.qp->post_receive({&r, 1}));
  }
  void answer(uint64_t id) {
    Call call;
    std::memcpy(&call, inbox_bytes_ + id * 256, sizeof call);
    Sge data{file_.get(), call.offset, static_cast<uint32_t>(load_.read_bytes)};
    Sge reply{inbox_.get(), id * 256, call_bytes};
    SendRequest requests[2];
    requests[0].op = Opcode::write;
    requests[0].sge = {&data, 1};
    requests[0].remote = {call.key, call.base};
    requests[0].signaled = false;
    requests[1].sge = {&reply, 1};
    requests[1].signaled = false;
    take(end_.qp->post_send(requests));
    post_receive(id);  // the reply is copied beside its header before the next call can come
  }

  End end_;
  ReadLoad load_;
  std::unique_ptr<Region> file_, inbox_;
  char* inbox_bytes_ = nullptr;
  uint64_t slots_ = 0;
  size_t batch_bytes_ = 0;
  Acceptor acceptor_;
  std::unique_ptr<Listener> listener_;
};

class Client {
 public:
  Client(Provider& provider, uint16_t port, const ReadLoad& load)
      : end_(provider, load.spin_us), load_(load), slots_(load.queue_depth) {
    data_ = pages(load.read_bytes * load.queue_depth);
    data_region_ = end_.memory(data_, load.read_bytes * load.queue_depth);
    messages_ = pages(slots_.size() * 512);
    message_region_ = end_.memory(messages_, slots_.size() * 512);
    end_.qp = take(end_.pd->create_queue_pair(*end_.cq, End::params(), end_.handler));
    ConnectParams params;
    params.remote = *base::SocketAddress::parse("127.0.0.1", port);
    for (uint64_t i = 0; i < slots_.size(); i++) post_receive(i);
    take(end_.qp->connect(params));
    Completion out[8];
    while (!end_.handler.up) end_.cq->poll(static_cast<TimeNs>(seconds_now() * 1e9), out);
  }
  ReadRate run() {
    double begin = seconds_now(), cpu_begin = cpu_seconds();
    stop_ = begin + load_.seconds;
    for (uint32_t i = 0; i < slots_.size(); i++) call(i);
    end_.qp->flush();
    while (outstanding_ > 0) {
      for (const Completion& c : end_.poll()) {
        must(c.op == Opcode::receive && c.status == CompletionStatus::success, to_string(c.status));
        finish(c.id);
      }
      end_.qp->flush();
    }
    ReadRate rate;
    rate.seconds = seconds_now() - begin;
    rate.reads_per_s = static_cast<double>(latency_us_.size()) / rate.seconds;
    rate.client_cpu_us = (cpu_seconds() - cpu_begin) / static_cast<double>(latency_us_.size()) * 1e6;
    auto middle = latency_us_.begin() + static_cast<ptrdiff_t>(latency_us_.size() / 2);
    std::nth_element(latency_us_.begin(), middle, latency_us_.end());
    rate.p50_us = static_cast<double>(*middle);
    ProviderCounters c = end_.cq->counters();
    copied_percent =
        100.0 * static_cast<double>(c.payload_copied_bytes) /
        static_cast<double>(std::max<uint64_t>(1, c.payload_copied_bytes + c.payload_direct_bytes));
    calls_per_read = static_cast<double>(c.syscalls) / static_cast<double>(latency_us_.size());
    return rate;
  }
  double copied_percent = 0;
  double calls_per_read = 0;

 private:
  struct Slot {
    uint64_t offset = 0;
    double begin = 0;
    Exposure exposure;
  };
  void post_receive(uint64_t i) {
    ReceiveRequest r{i, {message_region_.get(), i * 512 + 256, 256}};
    take(end_.qp->post_receive({&r, 1}));
  }
  void call(uint32_t i) {
    Slot& slot = slots_[i];
    slot.offset = static_cast<uint64_t>(rand()) % (file_bytes / load_.read_bytes) * load_.read_bytes;
    slot.begin = seconds_now();
    slot.exposure = take(end_.qp->expose(*data_region_, i * load_.read_bytes,
                                         static_cast<uint32_t>(load_.read_bytes), Purpose::write_target));
    Call c{i, slot.exposure.key, slot.exposure.base, slot.offset};
    std::memcpy(messages_ + i * 512, &c, sizeof c);
    Sge piece{message_region_.get(), i * 512, call_bytes};
    SendRequest r;
    r.sge = {&piece, 1};
    r.signaled = false;
    take(end_.qp->post_send({&r, 1}));
    outstanding_++;
  }
  void finish(uint64_t receive) {
    Call reply;
    std::memcpy(&reply, messages_ + receive * 512 + 256, sizeof reply);
    must(reply.slot < slots_.size(), "bad reply");
    Slot& slot = slots_[reply.slot];
    must(end_.qp->fence(slot.exposure, 1), "fence");
    uint64_t word;
    std::memcpy(&word, data_ + (reply.slot + 1) * load_.read_bytes - 8, 8);
    must(word == (slot.offset + load_.read_bytes) / 8 - 1, "wrong data");
    post_receive(receive);
    double now = seconds_now();
    latency_us_.push_back(static_cast<float>((now - slot.begin) * 1e6));
    outstanding_--;
    if (now < stop_) call(reply.slot);
  }

  End end_;
  ReadLoad load_;
  std::vector<Slot> slots_;
  char* data_ = nullptr;
  char* messages_ = nullptr;
  std::unique_ptr<Region> data_region_, message_region_;
  size_t outstanding_ = 0;
  double stop_ = 0;
  std::vector<float> latency_us_;
};

struct ProviderRate {
  ReadRate rate;
  double copied_percent = 0;
  double calls_per_read = 0;
};

ProviderRate run_provider(const ReadLoad& load, bool crc) {
  int file = make_source_file(), pipe_fds[2];
  must(pipe(pipe_fds) == 0, "pipe");
  double* server_cpu = shared_number();
  IwarpOptions options;
  options.crc = crc;
  pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    auto provider = make_iwarp_provider(options);
    Server server(*provider, file, load);
    uint16_t port = server.port();
    must(write(pipe_fds[1], &port, sizeof port) == sizeof port, "pipe");
    double begin = cpu_seconds();
    server.run();
    *server_cpu = cpu_seconds() - begin;
    _exit(0);
  }
  uint16_t port = 0;
  must(read(pipe_fds[0], &port, sizeof port) == sizeof port, "pipe");
  ProviderRate result;
  {
    auto provider = make_iwarp_provider(options);
    Client client(*provider, port, load);
    result.rate = client.run();
    result.copied_percent = client.copied_percent;
    result.calls_per_read = client.calls_per_read;
  }
  for (int fd : {file, pipe_fds[0], pipe_fds[1]}) close(fd);
  int status = 0;
  waitpid(child, &status, 0);
  must(status == 0, "the server process failed");
  result.rate.server_cpu_us = *server_cpu / (result.rate.reads_per_s * result.rate.seconds) * 1e6;
  munmap(server_cpu, 4096);
  return result;
}

void compare(const char* name, const ReadLoad& load, const Arguments& arguments) {
  Comparison comparison;
  ProviderRate last;
  for (int i = 0; i < arguments.rounds; i++) {
    ReadRate bare = run_bare_framed(load);
    last = run_provider(load, arguments.crc);
    comparison.add(bare, last.rate);
  }
  char more[100];
  std::snprintf(more, sizeof more, "; copied %.2f %%, client system calls per READ %.2f", last.copied_percent,
                last.calls_per_read);
  comparison.print(name, load, arguments.crc ? "provider+crc" : "provider", more);
}

}  // namespace
}  // namespace nfsrdma::bench

int main(int argc, char** argv) {
  using namespace nfsrdma::bench;
  const Arguments arguments = parse_arguments(argc, argv, 3, true);
  auto row = [&](const char* name, size_t bytes, size_t depth) {
    if (!arguments.wants(name)) return;
    ReadLoad load = arguments.load;
    load.read_bytes = bytes;
    load.queue_depth = depth;
    compare(name, load, arguments);
  };
  std::printf("READ over iWARP framing on loopback, spin %u us, medians of %d runs of %.1f s\n", arguments.load.spin_us,
              arguments.rounds, arguments.load.seconds);
  row("1 MiB queue depth 1", 1 << 20, 1);
  row("1 MiB queue depth 8", 1 << 20, 8);
  row("64 KiB queue depth 8", 64 << 10, 8);
  row("4 KiB queue depth 1", 4096, 1);
  row("4 KiB queue depth 32", 4096, 32);
  return 0;
}
