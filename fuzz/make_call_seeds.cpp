// SPDX-License-Identifier: Apache-2.0
// usage: make_call_seeds CORPUS_DIR : seeds for compound_call, by our own encoder.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/server/harness.hpp"

using namespace nfsrdma;
using namespace nfsrdma::nfs4;
using server::testing::AttributeSet;
using server::testing::encode;
using server::testing::Encoded;

namespace {

constexpr uint8_t in_session = 1, out_of_band = 2;

void put(std::string& to, size_t v, int bytes) {
  while (bytes-- > 0) to.push_back(static_cast<char>(v >> 8 * bytes));
}

struct Row {
  std::string bytes;
  template <class... Args>
  Row& call(const Args&... args) {
    add(in_session, encode(xdr::Form::whole, SequenceArgs{}, args...));
    return *this;
  }
  template <class... Args>
  Row& alone(const Args&... args) {
    add(0, encode(xdr::Form::whole, args...));
    return *this;
  }
  template <class... Args>
  Row& placed(size_t data_bytes, const Args&... args) {
    Encoded e = encode(xdr::Form::reduced, SequenceArgs{}, args...);
    put(bytes, in_session | out_of_band, 1);
    put(bytes, e.data_position / 4, 2);
    put(bytes, data_bytes, 2);
    put(bytes, e.bytes.size(), 2);
    bytes.append(reinterpret_cast<const char*>(e.bytes.data()), e.bytes.size());
    return *this;
  }

 private:
  void add(uint8_t flags, const Encoded& e) {
    put(bytes, flags, 1);
    put(bytes, e.bytes.size(), 2);
    bytes.append(reinterpret_cast<const char*>(e.bytes.data()), e.bytes.size());
  }
};

std::filesystem::path corpus;

void seed(const std::string& name, const Row& row) {
  std::ofstream(corpus / name, std::ios::binary) << row.bytes;
}

LookupArgs look(std::string_view name) {
  LookupArgs args;
  args.name = name;
  return args;
}

OpenArgs open_args(std::string_view name, bool create, const AttributeSet& mode) {
  OpenArgs args;
  args.share_access = share::access_both;
  args.owner = {0, base::bytes_of(std::string_view("owner"))};
  args.claim.name = name;
  if (create) {
    args.how.type = OpenType::create;
    args.how.attributes = mode.fattr;
  }
  return args;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: make_call_seeds CORPUS_DIR\n"), 2;
  corpus = std::filesystem::path(argv[1]) / "compound_call";
  std::filesystem::create_directories(corpus);
  const AttributeSet mode = AttributeSet::mode(0640), size = AttributeSet::size(100);
  // Every operation with its plainest arguments, on a file, a directory, and before any handle is there.
  for (uint32_t number = 3; number < 60; number++) {
    visit_op(static_cast<Op>(number), [&]<class Args>() {
      if constexpr (requires(CompoundBuilder& b, Args a) { b.add(a); }) {
        seed("op-" + std::to_string(number), Row()
                                                 .call(PutrootfhArgs{}, look("f"), Args{})
                                                 .call(PutrootfhArgs{}, SavefhArgs{}, look("d"), Args{})
                                                 .alone(Args{}));
      }
    });
  }
  WriteArgs write;
  write.stateid = current_stateid;
  write.stable = StableHow::file_sync;
  write.data = xdr::DdpItem::elsewhere(1000);
  ReadArgs read;
  read.stateid = current_stateid;
  read.count = 4096;
  CloseArgs close;
  close.stateid = current_stateid;
  SetattrArgs resize;
  resize.stateid = current_stateid;
  resize.attributes = size.fattr;
  ReaddirArgs list;
  list.dircount_bytes = 1000;
  list.maxcount_bytes = 8000;
  list.mask = Bitmap{attr::type, attr::size, attr::fileid, attr::filehandle};
  RenameArgs rename;
  rename.old_name = "f";
  rename.new_name = "g";
  RemoveArgs remove;
  remove.name = "l";
  LinkArgs link;
  link.new_name = "h";
  seed("write", Row().placed(1000, PutrootfhArgs{}, open_args("n", true, mode), write));
  seed("read", Row().call(PutrootfhArgs{}, open_args("f", false, mode), read, close));
  seed("resize", Row().call(PutrootfhArgs{}, open_args("f", false, mode), resize, GetfhArgs{}));
  seed("list", Row().call(PutrootfhArgs{}, list).call(PutrootfhArgs{}, look("d"), list));
  seed("rename", Row().call(PutrootfhArgs{}, SavefhArgs{}, rename).call(PutrootfhArgs{}, SavefhArgs{}, look("d"), rename));
  seed("remove", Row().call(PutrootfhArgs{}, remove).call(PutrootfhArgs{}, look("l"), ReadlinkArgs{}));
  seed("link", Row().call(PutrootfhArgs{}, look("f"), SavefhArgs{}, PutrootfhArgs{}, link));
  seed("up", Row().call(PutrootfhArgs{}, look(".."), GetfhArgs{}).call(PutrootfhArgs{}, look("up"), look("outside")));
  seed("above", Row().call(PutrootfhArgs{}, LookuppArgs{}, GetfhArgs{}).call(PutrootfhArgs{}, look("d"), LookuppArgs{}));
  return 0;
}
