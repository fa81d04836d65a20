#include "formats/analysis/distribution.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "formats/analysis/normal_law.hpp"
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

std::shared_ptr<const Density> fold(std::unique_ptr<Density> density, bool folded) {
  if (!folded) return density;
  return truncated(std::move(density), 0, std::numeric_limits<double>::infinity());
}

}  // namespace

Distribution Distribution::parse(std::string_view text, bool folded) {
  Distribution d;
  d.folded_ = folded;
  d.name_ = folded ? fmt::format("|{}|", text) : std::string(text);
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
  } else if (text == "uniform") {
    d.family_ = Family::uniform;
    d.density_ = folded ? uniform_density(0, 1) : uniform_density(-1, 1);
  } else {
    throw Error(unknown_name(
        "distribution", text,
        {"normal", "laplace", "uniform", "lognormal:S", "lognormal:S:log2", "FILE.npy"}));
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
    case Family::lognormal:
      x = portable::exp(sigma_ * normal::quantile(u));
      if ((low & 1) != 0) x = -x;
      break;
  }
  return folded_ ? std::abs(x) : x;
}

}  // namespace numemu
