#include "emu/stats/latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include "formats/analysis/normal_law.hpp"
#include "formats/call_text.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/npy.hpp"
#include "formats/suggest.hpp"

namespace numemu::stats {
namespace {

constexpr double kLeast = 1e-12, kMost = 1e12;
constexpr double kWidest = 1000;  // standard deviations in means
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

LatencyLaw constant_law(const std::vector<double>& a) {
  return {.mean = a[0],
          .variance = 0,
          .probability = [x = a[0]](double t) { return t < x ? 0.0 : 1.0; },
          .quantile = [x = a[0]](double) { return x; }};
}

/// max(0, X): E = m Phi(m/s) + s phi(m/s), E of the square (m^2 + s^2) Phi(m/s) + m s phi(m/s).
LatencyLaw normal_law(const std::vector<double>& a) {
  const double m = a[0], s = a[1], above = normal::cdf(m / s), density = normal::pdf(m / s);
  const double mean = m * above + s * density;
  return {.mean = mean,
          .variance = (m * m + s * s) * above + m * s * density - mean * mean,
          .probability = [=](double t) { return t < 0 ? 0 : normal::cdf((t - m) / s); },
          .quantile = [=](double u) { return std::max(0.0, m + s * normal::quantile(u)); }};
}

LatencyLaw lognormal_law(const std::vector<double>& a) {
  const double width = a[1] / a[0], square = portable::log1p(width * width),
               sigma = std::sqrt(square), mu = portable::log(a[0]) - square / 2;
  return {.mean = a[0],
          .variance = a[1] * a[1],
          .probability =
              [=](double t) { return t <= 0 ? 0 : normal::cdf((portable::log(t) - mu) / sigma); },
          .quantile = [=](double u) { return portable::exp(mu + sigma * normal::quantile(u)); }};
}

LatencyLaw exponential_law(const std::vector<double>& a) {
  const double mean = 1 / a[0];
  return {.mean = mean,
          .variance = mean * mean,
          .probability = [=](double t) { return t <= 0 ? 0 : -portable::expm1(-t / mean); },
          .quantile = [=](double u) { return -mean * portable::log1p(-u); }};
}

/// A law of ascending points, with the shares of those up to each.
LatencyLaw law_of_points(std::vector<double> points, std::vector<double> shares, double mean,
                         double variance) {
  struct Table {
    std::vector<double> points, shares;
  };
  shares.back() = 1;
  const auto table = std::make_shared<const Table>(Table{std::move(points), std::move(shares)});
  return {.mean = mean,
          .variance = variance,
          .probability =
              [table](double t) {
                const std::vector<double>& p = table->points;
                const auto above = std::upper_bound(p.begin(), p.end(), t) - p.begin();
                return above == 0 ? 0 : table->shares[static_cast<std::size_t>(above - 1)];
              },
          .quantile =
              [table](double u) {
                const std::vector<double>& s = table->shares;
                return table->points[static_cast<std::size_t>(
                    std::lower_bound(s.begin(), s.end(), u) - s.begin())];
              }};
}

LatencyLaw injected_law(const std::vector<double>& a) {
  constexpr int kLongest = 999;
  std::vector<double> points, shares;
  double sum = 0, first = 0, second = 0;
  for (int l = 1; l <= kLongest; ++l) {
    const double off = portable::log(l) - 4, weight = portable::exp(-off * off / 2) / l;
    shares.push_back(sum += weight);
    first += weight * l;
    second += weight * l * l;
  }
  const double mean_length = first / sum, delay = a[0] * a[1] / 2;  // of a sentence of mean length
  for (int l = 1; l <= kLongest; ++l) points.push_back(a[0] + delay * l / mean_length);
  for (double& share : shares) share /= sum;
  const double spread = second / sum / (mean_length * mean_length) - 1;
  return law_of_points(std::move(points), std::move(shares), a[0] + delay, delay * delay * spread);
}

struct LawArgument {
  const char* name;
  double least = kLeast;
};
struct LawKind {
  const char* name;
  std::vector<LawArgument> arguments;
  LatencyLaw (*make)(const std::vector<double>&);
};
const std::vector<LawKind>& law_kinds() {
  static const std::vector<LawKind> all = {
      {"constant", {{"X"}}, constant_law},
      {"normal", {{"MEAN"}, {"SIGMA"}}, normal_law},
      {"lognormal", {{"MEAN"}, {"SIGMA"}}, lognormal_law},
      {"exponential", {{"RATE"}}, exponential_law},
      {"injected", {{"BASE"}, {"FACTOR", 0}}, injected_law},
      {"file", {{"PATH"}}, nullptr},
  };
  return all;
}

constexpr std::size_t kDigits = 16;  // of the digest of a file's numbers, in a law's text

std::string form_of(const LawKind& kind) {
  std::vector<std::string> names;
  for (const LawArgument& argument : kind.arguments) names.emplace_back(argument.name);
  return fmt::format("{}({})", kind.name, joined(names, ","));
}

template <class T>
std::vector<double> numbers_of(const Array& array) {
  return {array.as<T>(), array.as<T>() + array.elements()};
}

std::vector<double> read_text(InputFile& file) {
  const std::string text = file.read(file.left());
  std::vector<double> numbers;
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  for (const char *at = text.data(), *const end = at + text.size();;) {
    while (at != end && space(*at)) ++at;
    if (at == end) return numbers;
    double number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (stop != end && !space(*stop)))
      file.fail_at(at - text.data(), "expected an .npy file or numbers with spaces between them");
    numbers.push_back(number);
    at = stop;
  }
}

std::vector<double> read_latencies(const std::string& path) {
  constexpr char kMagic[] = "\x93NUMPY";
  constexpr std::int64_t kMagicBytes = sizeof kMagic - 1;
  InputFile file(path);
  if (file.left() > kMostBytes)
    file.fail(fmt::format("{} bytes, expected latencies in at most {}", file.left(), kMostBytes));
  const std::string start = file.read(std::min(kMagicBytes, file.left()));
  file.rewind();
  if (start != kMagic) return read_text(file);
  const Array array = read_npy(file);
  switch (array.type) {
    case ArrayType::float32:
      return numbers_of<float>(array);
    case ArrayType::float64:
      return numbers_of<double>(array);
    case ArrayType::int64:
      return numbers_of<std::int64_t>(array);
    default:
      throw Error(fmt::format("{}: dtype {}, expected float32, float64 or int64 for latencies",
                              path, to_string(array.type)));
  }
}

}  // namespace

