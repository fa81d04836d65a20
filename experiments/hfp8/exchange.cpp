// Networks that 8-bit floats of one kind train badly, in both kinds and with gradients that workers
// exchange in 8 bits.
#include <fmt/format.h>

#include <utility>

#include "experiments/engine/study.hpp"
#include "experiments/hfp8/numbers.hpp"
#include "experiments/workers/training_with_workers.hpp"

namespace numemu::experiments::hfp8 {
namespace {

using workers::Group;
using workers::Method;
using workers::TrainedNetwork;

constexpr const char *kForward = "hfp8_e4m3", *kBackward = "hfp8_e5m2";
enum : std::size_t { kBoth = 1, kOneKind };

std::vector<Method> methods() {
  Json both = recipe_of(kBackward, "static(1024)",
                        {{"master", "hfp16_e6m9"}, {"rounding", "sr(16)"}}, "", kForward),
       one = both, sent = both;
  for (const char* const role : {"weight", "activation"}) one["roles"][role]["format"] = kBackward;
  sent["exchange"] = {{"format", kBackward}};
  return {workers::dense(),
          {"HFP8", std::move(both), "networks"},
          {"1-5-2 alone", std::move(one)},
          {"HFP8, exchanged in 1-5-2", std::move(sent), "exchange"}};
}

}  // namespace

void add_exchange(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  std::vector<TrainedNetwork> all;
  if (run.settings.text(workers::key(Group::images, "nets")) != "-")
    all = workers::add_training_on(run, Group::images, data, methods(), conclusion);
  for (TrainedNetwork& text : workers::add_training(run, Group::text, methods(), conclusion))
    all.push_back(std::move(text));
  std::vector<PairedGain> gains;
  for (const TrainedNetwork& trained : all) {
    gains.push_back({fmt::format("{}: {} gained by HFP8 on 1-5-2 alone", trained.name,
                                 trained.accuracy ? "points" : "% of the bits per character"),
                     gain(trained.scores, kBoth, kOneKind)});
  }
  conclusion.add(judge_gains(gains), "one kind");
}

}  // namespace numemu::experiments::hfp8
