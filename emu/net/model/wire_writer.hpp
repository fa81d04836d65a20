// Fields of protobuf messages, appended to a string.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "emu/net/model/wire.hpp"

namespace numemu::net {

void put_varint(std::string& out, std::uint64_t word);
/// A field of wire type varint.
void put_number(std::string& out, std::uint32_t field, std::uint64_t word);
/// A text, bytes, or a message.
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes);
/// A float.
void put_float(std::string& out, std::uint32_t field, float value);
/// A field as it was read.
void put_field(std::string& out, const WireField& field);

}  // namespace numemu::net
