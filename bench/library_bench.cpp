// SPDX-License-Identifier: Apache-2.0
// What the whole library costs above bare frames: READs by nfsrdma::Mount from nfsrdma-serve over iWARP on loopback,
// its file in memory, in alternating runs with the same READs as bare frames. One connection and one io thread on
// either side, no CRC, the same spin. Prints medians and their ratio.
//
// usage: library_bench [--seconds S] [--rounds N] [--spin US] [--only PART_OF_A_ROW]
#include <nfsrdma/mount.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <semaphore>
#include <string>
#include <vector>

#include "bench/bare_framed.hpp"

namespace nfsrdma::bench {
namespace {

template <class T>
T take(Result<T> result) {
  if (!result) must(false, result.error().text().c_str());
  return std::move(*result);
}

// nfsrdma-serve as a child, over a directory with one file whose 64-bit word i is i.
class Served {
 public:
  explicit Served(uint32_t spin_us) {
    std::string place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    directory_ = place + "/nfsrdma-bench-XXXXXX";
    must(mkdtemp(directory_.data()) != nullptr, "mkdtemp");
    fill();
    int out[2];
    must(pipe(out) == 0, "pipe");
    child_ = fork();
    must(child_ >= 0, "fork");
    if (child_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      std::string program =
          (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/nfsrdma-serve").string();
      std::string spin = std::to_string(spin_us);
      execl(program.c_str(), "nfsrdma-serve", directory_.c_str(), "--listen", "127.0.0.1:0", "--provider", "iwarp",
            "--threads", "1", "--spin", spin.c_str(), "--no-root-squash", nullptr);
      _exit(127);
    }
    close(out[1]);
    FILE* lines = fdopen(out[0], "r");
    char line[256] = "";
    must(fgets(line, sizeof line, lines) && std::sscanf(line, "ready %199s", url_) == 1, "nfsrdma-serve did not start");
    fclose(lines);
  }
  ~Served() {
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  const char* url() const { return url_; }
  // User and system time so far.
  double cpu_seconds() const {
    FILE* file = fopen(("/proc/" + std::to_string(child_) + "/stat").c_str(), "r");
    char text[1024] = "";
    must(file && fgets(text, sizeof text, file), "the server's /proc/stat");
    fclose(file);
    unsigned long user = 0, system = 0;
    const char* at = std::strrchr(text, ')');
    std::sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  void fill() const {
    int from = make_source_file(), to = open((directory_ + "/file").c_str(), O_WRONLY | O_CREAT, 0644);
    must(to >= 0, "creating the file");
    for (size_t done = 0; done < file_bytes;) {
      ssize_t n = copy_file_range(from, nullptr, to, nullptr, file_bytes - done, 0);
      if (n <= 0) {
        std::vector<char> piece(1 << 20);
        must(pread(from, piece.data(), piece.size(), static_cast<off_t>(done)) == static_cast<ssize_t>(piece.size()), "pread");
        n = pwrite(to, piece.data(), piece.size(), static_cast<off_t>(done));
      }
      must(n > 0, "filling the file");
      done += static_cast<size_t>(n);
    }
    close(from);
    close(to);
  }

  std::string directory_;
  pid_t child_ = -1;
  char url_[200] = "";
};

// queue_depth READs at once, each followed by the next on the mount's own thread.
class Reader {
 public:
  Reader(const Served& served, const ReadLoad& load) : load_(load), slots_(load.queue_depth) {
    Options options = take(parse_url(served.url()));
    options.provider = ProviderKind::iwarp;
    options.loops = 1;
    options.spin_us = static_cast<int32_t>(load.spin_us);
    mount_ = take(Mount::connect(options));
    memory_.resize(load.read_bytes * load.queue_depth);
    region_ = take(mount_->register_memory(memory_.data(), memory_.size()));
    const Credentials& who = mount_->default_credentials();
    file_ = take(mount_->open(take(mount_->resolve("/file", true, who)).node, open_read, who)).file;
  }
  ReadRate run(const Served& served) {
    const double begin = seconds_now(), cpu_begin = cpu_seconds(), server_begin = served.cpu_seconds();
    stop_ = begin + load_.seconds;
    mount_->loops()[0]->post([this] {
      for (size_t i = 0; i < slots_.size(); i++) read(i);
    });
    done_.acquire();
    ReadRate rate;
    rate.seconds = seconds_now() - begin;
    const double reads = static_cast<double>(latency_us_.size());
    rate.reads_per_s = reads / rate.seconds;
    rate.client_cpu_us = (cpu_seconds() - cpu_begin) / reads * 1e6;
    rate.server_cpu_us = (served.cpu_seconds() - server_begin) / reads * 1e6;
    auto middle = latency_us_.begin() + static_cast<ptrdiff_t>(latency_us_.size() / 2);
    std::nth_element(latency_us_.begin(), middle, latency_us_.end());
    rate.p50_us = static_cast<double>(*middle);
    take(mount_->close(file_));
    return rate;
  }

 private:
  struct Slot {
    uint64_t offset = 0;
    double begin = 0;
  };
  void take(const Result<void>& result) { must(result.ok(), result ? "" : result.error().text().c_str()); }
  template <class T>
  T take(Result<T> result) {
    return bench::take(std::move(result));
  }
  void read(size_t i) {
    Slot& slot = slots_[i];
    slot.offset = static_cast<uint64_t>(rand()) % (file_bytes / load_.read_bytes) * load_.read_bytes;
    slot.begin = seconds_now();
    outstanding_++;
    mount_->read(file_, slot.offset, region_.slice(i * load_.read_bytes, load_.read_bytes),
                 [this, i](Result<ReadResult> result) { finish(i, std::move(result)); });
  }
  void finish(size_t i, Result<ReadResult> result) {
    if (!result) must(false, result.error().text().c_str());
    must(result->length == load_.read_bytes, "a short READ");
    uint64_t word;
    std::memcpy(&word, memory_.data() + (i + 1) * load_.read_bytes - 8, 8);
    must(word == (slots_[i].offset + load_.read_bytes) / 8 - 1, "wrong data");
    const double now = seconds_now();
    latency_us_.push_back(static_cast<float>((now - slots_[i].begin) * 1e6));
    outstanding_--;
    if (now < stop_) return read(i);
    if (outstanding_ == 0) done_.release();
  }

  ReadLoad load_;
  std::vector<Slot> slots_;
  std::unique_ptr<Mount> mount_;
  std::vector<std::byte> memory_;
  Region region_;
  File file_;
  // The loop's:
  size_t outstanding_ = 0;
  double stop_ = 0;
  std::vector<float> latency_us_;
  std::binary_semaphore done_{0};
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void compare(const char* name, const ReadLoad& load, int rounds) {
  Served served(load.spin_us);
  std::vector<ReadRate> bare, own;
  std::vector<double> ratio, cpu_ratio;
  for (int i = 0; i < rounds; i++) {
    bare.push_back(run_bare_framed(load));
    own.push_back(Reader(served, load).run(served));
    const ReadRate &b = bare.back(), &p = own.back();
    ratio.push_back(p.reads_per_s / b.reads_per_s);
    cpu_ratio.push_back((b.client_cpu_us + b.server_cpu_us) / (p.client_cpu_us + p.server_cpu_us));
  }
  const bool bulk = load.read_bytes >= 65536;
  const double scale = bulk ? static_cast<double>(load.read_bytes) / 1e9 : 1e-3;
  std::printf("%s\n", name);
  auto line = [&](const char* who, const std::vector<ReadRate>& rates) {
    auto middle = [&](double ReadRate::* field) {
      std::vector<double> v;
      for (const ReadRate& rate : rates) v.push_back(rate.*field);
      return median(std::move(v));
    };
    std::printf("  %-8s %8.2f %s  p50 %7.1f us  CPU us per READ: client %6.2f server %6.2f\n", who,
                middle(&ReadRate::reads_per_s) * scale, bulk ? "GB/s" : "k/s", middle(&ReadRate::p50_us),
                middle(&ReadRate::client_cpu_us), middle(&ReadRate::server_cpu_us));
  };
  line("bare", bare);
  line("library", own);
  std::printf("  ratio %.2f (%.2f to %.2f), by CPU time %.2f\n", median(ratio),
              *std::min_element(ratio.begin(), ratio.end()), *std::max_element(ratio.begin(), ratio.end()),
              median(cpu_ratio));
  std::fflush(stdout);
}

}  // namespace
}  // namespace nfsrdma::bench

int main(int argc, char** argv) {
  using namespace nfsrdma::bench;
  ReadLoad load;
  int rounds = 5;
  std::string only;
  for (int i = 1; i < argc; i++) {
    std::string arg = argv[i];
    if (i + 1 < argc && arg == "--seconds") {
      load.seconds = std::atof(argv[++i]);
    } else if (i + 1 < argc && arg == "--only") {
      only = argv[++i];
    } else if (i + 1 < argc && arg == "--rounds") {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (i + 1 < argc && arg == "--spin") {
      load.spin_us = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else {
      std::fprintf(stderr, "usage: library_bench [--seconds S] [--rounds N] [--spin US] [--only PART_OF_A_ROW]\n");
      return 2;
    }
  }
  auto row = [&](const char* name, size_t bytes, size_t depth) {
    if (std::string(name).find(only) == std::string::npos) return;
    load.read_bytes = bytes;
    load.queue_depth = depth;
    compare(name, load, rounds);
  };
  std::printf("READ by the library from nfsrdma-serve, iWARP on loopback, spin %u us, medians of %d runs of %.1f s\n",
              load.spin_us, rounds, load.seconds);
  row("1 MiB queue depth 1", 1 << 20, 1);
  row("1 MiB queue depth 8", 1 << 20, 8);
  row("4 KiB queue depth 1", 4096, 1);
  row("4 KiB queue depth 32", 4096, 32);
  return 0;
}
