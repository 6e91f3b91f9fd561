// SPDX-License-Identifier: Apache-2.0
// Errors are values. A call that can fail returns Result<T>; nothing in the library throws across its interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace nfsrdma {

// Who said no. The program's exit code follows from it: server -> 1, usage -> 2, connection -> 3.
enum class ErrorOrigin : uint8_t {
  local,       // this process or its kernel: memory, limits, files
  usage,       // the caller's arguments
  connection,  // name, route, device, transport, handshake: the server was not reached or the link was lost
  protocol,    // the peer sent what its specification does not allow
  server,      // the server understood and answered with an NFS or RPC error
};

// A failure: an errno value for programs, one line of text for people, and the NFS status when the server said it.
class Error {
 public:
  // errno_value: a positive errno. text: one line, no trailing full stop or newline; says what was tried, what
  // was found and, where known, what to do.
  Error(int errno_value, ErrorOrigin origin, std::string text = {}, uint32_t nfs_status = 0)
      : text_(std::move(text)), errno_value_(errno_value), nfs_status_(nfs_status), origin_(origin) {}

  int errno_value() const { return errno_value_; }
  ErrorOrigin origin() const { return origin_; }
  uint32_t nfs_status() const { return nfs_status_; }  // nfsstat4, 0 when the server did not say one
  const std::string& text() const { return text_; }

  // The same error with "what: " in front of its text: each layer adds what it was doing.
  Error in(const std::string& what) const {
    return Error(errno_value_, origin_, text_.empty() ? what : what + ": " + text_, nfs_status_);
  }

 private:
  std::string text_;
  int errno_value_;
  uint32_t nfs_status_;
  ErrorOrigin origin_;
};

// A value or an Error. Test it (`if (!r) return r.error();`) before taking the value.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  bool ok() const { return !error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace nfsrdma
