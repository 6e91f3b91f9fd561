// SPDX-License-Identifier: Apache-2.0
// Cost of the hottest compound: encode SEQUENCE+PUTFH+READ, decode its reply, each beside hand-written stores
// and loads for the same bytes. Made for counting instructions (bench/codec_instructions runs it under
// callgrind):
//
//   codec_bench encode|encode-by-hand|decode|decode-by-hand COUNT
//
// Before it counts, it checks that both ways give the same bytes and the same values.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"

namespace {

using namespace nfsrdma;
using namespace nfsrdma::nfs4;

constexpr uint32_t fh_bytes = 28;  // a handle of the Linux server
constexpr uint32_t buffer_bytes = 512;

struct Call {
  SequenceArgs sequence;
  PutfhArgs putfh;
  ReadArgs read;
};

struct Answer {
  SequenceResult sequence;
  ReadResult read;
};

[[gnu::noinline]] uint32_t encode(const Call& call, std::span<std::byte> out) {
  CompoundBuilder builder(out, 1);
  builder.add(call.sequence);
  builder.add(call.putfh);
  builder.add(call.read);
  return static_cast<uint32_t>(builder.finish().size());
}

[[gnu::noinline]] uint32_t encode_by_hand(const Call& call, std::span<std::byte> out) {
  const uint32_t fh = call.putfh.fh.data.size;
  const uint32_t fh_padded = (fh + 3) & ~3u;
  const uint32_t total = 12 + 4 + 32 + 8 + fh_padded + 32;
  if (fh > file_handle_bytes_max || out.size() < total) return 0;
  std::byte* p = out.data();
  const auto word = [&p](uint32_t v) {
    v = __builtin_bswap32(v);
    std::memcpy(p, &v, 4);
    p += 4;
  };
  word(0);
  word(1);
  word(3);
  word(53);
  std::memcpy(p, call.sequence.session_id.data(), 16);
  p += 16;
  word(call.sequence.sequenceid);
  word(call.sequence.slotid);
  word(call.sequence.highest_slotid);
  word(call.sequence.cache_this);
  word(22);
  word(fh);
  if (fh_padded != 0) std::memset(p + fh_padded - 4, 0, 4);
  std::memcpy(p, call.putfh.fh.data.bytes.data(), fh);
  p += fh_padded;
  word(25);
  word(call.read.stateid.seqid);
  std::memcpy(p, call.read.stateid.other.data(), 12);
  p += 12;
  const uint64_t offset = __builtin_bswap64(call.read.offset);
  std::memcpy(p, &offset, 8);
  p += 8;
  word(call.read.count);
  return total;
}

[[gnu::noinline]] bool decode(std::span<const std::byte> in, uint32_t placed, Answer& answer) {
  CompoundReader reader(in, 3, xdr::OutOfBand{placed});
  return reader.next(answer.sequence) && reader.next<PutfhResult>() && reader.next(answer.read) &&
         reader.finish();
}

// Does the same job: results may end at any operation, each has its own status, nothing is read out of
// bounds.
[[gnu::noinline]] bool decode_by_hand(std::span<const std::byte> in, uint32_t placed, Answer& answer) {
  const std::byte* p = in.data();
  const std::byte* const end = p + in.size();
  const auto word = [&p](size_t index) {
    uint32_t v;
    std::memcpy(&v, p + index * 4, 4);
    return __builtin_bswap32(v);
  };
  if (end - p < 12 || word(0) != 0 || word(1) != 0 || word(2) != 3) return false;
  p += 12;
  if (end - p < 44 || word(0) != 53 || word(1) != 0) return false;
  std::memcpy(answer.sequence.session_id.data(), p + 8, 16);
  answer.sequence.sequenceid = word(6);
  answer.sequence.slotid = word(7);
  answer.sequence.highest_slotid = word(8);
  answer.sequence.target_highest_slotid = word(9);
  answer.sequence.status_flags = word(10);
  p += 44;
  if (end - p < 8 || word(0) != 22 || word(1) != 0) return false;
  p += 8;
  if (end - p < 16 || word(0) != 25 || word(1) != 0 || word(2) > 1) return false;
  answer.read.eof = word(2) != 0;
  if (word(3) != placed) return false;
  answer.read.data.length = word(3);
  answer.read.data.position = static_cast<uint32_t>(p + 16 - in.data());
  answer.read.data.inline_bytes = {};
  p += 16;
  return p == end;
}

Call sample_call() {
  Call call;
  for (size_t i = 0; i < 16; ++i) call.sequence.session_id[i] = static_cast<std::byte>(i + 1);
  call.sequence.sequenceid = 77;
  call.sequence.slotid = 5;
  call.sequence.highest_slotid = 9;
  std::byte fh[fh_bytes];
  for (uint32_t i = 0; i < fh_bytes; ++i) fh[i] = static_cast<std::byte>(i);
  call.putfh.fh = FileHandle(fh);
  call.read.stateid.other[3] = std::byte{9};
  call.read.offset = 1 << 20;
  call.read.count = 1 << 20;
  return call;
}

uint32_t sample_reply(std::span<std::byte> out) {
  CompoundReplyBuilder builder(out, {}, xdr::Form::reduced);
  builder.append(SequenceResult{{std::byte{3}}, 77, 5, 9, 63, 0});
  builder.append(PutfhResult{});
  builder.append(ReadResult{false, xdr::DdpItem::elsewhere(1 << 20)});
  return static_cast<uint32_t>(builder.finish().size());
}

bool same(const Answer& a, const Answer& b) {
  return a.sequence.session_id == b.sequence.session_id && a.sequence.sequenceid == b.sequence.sequenceid &&
         a.sequence.slotid == b.sequence.slotid && a.sequence.highest_slotid == b.sequence.highest_slotid &&
         a.sequence.target_highest_slotid == b.sequence.target_highest_slotid &&
         a.sequence.status_flags == b.sequence.status_flags && a.read.eof == b.read.eof &&
         a.read.data.length == b.read.data.length && a.read.data.position == b.read.data.position;
}

bool agree(const Call& call, std::span<const std::byte> reply) {
  std::byte ours[buffer_bytes], theirs[buffer_bytes];
  const uint32_t a = encode(call, ours), b = encode_by_hand(call, theirs);
  Answer x, y;
  return a != 0 && a == b && std::memcmp(ours, theirs, a) == 0 && decode(reply, 1 << 20, x) &&
         decode_by_hand(reply, 1 << 20, y) && same(x, y);
}

// Runs f(i) count times; the sum keeps the compiler from dropping the work.
template <class F>
int repeat(long count, F&& f) {
  uint64_t sum = 0;
  for (long i = 0; i < count; ++i) sum += f(static_cast<uint32_t>(i));
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}

int run(std::string_view what, long count) {
  Call call = sample_call();
  std::byte reply_buffer[buffer_bytes], out[buffer_bytes];
  const std::span<const std::byte> reply(reply_buffer, sample_reply(reply_buffer));
  if (!agree(call, reply)) {
    std::fputs("the two ways disagree\n", stderr);
    return 1;
  }
  Answer answer;
  if (what == "encode") {
    return repeat(count, [&](uint32_t i) {
      call.sequence.sequenceid = i;
      return encode(call, out);
    });
  }
  if (what == "encode-by-hand") {
    return repeat(count, [&](uint32_t i) {
      call.sequence.sequenceid = i;
      return encode_by_hand(call, out);
    });
  }
  if (what == "decode") return repeat(count, [&](uint32_t) { return decode(reply, 1 << 20, answer); });
  if (what == "decode-by-hand") {
    return repeat(count, [&](uint32_t) { return decode_by_hand(reply, 1 << 20, answer); });
  }
  std::fputs("usage: codec_bench [encode|encode-by-hand|decode|decode-by-hand COUNT]\n", stderr);
  return 2;
}

// Instructions that callgrind counts for one run of this program; 0 when it cannot be asked.
uint64_t instructions(const std::string& self, const char* what, long count) {
  const std::string command = "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" + self + "' " +
                              what + " " + std::to_string(count) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return 0;
  uint64_t collected = 0;
  char line[512];
  while (std::fgets(line, sizeof line, pipe)) {
    if (const char* at = std::strstr(line, "Collected :")) collected = std::strtoull(at + 11, nullptr, 10);
  }
  pclose(pipe);
  return collected;
}

double instructions_per_call(const std::string& self, const char* what) {
  constexpr long low = 1000, high = 11000;
  const uint64_t a = instructions(self, what, low), b = instructions(self, what, high);
  return a == 0 || b <= a ? 0 : static_cast<double>(b - a) / (high - low);
}

int report(const std::string& self) {
  for (const char* what : {"encode", "decode"}) {
    const double ours = instructions_per_call(self, what);
    const double hand = instructions_per_call(self, (std::string(what) + "-by-hand").c_str());
    if (ours == 0 || hand == 0) {
      std::fputs("valgrind did not count: is it installed?\n", stderr);
      return 1;
    }
    std::printf(
        "%s of SEQUENCE+PUTFH+READ: %.0f instructions, hand-written stores %.0f, ratio %.2f (bar 2)\n", what,
        ours, hand, ours / hand);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return report(argv[0]);
  return run(argv[1], argc > 2 ? std::strtol(argv[2], nullptr, 10) : 0);
}
