// numemu analyze: what a format does to numbers of a law or a file, predicted beside measured.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/table.hpp"
#include "cli/talk.hpp"
#include "formats/analysis/best_scale.hpp"
#include "formats/analysis/comparison.hpp"
#include "formats/analysis/monte_carlo.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct AnalyzeOptions {
  std::string format, dist, rounding = "rne", overflow = "saturate", scale = "1", rule;
  std::optional<std::int64_t> n;
  std::int64_t seed = 0;
  bool best_scale = false, json = false, quiet = false;
};

constexpr std::int64_t kLeastDraws = 1000, kUsualDraws = 1000000, kMostDraws = 100000000;
constexpr std::int64_t kSlowDraws = 10000000;  // about a second

bool is_file(const std::string& dist) {
  return dist.ends_with(".npy") || dist.find('/') != std::string::npos;
}

double parse_scale(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const auto scale = static_cast<float>(value);
  if (text.empty() || *end != '\0' || !(scale > 0) || !std::isfinite(scale)) {
    throw Error(fmt::format("--scale: expected a positive number within float32, not '{}'", text));
  }
  return scale;
}

/// The numbers of a file, all finite.
std::vector<double> read_numbers(const std::string& path) {
  constexpr double kLargest = 1e75;  // fourth powers, which size standard errors, stay doubles
  const Array array = read_npy(path);
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

Subject subject_of(const AnalyzeOptions& options) {
  Subject s;
  const Format& format = find_format(options.format);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  s.conversion = {.format = &format,
                  .rounding = parse_rounding(options.rounding),
                  .overflow = parse_overflow(options.overflow),
                  .random = {.seed = seed}};
  if (format.bits > 16) {
    throw Error(fmt::format("--format: '{}' has {} bits, expected a format of at most 16",
                            format.name, format.bits));
  }
  s.scale = parse_scale(options.scale);
  if (!options.rule.empty() && s.scale != 1)
    throw Error("--scale-rule: expected a rule or --scale, not both");
  if (!is_file(options.dist)) {
    s.law = Distribution::parse(options.dist, !format.is_signed);
    s.n = options.n.value_or(kUsualDraws);
  } else {
    if (options.n)
      throw Error(fmt::format(
          "--n: {} is a file with its own numbers, expected a distribution name", options.dist));
    s.numbers = read_numbers(options.dist);
    s.n = static_cast<std::int64_t>(s.numbers.size());
  }
  if (!options.rule.empty()) s.scale = scale_by_rule(options.rule, s);
  return s;
}

struct Row {
  const char *key, *label;
  Figure predicted, measured;
  Comparison comparison;
};

std::vector<Row> rows_of(const Subject& s, const ErrorFigures& predicted,
                         const ErrorFigures& measured) {
  std::vector<Row> rows;
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

std::string number(double value) { return fmt::format("{:.6g}", value); }

double sqnr_db(double signal, double square) { return 10 * portable::log10(signal / square); }

Json choice_json(const ScaleChoice& choice, double signal) {
  return {{"scale", choice.scale},
          {"log2_scale", portable::log2(choice.scale)},
          {"mse", choice.square},
          {"sqnr_db", sqnr_db(signal, choice.square)}};
}

Json report_json(const Subject& s, const AnalyzeOptions& options, const std::vector<Row>& rows,
                 const std::optional<BestScale>& best) {
  Json json = {{"format", s.conversion.format->name},
               {"rounding", to_string(s.conversion.rounding)},
               {"overflow", to_string(s.conversion.overflow)},
               {"scale", s.scale},
               {"dist", s.law ? s.law->name() : utf8_text(options.dist)},
               {"n", s.n},
               {"seed", options.seed}};
  if (!options.rule.empty()) json["scale_rule"] = scale_rule_name(options.rule);
  for (const Row& row : rows) {
    json["figures"][row.key] = {{"predicted", row.predicted.mean},
                                {"measured", row.measured.mean},
                                {"ci95", {row.comparison.low, row.comparison.high}},
                                {"verdict", to_string(row.comparison.verdict)}};
  }
  if (best) {
    json["best_scale"] = {{"real", choice_json(best->real, best->signal)},
                          {"power_of_two", choice_json(best->power_of_two, best->signal)}};
  }
  return json;
}

void print_report(const Subject& s, const AnalyzeOptions& options, const std::vector<Row>& rows,
                  const std::optional<BestScale>& best) {
  const Format& format = *s.conversion.format;
  const bool symmetric = s.conversion.symmetric && format.kind == Kind::integer && format.is_signed;
  fmt::print("{}{} {} {}, scale {:.9g}, {} {} of {}, seed {}\n\n", format.name,
             symmetric ? " (symmetric)" : "", to_string(s.conversion.rounding),
             to_string(s.conversion.overflow), s.scale, s.n, s.sampled() ? "numbers" : "draws",
             s.law ? s.law->name() : harmless(options.dist), options.seed);
  std::vector<std::vector<std::string>> table;
  for (const Row& row : rows) {
    table.push_back(
        {row.label, number(row.predicted.mean), number(row.measured.mean),
         fmt::format("[{}, {}]", number(row.comparison.low), number(row.comparison.high)),
         to_string(row.comparison.verdict)});
  }
  fmt::print("{}", text_table({"quantity", s.sampled() ? "predicted" : "predicted (exact)",
                               "measured", "95 % interval", "verdict"},
                              table));
  double lost = 0;
  for (const Row& row : rows)
    if (row.key == std::string_view("infinite") || row.key == std::string_view("nan"))
      lost += row.measured.mean + row.predicted.mean;
  if (lost > 0) fmt::print("\nerrors and E[x^2] are means over the results that are finite\n");
  if (!best) return;
  const auto line = [&](const char* kind, const ScaleChoice& choice) {
    return std::vector<std::string>{kind, fmt::format("{:.9g}", choice.scale),
                                    fmt::format("{:.6f}", portable::log2(choice.scale)),
                                    number(choice.square),
                                    fmt::format("{:.4f}", sqnr_db(best->signal, choice.square))};
  };
  fmt::print("\n{}",
             text_table({"best scale (saturate)", "scale", "log2", "MSE", "SQNR dB"},
                        {line("real", best->real), line("power of two", best->power_of_two)}));
}

int run_analyze(const AnalyzeOptions& options) {
  const Subject s = subject_of(options);
  const Conversion& c = s.conversion;
  const OutcomeLaw law = outcome_law(*c.format, c.rounding, c.overflow, c.symmetric);
  if (!options.quiet && s.n > kSlowDraws) say("converting {} numbers", s.n);
  const ErrorFigures predicted = s.law ? error_figures(law, s.scale, s.law->density())
                                       : error_figures(law, s.scale, s.numbers.data(), s.n);
  const ErrorFigures measured =
      s.law ? monte_carlo(c, s.scale, *s.law, static_cast<std::uint64_t>(options.seed), s.n)
            : measure(c, s.scale, s.numbers.data(), s.n);
  std::optional<BestScale> best;
  if (options.best_scale) {
    best = s.law ? best_scale(*c.format, c.rounding, s.law->density())
                 : best_scale(*c.format, c.rounding, s.numbers.data(), s.n);
  }
  const std::vector<Row> rows = rows_of(s, predicted, measured);
  note_short_names("--format", options.format);
  if (options.json) {
    fmt::print("{}\n", report_json(s, options, rows, best).dump(2));
  } else {
    print_report(s, options, rows, best);
  }
  for (const Row& row : rows)
    if (row.comparison.verdict == Verdict::fails) return kMismatch;
  return kFine;
}

}  // namespace

void add_analyze(Program& program) {
  auto options = std::make_shared<AnalyzeOptions>();
  Command& command = program.command("analyze", [options] { return run_analyze(*options); });
  command.option("--format F", options->format, "A scalar format of at most 16 bits").required();
  command
      .option("--dist D|FILE.npy", options->dist,
              "normal, laplace, uniform (on [-1, 1]), lognormal:S (S of ln|x|), "
              "lognormal:S:log2 (S of log2|x|), or a .npy file; |x| for unsigned formats")
      .required();
  command.option("--scale S", options->scale, "S: x / S is rounded (default 1)");
  command.option("--scale-rule NAME", options->rule,
                 "Rule that chooses S: absmax, mse, pow2(absmax), lognormal(3), ... "
                 "(a law: from its draws)");
  command.flag("--best-scale", options->best_scale,
               "Also find the scales with the least MSE, real and power of two");
  command.option("--rounding R", options->rounding, "rne rna rtz rup rdn rodd sr(n[,a|b|c|odd])");
  command.option("--overflow O", options->overflow, "saturate propagate ieee");
  command.option("--n N", options->n, "Draws of the measurement (default 1000000)")
      .whole(kLeastDraws, kMostDraws);
  command.option("--seed S", options->seed, "Seed of the draws and the random bits (default 0)")
      .whole(0, INT64_MAX);
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "Print nothing on stderr");
  add_threads(command);
}

}  // namespace numemu::cli
