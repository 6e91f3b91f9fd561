// SPDX-License-Identifier: Apache-2.0
#include "rdma/iwarp/receiver.hpp"

#include <algorithm>
#include <cstring>

#include "rdma/iwarp/crc32c.hpp"

namespace nfsrdma::rdma::iwarp {

size_t Receiver::plan(iovec* iov, size_t peek_bytes) {
  if (failed_) return 0;
  size_t n = 0;
  if (payload_left_ > 0) {
    if (!consumer_.may_place()) {
      failed_ = true;
      return 0;
    }
    iov[n++] = {payload_at_, payload_left_};
  }
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (buffer_.size() - end_ < peek_bytes) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  iov[n++] = {buffer_.data() + end_, std::min(peek_bytes, buffer_.size() - end_)};
  return n;
}

bool Receiver::advance(size_t n) {
  if (failed_) return false;
  size_t direct = std::min(n, payload_left_);
  if (direct > 0) {
    if (use_crc_) crc_ = crc32c_update(crc_, {payload_at_, direct});
    payload_at_ += direct;
    payload_left_ -= direct;
    count(direct_bytes_, direct);
  }
  end_ += n - direct;
  if (!parse()) failed_ = true;
  return !failed_;
}

bool Receiver::parse() {
  for (;;) {
    if (payload_left_ > 0) place_buffered();
    if (payload_left_ > 0) return true;
    if (in_segment_) {
      if (end_ - begin_ < pad_bytes(header_.ulpdu_bytes) + crc_bytes) return true;
      if (!finish_segment()) return false;
    } else {
      if (end_ - begin_ < 4) return true;
      const std::byte* at = buffer_.data() + begin_;
      if (end_ - begin_ < (header_is_tagged(at) ? tagged_header_bytes : untagged_header_bytes)) return true;
      if (!parse_header()) return false;
    }
  }
}

bool Receiver::parse_header() {
  const std::byte* at = buffer_.data() + begin_;
  header_ = load_header(at);
  std::memcpy(raw_header_, at, header_.header_bytes());
  if (!header_.long_enough()) {
    consumer_.bad_length();
    return false;
  }
  begin_ += header_.header_bytes();
  if (use_crc_) crc_ = crc32c_update(crc32c_start, {raw_header_, header_.header_bytes()});
  payload_at_ = nullptr;
  if (!consumer_.begin_segment(header_, &payload_at_)) return false;
  payload_left_ = header_.payload_bytes();
  in_segment_ = true;
  return true;
}

void Receiver::place_buffered() {
  size_t n = std::min(payload_left_, end_ - begin_);
  if (n == 0) return;
  const std::byte* from = buffer_.data() + begin_;
  std::memcpy(payload_at_, from, n);
  if (use_crc_) crc_ = crc32c_update(crc_, {from, n});
  begin_ += n;
  payload_at_ += n;
  payload_left_ -= n;
  count(copied_bytes_, n);
}

bool Receiver::finish_segment() {
  size_t pad = pad_bytes(header_.ulpdu_bytes);
  const std::byte* at = buffer_.data() + begin_;
  if (use_crc_) {
    std::byte expected[crc_bytes];
    store_crc(expected, crc32c_update(crc_, {at, pad}));
    if (std::memcmp(expected, at + pad, crc_bytes) != 0) {
      consumer_.bad_crc();
      return false;
    }
  }
  begin_ += pad + crc_bytes;
  in_segment_ = false;
  return consumer_.end_segment(header_);
}

}  // namespace nfsrdma::rdma::iwarp
