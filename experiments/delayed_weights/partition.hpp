// Layers cut into the stages of a pipeline: which layers, how many replicas, and whether
// activations are computed again, under limits of memory and links.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "experiments/delayed_weights/pipeline.hpp"

namespace numemu::experiments::delayed_weights {

/// What a layer costs one micro-batch.
struct LayerCost {
  std::string name = {};
  std::int64_t forward = 0, backward = 0;  ///< multiply-adds
  std::int64_t parameters = 0;             ///< bytes
  std::int64_t kept = 0;                   ///< bytes of what it makes that backward reads
  std::int64_t inputs = 0;  ///< bytes alive between the layer before and this one: what a cut sends
};

/// From each node that multiplies up to the next one; what comes before belongs to the first.
/// Float32; multiply-adds are counted in a training step of one sample, which computes none of
/// them, and all other operators are free.
std::vector<LayerCost> layer_costs(const net::Graph&, std::int64_t samples);

/// Times are in ticks; all numbers are at least 0.
struct Machine {
  std::int64_t devices = 1;
  std::int64_t memory = 0;         ///< bytes of each
  Ticks multiply_add = 1;          ///< of a device
  Ticks link_byte = 1;             ///< between stages, each way, from each replica
  Ticks reduce_byte = 1;           ///< between replicas of a stage
  std::int64_t micro_batches = 1;  ///< of a batch
  /// Times the bytes of the parameters that a device holds: two versions, the sum of gradients and
  /// the momentum.
  std::int64_t copies = 4;
  std::int64_t replicas = std::numeric_limits<std::int64_t>::max();  ///< most of a stage
};

struct PlannedStage {
  std::size_t first = 0, end = 0;  ///< layers
  std::int64_t replicas = 1;
  bool recomputes = false;     ///< keeps its inputs, and runs forward again before backward
  std::int64_t in_flight = 1;  ///< micro-batches of a replica
  std::int64_t bytes = 0;      ///< of a replica's memory
  Stage times = {};

  bool operator==(const PlannedStage& other) const {
    return first == other.first && end == other.end && replicas == other.replicas &&
           recomputes == other.recomputes && in_flight == other.in_flight && bytes == other.bytes;
  }
};

struct Plan {
  Ticks period = 0;  ///< per micro-batch: the reciprocal of the throughput
  std::vector<PlannedStage> stages;

  std::int64_t devices() const;
  std::int64_t in_flight() const;  ///< micro-batches, over all replicas of the first stage
  Pipeline pipeline(std::int64_t micro_batches, std::int64_t batches) const;
};

/// Bytes that a replica holds: copies of its parameters; of the micro-batches in flight the inputs
/// and what its layers keep, or where it computes that again, what they keep of one.
std::int64_t stage_bytes(const std::vector<LayerCost>&, const PlannedStage&, std::int64_t copies);

/// A stage of layers [first, end) at a period, with so many micro-batches in flight from the next
/// stage on (in_flight_after()); nothing where
/// - passes, or transfers from its replicas to either side, take longer than replicas x period;
/// - stage_bytes() exceeds the memory;
/// - a ring's sum of its gradients, 2 (r - 1) / r of their bytes, is not there before the batch
///   after the next begins: (micro_batches + 1 - in flight) period.
std::optional<PlannedStage> stage_at(const std::vector<LayerCost>&, const Machine&,
                                     std::size_t first, std::size_t end, std::int64_t replicas,
                                     bool recomputes, std::int64_t next, Ticks period);

/// The least period at which the layers fit, and of the plans for it one with the fewest devices.
/// At a given period the least number of micro-batches in flight from a layer on, with so many
/// devices, follows from that behind the stage it begins: a dynamic programme over layers and
/// devices, because more in flight never helps. What fits at a period fits at a longer one, so that
/// the period is bisected. Nothing where no plan has memory. Throws Error without layers or
/// devices.
std::optional<Plan> plan_stages(const std::vector<LayerCost>&, const Machine&);

}  // namespace numemu::experiments::delayed_weights
