// Passes of several workers that wait for each other where they need values of all, such as
// synchronised statistics of batch normalisation.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// Runs one body per worker, each on a thread of its own but only one at a time, from meeting to
/// meeting in the order of workers: the same calls of the numerics in the same order on every
/// machine.
class Lockstep {
 public:
  explicit Lockstep(std::int64_t workers);

  /// Calls body(worker, meeting) for every worker. Bodies that still run must meet equally often
  /// until one of them ends. Rethrows what the first body threw; the others are then abandoned.
  void run(const std::function<void(std::int64_t worker, Meeting& meeting)>& body);

 private:
  struct Abandoned {};
  class Place;

  std::vector<std::vector<double>> gather(std::int64_t worker, std::vector<double> own);
  void wait_for_turn(std::unique_lock<std::mutex>&, std::int64_t worker);
  /// The turn of the next worker that has not ended; behind the last one a round is complete.
  void pass_on(std::int64_t worker);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t turn_ = 0;
  std::vector<bool> ended_;
  std::vector<std::optional<std::vector<double>>> given_;  ///< of the round begun, by worker
  std::vector<std::vector<double>> round_;                 ///< of the one before, in order
  std::exception_ptr failure_;
};

}  // namespace numemu::net
