// What a run of networks may use and who hears of its time; the caller owns it.
#pragma once
#include <atomic>
#include <optional>
#include <utility>

#include "emu/net/memory.hpp"
#include "emu/net/profile.hpp"

namespace numemu::net {

/// What is thrown where the caller stopped the run: no std::exception, which others would take for
/// an error of the work.
struct Stopped {};

/// Two runs beside each other in one process have nothing in common.
struct RunContext {
  MemoryAccount memory;            ///< without bound until it has a limit
  std::optional<Profile> profile;  ///< nothing is timed without
  std::atomic<bool> stop = false;  ///< passes of networks end at their next operator

  /// Throws Stopped where the run is to end.
  void go_on() const {
    if (stop.load(std::memory_order_relaxed)) throw Stopped();
  }
};

/// This thread works for the run as long as the scope lives. A function that starts threads for
/// passes of a network opens one in each of them, for the run of its own.
class RunScope {
 public:
  explicit RunScope(RunContext& run) : before_(std::exchange(run_, &run)) {}
  /// Null: the thread stays with the run that it has.
  explicit RunScope(RunContext* run) : RunScope(run != nullptr ? *run : current()) {}
  ~RunScope() { run_ = before_; }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  /// The run of this thread; without a scope one of its own, without bound and profile.
  static RunContext& current() {
    if (run_ != nullptr) return *run_;
    thread_local RunContext own;
    return own;
  }

 private:
  inline static thread_local RunContext* run_ = nullptr;
  RunContext* before_;
};

}  // namespace numemu::net
