#include "api/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "api/formats.hpp"
#include "api/text/lists.hpp"
#include "formats/analysis/comparison.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/limits.hpp"
#include "formats/analysis/scale_mse.hpp"
#include "formats/codebooks/lloyd_max.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/scaling/clipping.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::api {
namespace {

constexpr std::int64_t kUsualDraws = 1000000;
constexpr std::int64_t kSlowDraws = 10000000;  // about a second

bool names_file(const std::string& text) {
  return text.ends_with(".npy") || text.find('/') != std::string::npos;
}

double decibels(double signal, double square) { return 10 * portable::log10(signal / square); }

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

/// Of --scale-rule, in a table and for one format.
const char* const kBest = "best";
const char* const kPowerOfTwo = "power-of-two";
void require_rule(const std::string& name) {
  at("--scale-rule", ErrorKind::usage, [&] { require_scale_rule(name, {kBest, kPowerOfTwo}); });
}

/// The scale that a rule chooses for the numbers of the file, or for all draws of the law, each
/// rounded to float32.
double scale_by_rule(const std::string& name, const Subject& s) {
  require_rule(name);
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
  } else if (!names_file(request.numbers)) {
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
          {"sqnr_db", decibels(signal, choice.square)}};
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
namespace {

constexpr std::ptrdiff_t kLimitNumbers = std::ptrdiff_t{1} << 16;  // of a block limit
constexpr int kWidestLimit = 12;                                   // bits
constexpr int kWidestScalar = 16;                                  // bits
constexpr std::int64_t kParts = 128;  // of draws, for an interval: blocks are shorter than a part

/// A law or the numbers of a file.
struct LawNumbers {
  std::string name;
  std::optional<Distribution> law = {}, folded = {};  ///< of x, and of |x| for formats without sign
  std::vector<float> x = {};                          ///< draws or numbers
  ArrayShape shape = {};                              ///< of a file
  double signal = 0;         ///< mean of x^2: of the law where there is one
  bool heavy = false;        ///< the law has heavy tails for so many draws
  std::int64_t rounded = 0;  ///< numbers of a file that are not exact in float32
};

LawNumbers law_numbers(const std::string& text, const AnalysisTableRequest& request) {
  LawNumbers numbers{.name = text};
  if (names_file(text)) {
    if (request.n)
      throw usage_error(fmt::format("--n: {} is a file with its own numbers, expected laws", text));
    const Array array = read_npy(text);
    const std::vector<double> exact = finite_numbers(text, array);
    numbers.shape = array.shape.empty() ? ArrayShape{1} : array.shape;
    for (const double v : exact) {
      const auto rounded = static_cast<float>(v);
      if (!std::isfinite(rounded))
        throw Error(fmt::format("{}: element {} is {}, expected numbers within float32", text,
                                numbers.x.size(), v));
      numbers.rounded += rounded != v;
      numbers.x.push_back(rounded);
    }
    const auto n = std::ssize(numbers.x);
    numbers.signal = pairwise_sum(n,
                                  [&](std::int64_t i) {
                                    const double v = numbers.x[static_cast<std::size_t>(i)];
                                    return v * v;
                                  }) /
                     static_cast<double>(n);
    if (!(numbers.signal > 0))
      throw Error(fmt::format("{}: expected numbers that are not all zero", text));
    return numbers;
  }
  numbers.law = Distribution::parse(text, false);
  numbers.folded = Distribution::parse(text, true);
  numbers.signal = numbers.law->density().moments(-HUGE_VAL, HUGE_VAL).p2;
  numbers.x.resize(static_cast<std::size_t>(request.n.value_or(kTableDraws)));
  numbers.heavy = heavy_tails(numbers.law->density(), std::ssize(numbers.x));
  const RandomSource source{.seed = request.seed, .stream = Stream::data};
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < std::ssize(numbers.x); ++i)
    numbers.x[static_cast<std::size_t>(i)] =
        static_cast<float>(numbers.law->draw(source, static_cast<std::uint64_t>(i)));
  return numbers;
}

// Scalar formats.

std::vector<float> magnitudes(const std::vector<float>& x) {
  std::vector<float> all = x;
  for (float& v : all) v = std::abs(v);
  return all;
}

AnalyzedFormat analyze_scalar(const Format& f, const std::string& rule, const Rounding& rounding,
                              const LawNumbers& numbers, std::uint64_t seed) {
  AnalyzedFormat row{
      .format = f.name, .bits = static_cast<double>(f.bits), .rule = rule, .law = numbers.name};
  const Conversion c{.format = &f, .rounding = rounding, .random = {.seed = seed}};
  const bool power = rule == kPowerOfTwo, searched = rule == kBest || power;
  const bool unsigned_law = numbers.law && !f.is_signed;
  const auto by_rule = [&] {
    const ScaleRule& found = find_scale_rule(rule);
    row.rule = found.name;
    const std::vector<float> folded = unsigned_law ? magnitudes(numbers.x) : std::vector<float>{};
    const std::vector<float>& x = unsigned_law ? folded : numbers.x;
    return static_cast<double>(found.scale({x.data(), std::ssize(x), &c}));
  };
  double square = 0;
  if (numbers.law) {
    const Density& law = (unsigned_law ? *numbers.folded : *numbers.law).density();
    if (unsigned_law) row.law = numbers.folded->name();
    if (rounding.stochastic()) {
      const ScaleChoice choice = [&] {
        if (!searched) return ScaleChoice{by_rule(), 0};
        const BestScale best = best_scale(f, rounding, law);
        return power ? best.power_of_two : best.real;
      }();
      row.scale = choice.scale;
      square = mean_square_error(outcome_law(f, rounding, Overflow::saturate), choice.scale, law);
    } else {
      const CellMse mse(f, rounding, law, !unsigned_law);
      row.scale = searched ? mse.best_scale(std::sqrt(numbers.signal), law.knots().back(), power)
                           : by_rule();
      square = mse(*row.scale);
    }
  } else {
    row.kind = AnalyzedFormat::Kind::measured;
    const std::vector<double> x(numbers.x.begin(), numbers.x.end());
    if (searched) {
      const BestScale best = best_scale(f, rounding, x.data(), std::ssize(x));
      row.scale = power ? best.power_of_two.scale : best.real.scale;
    } else {
      row.scale = by_rule();
    }
    square = error_figures(outcome_law(f, rounding, Overflow::saturate), *row.scale, x.data(),
                           std::ssize(x))
                 .square.mean;
  }
  row.sqnr_db = decibels(numbers.signal, square);
  return row;
}

// Block formats.

/// Of a file as `quantize` has it: blocks or channels along the last axis. Draws have lines of a
/// length that most blocks divide.
BlockLayout layout_for(const BlockFormat& f, const LawNumbers& numbers) {
  if (!numbers.shape.empty()) return block_layout(f, numbers.shape, -1);
  const std::int64_t n = std::ssize(numbers.x);
  const std::int64_t line = std::min(n, kTableLine);
  return n % line == 0 ? block_layout(f, {n / line, line}, f.span == Span::channel ? 0 : 1)
                       : block_layout(f, {1, n}, f.span == Span::channel ? 0 : 1);
}

AnalyzedFormat analyze_blocks(const BlockFormat& f, const std::string& rule,
                              const Rounding& rounding, const LawNumbers& numbers,
                              std::uint64_t seed) {
  const BlockLayout layout = layout_for(f, numbers);
  BlockQuantization how{.format = &f, .rule = &find_scale_rule(rule, f)};
  how.element = {.format = f.element, .rounding = rounding, .random = {.seed = seed}};
  if (f.tensor_scale) how.scale_rounding = RoundingMode::rne;
  std::vector<float> y(numbers.x.size());
  quantize_blocks(how, layout, numbers.x.data(), {}, y.data());
  const auto sum = [&](std::int64_t first, std::int64_t n, const auto& term) {
    return pairwise_sum(
        n,
        [&](std::int64_t i) {
          const auto at = static_cast<std::size_t>(i);
          return term(double{numbers.x[at]}, double{y[at]});
        },
        first);
  };
  const auto square = [](double a, double) { return a * a; };
  const auto error = [](double a, double b) { return (b - a) * (b - a); };
  AnalyzedFormat row{
      .format = f.name,
      .bits = stored_bits(f, layout),
      .rule = how.rule->name,
      .law = numbers.name,
      .kind = AnalyzedFormat::Kind::measured,
      .sqnr_db = decibels(sum(0, std::ssize(y), square), sum(0, std::ssize(y), error)),
      .heavy_tails = numbers.heavy};
  // The scale of a tensor is that of its largest draw, which varies more than the errors under it.
  if (!numbers.law || numbers.heavy || f.span == Span::tensor) return row;
  const std::int64_t n = std::ssize(y), parts = std::min(n, kParts);
  if (parts > 1) {
    row.half_db = sqnr_half_interval(n, parts, [&](std::int64_t first, std::int64_t count) {
      return SqnrSums{sum(first, count, square), sum(first, count, error)};
    });
  }
  return row;
}

// Limits.

/// Blocks by width, size and scale for which levels and scales are looked for.
using AskedBlocks = std::set<std::tuple<int, std::int64_t, LimitScale>>;

/// Levels of the Lloyd-Max quantizer of a law, or of |x|: the cells of a symmetric one with twice
/// the levels end at zero, and its upper half is that of |x|.
std::vector<double> lloyd_levels(const std::string& law, int count, bool folded) {
  std::vector<double> levels = lloyd_max(law, folded ? 2 * count : count);
  if (folded) levels.erase(levels.begin(), levels.begin() + count);
  return levels;
}

/// Limits of a law, or of |x|, for every width of its exact rows and the rate of every row, and the
/// distance of these to Lloyd-Max levels.
void add_law_limits(const LawNumbers& numbers, bool folded, std::vector<AnalyzedFormat>& rows) {
  const Distribution& law = folded ? *numbers.folded : *numbers.law;
  const std::string& name = folded ? law.name() : numbers.name;
  std::map<double, double> lloyd;  // SQNR by the number of bits
  std::set<double> rates;
  for (const AnalyzedFormat& row : rows) {
    if (row.law != name) continue;
    rates.insert(std::round(row.bits * 100) / 100);
    if (row.kind == AnalyzedFormat::Kind::exact) lloyd.emplace(row.bits, 0);
  }
  const auto add = [&](std::string limit, double bits, double relative) {
    rows.push_back({.format = std::move(limit),
                    .bits = bits,
                    .law = name,
                    .kind = AnalyzedFormat::Kind::limit,
                    .sqnr_db = decibels(1, relative)});
  };
  const int widest = folded ? kWidestLimit - 1 : kWidestLimit;
  std::erase_if(lloyd, [&](const auto& width) { return width.first > widest; });
  for (auto& [bits, db] : lloyd) {
    const int count = 1 << static_cast<int>(bits);
    const double mse = nearest_level_mse(lloyd_levels(numbers.name, count, folded), law.density());
    db = decibels(numbers.signal, mse);
    add(fmt::format("limit: Lloyd-Max, {} levels", count), bits, mse / numbers.signal);
  }
  for (const double rate : rates)
    add("limit: rate-distortion (Shannon's bound)", rate,
        shannon_bound(law.density(), rate) / numbers.signal);
  for (AnalyzedFormat& row : rows) {
    if (row.law != name || row.kind != AnalyzedFormat::Kind::exact) continue;
    if (const auto found = lloyd.find(row.bits); found != lloyd.end())
      row.to_lloyd_db = row.sqnr_db - found->second;
  }
}

void add_reached(const LawNumbers& numbers, const AskedBlocks& asked,
                 std::vector<AnalyzedFormat>& rows) {
  for (const auto& [bits, size, scale] : asked) {
    const double error = block_limit(
        numbers.x.data(), std::min(std::ssize(numbers.x), kLimitNumbers), size, 1 << bits, scale);
    rows.push_back(
        {.format = fmt::format("Lloyd's algorithm: {} levels, {} scales, blocks of {}", 1 << bits,
                               scale == LimitScale::e8m0 ? "E8M0" : "E4M3", size),
         .bits = bits + 8.0 / static_cast<double>(size),
         .law = numbers.name,
         .kind = AnalyzedFormat::Kind::reached,
         .sqnr_db = decibels(1, error),
         .heavy_tails = numbers.heavy});
  }
}

}  // namespace

