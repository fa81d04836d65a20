#include "emu/oracle/files/array_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "emu/oracle/files/file_forms.hpp"
#include "emu/oracle/files/text.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {
namespace {

constexpr const char *kClass = "class", *kHeader = "numemu_vectors";

/// Element i of byte strings of `width` bytes, which end at the first NUL.
std::string_view text_at(const Array& array, std::int64_t i, std::int64_t width) {
  const std::string_view text(reinterpret_cast<const char*>(array.data.data()) + i * width,
                              static_cast<std::size_t>(width));
  return text.substr(0, text.find('\0'));
}

/// Element i of an array of integers.
std::uint64_t integer_at(const Array& array, std::int64_t i) {
  const std::size_t bytes = static_cast<std::size_t>(bytes_of(array.type));
  std::uint64_t code = 0;  // the lowest bytes of a little-endian integer
  std::memcpy(&code, array.data.data() + i * static_cast<std::int64_t>(bytes), bytes);
  return code;
}

}  // namespace

ArrayReader::ArrayReader(std::string name, std::map<std::string, Array> arrays)
    : name_(std::move(name)), arrays_(std::move(arrays)) {
  const auto found = arrays_.find(kHeader);
  if (found == arrays_.end()) return;
  const Array& line = found->second;
  if (line.type == ArrayType::uint8 && line.shape == ArrayShape{line.elements()})
    header_ = text_at(line, 0, line.elements());
  if (!is_header(header_))
    throw Error(fmt::format("{}: {}: expected the text '{}1 ...'", name_, kHeader, kHeaderBegin));
  arrays_.erase(found);
}

std::int64_t ArrayReader::depth() const {
  const auto b = arrays_.find("b");
  return b == arrays_.end() ? 0 : b->second.shape.size() == 2 ? b->second.shape[1] : 1;
}

void ArrayReader::check_shape(const Field& field, const Array& array) {
  const ArrayShape& found = array.shape;
  const bool several = found.size() == 2 && found[1] == field.count;
  const bool fits = several || (found.size() == 1 && field.count == 1);
  if (!fits)
    throw Error(fmt::format("{}: {}: shape: expected [records{}], found {}", name_, field.name,
                            field.count == 1 ? "" : fmt::format(", {}", field.count),
                            shape_text(found)));
  if (n_ < 0) {
    n_ = found[0];
    counted_ = field.name;
  }
  if (found[0] != n_)
    throw Error(fmt::format("{}: {}: shape: expected {} records, as {} has, found {}", name_,
                            field.name, n_, counted_, found[0]));
}

/// Of numbers that are no codes of a format: two's complement, flags, indices, random bits.
void ArrayReader::check_numbers(const Field& field, const Array& array) const {
  const ArrayType type = array_type_of(field);
  if (array.type != type)
    throw Error(fmt::format("{}: {}: dtype: expected {}, found {}", name_, field.name,
                            to_string(type), to_string(array.type)));
  const int width = 8 * bytes_of(type);
  if (field.bits >= width) return;
  const bool is_signed =
      type == ArrayType::int8 || type == ArrayType::int16 || type == ArrayType::int32;
  const std::uint64_t sign = is_signed ? std::uint64_t{1} << (field.bits - 1) : 0;
  const std::uint64_t all = (std::uint64_t{1} << width) - 1;
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    // A number of these bits is not negative, and below 2^bits, once 2^(bits - 1) is added.
    if ((((integer_at(array, i) + sign) & all) >> field.bits) == 0) continue;
    throw Error(fmt::format("{}: {}: element {}: expected a number of {} bits, found {:#x}", name_,
                            field.name, i, field.bits, integer_at(array, i)));
  }
}

void ArrayReader::check(const Layout& layout) {
  std::vector<std::string> known = {kClass, kHeader};
  for (const Field& field : layout) known.push_back(field.name);
  for (const auto& [name, array] : arrays_) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(fmt::format("{}: {}", name_, unknown_name("array", shown(name), known)));
  }
  for (const Field& field : layout) {
    const auto found = arrays_.find(field.name);
    if (found == arrays_.end()) {
      const bool c_of_unit = field.name == "c" && find_field(layout, "d") >= 0;
      if (field.optional || c_of_unit) continue;
      throw Error(fmt::format("{}: expected an array '{}', found none", name_, field.name));
    }
    Array& array = found->second;
    check_shape(field, array);
    if (field.format == nullptr) {
      check_numbers(field, array);
    } else {
      array =
          checked_codes(fmt::format("{}: {}", name_, field.name), *field.format, std::move(array))
              .array;
    }
  }
  const auto classes = arrays_.find(kClass);
  if (classes == arrays_.end()) return;
  const Array& texts = classes->second;
  if (texts.type != ArrayType::uint8 || texts.shape.size() != 2 || texts.shape[0] != n_)
    throw Error(
        fmt::format("{}: {}: expected byte strings, one for each of {} records, found {} "
                    "of shape {}",
                    name_, kClass, n_, to_string(texts.type), shape_text(texts.shape)));
}

bool ArrayReader::read(const Layout& layout, std::int64_t most, Records& records) {
  if (n_ < 0) check(layout);
  const std::int64_t count = std::min(most, n_ - at_);
  records.reset(layout, count);
  if (count <= 0) return false;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const Field& field = layout[f];
    const auto found = arrays_.find(field.name);
    if (found == arrays_.end()) continue;
    const Array& array = found->second;
    const std::uint64_t mask =
        field.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.bits) - 1;
    const std::int64_t first = at_ * field.count;
    for (std::int64_t i = 0; i < count * field.count; ++i)
      records.columns[f][static_cast<std::size_t>(i)] =
          field.format != nullptr ? load_code(*field.format, array.data.data(), first + i)
                                  : integer_at(array, first + i) & mask;
  }
  const auto classes = arrays_.find(kClass);
  for (std::int64_t i = 0; i < count; ++i) {
    records.line[static_cast<std::size_t>(i)] = at_ + i;
    if (classes != arrays_.end())
      records.class_of[static_cast<std::size_t>(i)] =
          records.class_number(shown(text_at(classes->second, at_ + i, classes->second.shape[1])));
  }
  at_ += count;
  return true;
}

}  // namespace numemu::oracle
