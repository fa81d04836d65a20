#include "emu/net/train/score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "emu/net/data/view.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::net {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kLn2 = 0x1.62e42fefa39efp-1;
constexpr std::int64_t kTop = 5, kMostMapped = 4096;
constexpr std::size_t kLongestName = 64;  // of a metric that is not known

using Times = std::vector<std::int64_t>;

double total(const ScoreTable& table, const Times& times, std::int64_t column) {
  double sum = 0;
  for (std::int64_t i = 0; i < table.samples(); ++i) {
    if (times[i] != 0)
      sum += static_cast<double>(times[i]) * table.sums[i * table.columns + column];
  }
  return sum;
}

/// A figure that its resamples share nothing of.
template <double (*value)(const ScoreTable&, const Times&)>
Figure of_each(const ScoreTable& table) {
  return [&table](const Times& times) { return value(table, times); };
}

/// Column 0 over column 1.
double ratio(const ScoreTable& table, const Times& times) {
  return total(table, times, 0) / total(table, times, 1);
}

bool has_classes(const Dataset& d) { return d.target() == TargetKind::classes; }
bool has_values(const Dataset& d) { return d.target() == TargetKind::values; }
bool has_any(const Dataset&) { return true; }
bool is_binary(const Dataset& d) {
  return has_classes(d) && d.classes() == 2 && d.targets_per_sample() == 1;
}
bool is_mapped(const Dataset& d) {
  return has_classes(d) && d.kind() != DataKind::text && !d.target_shape().empty() &&
         d.classes() <= kMostMapped;
}
bool has_images(const Dataset& d) { return has_values(d) && d.target_shape().size() == 3; }

std::int64_t two(const Dataset&) { return 2; }
std::int64_t two_of_class(const Dataset& d) { return 2 * d.classes(); }

/// The first largest logit; none where one is NaN.
std::int64_t answer(const float* z, std::int64_t width) {
  std::int64_t best = 0;
  for (std::int64_t c = 0; c < width; ++c) {
    if (z[c] != z[c]) return -1;
    if (z[c] > z[best]) best = c;
  }
  return best;
}

/// Calls `use` with each position that has a class: its logits, class and number.
template <class Use>
void for_classes(const Outcome& o, const Use& use) {
  for (std::size_t p = 0; p < o.classes.size(); ++p) {
    if (o.classes[p] != kNoClass)
      use(o.output.data() + static_cast<std::int64_t>(p) * o.width, o.classes[p], p);
  }
}

void add_right(const Outcome& o, double* sums) {
  for_classes(o, [&](const float* z, std::int32_t label, std::size_t) {
    sums[0] += answer(z, o.width) == label;
    sums[1] += 1;
  });
}

void add_top5(const Outcome& o, double* sums) {
  for_classes(o, [&](const float* z, std::int32_t label, std::size_t) {
    std::int64_t before = 0;
    bool nan = false;
    for (std::int64_t c = 0; c < o.width; ++c) {
      nan = nan || z[c] != z[c];
      before += z[c] > z[label] || (z[c] == z[label] && c < label);
    }
    sums[0] += !nan && before < kTop;
    sums[1] += 1;
  });
}

void add_loss(const Outcome& o, double* sums) {
  for_classes(o, [&](const float*, std::int32_t, std::size_t p) {
    sums[0] += o.loss[p];
    sums[1] += 1;
  });
}

/// The logit of class 1 over that of class 0, and the class.
void add_logit(const Outcome& o, double* sums) {
  sums[0] = kNone;
  for_classes(o, [&](const float* z, std::int32_t label, std::size_t) {
    sums[0] = double{z[1]} - double{z[0]};
    sums[1] = label;
  });
}

