// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_framed.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace nfsrdma::bench {
namespace {

constexpr size_t message_bytes = 200;  // a whole Send frame
constexpr size_t header_bytes = 16;
constexpr size_t trailer_bytes = 4;
constexpr size_t fpdu_payload_max = 65520;

struct Message {
  uint32_t slot;
  uint32_t unused;
  uint64_t offset;
};

void put16(char* at, size_t v) {
  at[0] = static_cast<char>(v >> 8);
  at[1] = static_cast<char>(v);
}
size_t get16(const char* at) {
  return static_cast<size_t>(static_cast<uint8_t>(at[0])) << 8 | static_cast<uint8_t>(at[1]);
}

void put_message(char* at, const Message& m) {
  std::memset(at, 0, message_bytes);
  put16(at, message_bytes - 6);
  at[2] = 0x41;
  at[3] = 0x43;
  std::memcpy(at + 20, &m, sizeof m);
}

void sleep_on(int fd) {
  pollfd p{fd, POLLIN, 0};
  poll(&p, 1, -1);
}

// Reads at least one byte; 0: the other side is gone.
size_t read_some(int fd, const iovec* iov, int n, uint32_t spin_us) {
  for (;;) {
    ssize_t got = -1;
    wait_for(
        spin_us,
        [&] {
          got = readv(fd, iov, n);
          return got >= 0 || errno != EAGAIN;
        },
        sleep_on, fd);
    if (got >= 0) return static_cast<size_t>(got);
    must(errno == EAGAIN, "readv");
  }
}

void write_all(int fd, iovec* iov, size_t n) {
  while (n > 0) {
    msghdr m{};
    m.msg_iov = iov;
    m.msg_iovlen = n;
    ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      poll(&p, 1, -1);
      continue;
    }
    must(sent >= 0, "sendmsg");
    for (size_t left = static_cast<size_t>(sent); left > 0;) {
      size_t step = std::min(left, iov->iov_len);
      iov->iov_base = static_cast<char*>(iov->iov_base) + step;
      iov->iov_len -= step;
      left -= step;
      if (iov->iov_len == 0) iov++, n--;
    }
    while (n > 0 && iov->iov_len == 0) iov++, n--;
  }
}

class Server {
 public:
  Server(int fd, const char* file, const ReadLoad& load) : fd_(fd), file_(file), load_(load) {
    iov_.reserve(1024);
    // Small replies go out in groups of a few, large ones by the MiB.
    batch_bytes_ = load.read_bytes >= 65536 ? 1 << 20 : 16 << 10;
  }
  void run() {
    std::vector<char> in(64 << 10);
    size_t have = 0;
    for (;;) {
      iovec iov{in.data() + have, in.size() - have};
      size_t got = read_some(fd_, &iov, 1, load_.spin_us);
      if (got == 0) return;
      have += got;
      size_t at = 0;
      for (; have - at >= message_bytes; at += message_bytes) {
        Message call;
        std::memcpy(&call, &in[at + 20], sizeof call);
        answer(call);
      }
      flush();
      std::memmove(in.data(), in.data() + at, have - at);
      have -= at;
    }
  }

 private:
  char* framing(size_t n) {
    char* at = arena_.data() + used_;
    used_ += n;
    if (!iov_.empty() && static_cast<char*>(iov_.back().iov_base) + iov_.back().iov_len == at)
      iov_.back().iov_len += n;
    else
      iov_.push_back({at, n});
    return at;
  }
  void answer(const Message& call) {
    for (size_t done = 0; done < load_.read_bytes;) {
      size_t n = std::min(fpdu_payload_max, load_.read_bytes - done);
      char* h = framing(header_bytes);
      put16(h, n + header_bytes - 2);
      h[2] = static_cast<char>(done + n == load_.read_bytes ? 0xc1 : 0x81);
      h[3] = 0x40;
      uint32_t offset = static_cast<uint32_t>(done);
      std::memcpy(h + 4, &call.slot, 4);
      std::memcpy(h + 8, &offset, 4);
      iov_.push_back({const_cast<char*>(file_ + call.offset + done), n});
      std::memset(framing(trailer_bytes), 0, trailer_bytes);
      done += n;
      payload_ += n;
    }
    put_message(framing(message_bytes), call);
    if (payload_ >= batch_bytes_) flush();
  }
  void flush() {
    if (!iov_.empty()) write_all(fd_, iov_.data(), iov_.size());
    iov_.clear();
    used_ = payload_ = 0;
  }

  int fd_;
  const char* file_;
  ReadLoad load_;
  size_t batch_bytes_;
  std::vector<char> arena_ = std::vector<char>(1 << 20);
  std::vector<iovec> iov_;
  size_t used_ = 0, payload_ = 0;
};

