// Exchange learned: the largest elements, at places that all workers share, encoded by an
// autoencoder that learns during the first steps (LGC).
//
// One worker, each in turn, leads a step: its largest elements give the places. For `dense` steps
// gradients go whole, for `training` steps the values at the places go as they are, and the
// autoencoder learns from the leader's, which all workers receive. Then a ring adds the codes of
// all workers and decodes their sum; a server takes the leader's code as that of all, and of each
// worker the values that are furthest from what it decodes to. Codes and phases are published. Two
// things are ours. The autoencoder is linear: a worker knows what it contributes to the decoded
// mean, and keeps the rest. And places travel in the order of the leader's values, which costs no
// bit: neighbours in a window are nearly equal, and from step to step other elements are
// neighbours, so that what a code loses of an element does not stay in its residual.
#include <algorithm>
#include <cmath>
#include <optional>

#include "formats/error.hpp"
#include "policies/exchange/base/autoencoder.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kResiduals = "recipe/exchange/learned/residual";
constexpr const char* kAutoencoder = "recipe/exchange/learned/autoencoder";
constexpr double kCodeBits = 32;

struct LearnedOptions final : PolicyOptions {
  double share = 0.01, innovation = 0.1;
  std::int64_t dense = 32, training = 64, window = 4, code = 1;
  std::vector<Option> list() override {
    return {
        {"share", "part of each tensor's elements that are sent, at least one", &share, 1e-6, 1},
        {"dense", "first steps, whose gradients are sent whole", &dense, 0, 1e9},
        {"training", "steps after them, whose values train the autoencoder", &training, 0, 1e9},
        {"window", "values that are encoded together", &window, 1, 64},
        {"code", "numbers that they become, at most as many", &code, 1, 64},
        {"innovation",
         "order server: part of the values that each worker sends beside the common code",
         &innovation, 0, 1}};
  }
};

enum class LearnedPhase : std::uint8_t { dense, training, encoded };

class Learned final : public ErrorFeedback {
 public:
  Learned(Binding given, net::Numerics& inner)
      : ErrorFeedback(std::move(given), inner, kResiduals) {
    LearnedOptions options;
    if (!binding().layers.empty())
      options = *static_cast<const LearnedOptions*>(binding().layers.begin()->second.get());
    if (options.code > options.window) {
      throw Error(binding().where + ": exchange.code: expected at most exchange.window = " +
                  std::to_string(options.window) + ", not " + std::to_string(options.code));
    }
    autoencoder_.emplace(options.window, options.code, binding().recipe->seed());
  }

  void save_state(net::NamedState& state) const override {
    ErrorFeedback::save_state(state);
    const std::span<const float> learnt = autoencoder_->state();
    save_tensors(
        kAutoencoder,
        {{"state", {learnt.begin(), learnt.end()}}, {"began", {static_cast<float>(began_)}}},
        state);
  }
  void load_state(const net::NamedState& state) override {
    ErrorFeedback::load_state(state);
    StateTensors tensors;
    load_tensors(kAutoencoder, state, tensors);
    if (tensors.empty()) return;
    autoencoder_->set_state(tensors["state"]);
    const std::vector<float>& began = tensors["began"];
    const bool known = began.size() == 1 && began[0] >= 0 && began[0] < 0x1p53f;
    began_ = known ? static_cast<std::int64_t>(began[0]) : -1;
  }

 private:
  LearnedPhase phase(const Message& message) {
    if (began_ < 0) began_ = message.step.index;
    const std::int64_t step = message.step.index - began_;
    const auto& options = message.as<LearnedOptions>();
    return step < options.dense                      ? LearnedPhase::dense
           : step < options.dense + options.training ? LearnedPhase::training
                                                     : LearnedPhase::encoded;
  }
  static bool leads(const Message& message) {
    return message.sender == message.step.index % message.senders;
  }
  static bool by_server(const Message& message) {
    return message.order.kind == net::ExchangeOrder::Kind::server;
  }

  void see(const Message& message, std::span<const std::span<const float>> all) override {
    if (phase(message) == LearnedPhase::dense) return;
    const std::span<const float> lead =
        all[static_cast<std::size_t>(message.step.index % message.senders)];
    places_ = largest(lead, sent_elements(message.as<LearnedOptions>().share, lead.size()));
    sort_by_value(places_, lead);
    common_ = at_places(lead);
    if (phase(message) == LearnedPhase::training) {
      autoencoder_->train(common_);
    } else {
      autoencoder_->reconstruct(common_);
    }
  }

  double compress(const Message& message, std::span<const float>, Values x) override {
    if (phase(message) == LearnedPhase::dense) return value_bits(message, x.size());
    std::vector<float> values = at_places(x);
    double bits = leads(message) ? place_bits(message, x.size()) : 0;
    if (phase(message) == LearnedPhase::training) {
      bits += value_bits(message, values.size());
    } else if (by_server(message)) {
      if (leads(message)) bits += code_bits(values.size());
      bits += innovate(message, values);
    } else {
      autoencoder_->reconstruct(values);
      bits += code_bits(values.size());
    }
    std::ranges::fill(x, 0.0f);
    for (std::size_t i = 0; i < places_.size(); ++i) x[places_[i]] = values[i];
    return bits;
  }

  /// Places of the leader, and values: those of a ring are decoded from the sum of codes.
  double give_back(const Message& message, Values mean, double bits) override {
    if (phase(message) == LearnedPhase::dense) return bits;
    const std::size_t count = sent_elements(message.as<LearnedOptions>().share, mean.size());
    const bool codes = phase(message) == LearnedPhase::encoded && !by_server(message);
    return place_bits(message, mean.size()) +
           (codes ? code_bits(count) : value_bits(message, count));
  }

  /// Replaces all values but those furthest from the common ones by these. Returns the bits of
  /// those sent, with their places among the values.
  double innovate(const Message& message, std::vector<float>& values) const {
    const double share = message.as<LearnedOptions>().innovation;
    const std::vector<float> own = values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= common_[i];
    const std::vector<std::size_t> sent =
        share == 0 ? std::vector<std::size_t>() : largest(values, sent_elements(share, own.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::isfinite(common_[i]) ? common_[i] : own[i];
    for (const std::size_t i : sent) values[i] = own[i];
    return static_cast<double>(sent.size()) * (message.value_bits + index_bits(own.size()));
  }

  std::vector<float> at_places(std::span<const float> x) const {
    std::vector<float> values;
    for (const std::size_t i : places_) values.push_back(x[i]);
    return values;
  }

  static double value_bits(const Message& message, std::size_t count) {
    return message.value_bits * static_cast<double>(count);
  }
  static double place_bits(const Message& message, std::size_t elements) {
    return message.index_bits() *
           static_cast<double>(sent_elements(message.as<LearnedOptions>().share, elements));
  }
  double code_bits(std::size_t values) const {
    return kCodeBits * static_cast<double>(autoencoder_->codes(values));
  }

  std::optional<Autoencoder> autoencoder_;
  std::int64_t began_ = -1;          ///< the first step under this rule
  std::vector<std::size_t> places_;  ///< of the tensor at hand, in the order of windows
  std::vector<float> common_;        ///< what the leader's code decodes to
};

}  // namespace

extern const PolicyKind exchange_learned{
    .key = "exchange",
    .name = "learned",
    .summary = "an autoencoder that learns online encodes the largest elements",
    .source = "Abrahamyan et al., IEEE TNNLS 2021 (LGC, arXiv 2103.08870)",
    .options = make_options<LearnedOptions>,
    .bind = make_policy<Learned>};

}  // namespace numemu::policies
