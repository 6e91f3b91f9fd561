// SPDX-License-Identifier: Apache-2.0
// COMPOUND calls as a client may send them, answered by the whole server over a directory of its own. An input is a row
// of calls, each
//   flags (1 byte), length (2 bytes), arguments (length bytes)
// with, when flag out_of_band is set, position / 4 (2 bytes) and length (2 bytes) of the data before the arguments. Each
// call is answered or its connection dropped, and nothing outside the directory changes. A new server is started every
// few inputs only, since that costs more than an input; each input has a client of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/server/harness.hpp"

using namespace nfsrdma;
using namespace nfsrdma::server::testing;

namespace {

enum Flag : uint8_t {
  in_session = 1,   // a SEQUENCE in front gets the session's id and the next sequence id
  out_of_band = 2,  // data that came by read chunk
  inline_only = 4,  // no write chunk is offered
  small_reply = 8,
  other_user = 16,
};

constexpr size_t calls_max = 8;
constexpr unsigned inputs_per_server = 200;
constexpr char outside_text[] = "not yours";

// The exported directory lies beside a file that nothing may reach.
class Place {
 public:
  Place() {
    top_.emplace();
    top_->write("outside", outside_text);
    std::string below = std::filesystem::temp_directory_path();
    setenv("TMPDIR", top_->path().c_str(), 1);
    exported_.emplace();
    setenv("TMPDIR", below.c_str(), 1);
  }
  const TempDir& exported() const { return *exported_; }

  void fill() const {
    namespace fs = std::filesystem;
    for (const fs::directory_entry& entry : fs::directory_iterator(exported_->path())) fs::remove_all(entry.path());
    chmod(exported_->path().c_str(), 0755);
    exported_->write("f", std::string(8192, 'f'));
    fs::create_directory(exported_->path("d"));
    exported_->write("d/a", "a");
    exported_->write("d/b", "");
    fs::create_symlink("../outside", exported_->path("l"));
    fs::create_directory_symlink("..", exported_->path("up"));
  }
  void check() const {
    if (top_->read("outside") != outside_text) std::abort();
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(top_->path())) entries++;
    if (entries != 2) std::abort();
  }

 private:
  std::optional<TempDir> top_, exported_;  // the inner one goes first
};

const Place& place() {
  // In memory where there is such a place.
  static const bool ready = [] {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    ::testing::GTEST_FLAG(break_on_failure) = true;  // the harness's own expectations
    return true;
  }();
  static_cast<void>(ready);
  static const Place the_place;
  return the_place;
}

// Tag, minor version, number of operations, SEQUENCE: its ids stand at a place that the tag decides.
void join_session(std::span<std::byte> args, const TestClient& client) {
  if (args.size() < 4) return;
  size_t at = 4 + size_t{base::load_be<uint32_t>(args.data())};
  at = (at + 3) / 4 * 4 + 8;
  if (at > args.size() || args.size() - at < 24) return;
  if (base::load_be<uint32_t>(args.data() + at) != static_cast<uint32_t>(nfs4::Op::sequence)) return;
  std::memcpy(args.data() + at + 4, client.session.session_id.data(), client.session.session_id.size());
  base::store_be(args.data() + at + 20, client.sequence);
}

struct Input {
  const uint8_t* data;
  size_t size;
  uint32_t take(size_t bytes) {
    uint32_t v = 0;
    for (; bytes > 0 && size > 0; bytes--, size--) v = v << 8 | *data++;
    return v;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::unique_ptr<Rig> rig;
  static unsigned inputs = 0;
  if (inputs++ % inputs_per_server == 0) {
    rig.reset();
    rig = std::make_unique<Rig>(place().exported());
  }
  place().fill();
  TestClient client(*rig, "client " + std::to_string(inputs % inputs_per_server));
  client.options.results_bytes_max = 4096;
  client.establish();
  Input in{data, size};
  for (size_t i = 0; i < calls_max && in.size > 0 && !client.connection->dropped; i++) {
    uint32_t flags = in.take(1);
    CallOptions options;
    if (flags & out_of_band) {
      options.data_position = in.take(2) * 4;
      options.data.assign(std::clamp<size_t>(in.take(2), 1, 16384), 'w');
    }
    size_t n = std::min<size_t>(in.take(2), in.size);
    std::vector<std::byte> args(n);
    if (n) std::memcpy(args.data(), in.data, n);
    in.data += n;
    in.size -= n;
    if (flags & in_session) join_session(args, client);
    if (flags & inline_only) options.write_chunk_bytes = 0;
    options.results_bytes_max = flags & small_reply ? 512 : 65536;
    if (flags & other_user) options.uid = options.gid = 1000;
    Caught caught = rig->call(*client.connection, args, options);
    if (!caught.replied && !caught.destroyed) std::abort();
    // RFC 8881, 2.10.6.1: the slot has moved on unless SEQUENCE itself failed.
    if (caught.results.size() < 16 || !(flags & in_session)) continue;
    nfs4::CompoundReader reader(caught.results, 1);
    nfs4::SequenceResult sequenced;
    if (reader.result_count() > 0 && reader.next(sequenced)) client.sequence++;
  }
  rig->disconnect(*client.connection);
  place().check();
  return 0;
}
