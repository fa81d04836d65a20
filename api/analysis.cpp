// Cold: a negligible share of any run (docs/build.md).
#include "api/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "formats/analysis/comparison.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::api {
namespace {

constexpr std::int64_t kUsualDraws = 1000000;
constexpr std::int64_t kSlowDraws = 10000000;  // about a second

bool is_file(const std::string& dist) {
  return dist.ends_with(".npy") || dist.find('/') != std::string::npos;
}

double parse_scale(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const auto scale = static_cast<float>(value);
  if (text.empty() || *end != '\0' || !(scale > 0) || !std::isfinite(scale)) {
    throw usage_error(
        fmt::format("--scale: expected a positive number within float32, not '{}'", text));
  }
  return scale;
}

/// The numbers of an array, all finite.
std::vector<double> finite_numbers(const std::string& path, const Array& array) {
  constexpr double kLargest = 1e75;  // fourth powers, which size standard errors, stay doubles
  const std::int64_t n = array.elements();
  std::vector<double> x(static_cast<std::size_t>(n));
  const Format& half = find_format("float16");
  for (std::int64_t i = 0; i < n; ++i) {
    switch (array.type) {
      case ArrayType::float64:
        x[i] = array.as<double>()[i];
        break;
      case ArrayType::float32:
        x[i] = static_cast<double>(array.as<float>()[i]);
        break;
      case ArrayType::float16:
        x[i] = to_double(decode(half, array.as<std::uint16_t>()[i]));
        break;
      default:
        throw Error(fmt::format("{}: dtype {}, expected float16, float32 or float64", path,
                                to_string(array.type)));
    }
    if (!(std::abs(x[i]) <= kLargest)) {
      throw Error(fmt::format("{}: element {} is {}, expected finite numbers up to {}", path, i,
                              x[i], kLargest));
    }
  }
  if (n == 0)
    throw Error(
        fmt::format("{}: shape {}, expected at least one element", path, shape_text(array.shape)));
  if (std::ranges::all_of(x, [](double v) { return v == 0; }))
    throw Error(fmt::format("{}: expected numbers that are not all zero", path));
  return x;
}

/// What is analyzed: a law, or the numbers of a file.
struct Subject {
  Conversion conversion;
  double scale = 1;
  std::optional<Distribution> law;
  std::vector<double> numbers;
  std::int64_t n = 0;
  bool sampled() const { return !law; }
};

/// The scale that a rule chooses for the numbers of the file, or for all draws of the law, each
/// rounded to float32.
double scale_by_rule(const std::string& name, const Subject& s) {
  const ScaleRule& rule = find_scale_rule(name);
  std::vector<float> x(static_cast<std::size_t>(s.n));
  RandomSource source = s.conversion.random;
  source.stream = Stream::data;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < s.n; ++i) {
    x[i] = static_cast<float>(s.law ? s.law->draw(source, static_cast<std::uint64_t>(i))
                                    : s.numbers[i]);
  }
  return rule.scale({x.data(), s.n, &s.conversion});
}

Subject subject_of(const AnalysisRequest& request) {
  Subject s;
  const Format& format = find_format(request.format);
  s.conversion = {.format = &format,
                  .rounding = parse_rounding(request.rounding),
                  .overflow = parse_overflow(request.overflow),
                  .random = {.seed = request.seed}};
  if (format.bits > 16) {
    throw usage_error(fmt::format("--format: '{}' has {} bits, expected a format of at most 16",
                                  format.name, format.bits));
  }
  s.scale = parse_scale(request.scale);
  if (!request.rule.empty() && s.scale != 1)
    throw usage_error("--scale-rule: expected a rule or --scale, not both");
  if (request.n && *request.n < 1)
    throw usage_error(fmt::format("--n: expected at least 1, found {}", *request.n));
  if (request.sample != nullptr) {
    s.numbers = finite_numbers(request.numbers, *request.sample);
  } else if (!is_file(request.numbers)) {
    s.law = Distribution::parse(request.numbers, !format.is_signed);
    s.n = request.n.value_or(kUsualDraws);
  } else {
    if (request.n)
      throw usage_error(fmt::format(
          "--n: {} is a file with its own numbers, expected a distribution name", request.numbers));
    s.numbers = finite_numbers(request.numbers, read_npy(request.numbers));
  }
  if (!s.law) s.n = static_cast<std::int64_t>(s.numbers.size());
  if (!request.rule.empty()) s.scale = scale_by_rule(request.rule, s);
  return s;
}

