// Rules of dropping: how many of its micro-batches a worker computes before it joins the exchange
// (DropCompute, Giladi et al., NeurIPS 2023).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "emu/stats/latency.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

/// How many of the first of `count` micro-batches a worker computes; `draws` are those of the step,
/// element stats::latency_element(worker, micro-batch).
using DropRule =
    std::function<std::int64_t(const RandomSource& draws, std::int64_t worker, std::int64_t count)>;

/// Options of a rule, the divisor last.
struct DropOptions : PolicyOptions {
  std::string divisor = "nominal";

  Option divisor_option() {
    return {"divisor",
            "what gradients are divided by: the number of all micro-batches, so that their mean "
            "shrinks by the share computed, or of those computed",
            &divisor,
            0,
            0,
            {"nominal", "realised"}};
  }
  virtual DropRule rule() const = 0;
};

/// A rule, the same for all layers of a network.
class Dropping final : public Policy {
 public:
  Dropping(Binding given, net::Numerics& inner)
      : Policy(std::move(given), inner),
        options_(static_cast<const DropOptions&>(*binding().layers.begin()->second)),
        rule_(options_.rule()) {}

  net::Participation participation(const net::Step& step, std::int64_t worker,
                                   std::int64_t micro_batches) override {
    const RandomSource draws =
        stats::latency_source(binding().recipe->seed(), "drop", step.index, "compute");
    return {rule_(draws, worker, micro_batches), options_.divisor == "realised"};
  }

 private:
  const DropOptions& options_;
  DropRule rule_;
};

}  // namespace numemu::policies
