// SPDX-License-Identifier: Apache-2.0
#include "nfs4/print.hpp"

#include "nfs4/op_table.hpp"
#include "xdr/printer.hpp"

namespace nfsrdma::nfs4 {
namespace {

const char* op_name(Channel channel, uint32_t op) {
  return channel == Channel::fore ? to_string(static_cast<Op>(op)) : to_string(static_cast<CbOp>(op));
}

// False when the operation has no types here, or its bytes do not decode.
template <class F>
bool visit(Channel channel, uint32_t op, F&& f) {
  return channel == Channel::fore ? visit_op(static_cast<Op>(op), f) : visit_op(static_cast<CbOp>(op), f);
}

void print_end(xdr::Printer& printer, const xdr::Decoder& decoder) {
  if (!decoder.ok()) {
    printer.literal(" <malformed: ");
    printer.literal(xdr::to_string(decoder.fault()));
    printer.literal(">");
  } else if (!decoder.at_end()) {
    printer.literal(" <");
    printer.literal(std::to_string(decoder.remaining()));
    printer.literal(" bytes unread>");
  }
}

}  // namespace

std::string print_compound_call(ByteView args, Channel channel, std::optional<xdr::OutOfBand> out_of_band) {
  xdr::Decoder decoder(args, out_of_band);
  xdr::Printer printer;
  std::string_view tag;
  uint32_t minor_version = 0, ident = 0, count = 0;
  decoder(xdr::bounded(tag, tag_bytes_max), minor_version);
  if (channel == Channel::back) decoder(ident);
  decoder(count);
  printer.literal("v");
  printer.literal(std::to_string(minor_version));
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    uint32_t op = 0;
    decoder(op);
    if (!decoder.ok()) break;
    printer.literal(" ");
    printer.literal(op_name(channel, op));
    const bool known = visit(channel, op, [&]<class Args>() {
      Args value{};
      decoder(value);
      if (!decoder.ok()) return;
      printer.literal("{");
      printer(value);
      printer.literal("}");
    });
    if (!known) break;
  }
  print_end(printer, decoder);
  return printer.take();
}

std::string print_compound_reply(ByteView results, Channel channel,
                                 std::optional<xdr::OutOfBand> out_of_band) {
  xdr::Decoder decoder(results, out_of_band);
  xdr::Printer printer;
  Status status = Status::ok;
  std::string_view tag;
  uint32_t count = 0;
  decoder(status, xdr::bounded(tag, tag_bytes_max), count);
  printer.literal(to_string(status));
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    uint32_t op = 0;
    decoder(op);
    if (!decoder.ok()) break;
    printer.literal(" ");
    printer.literal(op_name(channel, op));
    const bool known = visit(channel, op, [&]<class Args>() {
      Outcome<typename Args::Result> outcome;
      decoder(outcome);
      if (!decoder.ok()) return;
      if (outcome.status != Status::ok) {
        printer.literal("=");
        printer.literal(to_string(outcome.status));
      }
      printer.literal("{");
      if (outcome.status == Status::ok) {
        printer(outcome.body);
      } else {
        describe_failure(printer, outcome.status, outcome.body);
      }
      printer.literal("}");
    });
    if (!known) break;
  }
  print_end(printer, decoder);
  return printer.take();
}

}  // namespace nfsrdma::nfs4
