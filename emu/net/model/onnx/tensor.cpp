// TensorProto of onnx/onnx.proto (release 1.12): raw_data, or one typed field that depends on the
// type.
#include "emu/net/model/onnx/tensor.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "emu/net/data/stored_type.hpp"
#include "emu/net/model/onnx/proto.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

/// How a type is stored: bits of an element of raw_data, the typed field, the integers that an
/// element of int32_data may be (floats of 8 and 16 bits are stored there by their codes), and the
/// row of formats.def that a float is.
struct TypeRow {
  OnnxType type;
  std::string_view name;
  std::int64_t bits;
  std::uint32_t field;
  Wire wire;
  std::int64_t least, most;
  std::string_view format = "";
};

template <class T>
constexpr std::int64_t kLeast = std::numeric_limits<T>::min();
template <class T>
constexpr std::int64_t kMost = std::numeric_limits<T>::max();

constexpr std::array<TypeRow, 19> kTypes = {{
    {OnnxType::float32, "float32", 32, tensor_field::kFloatData, Wire::fixed32, 0, 0, "float32"},
    {OnnxType::uint8, "uint8", 8, tensor_field::kInt32Data, Wire::varint, 0, kMost<std::uint8_t>},
    {OnnxType::int8, "int8", 8, tensor_field::kInt32Data, Wire::varint, kLeast<std::int8_t>,
     kMost<std::int8_t>},
    {OnnxType::uint16, "uint16", 16, tensor_field::kInt32Data, Wire::varint, 0,
     kMost<std::uint16_t>},
    {OnnxType::int16, "int16", 16, tensor_field::kInt32Data, Wire::varint, kLeast<std::int16_t>,
     kMost<std::int16_t>},
    {OnnxType::int32, "int32", 32, tensor_field::kInt32Data, Wire::varint, kLeast<std::int32_t>,
     kMost<std::int32_t>},
    {OnnxType::int64, "int64", 64, tensor_field::kInt64Data, Wire::varint, kLeast<std::int64_t>,
     kMost<std::int64_t>},
    {OnnxType::uint32, "uint32", 32, tensor_field::kUint64Data, Wire::varint, 0,
     kMost<std::uint32_t>},
    {OnnxType::uint64, "uint64", 64, tensor_field::kUint64Data, Wire::varint, 0,
     kMost<std::int64_t>},
    {OnnxType::boolean, "bool", 8, tensor_field::kInt32Data, Wire::varint, 0, 1},
    {OnnxType::float16, "float16", 16, tensor_field::kInt32Data, Wire::varint, 0,
     kMost<std::uint16_t>, "float16"},
    {OnnxType::float64, "float64", 64, tensor_field::kDoubleData, Wire::fixed64, 0, 0, "float64"},
    {OnnxType::bfloat16, "bfloat16", 16, tensor_field::kInt32Data, Wire::varint, 0,
     kMost<std::uint16_t>, "bfloat16"},
    {OnnxType::float8_e4m3fn, "float8e4m3fn", 8, tensor_field::kInt32Data, Wire::varint, 0, 255,
     "float8_e4m3fn"},
    {OnnxType::float8_e4m3fnuz, "float8e4m3fnuz", 8, tensor_field::kInt32Data, Wire::varint, 0, 255,
     "float8_e4m3fnuz"},
    {OnnxType::float8_e5m2, "float8e5m2", 8, tensor_field::kInt32Data, Wire::varint, 0, 255,
     "float8_e5m2"},
    {OnnxType::float8_e5m2fnuz, "float8e5m2fnuz", 8, tensor_field::kInt32Data, Wire::varint, 0, 255,
     "float8_e5m2fnuz"},
    {OnnxType::uint4, "uint4", 4, tensor_field::kInt32Data, Wire::varint, 0, 15},
    {OnnxType::int4, "int4", 4, tensor_field::kInt32Data, Wire::varint, -8, 7},
}};

const TypeRow* row_of(std::int64_t number) {
  for (const TypeRow& row : kTypes) {
    if (static_cast<std::int64_t>(row.type) == number) return &row;
  }
  return nullptr;
}

