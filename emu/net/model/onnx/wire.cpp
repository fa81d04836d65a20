// Every length is compared with what is left of the enclosing message before it is used.
#include "emu/net/model/onnx/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu::net {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed words are copied as they are");

constexpr std::size_t kLongestVarint = 10;
/// Field numbers have 29 bits, so a tag fits 32.
constexpr std::uint64_t kLargestTag = 0xffff'ffff;

/// The varint at the start of `bytes`: its length, 0 where it does not end within `bytes` or 64
/// bits.
std::size_t decode_varint(std::string_view bytes, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), kLongestVarint); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    if (i == kLongestVarint - 1 && byte > 1) return 0;
    value |= std::uint64_t{byte & 0x7fU} << 7 * i;
    if (byte < 0x80) return i + 1;
  }
  return 0;
}

std::uint64_t decode_fixed(std::string_view bytes, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), size);
  return value;
}

std::size_t width_of(Wire wire) { return wire == Wire::fixed64 ? 8 : 4; }

}  // namespace

std::string_view to_string(Wire wire) {
  switch (wire) {
    case Wire::varint:
      return "a varint";
    case Wire::fixed64:
      return "8 fixed bytes";
    case Wire::fixed32:
      return "4 fixed bytes";
    default:
      return "bytes with a length";
  }
}

void WireReader::fail(std::int64_t offset, const std::string& text) const {
  throw Error(fmt::format("{}: byte {}: {}", *path_, offset, text));
}

std::uint64_t WireReader::varint(std::string_view& left, std::string_view what) const {
  std::uint64_t value;
  const std::size_t length = decode_varint(left, value);
  if (length == 0) {
    fail(offset_of(left),
         fmt::format("expected {} as a varint of 64 bits, found {}", what,
                     left.size() < kLongestVarint ? "the end of the message" : "more bits"));
  }
  left.remove_prefix(length);
  return value;
}

std::uint64_t WireReader::fixed(std::size_t bytes, std::string_view what) {
  if (left_.size() < bytes)
    fail(offset_of(left_),
         fmt::format("expected {}, found {}", what, counted(left_.size(), "byte")));
  const std::uint64_t value = decode_fixed(left_, bytes);
  left_.remove_prefix(bytes);
  return value;
}

bool WireReader::next(WireField& field) {
  if (left_.empty()) return false;
  field.offset = offset_of(left_);
  const std::uint64_t tag = varint(left_, "the tag of a field");
  if (tag > kLargestTag || tag >> 3 == 0)
    fail(field.offset, fmt::format("expected a field number of 1..2^29-1, found {}", tag >> 3));
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.wire = static_cast<Wire>(tag & 7);
  field.word = 0;
  field.bytes = {};
  switch (field.wire) {
    case Wire::varint:
      field.word = varint(left_, "a value");
      return true;
    case Wire::fixed64:
    case Wire::fixed32:
      field.word = fixed(width_of(field.wire), to_string(field.wire));
      return true;
    case Wire::bytes: {
      const std::uint64_t length = varint(left_, "a length");
      if (length > left_.size()) {
        fail(offset_of(left_), fmt::format("expected {} bytes of field {}, found {}", length,
                                           field.number, left_.size()));
      }
      field.bytes = left_.substr(0, length);
      left_.remove_prefix(length);
      return true;
    }
  }
  fail(field.offset, fmt::format("expected a wire type of 0, 1, 2 or 5, found {}", tag & 7));
}

void WireReader::require(const WireField& field, Wire wire, std::string_view what) const {
  if (field.wire != wire) {
    fail(field.offset,
         fmt::format("expected {} as {}, found {}", what, to_string(wire), to_string(field.wire)));
  }
}

WireReader WireReader::message(const WireField& field, std::string_view what) const {
  return {*path_, file_, text(field, what)};
}

std::string_view WireReader::text(const WireField& field, std::string_view what) const {
  require(field, Wire::bytes, what);
  return field.bytes;
}

std::int64_t WireReader::integer(const WireField& field, std::string_view what) const {
  require(field, Wire::varint, what);
  return static_cast<std::int64_t>(field.word);
}

float WireReader::float32(const WireField& field, std::string_view what) const {
  require(field, Wire::fixed32, what);
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.word));
}

std::int64_t WireReader::count(const WireField& field, Wire element, std::string_view what) const {
  if (field.wire == element) return 1;
  require(field, Wire::bytes, what);
  if (element != Wire::varint) {
    const std::size_t width = width_of(element);
    if (field.bytes.size() % width != 0) {
      fail(field.offset, fmt::format("expected {} in whole elements of {} bytes, found {}", what,
                                     width, counted(field.bytes.size(), "byte")));
    }
    return static_cast<std::int64_t>(field.bytes.size() / width);
  }
  std::int64_t elements = 0;
  for (std::string_view left = field.bytes; !left.empty(); ++elements) varint(left, what);
  return elements;
}

std::uint64_t WireReader::take(std::string_view& left, Wire element) {
  std::uint64_t value;
  std::size_t length = width_of(element);
  if (element == Wire::varint) {
    length = std::max<std::size_t>(decode_varint(left, value), 1);
  } else {
    value = decode_fixed(left, length);
  }
  left.remove_prefix(length);
  return value;
}

namespace {

void put_tag(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint32_t>(wire));
}

void put_fixed(std::string& out, std::uint64_t word, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>((word >> (8 * i)) & 255);
}

}  // namespace

void put_varint(std::string& out, std::uint64_t word) {
  for (; word >= 128; word >>= 7) out += static_cast<char>((word & 127) | 128);
  out += static_cast<char>(word);
}

void put_number(std::string& out, std::uint32_t field, std::uint64_t word) {
  put_tag(out, field, Wire::varint);
  put_varint(out, word);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_tag(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_float(std::string& out, std::uint32_t field, float value) {
  put_tag(out, field, Wire::fixed32);
  put_fixed(out, std::bit_cast<std::uint32_t>(value), 4);
}

void put_field(std::string& out, const WireField& field) {
  if (field.wire == Wire::bytes) return put_bytes(out, field.number, field.bytes);
  if (field.wire == Wire::varint) return put_number(out, field.number, field.word);
  put_tag(out, field.number, field.wire);
  put_fixed(out, field.word, field.wire == Wire::fixed32 ? 4 : 8);
}

}  // namespace numemu::net
