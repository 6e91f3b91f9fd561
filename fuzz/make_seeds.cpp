// SPDX-License-Identifier: Apache-2.0
// usage: make_seeds CORPUS_DIR CAPTURE... : seeds for compound_reply and fattr4 from the kernel's traffic, and for
// callback_call by our own encoder.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "capture.hpp"
#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"
#include "nfs4/op_table.hpp"
#include "rpc/message.hpp"

using namespace nfsrdma;

namespace {

constexpr size_t call_args_at_max = 40 + 400;

void write_seed(const std::filesystem::path& dir, const std::string& name, std::span<const std::byte> head,
                std::span<const std::byte> body) {
  std::filesystem::create_directories(dir);
  std::ofstream out(dir / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(head.data()), static_cast<std::streamsize>(head.size()));
  out.write(reinterpret_cast<const char*>(body.data()), static_cast<std::streamsize>(body.size()));
}

// Operation numbers of a COMPOUND call, empty when it is none.
std::vector<uint8_t> operations_of(const capture::RpcMessage& call) {
  std::vector<uint8_t> ops;
  uint32_t args_at = 0;
  std::span<const std::byte> bytes = call.bytes;
  if (bytes.size() < 40) return ops;
  auto load = [&](size_t at) { return base::load_be<uint32_t>(bytes.data() + at); };
  if (load(20) != 1) return ops;  // procedure
  uint32_t credential = load(28);
  if (credential > call_args_at_max) return ops;
  args_at = 32 + credential + base::pad4(credential) + 8;
  if (args_at >= bytes.size()) return ops;
  std::optional<xdr::OutOfBand> data;
  if (call.data) data = xdr::OutOfBand{static_cast<uint32_t>(call.data->size()), call.data_position - args_at};
  nfs4::CompoundCallReader reader(bytes.subspan(args_at), data);
  for (uint32_t op = 0; reader.next_op(op) && ops.size() < 15;) {
    bool good = false;
    nfs4::visit_op(static_cast<nfs4::Op>(op), [&]<class Args>() {
      Args args;
      good = reader.args(args);
    });
    if (!good) break;
    ops.push_back(static_cast<uint8_t>(op));
  }
  return ops;
}

void seeds_of_reply(const std::filesystem::path& corpus, const std::vector<uint8_t>& ops,
                    const capture::RpcMessage& reply, std::set<std::string>& seen) {
  if (reply.bytes.size() < 24 || reply.bytes.size() > 6000) return;
  std::string name = reply.data ? "placed" : "whole";
  for (uint8_t op : ops) name += "-" + std::to_string(op);
  if (!seen.insert(name).second) return;
  std::vector<std::byte> head;
  uint8_t flags = static_cast<uint8_t>(ops.size() | (reply.data ? 0x80u : 0u));
  head.push_back(std::byte{flags});
  for (uint8_t op : ops) head.push_back(std::byte{op});
  std::span<const std::byte> body(reply.bytes.data() + 24, reply.bytes.size() - 24);
  write_seed(corpus / "compound_reply", name, head, body);
  nfs4::CompoundReader reader(body, static_cast<uint32_t>(ops.size()));
  for (uint8_t op : ops) {
    bool good = false;
    nfs4::visit_op(static_cast<nfs4::Op>(op), [&]<class Args>() {
      typename Args::Result result{};
      good = reader.next(result);
      if constexpr (Args::op == nfs4::Op::getattr) {
        if (!good) return;
        std::vector<std::byte> raw(result.attributes.values.size() + 64);
        xdr::Encoder encoder{std::span<std::byte>(raw)};
        encoder(result.attributes);
        write_seed(corpus / "fattr4", name + ".attributes", {}, encoder.written());
      }
    });
    if (!good) return;
  }
}

template <class... Args>
void callback_seed(const std::filesystem::path& corpus, const char* name, const Args&... args) {
  std::vector<std::byte> message(2048);
  rpc::AuthSys auth;
  auth.machine = "server";
  uint32_t n = rpc::encode_call_header(message, 0x01020304, rpc::callback_program, rpc::callback_version,
                                       sizeof...(Args) ? 1 : 0, rpc::Credential::sys(auth));
  auto builder = nfs4::CompoundBuilder::callback(base::Bytes(message).subspan(n), 1);
  nfs4::CbSequenceArgs sequence;
  sequence.sequenceid = 1;
  builder.add(sequence);
  (builder.add(args), ...);
  auto body = sizeof...(Args) ? builder.finish() : std::span<const std::byte>{};
  write_seed(corpus / "callback_call", name, base::ConstBytes(message).first(n), body);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: make_seeds CORPUS_DIR CAPTURE...\n"), 2;
  std::filesystem::path corpus = argv[1];
  std::set<std::string> seen;
  for (int i = 2; i < argc; i++) {
    capture::Capture traffic = capture::read_capture(argv[i]);
    std::map<uint32_t, std::vector<uint8_t>> calls;
    for (const capture::RpcMessage& m : traffic.messages) {
      if (m.is_call()) {
        calls[m.xid] = operations_of(m);
      } else if (auto call = calls.find(m.xid); call != calls.end() && !call->second.empty()) {
        seeds_of_reply(corpus, call->second, m, seen);
      }
    }
  }
  callback_seed(corpus, "null");
  callback_seed(corpus, "recall", nfs4::CbRecallArgs{});
  callback_seed(corpus, "getattr", nfs4::CbGetattrArgs{{}, nfs4::Bitmap{nfs4::attr::size, nfs4::attr::change}});
  callback_seed(corpus, "recall_any", nfs4::CbRecallAnyArgs{3, {}});
  callback_seed(corpus, "recall_slot", nfs4::CbRecallSlotArgs{7});
  callback_seed(corpus, "notify_lock", nfs4::CbNotifyLockArgs{});
  callback_seed(corpus, "two", nfs4::CbRecallSlotArgs{7}, nfs4::CbRecallAnyArgs{});
  return 0;
}
