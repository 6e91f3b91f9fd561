// SPDX-License-Identifier: Apache-2.0
// Reads and writes: split, odd, short, past the end; placed directly or by the pool.
#include "rig.hpp"

namespace nfsrdma::client::test {
namespace {

class ClientIo : public BothWays {};
NFSRDMA_BOTH_WAYS(ClientIo);

TEST_P(ClientIo, WritesAndReadsBackEveryOddLength) {
  Options o;
  o.rsize_bytes = o.wsize_bytes = 64u << 10;
  Rig rig(rig_params(), o);
  auto data = random_bytes(300'000, 1);
  for (size_t n : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{1023}, size_t{4095}, size_t{4096}, size_t{4097},
                   size_t{65535}, size_t{65536}, size_t{65537}, size_t{131071}, size_t{299'999}}) {
    SCOPED_TRACE(n);
    File file = rig.open("f" + std::to_string(n));
    auto written = rig.mount().write(file, 0, std::span(data).first(n), Stability::unstable);
    ASSERT_TRUE(written) << written.error().text();
    EXPECT_EQ(*written, n);
    ASSERT_TRUE(rig.mount().sync(file));
    std::vector<std::byte> back(n + 10);
    auto got = rig.mount().read(file, 0, back);
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->length, n);
    EXPECT_TRUE(got->eof);
    EXPECT_TRUE(std::equal(data.begin(), data.begin() + static_cast<ptrdiff_t>(n), back.begin()));
    EXPECT_EQ(rig.dir().read("f" + std::to_string(n)), std::vector(data.begin(), data.begin() + static_cast<ptrdiff_t>(n)));
    ASSERT_TRUE(rig.mount().close(file));
  }
}

}  // namespace
}  // namespace nfsrdma::client::test
