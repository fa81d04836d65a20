// Positions of outputs, as the shape of D has them.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "cli/product.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

constexpr std::array<const char*, 3> kAxes = {"b", "m", "n"};

/// The names of the axes of D.
std::vector<std::string> axes_of(const ArrayShape& d) {
  return {kAxes.end() - static_cast<std::ptrdiff_t>(d.size()), kAxes.end()};
}

/// "m < 2 and n < 3"
std::string limits(const std::vector<std::string>& axes, const ArrayShape& d) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    text += i == 0 ? "" : i + 1 == axes.size() ? " and " : ", ";
    text += fmt::format("{} < {}", axes[i], d[i]);
  }
  return text;
}

}  // namespace

std::int64_t output_of(const Place& place, const unit::Batch& batch) {
  return (place.product * batch.first.m + place.i) * batch.first.n + place.j;
}

Place place_of(std::int64_t output, const unit::Batch& batch) {
  const std::int64_t row = output / batch.first.n;
  return {row / batch.first.m, row % batch.first.m, output % batch.first.n};
}

std::string place_text(const Place& place, const GemmArrays& arrays) {
  switch (arrays.d.shape.size()) {
    case 1:
      return fmt::format("{}", place.product);
    case 2:
      return fmt::format("{},{}", place.i, place.j);
    default:
      return fmt::format("{},{},{}", place.product, place.i, place.j);
  }
}

void add_place(const Place& place, const GemmArrays& arrays, Json& json) {
  const std::size_t axes = arrays.d.shape.size();
  if (axes == 3) json["b"] = place.product;
  if (axes > 1) json["m"] = place.i;
  json["n"] = axes == 1 ? place.product : place.j;
}

Place parse_place(const std::string& option, const std::string& text, const GemmArrays& arrays) {
  const ArrayShape& d = arrays.d.shape;
  const std::vector<std::string> axes = axes_of(d);
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format("{} {}: expected {} with {}{}", option, text, joined(axes, ","),
                             limits(axes, d), what));
  };
  ArrayShape place;
  const char *at = text.data(), *end = at + text.size();
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (axis > 0 && (at == end || at + 1 == end))
      throw fail(fmt::format(", {} is missing", axes[axis]));
    if (axis > 0 && *at++ != ',') throw fail("");
    std::int64_t number = -1;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc{} || number < 0 || number >= d[axis]) throw fail("");
    at = read.ptr;
    place.push_back(number);
  }
  if (at != end) throw fail("");
  if (place.size() == 1) return {place[0], 0, 0};
  const std::size_t last = place.size() - 1;
  return {last == 2 ? place[0] : 0, place[last - 1], place[last]};
}

}  // namespace numemu::cli
