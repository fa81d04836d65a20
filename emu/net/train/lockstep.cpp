#include "emu/net/train/lockstep.hpp"

#include <thread>
#include <utility>

#include "emu/net/run_context.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {

class Lockstep::Place final : public Meeting {
 public:
  Place(Lockstep& all, std::int64_t worker) : all_(all), worker_(worker) {}
  std::vector<std::vector<double>> gather(std::vector<double> own) override {
    return all_.gather(worker_, std::move(own));
  }

 private:
  Lockstep& all_;
  std::int64_t worker_;
};

Lockstep::Lockstep(std::int64_t workers)
    : ended_(static_cast<std::size_t>(workers), false), given_(static_cast<std::size_t>(workers)) {}

void Lockstep::wait_for_turn(std::unique_lock<std::mutex>& lock, std::int64_t worker) {
  changed_.wait(lock, [&] { return turn_ == worker || failure_ != nullptr; });
  if (failure_ != nullptr) throw Abandoned();
}

void Lockstep::pass_on(std::int64_t worker) {
  const auto workers = std::ssize(ended_);
  for (std::int64_t next = worker + 1; next <= 2 * workers; ++next) {
    if (next == workers) {
      round_.clear();
      for (std::optional<std::vector<double>>& given : given_) {
        if (given) round_.push_back(*std::exchange(given, std::nullopt));
      }
    }
    if (ended_[static_cast<std::size_t>(next % workers)]) continue;
    turn_ = next % workers;
    break;
  }
  changed_.notify_all();
}

std::vector<std::vector<double>> Lockstep::gather(std::int64_t worker, std::vector<double> own) {
  std::unique_lock lock(mutex_);
  given_[static_cast<std::size_t>(worker)] = std::move(own);
  pass_on(worker);
  wait_for_turn(lock, worker);
  return round_;
}

void Lockstep::run(const std::function<void(std::int64_t, Meeting&)>& body) {
  RunContext& context = RunScope::current();
  std::vector<std::thread> threads;
  for (std::int64_t worker = 0; worker < std::ssize(ended_); ++worker) {
    threads.emplace_back([&, worker] {
      const RunScope scope(context);
      const FloatGuard guard;
      Place place(*this, worker);
      try {
        {
          std::unique_lock lock(mutex_);
          wait_for_turn(lock, worker);
        }
        body(worker, place);
        const std::lock_guard lock(mutex_);
        ended_[static_cast<std::size_t>(worker)] = true;
        pass_on(worker);
      } catch (const Abandoned&) {
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace numemu::net
