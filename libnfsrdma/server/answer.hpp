// SPDX-License-Identifier: Apache-2.0
// What the server's parts give each other: a value or the NFS status that the client will see. No text, no heap.
#pragma once

#include <utility>

#include "nfs4/constants.hpp"

namespace nfsrdma::server {

using nfs4::Status;

template <class T>
struct [[nodiscard]] Answer {
  Status status = Status::ok;
  T value{};

  Answer() = default;
  Answer(Status s) : status(s) {}
  Answer(T v) : value(std::move(v)) {}
  bool ok() const { return status == Status::ok; }
  T& operator*() { return value; }
  T* operator->() { return &value; }
};

struct Nothing {};

// The status that tells a client of this errno; io for what NFS has no word for.
Status status_of_errno(int errno_value);

}  // namespace nfsrdma::server