LatencyLaw measured_latencies(std::vector<double> latencies, const std::string& origin) {
  if (latencies.empty()) throw Error(origin + ": no numbers, expected at least one latency");
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    if (!(latencies[i] >= kLeast && latencies[i] <= kMost))
      throw Error(fmt::format("{}: latency {} is {}, expected a number from {} to {}", origin, i,
                              latencies[i], kLeast, kMost));
  }
  std::sort(latencies.begin(), latencies.end());
  const auto n = static_cast<std::int64_t>(latencies.size());
  const double count = static_cast<double>(n);
  const double mean = pairwise_sum(n, [&](std::int64_t i) { return latencies[i]; }) / count;
  const double variance =
      pairwise_sum(n,
                   [&](std::int64_t i) { return (latencies[i] - mean) * (latencies[i] - mean); }) /
      count;
  const std::string digest = sha256_hex(
      {reinterpret_cast<const char*>(latencies.data()), latencies.size() * sizeof(double)});
  std::vector<double> shares;
  for (std::int64_t i = 1; i <= n; ++i) shares.push_back(static_cast<double>(i) / count);
  LatencyLaw law = law_of_points(std::move(latencies), std::move(shares), mean, variance);
  law.name = origin;
  law.identity = fmt::format("file({})", digest);
  return law;
}

LatencyLaw latency_law(std::string_view text) {
  const CallText call = parse_call(text);
  const std::vector<LawKind>& all = law_kinds();
  const LawKind& kind = find_named("latency law", call.name, all, &LawKind::name);
  const auto refuse = [&](const std::string& what) {
    return Error(fmt::format("latency '{}': {}, expected {}", text, what, form_of(kind)));
  };
  const bool pinned = kind.make == nullptr && call.arguments.size() == 2;
  if (call.arguments.size() != kind.arguments.size() && !pinned)
    throw refuse(counted(static_cast<std::int64_t>(call.arguments.size()), "argument"));
  if (kind.make == nullptr) {
    const std::string& path = call.arguments[0];
    LatencyLaw law = measured_latencies(read_latencies(path), path);
    const std::string digest = law.identity.substr(std::string_view("file(").size(), kDigits);
    if (pinned && call.arguments[1] != digest)
      throw Error(fmt::format("{}: expected latencies with the digest {}, found {}", path,
                              call.arguments[1], digest));
    law.name = fmt::format("file({})", path);
    law.pinned = fmt::format("file({},{})", path, digest);
    return law;
  }
  std::vector<double> numbers;
  std::vector<std::string> canonical;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const LawArgument& argument = kind.arguments[i];
    const auto number = number_argument(call.arguments[i]);
    if (!number || *number > kMost || (*number < kLeast && !(argument.least == 0 && *number == 0)))
      throw refuse(fmt::format("{} is '{}', not {}a number from {} to {}", argument.name,
                               call.arguments[i], argument.least == 0 ? "0 or " : "", kLeast,
                               kMost));
    numbers.push_back(*number);
    canonical.push_back(fmt::format("{}", *number));
  }
  if (std::string_view(kind.arguments.back().name) == "SIGMA" && numbers[1] > kWidest * numbers[0])
    throw refuse(fmt::format("SIGMA is more than {} times MEAN", kWidest));
  LatencyLaw law = kind.make(numbers);
  law.name = law.identity = law.pinned = fmt::format("{}({})", kind.name, joined(canonical, ","));
  return law;
}

RandomSource latency_source(std::uint64_t seed, std::string_view user, std::int64_t step,
                            std::string_view use) {
  return {.seed = seed,
          .stream = Stream::latency,
          .tensor = tensor_word(fmt::format("{}/latency/{}/{}", user, step, use))};
}

}  // namespace numemu::stats
