// Statistics in float64, in two passes; one multiplication and one addition per element.
#include "emu/net/ops/batch_norm.hpp"

#include <cmath>
#include <numbers>

#include "emu/net/ops/sums.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {
namespace {

// rows_of[channel] = the first row whose value is before(x, best so far) of all; blocks of rows in
// parallel, then the blocks in order.
template <class Before>
std::vector<std::int64_t> first_extremes(const float* x, std::int64_t rows, std::int64_t channels,
                                         const Before& before) {
  constexpr std::int64_t kBlock = 256;
  const std::int64_t blocks = (rows + kBlock - 1) / kBlock;
  std::vector<std::int64_t> found(static_cast<std::size_t>(blocks * channels));
  for_each_row(blocks, kBlock * channels, [&](std::int64_t block) {
    std::int64_t* const best = found.data() + block * channels;
    std::fill_n(best, channels, block * kBlock);
    for (std::int64_t r = block * kBlock; r < std::min(rows, (block + 1) * kBlock); ++r) {
      for (std::int64_t c = 0; c < channels; ++c) {
        if (before(x[r * channels + c], x[best[c] * channels + c])) best[c] = r;
      }
    }
  });
  for (std::int64_t block = 1; block < blocks; ++block) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t r = found[block * channels + c];
      if (before(x[r * channels + c], x[found[c] * channels + c])) found[c] = r;
    }
  }
  found.resize(static_cast<std::size_t>(channels));
  return found;
}

// E[max - min] of n standard normal values: the integral of 1 - Phi(z)^n - (1 - Phi(z))^n over the
// line (Tippett 1925), twice the one over z > 0. The trapezoidal rule converges exponentially: for
// n up to 1e6 it is exact to 1e-12 with these nodes.
double expected_range(std::int64_t n) {
  constexpr double kStep = 0x1p-4;
  constexpr int kNodes = 14 * 16;  // beyond z = 14 the integrand is below n 1e-44
  struct Logarithms {
    double inside, outside;  // of Phi(z) and 1 - Phi(z)
  };
  static const std::vector<Logarithms> nodes = [] {
    std::vector<Logarithms> all;
    for (int i = 0; i < kNodes; ++i) {
      const double q = normal::probability(-i * kStep);
      // ln(1 - q), by its series where 1 - q would lose digits of q.
      const double inside =
          q < 0x1p-13 ? -q * (1 + q * (0.5 + q * (1.0 / 3 + q * 0.25))) : portable::log(1 - q);
      all.push_back({inside, portable::log(q)});
    }
    return all;
  }();
  const auto power = [n](double logarithm) {
    const double x = static_cast<double>(n) * logarithm;
    return x < -700 ? 0 : portable::exp(x);
  };
  double sum = 0;
  for (int i = kNodes - 1; i >= 0; --i) {
    const double f = 1 - power(nodes[i].inside) - power(nodes[i].outside);
    sum += i == 0 ? f : 2 * f;
  }
  return kStep * sum;
}

}  // namespace

double range_factor(NormRule::Constant constant, std::int64_t n) {
  if (constant == NormRule::Constant::exact) return 1 / expected_range(n);
  const double published = 1 / std::sqrt(2 * core::log_positive(static_cast<double>(n)));
  if (constant == NormRule::Constant::published) return published;
  return 0.5 * 0.35 * (1 + std::sqrt(std::numbers::pi * 2 * std::numbers::ln2)) * published;
}

BatchStatistics batch_statistics(const float* x, std::int64_t rows, std::int64_t channels,
                                 const NormRule& rule) {
  const auto count = static_cast<double>(rows);
  BatchStatistics result;
  result.mean = column_sums(x, rows, channels);
  for (double& mean : result.mean) mean /= count;
  const auto mean_deviations = [&](const auto& term) {
    const double* const means = result.mean.data();
    result.variance = column_tree(rows, channels, [=](std::int64_t r, double* sums) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) sums[c] += term(x[r * channels + c] - means[c]);
    });
    for (double& variance : result.variance) variance /= count;
  };
  if (rule.statistic == NormRule::Statistic::variance) {
    mean_deviations([](double d) { return d * d; });
    return result;
  }
  if (rule.statistic == NormRule::Statistic::shift) {
    mean_deviations([](double d) { return d * core::power_of_two(d); });
    return result;
  }
  const std::int64_t chunks = rule.chunks, length = rows / chunks;
  const double short_share = range_factor(rule.constant, length) / rule.chunks;
  const double long_share =
      rows % chunks == 0 ? short_share : range_factor(rule.constant, length + 1) / rule.chunks;
  result.variance.resize(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t first = i * rows / chunks, n = (i + 1) * rows / chunks - first;
    const float* const chunk = x + first * channels;
    const double share = n == length ? short_share : long_share;
    const auto largest = first_extremes(chunk, n, channels, [](float a, float b) { return a > b; });
    const auto smallest =
        first_extremes(chunk, n, channels, [](float a, float b) { return a < b; });
    for (std::int64_t c = 0; c < channels; ++c) {
      const double range =
          static_cast<double>(chunk[largest[c] * channels + c]) - chunk[smallest[c] * channels + c];
      result.variance[c] += share * range;
      result.largest.push_back(first + largest[c]);
      result.smallest.push_back(first + smallest[c]);
    }
    result.share.push_back(share);
  }
  for (double& scale : result.variance) scale *= scale;
  return result;
}