/// The share of pairs of a 1 and a 0 whose 1 has the larger logit; ties count half. Sums of halves
/// of integers are exact below 2^52, so that their order does not matter.
Figure auc(const ScoreTable& table) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < table.samples(); ++i) {
    if (!std::isnan(table.sums[2 * i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return table.sums[2 * a] < table.sums[2 * b]; });
  return [&table, order = std::move(order)](const Times& times) {
    double zeros = 0, ones = 0, pairs = 0;
    for (std::size_t i = 0; i < order.size();) {
      const double logit = table.sums[2 * order[i]];
      double tied_zeros = 0, tied_ones = 0;
      for (; i < order.size() && table.sums[2 * order[i]] == logit; ++i) {
        (table.sums[2 * order[i] + 1] == 1 ? tied_ones : tied_zeros) +=
            static_cast<double>(times[order[i]]);
      }
      pairs += tied_ones * (zeros + tied_zeros / 2);
      zeros += tied_zeros;
      ones += tied_ones;
    }
    return pairs / (zeros * ones);
  };
}

double perplexity(const ScoreTable& table, const Times& times) {
  return portable::exp(ratio(table, times));
}

double bits(const ScoreTable& table, const Times& times) { return ratio(table, times) / kLn2; }

double decibels(const ScoreTable& table, const Times& times) {
  return 10 * portable::log10(ratio(table, times));
}

void add_squared(const Outcome& o, double* sums) {
  for (std::size_t i = 0; i < o.values.size(); ++i) {
    const double error = double{o.output[i]} - double{o.values[i]};
    sums[0] += error * error;
  }
  sums[1] = static_cast<double>(o.values.size());
}

void add_absolute(const Outcome& o, double* sums) {
  for (std::size_t i = 0; i < o.values.size(); ++i)
    sums[0] += std::fabs(double{o.output[i]} - double{o.values[i]});
  sums[1] = static_cast<double>(o.values.size());
}

/// Of images on [0, 1], decibels of each and 1.
void add_psnr(const Outcome& o, double* sums) {
  double squared[2] = {0, 0};
  add_squared(o, squared);
  sums[0] = -10 * portable::log10(squared[0] / squared[1]);
  sums[1] = 1;
}

/// Of each class the positions where it is answer and label, and where it is either.
void add_unions(const Outcome& o, double* sums) {
  for_classes(o, [&](const float* z, std::int32_t label, std::size_t) {
    const std::int64_t found = answer(z, o.width);
    if (found == label) sums[2 * label] += 1;
    sums[2 * label + 1] += 1;
    if (found != label && found >= 0) sums[2 * found + 1] += 1;
  });
}

/// Over the classes that are answer or label anywhere.
double mean_iou(const ScoreTable& table, const Times& times) {
  double sum = 0, classes = 0;
  std::vector<double> totals(static_cast<std::size_t>(table.columns), 0);
  for (std::int64_t i = 0; i < table.samples(); ++i) {
    if (times[i] == 0) continue;
    for (std::int64_t c = 0; c < table.columns; ++c)
      totals[c] += static_cast<double>(times[i]) * table.sums[i * table.columns + c];
  }
  for (std::int64_t c = 0; c < table.columns; c += 2) {
    if (totals[c + 1] == 0) continue;
    sum += totals[c] / totals[c + 1];
    classes += 1;
  }
  return sum / classes;
}

void add_cosine(const Outcome& o, double* sums) {
  double dot = 0, own = 0, other = 0;
  for (std::size_t i = 0; i < o.output.size(); ++i) {
    dot += double{o.output[i]} * double{o.reference[i]};
    own += double{o.output[i]} * double{o.output[i]};
    other += double{o.reference[i]} * double{o.reference[i]};
  }
  sums[0] = dot / std::sqrt(own * other);
  sums[1] = 1;
}

void add_noise(const Outcome& o, double* sums) {
  for (std::size_t i = 0; i < o.output.size(); ++i) {
    const double error = double{o.output[i]} - double{o.reference[i]};
    sums[0] += double{o.reference[i]} * double{o.reference[i]};
    sums[1] += error * error;
  }
}

// Half a point of top-1 and 0.7 % of the perplexity (0.01 bits) are what people call small. The
// limits of other shares and of log loss are the same in their units; those of errors and of PSNR
// are 1 % and 0.1 dB.
constexpr ShownAs percent(const char* title, const char* words) {
  return {title, words, "%", "points", 100, 2, false, false, 0.005, 0.1};
}
constexpr ShownAs error(const char* title, const char* words, const char* unit) {
  return {title, words, "", unit, 1, 6, true, true, 0.01, 1};
}

const Score kScores[] = {
    {"top1", "share of classes that are the largest logit", has_classes, two, add_right,
     of_each<ratio>, percent("Top-1, %", "top-1"), false, true},
    {"top5", "share of classes among the five largest logits", has_classes, two, add_top5,
     of_each<ratio>, percent("Top-5, %", "top-5"), false, true},
    {"auc", "area under the ROC curve of two classes", is_binary, two, add_logit, auc,
     percent("AUC, %", "AUC")},
    {"log_loss",
     "mean cross-entropy of a class, nats",
     has_classes,
     two,
     add_loss,
     of_each<ratio>,
     {"Log loss, nats", "log loss", "nats", "nats", 1, 4, true, false, 0.007, 0.35}},
    {"perplexity",
     "e to the mean cross-entropy",
     has_classes,
     two,
     add_loss,
     of_each<perplexity>,
     {"Perplexity", "perplexity", "", "% of the perplexity", 1, 3, true, true, 0.007, 0.4}},
    {"bits_per_token",
     "mean cross-entropy of a class, bits",
     has_classes,
     two,
     add_loss,
     of_each<bits>,
     {"Bits per token", "bits per token", "", "bits per token", 1, 4, true, false, 0.01, 0.5}},
    {"mse", "mean squared error", has_values, two, add_squared, of_each<ratio>,
     error("Mean squared error", "mean squared error", "% of the mean squared error")},
    {"mae", "mean absolute error", has_values, two, add_absolute, of_each<ratio>,
     error("Mean absolute error", "mean absolute error", "% of the mean absolute error")},
    {"psnr",
     "mean over images on [0, 1] of -10 log10 of their mean squared error, dB",
     has_images,
     two,
     add_psnr,
     of_each<ratio>,
     {"PSNR, dB", "PSNR", "dB", "dB", 1, 2, false, false, 0.1, 3}},
    {"mean_iou", "intersection over union of answers and class maps, mean over classes", is_mapped,
     two_of_class, add_unions, of_each<mean_iou>, percent("Mean IoU, %", "mean IoU")},
    {"pixel_accuracy", "share of places of class maps that are the largest logit", is_mapped, two,
     add_right, of_each<ratio>, percent("Pixel accuracy, %", "pixel accuracy"), false, true},
    {"cosine",
     "mean cosine of a sample's outputs and those in float32",
     has_any,
     two,
     add_cosine,
     of_each<ratio>,
     {"Cosine with float32", "cosine with float32", "", "of the cosine", 1, 6},
     true},
    {"sqnr",
     "power of the outputs in float32 over that of their difference, dB",
     has_any,
     two,
     add_noise,
     of_each<decibels>,
     {"SQNR of outputs, dB", "SQNR of the outputs", "dB", "dB", 1, 2},
     true}};

std::string_view needs(const Score& score) {
  return score.fits == is_binary    ? "two classes, one per sample"
         : score.fits == is_mapped  ? "maps of classes as targets"
         : score.fits == has_images ? "images as targets"
         : score.fits == has_values ? "numbers as targets"
                                    : "classes as targets";
}

std::string targets_of(const Dataset& data) {
  if (data.target() == TargetKind::none) return "no targets (an array y gives them)";
  if (has_images(data)) return "images as targets";
  if (has_values(data)) return "numbers as targets";
  return fmt::format("{} classes, {} per sample", data.classes(), data.targets_per_sample());
}

std::string fitting(const Dataset& data) {
  std::string names;
  for (const Score& score : kScores) {
    if (score.fits(data)) names += (names.empty() ? "" : ", ") + std::string(score.name);
  }
  return names;
}

}  // namespace

