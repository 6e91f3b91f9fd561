// SPDX-License-Identifier: Apache-2.0
// Real traffic of the Linux kernel's client and server (minor versions 1 and 2, mount to unmount): every RPC
// message decodes with our types, encodes again to the same bytes, and leaves no byte over - in the reduced
// form in which it travelled and in the whole form.
#include "tests/nfs4/capture.hpp"

#include <gtest/gtest.h>

#include <map>

#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"
#include "nfs4/print.hpp"
#include "rpc/message.hpp"
#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {
namespace {

using capture::Capture;
using capture::RpcMessage;

Buffer copy(ByteView bytes) { return Buffer(bytes.begin(), bytes.end()); }

// Typed attributes must say the same as the raw ones.
void check_attributes(const Fattr& fattr) {
  Attributes values;
  ASSERT_EQ(decode_fattr(fattr, values), FattrRead::complete) << xdr::print(fattr);
  Buffer scratch(65536);
  Fattr again;
  ASSERT_TRUE(encode_fattr(values.present, values, scratch, again));
  EXPECT_EQ(copy(again.values), copy(fattr.values));
}
template <class T>
void check_attributes_of(const T& v) {
  if constexpr (requires { v.attributes.values; }) check_attributes(v.attributes);
  if constexpr (std::is_same_v<T, OpenArgs>) check_attributes(v.how.attributes);
  if constexpr (std::is_same_v<T, ReaddirResult>) {
    for (const DirEntry& entry : v.entries) check_attributes(entry.attributes);
  }
}

class Replayed : public testing::TestWithParam<int> {
 protected:
  // Decodes a COMPOUND's arguments and encodes them again; notes the operations for the reply.
  void check_call_body(ByteView body, std::optional<xdr::OutOfBand> out_of_band, std::vector<Op>& ops) {
    CompoundCallReader call(body, out_of_band);
    ASSERT_TRUE(call.ok());
    EXPECT_EQ(call.minor_version(), static_cast<uint32_t>(GetParam()));
    Buffer out(body.size() + 100);
    CompoundBuilder builder = CompoundBuilder::tagged(out, call.minor_version(), call.tag(),
                                                      out_of_band ? xdr::Form::reduced : xdr::Form::whole);
    ops.clear();
    for (uint32_t op = 0; call.next_op(op);) {
      ops.push_back(static_cast<Op>(op));
      ++operations_[ops.back()];
      const bool known = visit_op(ops.back(), [&]<class Args>() {
        Args args{};
        ASSERT_TRUE(call.args(args)) << to_string(Args::op);
        check_attributes_of(args);
        builder.add(args);
      });
      ASSERT_TRUE(known) << to_string(ops.back());
    }
    EXPECT_TRUE(call.at_end()) << print_compound_call(body, Channel::fore, out_of_band);
    EXPECT_EQ(call.ddp().has_value(), out_of_band.has_value());
    EXPECT_EQ(copy(builder.finish()), copy(body));
  }

  // The same for a reply; the position of the data that was left out comes back.
  void check_reply_body(ByteView body, std::optional<xdr::OutOfBand> out_of_band, const std::vector<Op>& ops,
                        std::optional<xdr::DdpRecord>& ddp) {
    CompoundReader reader(body, static_cast<uint32_t>(ops.size()), out_of_band);
    Buffer out(body.size() + 100);
    CompoundReplyBuilder builder(out, reader.tag(), out_of_band ? xdr::Form::reduced : xdr::Form::whole);
    bool going = true;
    for (Op op : ops) {
      visit_op(op, [&]<class Args>() {
        if (!going) return;
        Outcome<typename Args::Result> outcome;
        going = reader.next(outcome.body);
        outcome.status = reader.op_status();
        if (going) check_attributes_of(outcome.body);
        ASSERT_TRUE(builder.append(outcome));
      });
    }
    EXPECT_EQ(reader.finish(), reader.status() == Status::ok);
    EXPECT_FALSE(reader.malformed()) << reader.complaint() << ": "
                                     << print_compound_reply(body, Channel::fore, out_of_band);
    ddp = reader.ddp();
    EXPECT_EQ(copy(builder.finish()), copy(body));
    if (reader.status() != Status::ok) ++failures_;
  }

