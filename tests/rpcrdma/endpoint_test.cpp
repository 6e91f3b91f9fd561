// SPDX-License-Identifier: Apache-2.0
#include "tests/rpcrdma/pair.hpp"

namespace nfsrdma::rpcrdma::testing {
namespace {

using rpc::CallOutcome;
using Basic = Pair;

TEST_F(Basic, NullCallAndSmallCall) {
  start();
  open_credits();
  EXPECT_EQ(endpoint->credits_granted(), 64u);
  service.handler = [](std::unique_ptr<rpc::ServerCall> call) {
    ASSERT_EQ(call->args.size(), 8u);
    const uint32_t sum =
        base::load_be<uint32_t>(call->args.data()) + base::load_be<uint32_t>(call->args.data() + 4);
    base::store_be(call->results_space().data(), sum);
    call->reply(rpc::AcceptStatus::success, 4);
  };
  TestCall call;
  call.set_args({30, 12});
  call.results_bytes_max = 4;
  run(call);
  ASSERT_EQ(call.outcome, CallOutcome::replied) << call.error.text();
  ASSERT_EQ(call.got.size(), 4u);
  EXPECT_EQ(call.word(0), 42u);
  EXPECT_EQ(service.calls, 2u);
}

}  // namespace
}  // namespace nfsrdma::rpcrdma::testing
