#include "cli/infer_scores.hpp"

#include <fmt/format.h>

#include "emu/net/train/score.hpp"
#include "experiments/engine/scores.hpp"
#include "formats/error.hpp"

namespace numemu::cli {

InferScores::InferScores(const std::vector<std::string>& names, std::int64_t samples) {
  for (const std::string& name : names) {
    const net::Score& score = net::find_score(name);
    if (!score.reference)
      throw Error(
          fmt::format("--metric: {} compares with targets, which infer has not; eval has: "
                      "--data npy:x=x.npy,y=y.npy",
                      name));
    scores_.push_back(&score);
  }
  constexpr std::int64_t kColumns = 2;  // of scores that compare with float32
  for (net::Evaluation* evaluation : {&own_, &float32_}) {
    evaluation->samples = samples;
    evaluation->tables.assign(scores_.size(), {.columns = kColumns, .sums = {}});
  }
}

void InferScores::add(const net::Tensor& output, const net::Tensor& float32) {
  const std::int64_t count = output.dim(0), each = output.size() / count;
  const auto sums = [&](const net::Tensor& of, net::Evaluation& evaluation) {
    for (std::size_t s = 0; s < scores_.size(); ++s) {
      net::ScoreTable& table = evaluation.tables[s];
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t at = table.sums.size();
        table.sums.resize(at + static_cast<std::size_t>(table.columns));
        net::Outcome outcome;
        outcome.output = {of.data.data() + i * each, static_cast<std::size_t>(each)};
        outcome.reference = {float32.data.data() + i * each, static_cast<std::size_t>(each)};
        outcome.width = of.shape.back();
        scores_[s]->add(outcome, table.sums.data() + at);
      }
    }
  };
  sums(output, own_);
  sums(float32, float32_);
}

Json InferScores::json() const { return experiments::scores_json(false, scores_, own_, float32_); }

}  // namespace numemu::cli
