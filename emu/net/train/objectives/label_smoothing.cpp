// Objective label_smoothing: cross-entropy to the label with a share of it spread evenly over all
// classes (Szegedy et al., Rethinking the Inception Architecture, CVPR 2016, section 7).
#include "emu/net/train/objective.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

struct Smoothing final : OptionSet {
  double share = 0.1;
  std::vector<Option> list() override {
    return {{"share", "of the label that is spread over all classes", &share, 0, 1}};
  }
};

double smoothed_loss(const LogitRow& row, double share, std::span<double> derivative) {
  const std::span<const float> z = row.logits;
  const double loss = softmax_loss(row, derivative);
  if (share == 0) return loss;
  // The loss of class c is that of the label plus z[label] - z[c].
  const auto classes = static_cast<std::int64_t>(z.size());
  const double each = share / static_cast<double>(classes), label = double{z[row.label]};
  for (double& d : derivative) d -= each;
  if (!derivative.empty()) derivative[row.label] += share;
  const double rest = pairwise_sum(classes, [&](std::int64_t c) { return label - double{z[c]}; });
  return loss + each * rest;
}

}  // namespace

extern const Objective objective_label_smoothing{
    .name = "label_smoothing",
    .options = make_options<Smoothing>,
    .with = [](const OptionSet& options) -> Objective::Evaluate {
      return [share = static_cast<const Smoothing&>(options).share](
                 const Tensor& logits, const Targets& targets, Tensor* gradient, float scale) {
        const auto row_loss = [share](const LogitRow& row, std::span<double> derivative) {
          return smoothed_loss(row, share, derivative);
        };
        return classify("label_smoothing", row_loss, logits, targets.classes, gradient, scale);
      };
    }};

}  // namespace numemu::net