namespace {

float rounded(double x) { return neutral(static_cast<float>(x)); }

// A factor that the rule rounds to a power of two.
double factor(const NormRule& rule, double x) {
  return rule.statistic == NormRule::Statistic::shift ? core::power_of_two(x) : x;
}

// y = x a + b per channel, blocks of rows in parallel.
void scale_and_shift(const float* x, std::int64_t rows, std::span<const float> scale,
                     std::span<const float> shift, float* y) {
  const auto channels = static_cast<std::int64_t>(scale.size());
  const float* const a = scale.data();
  const float* const b = shift.data();
  const std::int64_t block = std::max<std::int64_t>(1, 4096 / channels);
  for_each_row((rows + block - 1) / block, block * channels, [=](std::int64_t i) {
    for (std::int64_t r = i * block; r < std::min(rows, (i + 1) * block); ++r) {
      const float* const from = x + r * channels;
      float* const to = y + r * channels;
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) to[c] = neutral(from[c] * a[c] + b[c]);
    }
  });
}

// Rows [first, first + rows) of the matrix [.., channels]: samples that share statistics.
struct Group {
  std::int64_t first = 0, rows = 0;
};

std::vector<Group> groups_of(const OpCall& call, const NormRule& rule, const Shape& shape) {
  std::int64_t pixels = 1;  // rows of a sample
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) pixels *= shape[i];
  const std::int64_t samples = shape[0];
  const std::int64_t size = rule.ghost_batch > 0 ? rule.ghost_batch : samples;
  std::vector<Group> groups;
  for (std::int64_t s = 0; s < samples; s += size)
    groups.push_back({s * pixels, std::min(size, samples - s) * pixels});
  const std::int64_t chunks = rule.statistic == NormRule::Statistic::range ? rule.chunks : 1;
  for (const Group& group : groups) {
    if (group.rows >= 2 * chunks) continue;
    const std::string of =
        chunks == 1 ? "" : ", 2 for each of " + std::to_string(chunks) + " chunks";
    throw Error("batch_norm " + std::string(call.layer) + ": expected at least " +
                std::to_string(2 * chunks) + " values per channel and statistic in training" + of +
                ", got " + std::to_string(group.rows) + " in " + to_string(shape));
  }
  return groups;
}

// The gradients of one group, u = (x - mean) inverse.
struct GroupBackward {
  const float* x;  // [rows, channels]
  const float* g;  // [rows, channels]
  std::int64_t rows, channels;
  const double* statistics;  // [2, channels]: mean, inverse deviation
  const float* weight;       // [channels]

  // [2, channels]: sums of g and of g u.
  std::vector<double> sums() const;
  // dx [rows, channels], from the sums over all `count` rows that share the statistics.
  void input(const NormRule&, const std::vector<double>& sums, double count, float* dx) const;
};

// What all workers of a meeting contribute to a statistic: rows, then values.
std::vector<std::vector<double>> gathered(
    Meeting& meeting, std::int64_t rows, std::initializer_list<const std::vector<double>*> values) {
  std::vector<double> own = {static_cast<double>(rows)};
  for (const std::vector<double>* part : values) own.insert(own.end(), part->begin(), part->end());
  return meeting.gather(std::move(own));
}

bool meets(const NormRule& rule, const Step& step) {
  return rule.synchronised && step.meeting != nullptr;
}

