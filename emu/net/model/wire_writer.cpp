#include "emu/net/model/wire_writer.hpp"

#include <bit>

namespace numemu::net {
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