const char* to_string(AnalyzedFormat::Kind kind) {
  switch (kind) {
    case AnalyzedFormat::Kind::exact:
      return "exact";
    case AnalyzedFormat::Kind::measured:
      return "measured";
    case AnalyzedFormat::Kind::reached:
      return "reached";
    default:
      return "limit";
  }
}

AnalysisTable analyze_table(const AnalysisTableRequest& request) {
  AnalysisTable table{.rounding = parse_rounding(request.rounding),
                      .n = request.n.value_or(kTableDraws),
                      .seed = request.seed};
  if (table.n < 1) throw usage_error(fmt::format("--n: expected at least 1, found {}", table.n));
  struct Task {
    const Format* scalar = nullptr;
    const BlockFormat* block = nullptr;
    std::string rule;
  };
  const std::vector<std::string> rules = expanded_lists(request.rules);
  for (const std::string& rule : rules) require_rule(rule);
  std::vector<Task> tasks;
  std::set<std::pair<std::string, std::string>> formats_and_rules;
  const auto add_once = [&](const Task& task, const std::string& rule) {
    const std::string& name = task.block != nullptr ? task.block->name : task.scalar->name;
    if (formats_and_rules.emplace(name, rule).second) tasks.push_back(task);
  };
  std::vector<std::string> unserved;
  AskedBlocks asked;
  const auto add = [&](const std::string& name) {
    const std::string meant = block_format_meant(name);
    Task task;
    if (meant.empty()) {
      task.scalar = &find_scalar_format(name);
      if (task.scalar->bits > kWidestScalar)
        throw usage_error(fmt::format("--format: '{}' has {} bits, expected at most {}",
                                      task.scalar->name, task.scalar->bits, kWidestScalar));
      task.rule = kBest;
    } else {
      task.block = &find_block_format(meant);
      task.rule = task.block->default_rule;
    }
    bool served = rules.empty();
    if (rules.empty()) add_once(task, task.rule);
    std::string refused;
    for (const std::string& rule : rules) {
      try {
        task.rule = rule;
        add_once(task, task.block != nullptr ? find_scale_rule(rule, *task.block).name
                       : rule == kBest || rule == kPowerOfTwo ? rule
                                                              : find_scale_rule(rule).name);
      } catch (const Error& error) {
        refused = error.what();
        continue;
      }
      served = true;
    }
    if (!served) {
      unserved.push_back(refused);
      return;
    }
    if (task.block == nullptr) return;
    const BlockFormat& f = *task.block;
    const int bits = f.element->bits;
    if (f.affine != Affine::sym || f.span != Span::block || bits > 8) return;
    if (f.power_of_two_scale()) asked.emplace(bits, f.size, LimitScale::e8m0);
    if (f.scale->name == "float8_e4m3fn") asked.emplace(bits, f.size, LimitScale::e4m3);
  };
  for (const std::string& name : format_list(request.formats)) add(name);
  if (tasks.empty() && !unserved.empty())
    throw usage_error(fmt::format("--scale-rule: {}", unserved[0]));
  if (tasks.empty()) throw usage_error("--format: expected at least one format");
  for (const std::string& refused : unserved)
    table.notes.push_back(fmt::format("--scale-rule: {}; it has no row", refused));
  for (const Task& task : tasks) {
    const std::string clips = task.block ? clipping_note(*task.block, task.rule) : "";
    if (!clips.empty() && std::ranges::find(table.notes, clips) == table.notes.end())
      table.notes.push_back(clips);
  }
  std::vector<std::string> texts;
  std::set<std::string> laws;
  for (const std::string& text : expanded_lists(request.numbers)) {
    if (laws.insert(names_file(text) ? text : Distribution::parse(text, false).name()).second)
      texts.push_back(text);
  }
  table.files = std::ranges::all_of(texts, names_file);
  for (const std::string& text : texts) {
    const LawNumbers numbers = law_numbers(text, request);
    if (numbers.rounded > 0)
      table.notes.push_back(fmt::format("{}: {} of {} numbers are rounded to float32 (rne)", text,
                                        numbers.rounded, numbers.x.size()));
    std::vector<AnalyzedFormat> rows(tasks.size());
    std::vector<std::string> errors(tasks.size());
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Task& task = tasks[i];
      try {
        rows[i] = task.scalar != nullptr
                      ? analyze_scalar(*task.scalar, task.rule, table.rounding, numbers, table.seed)
                      : analyze_blocks(*task.block, task.rule, table.rounding, numbers, table.seed);
      } catch (const Error& error) {
        errors[i] = error.what();
      }
    }
    for (const std::string& error : errors)
      if (!error.empty()) throw usage_error(error);
    if (numbers.law)
      for (const bool folded : {false, true}) add_law_limits(numbers, folded, rows);
    add_reached(numbers, asked, rows);
    table.rows.insert(table.rows.end(), rows.begin(), rows.end());
  }
  return table;
}