const TypeRow& row_of(OnnxType type) { return *row_of(static_cast<std::int64_t>(type)); }

/// Element i of raw data as it lies there; of two in a byte the first is in its low half.
std::uint64_t raw_word(const TypeRow& row, std::string_view data, std::int64_t i) {
  if (row.bits < 8)
    return static_cast<unsigned char>(data[static_cast<std::size_t>(i / 2)]) >> (i % 2 * 4) & 15;
  std::uint64_t word = 0;
  const auto bytes = static_cast<std::size_t>(row.bits / 8);
  std::memcpy(&word, data.data() + static_cast<std::size_t>(i) * bytes, bytes);
  return word;
}

std::int64_t raw_integer(const TypeRow& row, std::uint64_t word) {
  if (row.type == OnnxType::boolean) return word != 0;
  const auto unused = static_cast<int>(64 - row.bits);
  return row.least < 0 ? static_cast<std::int64_t>(word << unused) >> unused
                       : static_cast<std::int64_t>(word);
}

/// Elements of int32_data are cut to 32 bits, as every protobuf parser does.
std::int64_t typed_integer(const TypeRow& row, std::uint64_t word) {
  return row.field == tensor_field::kInt32Data ? static_cast<std::int32_t>(word)
                                               : static_cast<std::int64_t>(word);
}

/// visit(word) for each element.
template <class Visit>
void for_each_word(const OnnxTensor& tensor, const TypeRow& row, const Visit& visit) {
  if (tensor.raw) {
    for (std::int64_t i = 0; i < tensor.elements; ++i) visit(raw_word(row, tensor.data, i));
    return;
  }
  static const std::string kChecked;  // no path: read_onnx_tensor has walked the same bytes
  WireReader message(kChecked, tensor.data);
  for (WireField field; message.next(field);) {
    if (field.number == row.field) WireReader::for_each(field, row.wire, visit);
  }
}

/// visit(value) for the elements of an integer type, visit(code) for those of a small float.
template <class Visit>
void for_each_integer(const OnnxTensor& tensor, const TypeRow& row, const Visit& visit) {
  for_each_word(tensor, row, [&](std::uint64_t word) {
    visit(tensor.raw ? raw_integer(row, word) : typed_integer(row, word));
  });
}

class Reader {
 public:
  Reader(WireReader message, bool may_be_absent)
      : message_(message), may_be_absent_(may_be_absent) {
    tensor_.offset = message.offset();
    tensor_.data = message.body();
  }

  OnnxTensor read() {
    collect();
    if (segment_) fail("expected a whole tensor, found a segment of one");
    const TypeRow* row = row_of(type_);
    if (row == nullptr)
      fail(
          fmt::format("expected a data_type of float8, float16, bfloat16, float32, float64, "
                      "int4..int64, uint4..uint64 or bool, found number {}",
                      type_));
    tensor_.type = row->type;
    read_dims();
    if (external_) {
      if (tensor_.external.file.empty()) fail("expected the location of external data, found none");
      tensor_.raw = true;
      tensor_.data = {};
    } else {
      tensor_.external = {};
      check_data(*row);
    }
    return std::move(tensor_);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    message_.fail(tensor_.offset,
                  tensor_.name.empty()
                      ? fmt::format("tensor: {}", text)
                      : fmt::format("tensor {}: {}", quote_name(tensor_.name), text));
  }

  void collect() {
    WireReader walk = message_;
    for (WireField field; walk.next(field);) {
      const std::uint32_t number = field.number;
      if (number == tensor_field::kDims) dims_ += walk.count(field, Wire::varint, "dims");
      if (number == tensor_field::kDataType) type_ = walk.integer(field, "data_type");
      if (number == tensor_field::kSegment) segment_ = true;
      if (number == tensor_field::kName) tensor_.name = walk.text(field, "the name of a tensor");
      if (number == tensor_field::kRawData) {
        tensor_.raw = true;
        tensor_.data = walk.text(field, "raw_data");
      }
      if (number == tensor_field::kExternalData)
        read_location(walk.message(field, "external_data"));
      if (number == tensor_field::kDataLocation)
        external_ |= walk.integer(field, "data_location") != 0;
    }
  }