// The mean and the variance over the rows of all workers (Chan, Golub and LeVeque 1979); returns
// their number.
double join(Meeting& meeting, std::int64_t rows, BatchStatistics& own) {
  const std::size_t channels = own.mean.size();
  const std::vector<std::vector<double>> all = gathered(meeting, rows, {&own.mean, &own.variance});
  double count = 0;
  for (const std::vector<double>& worker : all) count += worker[0];
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0;
    for (const std::vector<double>& worker : all) mean += worker[0] / count * worker[1 + c];
    for (const std::vector<double>& worker : all) {
      const double off = worker[1 + c] - mean;
      variance += worker[0] / count * (worker[1 + channels + c] + off * off);
    }
    own.mean[c] = mean;
    own.variance[c] = variance;
  }
  return count;
}

// The sums over the rows of all workers; returns the number of rows.
double join(Meeting& meeting, std::int64_t rows, std::vector<double>& sums) {
  double count = 0;
  const std::vector<std::vector<double>> all = gathered(meeting, rows, {&sums});
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const std::vector<double>& worker : all) {
    count += worker[0];
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += worker[1 + i];
  }
  return count;
}

std::vector<double> GroupBackward::sums() const {
  return column_tree(rows, 2 * channels, [*this](std::int64_t r, double* total) {
    const float* const row_x = x + r * channels;
    const float* const row_g = g + r * channels;
    const double* const mean = statistics;
    const double* const inverse = mean + channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      total[c] += row_g[c];
      total[channels + c] += row_g[c] * ((row_x[c] - mean[c]) * inverse[c]);
    }
  });
}

void GroupBackward::input(const NormRule& rule, const std::vector<double>& sums, double count,
                          float* dx) const {
  const bool range = rule.statistic == NormRule::Statistic::range;
  const double* const mean = statistics;
  const double* const inverse = mean + channels;
  // dx = weight inverse (g - mean(g) - u mean(g u)) for the variance.
  std::vector<double> slope(static_cast<std::size_t>(channels)), share(sums);
  for (std::int64_t c = 0; c < channels; ++c) {
    slope[c] = factor(rule, weight[c]) * inverse[c];
    share[c] = sums[c] / count;
    share[channels + c] = range ? 0 : sums[channels + c] / count;
  }
  const double* const a = slope.data();
  const double* const s = share.data();
  for_each_row(rows, channels, [=, *this](std::int64_t r) {
    const float* const row_x = x + r * channels;
    const float* const row_g = g + r * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const double u = (row_x[c] - mean[c]) * inverse[c];
      dx[r * channels + c] = rounded(a[c] * (row_g[c] - s[c] - u * s[channels + c]));
    }
  });
  if (!range) return;
  // With the scale in the place of the deviation du / d scale = -u scale inverse^2, and
  // d scale / dx = +-C(n) / chunks at the two ends of each chunk.
  const BatchStatistics batch = batch_statistics(x, rows, channels, rule);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double by_scale =
        -weight[c] * sums[channels + c] * std::sqrt(batch.variance[c]) * inverse[c] * inverse[c];
    for (std::size_t i = 0; i < batch.share.size(); ++i) {
      const std::int64_t place = static_cast<std::int64_t>(i) * channels + c;
      const double end = batch.share[i] * by_scale;
      float& top = dx[batch.largest[place] * channels + c];
      float& bottom = dx[batch.smallest[place] * channels + c];
      top = rounded(top + end);
      bottom = rounded(bottom - end);
    }
  }
}

}  // namespace

BatchNorm::BatchNorm(const BatchNormOptions& options)
    : Op({.kind = "batch_norm", .in_place = true, .on_codes = OnCodes::normalises}),
      options_(options) {
  if (options.channels < 1 || !(options.epsilon > 0) ||
      !(options.momentum >= 0 && options.momentum <= 1)) {
    throw Error("batch_norm: expected positive channels and epsilon and a momentum from 0 to 1");
  }
  const Shape shape{options.channels};
  parameters_.push_back({"weight", Tensor(shape, 1), 0, 1});
  parameters_.push_back({"bias", Tensor(shape), 0, 0});
  parameters_.push_back({"running_mean", Tensor(shape), 0, 0, false});
  parameters_.push_back({"running_variance", Tensor(shape, 1), 0, 1, false});
}

