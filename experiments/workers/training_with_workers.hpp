// Networks that several workers train under rules of exchange, paired by seed with the dense mean
// of their gradients: accuracy, bytes on the wire, compression.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/engine/study.hpp"

namespace numemu::experiments::workers {

/// One way that workers train.
struct Method {
  std::string name;              ///< "topk(0.01)", in tables and figures
  Json recipe = Json::object();  ///< {}: the float32 mean of dense gradients
  /// Key of the experiment's claim that the method loses at most kMostLost to the first one; empty:
  /// none is made.
  std::string claim = {};
  /// As TrainingMethod::change: another optimizer, its rate.
  std::function<void(TrainTrial&)> change = {};
  /// The one optimizer that `claim` is about (empty: any), and the claim made under others.
  std::string only_under = {}, else_claim = {};

  const std::string& claim_under(const std::string& optimizer) const {
    return only_under.empty() || optimizer == only_under ? claim : else_claim;
  }
};

/// The float32 mean, what others are compared with.
Method dense();
/// The method whose recipe has that text or object under `exchange`.
Method exchanged(const Json& rule, std::string claim = "accuracy");

/// What training may lose: points of top-1, per cent of the bits per character.
inline constexpr double kMostLost = 0.5, kMostBitsLost = 1;

/// What is sent of a parameter in a step, the mean over steps and workers.
struct SentParameter {
  std::string name;
  std::int64_t axes = 0, elements = 0;
  double sent = 0, returned = 0;  ///< bits that a worker sends, and gets back

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name);
    visit("axes", self.axes);
    visit("elements", self.elements);
    visit("sent", self.sent);
    visit("returned", self.returned);
  }
};

struct Trained {
  TrainOutcome outcome;
  std::vector<SentParameter> parameters;  ///< trained ones
  double dropped = 0;  ///< share of the samples that took no part, mean over epochs
  std::int64_t steps = 0;

  /// Bytes of a step and a worker.
  double sent_bytes() const;
  double returned_bytes() const;
  /// Float32 bits over bits sent, of the parameters with `least` to `most` axes; NaN without any.
  double rate(std::int64_t least = 1, std::int64_t most = 8) const;

  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("parameters", self.parameters);
    visit("dropped", self.dropped);
    visit("steps", self.steps);
  }
};

/// What the study of one network and optimizer found; the experiment may add to it.
struct TrainedNetwork {
  std::string name;       ///< "lenet, sgd"
  std::string optimizer;  ///< "sgd", of the first method
  std::vector<Method> methods;
  Study<Trained> study;
  bool accuracy = true;
  /// Top-1 in per cent; of a text minus the bits per character in per cent of the first method's.
  SeedFigures scores;

  /// Over the seeds.
  stats::PairedInterval gained(std::size_t method) const { return gain(scores, method); }
  stats::PairedInterval rates(std::size_t method, std::int64_t least, std::int64_t most) const;
};

/// A group of settings, all with its prefix: `nets` (a list; "-": none), `data`, `optimizers` (a
/// list), `epochs`, `batch`, `train_samples`, `eval_samples`, for fine-tuning `lr` and `warmup`.
enum class Group : std::uint8_t {
  images,       ///< "": networks trained from the start
  fine_tuning,  ///< "tuned_": a trained network, an .onnx file, trained on; none by default
  text,         ///< "text_"
};
/// Of a setting of the group: "tuned_data".
std::string key(Group, const std::string& setting);
/// The settings of an experiment that trains: its own, `workers`, `seeds`, and those of the groups
/// whose keys its own have not.
/// `optimizers` is what images are trained with.
SettingList with_training(SettingList own, const std::vector<Group>&,
                          const BySize& optimizers = "sgd");
/// Throws Error for a batch that its workers cannot share equally (each in so many parts as the
/// setting micro_batches says, where there is one).
void check_training(const Settings&);

/// Trains the networks of a group under every method, the first of which others are compared with,
/// and adds for each network and optimizer a table, a figure, findings of what methods claim and
/// sentences.
std::vector<TrainedNetwork> add_training(const ExperimentRun&, Group, const std::vector<Method>&,
                                         Conclusion&);
/// For a data set that is loaded, in place of that of the setting.
std::vector<TrainedNetwork> add_training_on(const ExperimentRun&, Group, const net::Dataset&,
                                            const std::vector<Method>&, Conclusion&);

}  // namespace numemu::experiments::workers