  /// An entry of external_data: a key and its value.
  void read_location(WireReader entry) {
    std::string_view key, value;
    for (WireField field; entry.next(field);) {
      if (field.number == 1) key = entry.text(field, "a key");
      if (field.number == 2) value = entry.text(field, "a value");
    }
    if (key == "location") tensor_.external.file = value;
    if (key != "offset" && key != "length") return;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      fail(fmt::format("external data: expected a number of bytes as {}", key));
    (key == "offset" ? tensor_.external.offset : tensor_.external.bytes) = number;
  }

  void read_dims() {
    tensor_.dims.reserve(static_cast<std::size_t>(dims_));
    WireReader walk = message_;
    for (WireField field; walk.next(field);) {
      if (field.number != tensor_field::kDims) continue;
      WireReader::for_each(field, Wire::varint, [&](std::uint64_t extent) {
        tensor_.dims.push_back(static_cast<std::int64_t>(extent));
        if (tensor_.dims.back() < 0)
          fail(fmt::format("dims: expected no negative extent, found {}", tensor_.dims.back()));
      });
    }
    const std::optional<std::int64_t> elements = element_count_of(tensor_.dims);
    if (!elements) fail("dims: expected fewer than 2^63 elements");
    tensor_.elements = *elements;
  }

  /// Counts the elements of the typed field, checks them, and refuses data in any other place.
  void check_data(const TypeRow& row) {
    std::int64_t typed = 0;
    WireReader walk = message_;
    for (WireField field; walk.next(field);) {
      const bool data =
          field.number == tensor_field::kFloatData || field.number == tensor_field::kInt32Data ||
          field.number == tensor_field::kStringData || field.number == tensor_field::kInt64Data ||
          field.number == tensor_field::kDoubleData || field.number == tensor_field::kUint64Data;
      if (!data) continue;
      if (field.number != row.field || tensor_.raw) {
        if (field.wire == Wire::bytes && field.bytes.empty()) continue;
        fail(fmt::format("expected the data of {} in raw_data or in field {}, found {} in field {}",
                         row.name, row.field, tensor_.raw ? "raw_data and more" : "data",
                         field.number));
      }
      typed += walk.count(field, row.wire, "the data of a tensor");
      if (row.wire != Wire::varint) continue;
      WireReader::for_each(field, row.wire, [&](std::uint64_t word) {
        const std::int64_t value = typed_integer(row, word);
        if (value < row.least || value > row.most)
          fail(fmt::format("expected elements of {}..{} for {}, found {}", row.least, row.most,
                           row.name, value));
      });
    }
    tensor_.absent = may_be_absent_ && !tensor_.raw && typed == 0 && !is_integer(tensor_.type);
    if (tensor_.absent) return;
    const auto stored = static_cast<std::int64_t>(tensor_.data.size());
    if (!tensor_.raw && row.bits < 8 && tensor_.elements > 0)
      fail(fmt::format("expected the data of {} in raw_data", row.name));
    const bool fits = tensor_.raw ? stored == raw_bytes(tensor_) : typed == tensor_.elements;
    if (!fits) {
      const std::string shape = tensor_.dims.size() > kLongShape
                                    ? fmt::format("of {} axes", tensor_.dims.size())
                                    : shape_text(tensor_.dims);
      fail(fmt::format("expected {} of {} for shape {}, found {}",
                       counted(tensor_.elements, "element"), row.name, shape,
                       tensor_.raw ? counted(stored, "byte") : counted(typed, "element")));
    }
    if (!tensor_.raw || row.type != OnnxType::uint64) return;
    for_each_integer(tensor_, row, [&](std::int64_t value) {
      if (value < 0) fail("expected elements of uint64 below 2^63");
    });
  }

  static constexpr std::size_t kLongShape = 16;