const Score& find_score(std::string_view name) {
  const std::string_view own = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  for (const Score& score : kScores) {
    if (score.name == own) return score;
  }
  std::string known;
  for (const std::string& each : score_names()) known += (known.empty() ? "" : ", ") + each;
  throw Error(fmt::format("unknown metric '{}'; known: {}", name.substr(0, kLongestName), known));
}

std::span<const Score> scores() { return kScores; }

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const Score& score : kScores) names.emplace_back(score.name);
  return names;
}

namespace {

/// Of one output.
std::vector<std::string> own_scores(const Dataset& data) {
  if (data.target() == TargetKind::none) return {"cosine", "sqnr"};
  if (has_images(data)) return {"mse", "mae", "psnr"};
  if (has_values(data)) return {"mse", "mae"};
  if (data.kind() == DataKind::text) return {"perplexity", "bits_per_token", "top1"};
  if (is_mapped(data)) return {"mean_iou", "pixel_accuracy", "top1"};
  if (data.targets_per_sample() > 1) return {"top1"};
  return {};
}

}  // namespace

std::vector<std::string> default_scores(const Dataset& data) {
  if (data.outputs() == 1) return own_scores(data);
  std::vector<std::string> names;
  for (std::size_t o = 0; o < data.outputs(); ++o) {
    std::vector<std::string> own = own_scores(at_output(data, o));
    // Rows have those of the first output apart.
    if (own.empty() && o > 0) own = {"top1", "log_loss"};
    const std::string& output = data.targets_of(o).output;
    for (const std::string& name : own)
      names.push_back((output.empty() ? "" : output + "/") + name);
  }
  return names;
}

std::vector<OutputScore> scores_for(const Dataset& data, const std::vector<std::string>& names) {
  std::vector<OutputScore> scores;
  const auto add = [&](const Score& score, std::size_t output) {
    const OutputScore own(&score, output, data.targets_of(output).output);
    if (std::ranges::find(scores, own) == scores.end()) scores.push_back(own);
  };
  for (const std::string& name : names) {
    const Score& score = find_score(name);
    const std::size_t slash = name.rfind('/');
    const std::string output = slash == std::string::npos ? "" : name.substr(0, slash);
    bool known = output.empty(), fits = false;
    for (std::size_t o = 0; o < data.outputs(); ++o) {
      if (!output.empty() && output != data.targets_of(o).output) continue;
      known = true;
      if (!score.fits(at_output(data, o))) continue;
      fits = true;
      add(score, o);
    }
    if (!known) {
      throw Error(fmt::format("metric {}: expected an output of which the data set {} has targets",
                              name, data.name()));
    }
    if (!fits) {
      throw Error(
          fmt::format("metric {} needs {}, and the data set {} has {}; metrics that fit: {}", name,
                      needs(score), data.name(), targets_of(data), fitting(data)));
    }
  }
  for (std::size_t o = 0; o < data.outputs(); ++o) {
    const TargetFacts& facts = data.targets_of(o);
    if (facts.target == TargetKind::classes && element_count(facts.target_shape) > 1)
      add(find_score("top1"), o);
  }
  return scores;
}

}  // namespace numemu::net
