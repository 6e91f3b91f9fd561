// SPDX-License-Identifier: Apache-2.0
// Task<T>: a lazy coroutine. It starts when awaited, resumes its awaiter by symmetric transfer, and is destroyed with
// the Task object. spawn() starts one that nobody awaits. Failures travel as Result<T>; an exception ends the process.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "io/frame_pool.hpp"

namespace nfsrdma::io {

template <class T>
class Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();

  static void* operator new(size_t bytes) { return frame_allocate(bytes); }
  static void operator delete(void* frame, size_t bytes) noexcept { frame_free(frame, bytes); }

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) const noexcept {
      return h.promise().continuation;
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& u) {
    value.emplace(std::forward<U>(u));
  }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const noexcept {}
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Handle handle;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
      handle.promise().continuation = awaiting;
      return handle;
    }
    T await_resume() const { return handle.promise().take(); }
  };
  Awaiter operator co_await() const& noexcept { return Awaiter{handle_}; }
  Awaiter operator co_await() const&& noexcept { return Awaiter{handle_}; }

 private:
  Handle handle_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

// A coroutine that starts at once and frees itself at its end.
struct Detached {
  struct promise_type {
    static void* operator new(size_t bytes) { return frame_allocate(bytes); }
    static void operator delete(void* frame, size_t bytes) noexcept { frame_free(frame, bytes); }
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
};

template <class T, class F>
Detached run_detached(Task<T> task, F then) {
  if constexpr (std::is_void_v<T>) {
    co_await task;
    then();
  } else {
    then(co_await task);
  }
}

inline Detached run_detached(Task<void> task) { co_await task; }

}  // namespace detail

// Starts the task now, on this thread; nobody waits for it.
inline void spawn(Task<void> task) { detail::run_detached(std::move(task)); }

// Starts the task now; `then` is called with its value on whatever thread it ends.
template <class T, class F>
void spawn(Task<T> task, F then) {
  detail::run_detached(std::move(task), std::move(then));
}

}  // namespace nfsrdma::io
