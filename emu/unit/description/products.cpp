#include "emu/unit/description/products.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::unit {
namespace {

/// Of a .npy header with two axes, generously.
constexpr std::int64_t kLongestHeader = 1 << 16;

ArrayShape shape_of(const UnitDescription& u) {
  return {std::int64_t{1} << u.a->bits, std::int64_t{1} << u.b->bits};
}

template <class T>
std::vector<std::int32_t> widened(const Array& array) {
  return {array.as<T>(), array.as<T>() + array.elements()};
}

}  // namespace

std::shared_ptr<const std::vector<std::int32_t>> read_products(const UnitDescription& u,
                                                               const std::string& path) {
  const bool wanted = u.core == CoreKind::table && u.a != nullptr && u.b != nullptr &&
                      u.a->bits + u.b->bits <= kMostTableBits;
  if (!wanted) return std::make_shared<const std::vector<std::int32_t>>();
  const ArrayShape shape = shape_of(u);
  const std::int64_t most = shape[0] * shape[1] * bytes_of(ArrayType::int32) + kLongestHeader;
  const auto refuse = [&](const std::string& found) {
    throw Error(fmt::format("{}: expected int16 or int32 of shape {}, found {}", path,
                            shape_text(shape), found));
  };
  if (const std::int64_t size = InputFile(path).left(); size > most) refuse(counted(size, "byte"));
  const Array array = read_npy(path);
  const bool fits =
      array.shape == shape && (array.type == ArrayType::int16 || array.type == ArrayType::int32);
  if (!fits) refuse(fmt::format("{} of shape {}", to_string(array.type), shape_text(array.shape)));
  return std::make_shared<const std::vector<std::int32_t>>(
      array.type == ArrayType::int16 ? widened<std::int16_t>(array) : widened<std::int32_t>(array));
}

void write_products(const UnitDescription& u, const std::string& path) {
  write_npy(path, ArrayType::int32, shape_of(u), u.products->data());
}

}  // namespace numemu::unit
