// SPDX-License-Identifier: Apache-2.0
// Whole compounds as text, for traces and test output. Anything may be passed in: what does not decode is
// said so.
#pragma once

#include <optional>
#include <string>

#include "nfs4/types.hpp"
#include "xdr/decoder.hpp"

namespace nfsrdma::nfs4 {

enum class Channel : uint8_t { fore, back };  // COMPOUND or CB_COMPOUND

// "v1 SEQUENCE{...} PUTFH{...} READ{...}".
std::string print_compound_call(ByteView args, Channel channel = Channel::fore,
                                std::optional<xdr::OutOfBand> out_of_band = std::nullopt);
// "OK SEQUENCE{...} PUTFH{} READ{...}", a failed operation as "OPEN=NOENT".
std::string print_compound_reply(ByteView results, Channel channel = Channel::fore,
                                 std::optional<xdr::OutOfBand> out_of_band = std::nullopt);

}  // namespace nfsrdma::nfs4