  // The RPC call header: decoded, encoded again; where the arguments start.
  void check_call(const RpcMessage& message, std::vector<Op>& ops) {
    uint32_t args_at = 0;
    const Result<rpc::CallHeader> header = rpc::decode_call_header(message.bytes, args_at);
    ASSERT_TRUE(header.ok());
    const rpc::Credential credential =
        header->flavor == rpc::AuthFlavor::sys ? rpc::Credential::sys(header->sys) : rpc::Credential::none();
    Buffer encoded(rpc::call_header_bytes(credential));
    ASSERT_EQ(rpc::encode_call_header(encoded, header->xid, header->program, header->version,
                                      header->procedure, credential),
              args_at);
    EXPECT_EQ(encoded, copy(ByteView(message.bytes).first(args_at)));
    const ByteView body = ByteView(message.bytes).subspan(args_at);
    ops.clear();
    if (header->procedure == procedure_null) {
      ++nulls_;
      EXPECT_TRUE(body.empty());
      return;
    }
    if (!message.data) return check_call_body(body, std::nullopt, ops);
    const xdr::OutOfBand out_of_band{static_cast<uint32_t>(message.data->size()),
                                     message.data_position - args_at};
    check_call_body(body, out_of_band, ops);
    check_call_body(put_back(body, out_of_band.position, *message.data), std::nullopt, ops);
  }

  void check_reply(const RpcMessage& message, const std::vector<Op>& ops) {
    uint32_t results_at = 0;
    ASSERT_TRUE(rpc::decode_reply_header(message.bytes, message.xid, results_at).ok());
    Buffer encoded(results_at);
    ASSERT_EQ(rpc::encode_reply_header(encoded, message.xid, rpc::AcceptStatus::success), results_at);
    EXPECT_EQ(encoded, copy(ByteView(message.bytes).first(results_at)));
    const ByteView body = ByteView(message.bytes).subspan(results_at);
    if (ops.empty()) {
      EXPECT_TRUE(body.empty());
      return;
    }
    std::optional<xdr::DdpRecord> ddp;
    if (!message.data) return check_reply_body(body, std::nullopt, ops, ddp);
    check_reply_body(body, xdr::OutOfBand{static_cast<uint32_t>(message.data->size())}, ops, ddp);
    ASSERT_TRUE(ddp);
    const Buffer whole = put_back(body, ddp->position, *message.data);
    check_reply_body(whole, std::nullopt, ops, ddp);
  }

  // The whole form: the data at its position, with its padding.
  static Buffer put_back(ByteView body, uint32_t position, const Buffer& data) {
    Buffer whole(body.begin(), body.begin() + position);
    whole.insert(whole.end(), data.begin(), data.end());
    whole.resize(whole.size() + xdr::pad_bytes(static_cast<uint32_t>(data.size())));
    whole.insert(whole.end(), body.begin() + position, body.end());
    return whole;
  }

  std::map<Op, uint32_t> operations_;
  uint32_t nulls_ = 0;
  uint32_t failures_ = 0;
};
INSTANTIATE_TEST_SUITE_P(KernelClient, Replayed, testing::Values(1, 2),
                         [](const auto& info) { return "v4_" + std::to_string(info.param); });

TEST_P(Replayed, EveryMessageDecodesAndEncodesAgain) {
  const Capture capture = capture::read_capture(std::string(NFSRDMA_VECTORS) + "/siw-kernel-client-v4" +
                                                std::to_string(GetParam()) + ".pcap");
  EXPECT_TRUE(capture.complaints.empty()) << capture.complaints.front();
  EXPECT_EQ(capture.messages.size(), 752u);
  EXPECT_EQ(capture.fpdus, 856u);
  std::map<uint32_t, std::vector<Op>> calls;
  uint32_t with_data = 0, replies = 0;
  for (const RpcMessage& message : capture.messages) {
    SCOPED_TRACE("xid " + std::to_string(message.xid) + (message.is_call() ? " call" : " reply"));
    EXPECT_EQ(message.is_call(), message.from_client) << "the server makes no calls in these captures";
    with_data += message.data.has_value();
    if (message.is_call()) {
      check_call(message, calls[message.xid]);
    } else {
      ASSERT_TRUE(calls.contains(message.xid));
      check_reply(message, calls[message.xid]);
      ++replies;
    }
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_EQ(replies, 376u);
  EXPECT_EQ(with_data, 3u) << "one WRITE by read chunk, two READs by write chunk";
  EXPECT_GT(failures_, 0u);
  EXPECT_GT(operations_[Op::readdir], 0u);
  EXPECT_GT(operations_[Op::open], 0u);
  EXPECT_EQ(operations_[Op::read], 2u);
  EXPECT_EQ(operations_[Op::write], 3u);
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