Json analysis_table_json(const AnalysisTable& table) {
  Json rows = Json::array();
  for (const AnalyzedFormat& row : table.rows) {
    rows.push_back(
        {{"format", row.format},
         {"bits", row.bits},
         {"scale_rule", row.rule.empty() ? Json() : Json(row.rule)},
         {"dist", row.law},
         {"kind", to_string(row.kind)},
         {"scale", row.scale ? Json(*row.scale) : Json()},
         {"sqnr_db", row.sqnr_db},
         {"sqnr_ci95",
          row.half_db ? Json({row.sqnr_db - *row.half_db, row.sqnr_db + *row.half_db}) : Json()},
         {"heavy_tails", row.heavy_tails},
         {"to_lloyd_max_db", row.to_lloyd_db ? Json(*row.to_lloyd_db) : Json()}});
  }
  return {{"rounding", to_string(table.rounding)},
          {"overflow", to_string(Overflow::saturate)},
          {"n", table.n},
          {"seed", table.seed},
          {"rows", rows},
          {"notes", table.notes}};
}

std::string analysis_table_csv(const AnalysisTable& table) {
  const auto number = [](const std::optional<double>& x) {
    return x ? fmt::format("{}", *x) : std::string();
  };
  std::string text =
      "format,bits,scale_rule,dist,kind,scale,sqnr_db,sqnr_half_ci95_db,heavy_tails,"
      "to_lloyd_max_db,rounding,overflow\n";
  for (const AnalyzedFormat& row : table.rows)
    text += fmt::format("\"{}\",{},\"{}\",\"{}\",{},{},{},{},{},{},\"{}\",{}\n", row.format,
                        row.bits, row.rule, row.law, to_string(row.kind), number(row.scale),
                        row.sqnr_db, number(row.half_db), row.heavy_tails, number(row.to_lloyd_db),
                        to_string(table.rounding), to_string(Overflow::saturate));
  return text;
}

}  // namespace numemu::api