std::vector<AnalyzedFigure> figures_of(const Subject& s, const ErrorFigures& predicted,
                                       const ErrorFigures& measured) {
  std::vector<AnalyzedFigure> rows;
  const auto mean = [&](const char* key, const char* label, Figure ErrorFigures::*figure,
                        double size = 0) {
    const Figure &p = predicted.*figure, &m = measured.*figure;
    rows.push_back({key, label, p, m,
                    s.sampled() ? compare_sample(p, m, s.n, size) : compare_mean(p, m, s.n, size)});
    return rows.back().comparison.verdict;
  };
  const auto mass = [&](const char* key, const char* label, Figure ErrorFigures::*figure) {
    const Figure &p = predicted.*figure, &m = measured.*figure;
    rows.push_back(
        {key, label, p, m, s.sampled() ? compare_sample(p, m, s.n) : compare_mass(p, m, s.n)});
  };
  const std::size_t error = rows.size();
  mean("mean_error", "mean error", &ErrorFigures::error, std::sqrt(predicted.square.mean));
  const std::size_t gain = rows.size();
  mean("gain_error", "E[x err]/E[x^2]", &ErrorFigures::gain,
       std::sqrt(predicted.square.mean / predicted.signal.mean));
  const std::size_t outward = rows.size();
  mean("outward_error", "E[sign(x) err]", &ErrorFigures::outward, std::sqrt(predicted.square.mean));
  const Verdict square = mean("mse", "MSE", &ErrorFigures::square);
  const std::size_t sqnr = rows.size();
  mean("sqnr_db", "SQNR dB", &ErrorFigures::sqnr, 1);
  const Verdict signal = mean("signal", "E[x^2]", &ErrorFigures::signal);
  // Means of errors are judged beside the root of the MSE. A ratio is known no better than its
  // parts.
  if (square == Verdict::undecided)
    rows[error].comparison.verdict = rows[outward].comparison.verdict = Verdict::undecided;
  if (signal == Verdict::undecided) rows[gain].comparison.verdict = Verdict::undecided;
  if (square == Verdict::undecided || signal == Verdict::undecided)
    rows[sqnr].comparison.verdict = Verdict::undecided;
  mean("relative_square", "E[(err/x)^2]", &ErrorFigures::relative);
  mass("overflow", "overflow (OF)", &ErrorFigures::overflow);
  mass("underflow", "underflow (UF)", &ErrorFigures::underflow);
  mass("to_zero", "becomes zero", &ErrorFigures::to_zero);
  mass("infinite", "becomes Inf", &ErrorFigures::infinite);
  mass("nan", "becomes NaN", &ErrorFigures::nan);
  return rows;
}

}  // namespace

bool Analysis::fails() const {
  return std::ranges::any_of(figures, [](const AnalyzedFigure& figure) {
    return figure.comparison.verdict == Verdict::fails;
  });
}

Analysis analyze(const AnalysisRequest& request, const std::function<void(std::int64_t)>& slow) {
  const Subject s = subject_of(request);
  const Conversion& c = s.conversion;
  const OutcomeLaw law = outcome_law(*c.format, c.rounding, c.overflow, c.symmetric);
  if (slow && s.n > kSlowDraws) slow(s.n);
  const ErrorFigures predicted = s.law ? error_figures(law, s.scale, s.law->density())
                                       : error_figures(law, s.scale, s.numbers.data(), s.n);
  const ErrorFigures measured = s.law ? monte_carlo(c, s.scale, *s.law, request.seed, s.n)
                                      : measure(c, s.scale, s.numbers.data(), s.n);
  std::optional<BestScale> best;
  if (request.best_scale) {
    best = s.law ? best_scale(*c.format, c.rounding, s.law->density())
                 : best_scale(*c.format, c.rounding, s.numbers.data(), s.n);
  }
  return {c,
          s.scale,
          s.law ? std::optional(s.law->name()) : std::nullopt,
          s.law ? s.law->name() : utf8_text(request.numbers),
          request.rule.empty() ? "" : std::string(scale_rule_name(request.rule)),
          s.n,
          figures_of(s, predicted, measured),
          best};
}

namespace {

Json choice_json(const ScaleChoice& choice, double signal) {
  return {{"scale", choice.scale},
          {"log2_scale", portable::log2(choice.scale)},
          {"mse", choice.square},
          {"sqnr_db", 10 * portable::log10(signal / choice.square)}};
}

}  // namespace

Json analysis_json(const Analysis& s) {
  Json json = {{"format", s.conversion.format->name},
               {"rounding", to_string(s.conversion.rounding)},
               {"overflow", to_string(s.conversion.overflow)},
               {"scale", s.scale},
               {"dist", s.numbers},
               {"n", s.n},
               {"seed", s.conversion.random.seed}};
  if (!s.rule.empty()) json["scale_rule"] = s.rule;
  for (const AnalyzedFigure& row : s.figures) {
    json["figures"][row.key] = {{"predicted", row.predicted.mean},
                                {"measured", row.measured.mean},
                                {"ci95", {row.comparison.low, row.comparison.high}},
                                {"verdict", to_string(row.comparison.verdict)}};
  }
  if (s.best) {
    json["best_scale"] = {{"real", choice_json(s.best->real, s.best->signal)},
                          {"power_of_two", choice_json(s.best->power_of_two, s.best->signal)}};
  }
  return json;
}

}  // namespace numemu::api
