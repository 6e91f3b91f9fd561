// SPDX-License-Identifier: Apache-2.0
// What the whole library costs above bare frames: READs by nfsrdma::Mount from nfsrdma-serve over iWARP on loopback,
// its file in memory, in alternating runs with the same READs as bare frames. One connection and one io thread on
// either side, no CRC, the same spin. Prints medians and their ratio.
//
// usage: library_bench [--seconds S] [--rounds N] [--spin US] [--only PART_OF_A_ROW]
#include <nfsrdma/mount.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
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

#include "bench/comparison.hpp"

namespace nfsrdma::bench {
namespace {

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
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // must() ends this process without a destructor
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
        ssize_t have = pread(from, piece.data(), piece.size(), static_cast<off_t>(done));
        must(have == static_cast<ssize_t>(piece.size()), "pread");
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
  void read(size_t i) {
    Slot& slot = slots_[i];
    slot.offset = static_cast<uint64_t>(rand()) % (file_bytes / load_.read_bytes) * load_.read_bytes;
    slot.begin = seconds_now();
    outstanding_++;
    mount_->read(file_, slot.offset, region_.slice(i * load_.read_bytes, load_.read_bytes),
                 [this, i](Result<ReadResult> result) { finish(i, std::move(result)); });
  }
  void finish(size_t i, Result<ReadResult> result) {
    must(take(std::move(result)).length == load_.read_bytes, "a short READ");
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

void compare(const char* name, const ReadLoad& load, int rounds, const Served& served) {
  Comparison comparison;
  for (int i = 0; i < rounds; i++) {
    ReadRate bare = run_bare_framed(load);
    comparison.add(bare, Reader(served, load).run(served));
  }
  comparison.print(name, load, "library");
}

}  // namespace
}  // namespace nfsrdma::bench

int main(int argc, char** argv) {
  using namespace nfsrdma::bench;
  const Arguments arguments = parse_arguments(argc, argv, 5, false);
  const Served served(arguments.load.spin_us);
  auto row = [&](const char* name, size_t bytes, size_t depth) {
    if (!arguments.wants(name)) return;
    ReadLoad load = arguments.load;
    load.read_bytes = bytes;
    load.queue_depth = depth;
    compare(name, load, arguments.rounds, served);
  };
  std::printf("READ by the library from nfsrdma-serve, iWARP on loopback, spin %u us, medians of %d runs of %.1f s\n",
              arguments.load.spin_us, arguments.rounds, arguments.load.seconds);
  row("1 MiB queue depth 1", 1 << 20, 1);
  row("1 MiB queue depth 8", 1 << 20, 8);
  row("4 KiB queue depth 1", 4096, 1);
  row("4 KiB queue depth 32", 4096, 32);
  return 0;
}