class Client {
 public:
  Client(int fd, const ReadLoad& load)
      : fd_(fd), load_(load), slots_(load.queue_depth), peek_(load.read_bytes >= 65536 ? 256 : 64 << 10) {
    void* at = mmap(nullptr, load.read_bytes * load.queue_depth, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    must(at != MAP_FAILED, "mmap");
    memory_ = static_cast<char*>(at);
  }
  ReadRate run() {
    double begin = seconds_now();
    stop_ = begin + load_.seconds;
    for (uint32_t i = 0; i < slots_.size(); i++) call(i);
    flush();
    while (outstanding_ > 0) {
      iovec iov[2];
      int n = 0;
      if (left_ > 0) iov[n++] = {target_, left_};
      if (at_ == end_) at_ = end_ = 0;
      iov[n++] = {buffer_.data() + end_, std::min(peek_, buffer_.size() - end_)};
      size_t got = read_some(fd_, iov, n, load_.spin_us);
      must(got > 0, "the server ended");
      size_t direct = std::min(got, left_);
      target_ += direct;
      left_ -= direct;
      end_ += got - direct;
      parse();
      flush();
    }
    ReadRate rate;
    rate.seconds = seconds_now() - begin;
    rate.reads_per_s = static_cast<double>(latency_us_.size()) / rate.seconds;
    munmap(memory_, load_.read_bytes * load_.queue_depth);
    auto middle = latency_us_.begin() + static_cast<ptrdiff_t>(latency_us_.size() / 2);
    std::nth_element(latency_us_.begin(), middle, latency_us_.end());
    rate.p50_us = static_cast<double>(*middle);
    return rate;
  }

 private:
  struct Slot {
    uint64_t offset = 0;
    double begin = 0;
  };
  void call(uint32_t slot) {
    slots_[slot].offset = static_cast<uint64_t>(rand()) % (file_bytes / load_.read_bytes) * load_.read_bytes;
    slots_[slot].begin = seconds_now();
    out_.resize(out_.size() + message_bytes);
    put_message(out_.data() + out_.size() - message_bytes, {slot, 0, slots_[slot].offset});
    outstanding_++;
  }
  void flush() {
    if (out_.empty()) return;
    iovec iov{out_.data(), out_.size()};
    write_all(fd_, &iov, 1);
    out_.clear();
  }
  void parse() {
    for (;;) {
      size_t have = end_ - at_;
      char* at = buffer_.data() + at_;
      if (left_ > 0) {
        size_t n = std::min(have, left_);
        if (n == 0) return;
        std::memcpy(target_, at, n);
        target_ += n;
        left_ -= n;
        at_ += n;
      } else if (trailer_ > 0) {
        if (have < trailer_) return;
        at_ += std::exchange(trailer_, 0);
      } else if (have >= header_bytes && (at[2] & 0x80)) {
        uint32_t slot, offset;
        std::memcpy(&slot, at + 4, 4);
        std::memcpy(&offset, at + 8, 4);
        left_ = get16(at) - (header_bytes - 2);
        must(slot < slots_.size() && offset + left_ <= load_.read_bytes, "bad Write frame");
        target_ = memory_ + slot * load_.read_bytes + offset;
        trailer_ = trailer_bytes;
        at_ += header_bytes;
      } else if (have >= message_bytes) {
        finish(at);
        at_ += message_bytes;
      } else {
        // Little is left here; move it down when the next read would not fit.
        if (buffer_.size() - end_ < peek_) {
          std::memmove(buffer_.data(), at, have);
          at_ = 0;
          end_ = have;
        }
        return;
      }
    }
  }
  void finish(const char* at) {
    Message reply;
    std::memcpy(&reply, at + 20, sizeof reply);
    uint64_t word;
    std::memcpy(&word, memory_ + reply.slot * load_.read_bytes + load_.read_bytes - 8, 8);
    must(word == (slots_[reply.slot].offset + load_.read_bytes) / 8 - 1, "wrong data");
    double now = seconds_now();
    latency_us_.push_back(static_cast<float>((now - slots_[reply.slot].begin) * 1e6));
    outstanding_--;
    if (now < stop_) call(reply.slot);
  }

  int fd_;
  ReadLoad load_;
  std::vector<Slot> slots_;
  size_t peek_;
  char* memory_ = nullptr;
  std::vector<char> buffer_ = std::vector<char>(128 << 10), out_;
  size_t at_ = 0, end_ = 0, left_ = 0, trailer_ = 0, outstanding_ = 0;
  char* target_ = nullptr;
  double stop_ = 0;
  std::vector<float> latency_us_;
};

void connected_pair(int* client, int* server) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof a;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  must(bind(listener, reinterpret_cast<sockaddr*>(&a), n) == 0 && listen(listener, 1) == 0, "listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&a), &n);
  *client = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(*client, reinterpret_cast<sockaddr*>(&a), n) == 0, "connect");
  *server = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
  close(listener);
  int on = 1;
  for (int fd : {*client, *server}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  must(fcntl(*client, F_SETFL, O_NONBLOCK) == 0, "fcntl");
}

}  // namespace

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  _exit(1);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double* shared_number() {
  void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(at != MAP_FAILED, "mmap");
  return static_cast<double*>(at);
}

int make_source_file() {
  int fd = memfd_create("bench", MFD_CLOEXEC);
  must(fd >= 0 && ftruncate(fd, file_bytes) == 0, "memfd");
  auto* words = static_cast<uint64_t*>(mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  must(words != MAP_FAILED, "mmap");
  for (uint64_t i = 0; i < file_bytes / 8; i++) words[i] = i;
  munmap(words, file_bytes);
  return fd;
}

ReadRate run_bare_framed(const ReadLoad& load) {
  int file = make_source_file(), client, server;
  double* server_cpu = shared_number();
  connected_pair(&client, &server);
  pid_t child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    close(client);
    void* at = mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    must(at != MAP_FAILED, "mmap");
    double begin = cpu_seconds();
    Server(server, static_cast<const char*>(at), load).run();
    *server_cpu = cpu_seconds() - begin;
    _exit(0);
  }
  close(server);
  Client reader(client, load);
  double begin = cpu_seconds();
  ReadRate rate = reader.run();
  double client_cpu = cpu_seconds() - begin;
  close(client);
  close(file);
  int status = 0;
  waitpid(child, &status, 0);
  must(status == 0, "the server process failed");
  double reads = rate.reads_per_s * rate.seconds;
  rate.client_cpu_us = client_cpu / reads * 1e6;
  rate.server_cpu_us = *server_cpu / reads * 1e6;
  munmap(server_cpu, 4096);
  return rate;
}

}  // namespace nfsrdma::bench
