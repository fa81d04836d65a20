// Objective squared_hinge: the mean over classes of max(0, 1 - t z)^2, t = 1 for the label and -1
// for every other class, of one-against-all support vector machines (Tang, Deep Learning using
// Linear Support Vector Machines, arXiv 1306.0239), on which binarized networks are trained.
#include "emu/net/train/objective.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

double hinge_loss(const LogitRow& row, std::span<double> derivative) {
  const auto classes = static_cast<std::int64_t>(row.logits.size());
  const auto sign = [&](std::int64_t c) { return c == row.label ? 1.0 : -1.0; };
  // Of a NaN the difference is NaN, which max(0, x) would lose.
  const auto missing = [&](std::int64_t c) {
    const double margin = 1 - sign(c) * double{row.logits[c]};
    return margin < 0 ? 0 : margin;
  };
  for (std::size_t c = 0; c < derivative.size(); ++c) {
    const auto k = static_cast<std::int64_t>(c);
    derivative[c] = -2 * sign(k) * missing(k) / static_cast<double>(classes);
  }
  const double sum = pairwise_sum(classes, [&](std::int64_t c) {
    const double m = missing(c);
    return m * m;
  });
  return sum / static_cast<double>(classes);
}

Classified squared_hinge(const Tensor& logits, const Targets& targets, Tensor* gradient,
                         float scale) {
  return classify("squared_hinge", hinge_loss, logits, targets.classes, gradient, scale);
}

}  // namespace

extern const Objective objective_squared_hinge{"squared_hinge", squared_hinge};

}  // namespace numemu::net