  WireReader message_;
  bool may_be_absent_;
  OnnxTensor tensor_;
  std::int64_t type_ = 0, dims_ = 0;
  bool segment_ = false, external_ = false;
};

void load_codes(const OnnxTensor& tensor, const TypeRow& row, std::vector<float>& values) {
  const StoredType& type =
      stored_type(row.type == OnnxType::float16 ? StorageType::f16 : StorageType::bf16);
  if (tensor.raw) return load(type, tensor.data, values);
  std::string codes;
  codes.reserve(values.size() * static_cast<std::size_t>(row.bits / 8));
  for_each_word(tensor, row, [&](std::uint64_t word) {
    codes += static_cast<char>(word & 255);
    codes += static_cast<char>(word >> 8 & 255);
  });
  load(type, codes, values);
}

}  // namespace

std::string to_string(OnnxType type) {
  const auto number = static_cast<int>(type);
  const TypeRow* row = row_of(number);
  return row == nullptr ? fmt::format("type {}", number) : std::string(row->name);
}

OnnxType number_type(std::int64_t number) {
  if (row_of(number) == nullptr)
    throw Error(fmt::format("expected a type of numbers, found type {}", number));
  return static_cast<OnnxType>(number);
}

bool is_integer(OnnxType type) {
  const TypeRow* row = row_of(static_cast<std::int64_t>(type));
  return row == nullptr || row->format.empty();
}

std::string_view float8_format(OnnxType type) {
  const TypeRow* row = row_of(static_cast<std::int64_t>(type));
  return row != nullptr && row->bits == 8 ? row->format : std::string_view();
}

IntegerRange range_of(OnnxType type) {
  const TypeRow* row = row_of(static_cast<std::int64_t>(type));
  if (row == nullptr || !is_integer(type) || row->bits > 32) return {};
  return {row->least, row->most};
}

std::int64_t raw_bytes(const OnnxTensor& tensor) {
  const std::int64_t bits = row_of(tensor.type).bits;
  std::int64_t bytes = 0;
  if (bits < 8) return tensor.elements / 2 + tensor.elements % 2;
  // More bytes than there can be.
  if (__builtin_mul_overflow(tensor.elements, bits / 8, &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return bytes;
}

OnnxTensor read_onnx_tensor(WireReader message, bool may_be_absent) {
  return Reader(message, may_be_absent).read();
}

std::vector<float> to_floats(const OnnxTensor& tensor) {
  const TypeRow& row = row_of(tensor.type);
  std::vector<float> values(static_cast<std::size_t>(tensor.elements));
  if (tensor.absent) return values;
  if (tensor.type == OnnxType::float16 || tensor.type == OnnxType::bfloat16) {
    load_codes(tensor, row, values);
    return values;
  }
  float* to = values.data();
  if (const std::string_view name = float8_format(tensor.type); !name.empty()) {
    const float* const table = decode_table(find_format(name));
    for_each_integer(tensor, row, [&](std::int64_t code) { *to++ = table[code & 255]; });
    return values;
  }
  if (is_integer(tensor.type)) {
    for_each_integer(tensor, row, [&](std::int64_t value) { *to++ = static_cast<float>(value); });
    return values;
  }
  const bool wide = tensor.type == OnnxType::float64;
  if (tensor.raw && !wide) {
    if (!values.empty()) std::memcpy(to, tensor.data.data(), tensor.data.size());
    return values;
  }
  for_each_word(tensor, row, [&](std::uint64_t word) {
    *to++ = wide ? static_cast<float>(std::bit_cast<double>(word))
                 : std::bit_cast<float>(static_cast<std::uint32_t>(word));
  });
  return values;
}

std::vector<std::int64_t> to_integers(const OnnxTensor& tensor) {
  if (!is_integer(tensor.type)) {
    throw Error(fmt::format("tensor {}: expected integers, found {}", quote_name(tensor.name),
                            to_string(tensor.type)));
  }
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(tensor.elements));
  for_each_integer(tensor, row_of(tensor.type),
                   [&](std::int64_t value) { values.push_back(value); });
  return values;
}

}  // namespace numemu::net
