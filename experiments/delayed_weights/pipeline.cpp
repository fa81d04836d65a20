#include "experiments/delayed_weights/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>

#include "formats/error.hpp"

namespace numemu::experiments::delayed_weights {
namespace {

constexpr std::int64_t kMostPasses = 10'000'000;

enum Direction : std::size_t { forward, backward };

struct Pass {
  Direction direction;
  std::int64_t micro_batch;
};

struct Event {
  enum class Kind : std::uint8_t { done, arrived, updated } kind;
  Ticks time;
  std::int64_t number;  ///< events at one time follow each other in the order they were foreseen
  std::size_t stage;
  std::int64_t replica;  ///< of what is done
  Pass pass = {};        ///< of what arrived

  bool operator>(const Event& other) const {
    return std::tie(time, number) > std::tie(other.time, other.number);
  }
};

struct ReplicaState {
  std::vector<Pass> order;
  std::size_t next = 0;
  bool busy = false;
  std::array<Ticks, 2> sent = {};                      ///< when the link of that direction is free
  std::map<std::int64_t, std::int64_t> versions = {};  ///< in use: micro-batches that use them
  std::int64_t held = 0;
};

struct StageState {
  std::vector<ReplicaState> replicas;
  std::array<std::vector<bool>, 2> arrived;
  std::vector<std::int64_t> used;  ///< by micro-batch: the version of its forward pass
  std::vector<std::int64_t> left;  ///< by batch: backward passes
  std::int64_t version = 0;        ///< updates so far
  Ticks reduced = 0;               ///< when the sums of all batches so far end
};

bool flushes(Schedule schedule) {
  return schedule == Schedule::gpipe || schedule == Schedule::flush_1f1b;
}

/// The passes of a replica: those of each span of micro-batches without a flush.
std::vector<Pass> order_of(const Pipeline& p, const Stage& stage, std::int64_t replica) {
  std::vector<Pass> order;
  const std::int64_t spans = flushes(p.schedule) ? p.batches : 1, length = p.count() / spans;
  for (std::int64_t span = 0; span < spans; ++span) {
    std::vector<std::int64_t> mine;
    for (std::int64_t i = span * length; i < (span + 1) * length; ++i)
      if (i % stage.replicas == replica) mine.push_back(i);
    const std::size_t warm = p.schedule == Schedule::gpipe
                                 ? mine.size()
                                 : std::min(mine.size(), static_cast<std::size_t>(stage.in_flight));
    for (std::size_t i = 0; i < warm; ++i) order.push_back({forward, mine[i]});
    // The last activations of GPipe's are the first that its backward passes read.
    if (p.schedule == Schedule::gpipe) std::reverse(mine.begin(), mine.end());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      order.push_back({backward, mine[i]});
      if (i + warm < mine.size()) order.push_back({forward, mine[i + warm]});
    }
  }
  return order;
}

class Simulation {
 public:
  explicit Simulation(const Pipeline& p) : p_(p), states_(p.stages.size()) {
    result_.stages.resize(p.stages.size());
    result_.ends.resize(static_cast<std::size_t>(p.batches));
    for (std::size_t s = 0; s < states_.size(); ++s) {
      StageState& state = states_[s];
      const auto count = static_cast<std::size_t>(p.count());
      for (std::vector<bool>& arrived : state.arrived) arrived.resize(count);
      state.used.resize(count);
      state.left.resize(static_cast<std::size_t>(p.batches), p.micro_batches);
      for (std::int64_t r = 0; r < p.stages[s].replicas; ++r)
        state.replicas.push_back({.order = order_of(p, p.stages[s], r)});
    }
  }

