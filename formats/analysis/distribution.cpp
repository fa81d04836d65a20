#include "formats/analysis/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "formats/analysis/normal_law.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

/// S in ln|x| from the text behind "lognormal".
double parse_sigma(std::string_view text) {
  const std::string whole = fmt::format("lognormal{}", text);
  const auto refuse = [&](const std::string& what) {
    return Error(fmt::format("distribution '{}': {}, expected lognormal:S or lognormal:S:log2",
                             whole, what));
  };
  if (text.empty() || text.size() == 1) throw refuse("no S");
  text.remove_prefix(1);
  const std::size_t colon = text.find(':');
  const std::string_view number = text.substr(0, colon);
  const std::string_view unit =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  double sigma = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), sigma);
  if (error != std::errc{} || end != number.data() + number.size())
    throw refuse(fmt::format("'{}' is not a number", number));
  if (colon != std::string_view::npos && unit != "log2")
    throw refuse(fmt::format("unknown unit '{}'", unit));
  const double natural = unit.empty() ? sigma : sigma * std::numbers::ln2;
  if (!(natural >= 1e-3 && natural <= Distribution::kMostSigma)) {
    const double factor = unit.empty() ? 1 : std::numbers::ln2;
    throw Error(fmt::format("distribution '{}': S is {}, expected {:.4g} to {:.4g}", whole, sigma,
                            1e-3 / factor, Distribution::kMostSigma / factor));
  }
  return natural;
}

/// NU behind "student-t:".
double parse_freedom(std::string_view text, std::string_view number) {
  constexpr double kLeast = 2.5, kMost = 1000;
  const std::optional<double> nu = number_argument(number);
  if (nu && *nu <= 2)
    throw Error(
        fmt::format("distribution '{}': its variance is infinite, expected NU from {} to {}", text,
                    kLeast, kMost));
  if (!nu || !(*nu >= kLeast && *nu <= kMost))
    throw Error(fmt::format("distribution '{}': expected student-t:NU with NU from {} to {}", text,
                            kLeast, kMost));
  return *nu;
}

/// cos(2 pi v), 0 <= v < 1, to about 2^-50.
double cosine_of_turns(double v) {
  double w = std::abs(v - 0.5);
  const bool negative = w <= 0.25;
  if (!negative) w = 0.5 - w;
  const double square = 4 * std::numbers::pi * std::numbers::pi * w * w;
  double sum = 1, term = 1;
  for (int k = 1; k <= 12; ++k) sum += term *= -square / (2 * k * (2 * k - 1));
  return negative ? -sum : sum;
}

std::shared_ptr<const Density> fold(std::unique_ptr<Density> density, bool folded) {
  if (!folded) return density;
  return truncated(std::move(density), 0, std::numeric_limits<double>::infinity());
}

/// FAMILY:NUMBER[:UNIT] with the number as its shortest text, so that one law has one name.
std::string canonical(std::string_view text) {
  const std::size_t first = std::min(text.find(':'), text.size()),
                    second = std::min(text.find(':', first + 1), text.size());
  const auto number = number_argument(text.substr(std::min(first + 1, second), second - first - 1));
  if (first == text.size() || !number) return std::string(text);
  return fmt::format("{}:{}{}", text.substr(0, first), *number, text.substr(second));
}

}  // namespace

Distribution Distribution::parse(std::string_view text, bool folded) {
  Distribution d;
  d.folded_ = folded;
  d.name_ = folded ? fmt::format("|{}|", canonical(text)) : canonical(text);
  const std::string_view family = text.substr(0, text.find(':'));
  if (family == "lognormal") {
    d.family_ = Family::lognormal;
    d.sigma_ = parse_sigma(text.substr(family.size()));
    d.density_ = lognormal_density(0, d.sigma_, folded ? 1 : 0.5);
  } else if (text == "normal") {
    d.family_ = Family::normal;
    d.density_ = fold(normal_density(0, 1), folded);
  } else if (text == "laplace") {
    d.family_ = Family::laplace;
    d.density_ = fold(laplace_density(0, 1), folded);
  } else if (family == "student-t") {
    d.family_ = Family::student;
    d.nu_ = parse_freedom(text, text.substr(std::min(family.size() + 1, text.size())));
    d.density_ = fold(student_density(d.nu_), folded);
  } else if (text == "uniform") {
    d.family_ = Family::uniform;
    d.density_ = folded ? uniform_density(0, 1) : uniform_density(-1, 1);
  } else {
    throw Error(unknown_name("distribution", text,
                             {"normal", "laplace", "uniform", "student-t:NU", "lognormal:S",
                              "lognormal:S:log2", "FILE.npy"}));
  }
  return d;
}

double Distribution::draw(const RandomSource& source, std::uint64_t i) const {
  const std::uint64_t high = source.bits(2 * i, 32), low = source.bits(2 * i + 1, 32);
  const double u = (static_cast<double>(high << 21 | low >> 11) + 0.5) * 0x1p-53;
  double x = 0;
  switch (family_) {
    case Family::normal:
      x = normal::quantile(u);
      break;
    case Family::laplace:
      x = u < 0.5 ? portable::log(2 * u) : -portable::log(2 * (1 - u));
      break;
    case Family::uniform:
      x = 2 * u - 1;
      break;
    case Family::student: {
      const double radius = (static_cast<double>(high) + 0.5) * 0x1p-32;
      x = std::sqrt(nu_ * portable::expm1(-2 / nu_ * portable::log(radius))) *
          cosine_of_turns((static_cast<double>(low) + 0.5) * 0x1p-32);
      break;
    }
    case Family::lognormal:
      x = portable::exp(sigma_ * normal::quantile(u));
      if ((low & 1) != 0) x = -x;
      break;
  }
  return folded_ ? std::abs(x) : x;
}

}  // namespace numemu
