// Pieces of work side by side: made on several threads, taken in their order.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "emu/net/run_context.hpp"

namespace numemu::experiments {

/// Calls `make(k)` for every k below `n`, so many at the same time, and `take(k, what it made)` one
/// at a time in the order of k. Both work for the run of the caller (net::RunScope); loops over
/// threads inside `make` have one. Ends with the first error in that order, which is thrown.
template <class Make, class Take>
void side_by_side(std::size_t n, int at_once, const Make& make, const Take& take) {
  struct Made {
    std::optional<decltype(make(std::size_t{}))> value;
    std::exception_ptr error;
  };
  // What waits for a long piece before it is lost when the process is killed.
  const std::size_t most_ahead = 4 * static_cast<std::size_t>(at_once);
  net::RunContext& run = net::RunScope::current();
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::size_t, Made> waiting;
  std::size_t next = 0;
  std::exception_ptr failure;
  const auto make_one = [&](std::size_t k) {
    const net::RunScope scope(run);
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return failure || k < next + most_ahead; });
      if (failure) return;
    }
    Made made;
    try {
      made.value.emplace(make(k));
    } catch (...) {
      made.error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    waiting.emplace(k, std::move(made));
    try {
      for (auto at = waiting.find(next); !failure && at != waiting.end(); at = waiting.find(next)) {
        if (at->second.error) std::rethrow_exception(at->second.error);
        take(next++, std::move(*at->second.value));
        waiting.erase(at);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    changed.notify_all();
  };
#pragma omp parallel for schedule(dynamic, 1) num_threads(at_once)
  for (std::size_t k = 0; k < n; ++k) make_one(k);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace numemu::experiments