Shape BatchNorm::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0].back() != options_.channels) {
    throw Error("batch_norm: expected one input [n, ..., " + std::to_string(options_.channels) +
                "], got " + (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return inputs[0];
}

void BatchNorm::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  const Tensor& x = *inputs[0];  // [n, ..., channels]
  const std::int64_t channels = options_.channels;
  const Elements& weight = parameters_[0].value.data;
  const Elements& bias = parameters_[1].value.data;
  std::vector<float> scale(weight.size()), shift(weight.size());
  const NormRule rule = call.numerics.norm(call.step, call.layer);
  // Returns the inverse deviation.
  const auto prepare = [&](std::size_t c, double mean, double variance) {
    const double inverse = factor(rule, 1 / std::sqrt(variance + options_.epsilon));
    const double slope = factor(rule, weight[c]) * inverse;
    scale[c] = rounded(slope);
    shift[c] = rounded(bias[c] - mean * slope);
    return inverse;
  };
  const Tensor &mean = parameters_[2].value, &variance = parameters_[3].value;
  if (call.phase == Phase::inference) {
    for (std::size_t c = 0; c < scale.size(); ++c) prepare(c, mean.data[c], variance.data[c]);
    scale_and_shift(x.data.data(), x.size() / channels, scale, shift, output.data.data());
    return;
  }

  const std::vector<Group> groups = groups_of(call, rule, x.shape);
  Tensor context({static_cast<std::int64_t>(groups.size()), 2, channels});
  BufferUpdate means{2, options_.momentum, {}}, variances{3, options_.momentum, {}};
  float* kept = context.data.data();
  for (const Group& group : groups) {
    const float* const from = x.data.data() + group.first * channels;
    BatchStatistics batch = batch_statistics(from, group.rows, channels, rule);
    const double count = meets(rule, call.step) ? join(*call.step.meeting, group.rows, batch)
                                                : static_cast<double>(group.rows);
    const double unbiased =
        rule.statistic == NormRule::Statistic::variance ? count / (count - 1) : 1;
    for (std::size_t c = 0; c < scale.size(); ++c) {
      kept[c] = rounded(batch.mean[c]);
      kept[channels + c] = rounded(prepare(c, batch.mean[c], batch.variance[c]));
    }
    means.statistics.push_back(batch.mean);
    for (double& v : variances.statistics.emplace_back(batch.variance)) v *= unbiased;
    scale_and_shift(from, group.rows, scale, shift, output.data.data() + group.first * channels);
    kept += 2 * channels;
  }
  if (call.context != nullptr) *call.context = std::move(context);
  if (call.buffers == nullptr) return;
  call.buffers->push_back(std::move(means));
  call.buffers->push_back(std::move(variances));
}

void BatchNorm::backward(const OpCall& call, const OpBackward& back) const {
  const Tensor& x = *back.inputs[0];  // [n, ..., channels]
  const std::int64_t channels = options_.channels;
  const NormRule rule = call.numerics.norm(call.step, call.layer);
  const std::vector<Group> groups = groups_of(call, rule, x.shape);
  const Shape expected{static_cast<std::int64_t>(groups.size()), 2, channels};
  if (call.kept == nullptr || call.kept->shape != expected) {
    throw Error("batch_norm " + std::string(call.layer) +
                ": backward needs the statistics that forward leaves in training, " +
                to_string(expected));
  }
  const std::vector<double> kept(call.kept->data.begin(), call.kept->data.end());
  std::vector<double> by_weight(static_cast<std::size_t>(channels)), by_bias(by_weight);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::int64_t offset = groups[i].first * channels;
    const GroupBackward group{x.data.data() + offset,
                              back.grad_output.data.data() + offset,
                              groups[i].rows,
                              channels,
                              kept.data() + i * 2 * static_cast<std::size_t>(channels),
                              parameters_[0].value.data.data()};
    std::vector<double> sums = group.sums();
    for (std::int64_t c = 0; c < channels; ++c) {
      by_bias[c] += sums[c];
      by_weight[c] += sums[channels + c];
    }
    const double count = meets(rule, call.step) ? join(*call.step.meeting, group.rows, sums)
                                                : static_cast<double>(group.rows);
    if (back.want_inputs) group.input(rule, sums, count, back.grad_inputs[0].data.data() + offset);
  }
  const auto give = [](const std::vector<double>& sums, Tensor& gradient) {
    for (std::int64_t c = 0; c < gradient.size(); ++c) gradient.data[c] = rounded(sums[c]);
  };
  give(by_weight, back.grad_parameters[0]);
  give(by_bias, back.grad_parameters[1]);
}

}  // namespace numemu::net
