// What tuning changed: SQNR of layers and output, and metrics, before and after, on samples that no
// step reads, unless --calibrate-on gives the steps a set that holds them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/measure.hpp"
#include "formats/storage/json.hpp"
#include "policies/tuning/tuning.hpp"

namespace numemu::cli {

/// The samples that figures are measured on: of the validation split, or of the calibration split
/// where that has none.
struct TuneSamples {
  net::Split split = net::Split::validation;
  std::int64_t metrics = 0;  ///< samples of the metrics; 0 without validation samples
  std::int64_t noise = 0;    ///< samples of the SQNR: fewer of large networks
  bool unread = true;        ///< no step reads the validation samples; another set may hold them
};
TuneSamples tune_samples(const net::Graph&, const net::Dataset&, std::int64_t images,
                         std::int64_t beside);

class TuneReport {
 public:
  TuneReport(const net::Dataset&, const TuneSamples&, bool quiet);

  /// Measures float32 and the network under the recipe before the first step.
  void before(const policies::Tuning&);
  /// Measures the network of the checkpoint, loaded again, under the recipe.
  void after(const policies::Tuning&, const std::string& checkpoint);
  void step(const std::string& text, const std::string& summary);
  /// What readers of the figures must know.
  void note(const std::string& text) { notes_.push_back(text); }

  Json json() const;
  std::string text() const;

 private:
  struct Figures {
    std::optional<net::Evaluation> metrics;
    experiments::LayerMeasurement noise;
  };
  Figures measure(const net::Graph&, net::Numerics&) const;
  /// The figure that the task is judged by, and its difference from another network's.
  experiments::JudgedFigure judged(const net::Evaluation&, const net::Evaluation& other) const;
  Json metrics_json(const std::optional<net::Evaluation>&) const;
  /// Makes this network's values in float32 those that SQNR compares with.
  void refer_to(const net::Graph& reference);
  std::optional<net::Evaluation> evaluated(const net::Graph&, net::Numerics&) const;

  const net::Dataset& dataset_;
  TuneSamples samples_;
  bool quiet_;
  /// Those of which figures need tables: the one that the task is judged by, and top-1 where a
  /// sample has several classes.
  std::vector<const net::Score*> scores_;
  policies::FloatReference reference_;
  std::optional<net::Evaluation> float32_;
  Figures before_, after_;
  std::vector<std::pair<std::string, std::string>> steps_;
  std::vector<std::string> layers_, notes_;
};

}  // namespace numemu::cli
