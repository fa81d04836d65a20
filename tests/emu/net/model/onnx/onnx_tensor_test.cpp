// Every type in each way of storing it, and tensors whose data do not fit their shape.
#include <cmath>
#include <limits>

#include "emu/net/model/onnx/tensor.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::onnx_tensor_test {
namespace {

using numemu::test::message_of;
using test::bytes;
using test::fixed;
using test::integer;
using test::raw;
using test::tensor;
using test::varint;
using test::words;

constexpr int kFloat = 1, kUint8 = 2, kInt8 = 3, kUint16 = 4, kInt16 = 5, kInt32 = 6, kInt64 = 7,
              kString = 8, kBool = 9, kFloat16 = 10, kDouble = 11, kComplex64 = 14, kBfloat16 = 16;

const std::string kPath = "f";

OnnxTensor read(const std::string& message) { return read_onnx_tensor(WireReader(kPath, message)); }

std::vector<float> floats(const std::string& message) { return to_floats(read(message)); }
std::vector<std::int64_t> integers(const std::string& message) {
  return to_integers(read(message));
}

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

TEST_CASE("floats in raw_data and in typed fields, packed and not", "[fast]") {
  const std::string message = tensor("w", {2, 1}, kFloat, raw(words(1.5f, -2.0f)));
  const OnnxTensor read_raw = read(message);
  CHECK(read_raw.name == "w");
  CHECK(read_raw.dims == Integers{2, 1});
  CHECK(read_raw.elements == 2);
  CHECK(read_raw.type == OnnxType::float32);
  CHECK(to_floats(read_raw) == Floats{1.5f, -2.0f});
  CHECK(floats(tensor("w", {3}, kFloat, fixed(4, 1.0f) + bytes(4, words(2.0f, 3.0f)))) ==
        Floats{1, 2, 3});
  CHECK(floats(tensor("s", {}, kFloat, raw(words(4.0f)))) == Floats{4});
  CHECK(floats(tensor("none", {0, 5}, kFloat, "")).empty());
  // Shapes may be packed too, and names may be missing.
  CHECK(read(bytes(1, varint(1) + varint(2)) + integer(2, kFloat) + raw(words(1.0f, 2.0f))).dims ==
        Integers{1, 2});
  // What stands empty beside the data does no harm.
  CHECK(floats(tensor("w", {1}, kFloat, raw(words(4.0f)) + bytes(4, ""))) == Floats{4});
}

TEST_CASE("float64 is rounded once to the nearest float32", "[fast]") {
  // 1 + 2^-24 is a midpoint (to even: 1), the next double above it is not.
  const double midpoint = 1 + std::ldexp(1.0, -24), above = std::nextafter(midpoint, 2.0);
  const Floats want = {1.0f, 1 + std::ldexp(1.0f, -23), std::numeric_limits<float>::infinity()};
  CHECK(floats(tensor("d", {3}, kDouble, raw(words(midpoint, above, 1e300)))) == want);
  CHECK(floats(tensor("d", {3}, kDouble, bytes(10, words(midpoint, above)) + fixed(10, 1e300))) ==
        want);
}

TEST_CASE("16-bit floats by their codes", "[fast]") {
  const std::string halves = words(std::uint16_t{0x3c00}, std::uint16_t{0x0001});
  const Floats want = {1.0f, std::ldexp(1.0f, -24)};
  CHECK(floats(tensor("h", {2}, kFloat16, raw(halves))) == want);
  CHECK(floats(tensor("h", {2}, kFloat16, integer(5, 0x3c00) + integer(5, 1))) == want);
  CHECK(floats(tensor("b", {1}, kBfloat16, raw(words(std::uint16_t{0xc049})))) ==
        Floats{-3.140625f});
  CHECK(floats(tensor("b", {1}, kBfloat16, bytes(5, varint(0xc049)))) == Floats{-3.140625f});
}

TEST_CASE("8-bit floats by their codes", "[fast]") {
  // onnx/docs/docsgen/source/technical/float8.md: 0x7e is 448, 240 and the NaN or Inf of e5m2; 0x80
  // is -0, or the NaN of the fnuz formats.
  const std::string codes = raw(std::string("\x7e\x08\x80", 3));
  CHECK(floats(tensor("f", {2}, 17, raw("\x7e\x08"))) == Floats{448, std::ldexp(1.0f, -6)});
  CHECK(floats(tensor("f", {2}, 17, integer(5, 0x7e) + integer(5, 0xfe))) == Floats{448, -448});
  const Floats fnuz = floats(tensor("f", {3}, 18, codes));
  CHECK(fnuz[0] == 224);
  CHECK(std::isnan(fnuz[2]));
  CHECK(std::isnan(floats(tensor("f", {3}, 19, codes))[0]));
  CHECK(floats(tensor("f", {1}, 19, raw("\x7b"))) == Floats{57344});
  CHECK(floats(tensor("f", {1}, 20, raw("\x7f"))) == Floats{57344});
}

TEST_CASE("integers of every width", "[fast]") {
  CHECK(integers(tensor("i", {2}, kInt64, raw(words(INT64_MIN, std::int64_t{5})))) ==
        Integers{INT64_MIN, 5});
  CHECK(integers(tensor("i", {3}, kInt64, integer(7, -1) + bytes(7, varint(300) + varint(4)))) ==
        Integers{-1, 300, 4});
  CHECK(integers(tensor("i", {2}, kInt32, raw(words(-7, 8)))) == Integers{-7, 8});
  CHECK(integers(tensor("i", {2}, kInt32, integer(5, -7) + integer(5, 8))) == Integers{-7, 8});
  // An encoder that writes a negative int32 in five bytes.
  CHECK(integers(tensor("i", {1}, kInt32, integer(5, 0xffff'fff9))) == Integers{-7});
  CHECK(integers(tensor("i", {2}, kInt8, raw("\x80\x7f"))) == Integers{-128, 127});
  CHECK(integers(tensor("i", {2}, kUint8, raw("\x80\x7f"))) == Integers{128, 127});
  CHECK(integers(tensor("i", {1}, kInt16, raw(words(std::int16_t{-2})))) == Integers{-2});
  CHECK(integers(tensor("i", {1}, kUint16, raw(words(std::uint16_t{65535})))) == Integers{65535});
  CHECK(integers(tensor("i", {2}, kInt8, integer(5, -128) + integer(5, 127))) ==
        Integers{-128, 127});
  CHECK(integers(tensor("i", {2}, kBool, raw(std::string("\0\2", 2)))) == Integers{0, 1});
  CHECK(floats(tensor("i", {2}, kBool, integer(5, 1) + integer(5, 0))) == Floats{1, 0});
  // 2^24 + 1 is a midpoint of float32.
  CHECK(floats(tensor("i", {2}, kInt64, integer(7, 16'777'217) + integer(7, -3))) ==
        Floats{16'777'216, -3});
  CHECK(message_of([] { integers(tensor("w", {1}, kFloat, raw(words(1.0f)))); }) ==
        "tensor 'w': expected integers, found float32");
}

TEST_CASE("tensors that are refused", "[fast]") {
  const auto message = [](const std::string& bytes) { return message_of([&] { read(bytes); }); };
  const std::string four = raw(words(1.0f, 2.0f, 3.0f, 4.0f));
  CHECK(message(tensor("w", {2, 3}, kFloat, four)) ==
        "f: byte 0: tensor 'w': expected 6 elements of float32 for shape [2, 3], found 16 bytes");
  CHECK(message(tensor("w", {5}, kFloat, bytes(4, words(1.0f)))) ==
        "f: byte 0: tensor 'w': expected 5 elements of float32 for shape [5], found 1 element");
  CHECK(message(tensor("w", {1}, kFloat, "")) ==
        "f: byte 0: tensor 'w': expected 1 element of float32 for shape [1], found 0 elements");
  CHECK(message(tensor("w", {1}, kInt64, raw("1234567"))) ==
        "f: byte 0: tensor 'w': expected 1 element of int64 for shape [1], found 7 bytes");
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK(message(tensor("w", {kHuge, 4}, kFloat, four)) ==
        "f: byte 0: tensor 'w': dims: expected fewer than 2^63 elements");
  // 2^62 elements of 8 bytes would be zero bytes modulo 2^64.
  CHECK(message(tensor("w", {kHuge}, kInt64, raw(""))) ==
        "f: byte 0: tensor 'w': expected 4611686018427387904 elements of int64 for shape "
        "[4611686018427387904], found 0 bytes");
  CHECK(message(tensor("w", {-2, -2}, kFloat, four)) ==
        "f: byte 0: tensor 'w': dims: expected no negative extent, found -2");
  CHECK(message(tensor("w", {1}, kString, bytes(6, "x"))) ==
        "f: byte 0: tensor 'w': expected a data_type of float8, float16, bfloat16, float32, "
        "float64, int4..int64, uint4..uint64 or bool, found number 8");
  CHECK(message(tensor("w", {1}, kComplex64, raw("12345678"))).ends_with("found number 14"));
  CHECK(message(bytes(8, "w")).ends_with("found number 0"));
  CHECK(message(tensor("w", {1}, kFloat, integer(14, 1)))
            .ends_with("expected the location of external data, found none"));
  CHECK(message(tensor("w", {1}, kFloat,
                       bytes(13, bytes(1, "offset") + bytes(2, "-1")) + integer(14, 1)))
            .ends_with("expected a number of bytes as offset"));
  CHECK(message(tensor("w", {1}, kFloat, bytes(3, "") + four)) ==
        "f: byte 0: tensor 'w': expected a whole tensor, found a segment of one");
  CHECK(message(tensor("w", {4}, kFloat, four + fixed(4, 1.0f))) ==
        "f: byte 0: tensor 'w': expected the data of float32 in raw_data or in field 4, found "
        "raw_data and more in field 4");
  CHECK(message(tensor("w", {1}, kFloat, integer(7, 1))) ==
        "f: byte 0: tensor 'w': expected the data of float32 in raw_data or in field 4, found "
        "data in field 7");
  CHECK(message(tensor("w", {1}, kInt8, integer(5, 128))) ==
        "f: byte 0: tensor 'w': expected elements of -128..127 for int8, found 128");
  CHECK(message(tensor("w", {1}, kBool, integer(5, 2)))
            .ends_with("expected elements of 0..1 for bool, found 2"));
  CHECK(message(tensor("w", {1}, kFloat16, integer(5, 65536)))
            .ends_with("expected elements of 0..65535 for float16, found 65536"));
  CHECK(message(integer(2, kFloat) + raw("123")) ==
        "f: byte 0: tensor: expected 1 element of float32 for shape [], found 3 bytes");
}

TEST_CASE("names of types", "[fast]") {
  CHECK(to_string(OnnxType::bfloat16) == "bfloat16");
  CHECK(to_string(static_cast<OnnxType>(8)) == "type 8");
  CHECK(is_integer(OnnxType::boolean));
  CHECK(!is_integer(OnnxType::float64));
  CHECK(!is_integer(OnnxType::float8_e5m2));
  CHECK(float8_format(OnnxType::float8_e5m2) == "float8_e5m2");
  CHECK(float8_format(OnnxType::int8).empty());
}

}  // namespace
}  // namespace numemu::net::onnx_tensor_test