  Simulated run() {
    for (std::size_t s = 0; s < states_.size(); ++s) begin_all(s);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (event.kind == Event::Kind::done) {
        finish(event.stage, event.replica);
      } else if (event.kind == Event::Kind::arrived) {
        const auto i = static_cast<std::size_t>(event.pass.micro_batch);
        states_[event.stage].arrived[event.pass.direction][i] = true;
        begin(event.stage, event.replica);
      } else {
        update(event.stage);
      }
    }
    double time = 0, busy = 0;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      for (const ReplicaState& replica : states_[s].replicas) {
        if (replica.next < replica.order.size())
          throw Error(
              fmt::format("pipeline: stage {} waits for ever with {} micro-batches in "
                          "flight and {} in a batch",
                          s, p_.stages[s].in_flight, p_.micro_batches));
        time += static_cast<double>(result_.makespan);
      }
      busy += static_cast<double>(result_.stages[s].busy);
    }
    result_.bubble = time > 0 ? 1 - busy / time : 0;
    return result_;
  }

 private:
  std::size_t batch_of(std::int64_t i) const {
    return static_cast<std::size_t>(i / p_.micro_batches);
  }
  /// The version that a forward pass at a stage computes on.
  std::int64_t version_of(std::size_t s, std::int64_t i) const {
    const auto batch = static_cast<std::int64_t>(batch_of(i));
    return p_.schedule == Schedule::pipedream ? states_[s].version
           : p_.schedule == Schedule::two_bw  ? std::max<std::int64_t>(0, batch - 1)
                                              : batch;
  }
  bool ready(std::size_t s, const Pass& pass) const {
    const StageState& state = states_[s];
    const auto i = static_cast<std::size_t>(pass.micro_batch);
    if (pass.direction == backward) return s + 1 == states_.size() || state.arrived[backward][i];
    return (s == 0 || state.arrived[forward][i]) &&
           version_of(s, pass.micro_batch) <= state.version;
  }
  void foresee(Event event) {
    event.number = foreseen_++;
    events_.push(event);
  }

  void begin_all(std::size_t s) {
    for (std::int64_t r = 0; r < p_.stages[s].replicas; ++r) begin(s, r);
  }
  void begin(std::size_t s, std::int64_t r) {
    ReplicaState& replica = states_[s].replicas[static_cast<std::size_t>(r)];
    if (replica.busy || replica.next == replica.order.size()) return;
    const Pass pass = replica.order[replica.next];
    if (!ready(s, pass)) return;
    if (pass.direction == forward) {
      const std::int64_t version = version_of(s, pass.micro_batch);
      states_[s].used[static_cast<std::size_t>(pass.micro_batch)] = version;
      ++replica.versions[version];
      ++replica.held;
      note(s, replica);
    }
    const Stage& stage = p_.stages[s];
    const Ticks time = pass.direction == forward ? stage.forward : stage.backward;
    result_.stages[s].busy += time;
    replica.busy = true;
    foresee({Event::Kind::done, now_ + time, 0, s, r});
  }

  void finish(std::size_t s, std::int64_t r) {
    StageState& state = states_[s];
    ReplicaState& replica = state.replicas[static_cast<std::size_t>(r)];
    const Pass pass = replica.order[replica.next++];
    replica.busy = false;
    result_.makespan = std::max(result_.makespan, now_);
    if (pass.direction == forward) {
      if (s + 1 < states_.size()) send(replica, pass, s + 1, p_.stages[s].link);
    } else {
      if (s > 0) send(replica, pass, s - 1, p_.stages[s - 1].link);
      const auto used =
          replica.versions.find(state.used[static_cast<std::size_t>(pass.micro_batch)]);
      if (--used->second == 0) replica.versions.erase(used);
      --replica.held;
      const std::size_t batch = batch_of(pass.micro_batch);
      if (--state.left[batch] == 0) {
        if (s == 0) result_.ends[batch] = now_;
        state.reduced = std::max(now_, state.reduced) + p_.stages[s].reduce;
        if (state.reduced == now_) return update(s);
        foresee({Event::Kind::updated, state.reduced, 0, s, 0});
      }
    }
    begin(s, r);
  }
  void send(ReplicaState& from, const Pass& pass, std::size_t to, Ticks link) {
    Ticks& free = from.sent[pass.direction];
    free = std::max(now_, free) + link;
    foresee({Event::Kind::arrived, free, 0, to, pass.micro_batch % p_.stages[to].replicas, pass});
  }
  void update(std::size_t s) {
    ++states_[s].version;
    for (const ReplicaState& replica : states_[s].replicas) note(s, replica);
    begin_all(s);
  }
  void note(std::size_t s, const ReplicaState& replica) {
    StageUse& use = result_.stages[s];
    const bool newest = replica.versions.contains(states_[s].version);
    use.held = std::max(use.held, replica.held);
    use.versions = std::max(use.versions, std::ssize(replica.versions) + (newest ? 0 : 1));
  }

  const Pipeline& p_;
  std::vector<StageState> states_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t foreseen_ = 0;
  Ticks now_ = 0;
  Simulated result_;
};

}  // namespace

