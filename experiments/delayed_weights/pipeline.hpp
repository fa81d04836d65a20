// A pipeline of stages that train on micro-batches: an event simulation, and the closed forms
// beside it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace numemu::experiments::delayed_weights {

using Ticks = std::int64_t;  ///< time, in any unit

enum class Schedule : std::uint8_t {
  gpipe,       ///< all forward passes of a batch, then all backward passes (Huang et al. 2019)
  flush_1f1b,  ///< one forward, one backward pass in turn; the pipeline empties after every batch
  two_bw,      ///< PipeDream-2BW: never empties; batch t computes on the weights of t - 1 updates
  pipedream,   ///< never empties; every micro-batch computes on the newest weights of each stage
};
std::string_view to_string(Schedule);

struct Stage {
  Ticks forward = 0, backward = 0;  ///< of a micro-batch on a replica
  Ticks link = 0;    ///< a transfer to the next stage, or back; one after the other from a replica
  Ticks reduce = 0;  ///< sums gradients of a batch over the replicas, beside the computation
  std::int64_t replicas = 1;   ///< take micro-batches in turn
  std::int64_t in_flight = 1;  ///< forward passes of a replica before its first backward pass
};

struct Pipeline {
  Schedule schedule = Schedule::two_bw;
  std::vector<Stage> stages = {};
  std::int64_t micro_batches = 1;  ///< of a batch: the gradients that an update sums
  std::int64_t batches = 1;

  std::int64_t count() const { return micro_batches * batches; }
};

struct StageUse {
  Ticks busy = 0;         ///< sum over the replicas
  std::int64_t held = 0;  ///< most micro-batches whose activations a replica held
  std::int64_t versions =
      0;  ///< most versions of weights that a replica held, the newest among them
};

struct Simulated {
  Ticks makespan = 0;
  std::vector<Ticks> ends;  ///< of the last backward pass of each batch at the first stage
  std::vector<StageUse> stages;
  double bubble = 0;  ///< the share of the replicas' time that is idle

  /// Ticks per micro-batch over the second half of the batches, of which there are at least four,
  /// without the last one, in which stages run empty.
  double period(const Pipeline&) const;
};

/// Passes, transfers and sums begin as soon as they can, in the order of the schedule. Throws Error
/// for a pipeline without stages or micro-batches, for a replica without a micro-batch in each
/// batch, for more than 10^7 passes, and where stages wait for each other for ever: where in_flight
/// rises along the pipeline, or exceeds what the versions of the weights allow.
Simulated simulate(const Pipeline&);

/// The micro-batches in flight from which on a stage with this next stage is never idle at `period`
/// ticks per micro-batch, over all replicas: the least multiple K of the replicas with (K - next)
/// period >= forward + backward + 2 link. With it there is a periodic schedule: forward passes of
/// a stage end as those of the next begin, backward passes begin K periods after the forward pass
/// less their length, and each order of passes and transfers holds if period x replicas is at least
/// forward + backward and each link. Without links it is the number of devices from the stage on.
std::int64_t in_flight_after(const Stage&, std::int64_t next, Ticks period);
/// Sets in_flight of every stage by it, and returns that of the first over all replicas.
std::int64_t set_in_flight(std::vector<Stage>&, Ticks period);

/// Of equal stages without links, one replica each.
struct EqualStages {
  Schedule schedule;
  std::int64_t stages, micro_batches, batches;

  /// Passes one after the other, in units of forward + backward: a flush costs stages - 1 of them.
  std::int64_t passes() const;
  /// (d - 1) / (m + d - 1) with a flush after every batch, (d - 1) / (m batches + d - 1) without.
  double bubble() const;
  std::int64_t held() const;      ///< by the first stage
  std::int64_t versions() const;  ///< of the first stage's weights
};

}  // namespace numemu::experiments::delayed_weights