std::string_view to_string(Schedule schedule) {
  constexpr std::string_view kNames[] = {"GPipe", "1F1B with flush", "PipeDream-2BW", "PipeDream"};
  return kNames[static_cast<std::size_t>(schedule)];
}

double Simulated::period(const Pipeline& p) const {
  const std::size_t first = ends.size() / 2 - 1, last = ends.size() - 2;
  return static_cast<double>(ends.at(last) - ends.at(first)) /
         static_cast<double>(static_cast<std::int64_t>(last - first) * p.micro_batches);
}

Simulated simulate(const Pipeline& p) {
  const auto stages = static_cast<std::int64_t>(p.stages.size());
  if (stages < 1 || p.micro_batches < 1 || p.batches < 1)
    throw Error("pipeline: expected stages, micro-batches and batches");
  if (p.micro_batches > kMostPasses || p.batches > kMostPasses || stages > kMostPasses ||
      p.count() > kMostPasses / (2 * stages))
    throw Error(
        fmt::format("pipeline of {} stages, {} micro-batches and {} batches: expected at "
                    "most {} forward and backward passes",
                    stages, p.micro_batches, p.batches, kMostPasses));
  for (const Stage& stage : p.stages) {
    if (stage.replicas < 1 || stage.replicas > p.micro_batches || stage.in_flight < 1)
      throw Error(fmt::format("pipeline: expected 1 to {} replicas and a micro-batch in flight",
                              p.micro_batches));
    if (stage.forward < 0 || stage.backward < 0 || stage.link < 0 || stage.reduce < 0)
      throw Error("pipeline: expected times of at least 0");
  }
  return Simulation(p).run();
}

std::int64_t in_flight_after(const Stage& stage, std::int64_t next, Ticks period) {
  const Ticks trip = stage.forward + stage.backward + 2 * stage.link;
  const Ticks turn = stage.replicas * period;
  return stage.replicas * ((next * period + trip + turn - 1) / turn);
}

std::int64_t set_in_flight(std::vector<Stage>& stages, Ticks period) {
  std::int64_t next = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    next = in_flight_after(stages[s], next, period);
    stages[s].in_flight = next / stages[s].replicas;
  }
  return next;
}

std::int64_t EqualStages::passes() const {
  return flushes(schedule) ? batches * (micro_batches + stages - 1)
                           : batches * micro_batches + stages - 1;
}

double EqualStages::bubble() const {
  return static_cast<double>(flushes(schedule) ? batches * (stages - 1) : stages - 1) /
         static_cast<double>(passes());
}

std::int64_t EqualStages::held() const {
  return schedule == Schedule::gpipe ? micro_batches : std::min(stages, micro_batches * batches);
}

std::int64_t EqualStages::versions() const {
  return flushes(schedule) ? 1 : schedule == Schedule::two_bw ? 2 : held();
}

}  // namespace numemu::experiments::delayed_weights
