// Headers that numpy would not write are refused at the byte where they go wrong.
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::npy_header_test {
namespace {

constexpr std::int64_t kBegin = 10;

std::string message(const std::string& text) {
  return test::message_of([&] { parse_npy_header("f", text, kBegin); });
}

std::string of_descr(const std::string& descr) {
  return message("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2,), }\n");
}

std::string of_shape(const std::string& shape) {
  return message("{'shape': " + shape + ", 'descr': '<f4', 'fortran_order': False, }\n");
}

TEST_CASE("types that are no real numbers are refused by name", "[fast]") {
  const std::string at =
      "f: byte 20: descr: expected one of the types int8..int64, uint8..uint64, float16..float64, "
      "bool, found ";
  CHECK(of_descr("'<f4'").empty());
  CHECK(of_descr("'|b1'").empty());
  CHECK(of_descr("'<c8'") == at + "'<c8' (complex)");
  CHECK(of_descr("'|O'") == at + "'|O' (Python objects)");
  CHECK(of_descr("'<U5'") == at + "'<U5' (text)");
  CHECK(of_descr("'|S5'") == at + "'|S5' (text)");
  CHECK(of_descr("'<V2'").starts_with(at + "'<V2' (raw bytes, which numpy writes for bfloat16"));
  CHECK(of_descr("'<f16'") == at + "'<f16'");
  CHECK(of_descr("'<M8[ns]'") == at + "'<M8[ns]'");
  CHECK(of_descr("''") == at + "''");
  CHECK(of_descr("'f4'") == at + "'f4'");
  CHECK(of_descr("'|f4'") == at + "'|f4'");
  CHECK(of_descr("'=f4'") == at + "'=f4'");
  CHECK(of_descr("'>u1'") == at + "'>u1'");
  CHECK(of_descr("[('a', '<f4')]") == at + "a structured type");
  CHECK(of_descr("7") == "f: byte 20: expected a string in quotes");
  CHECK(of_descr("'<f4\n'") == "f: byte 24: expected a string of plain letters");
}

TEST_CASE("shapes", "[fast]") {
  for (const char* good : {"()", "(3,)", "(3, 4)", "(3,4,)", "( 3 , 0 )", "(9223372036854775807,)"})
    CHECK(of_shape(good).empty());
  for (const char* bad :
       {"(-1,)", "(x,)", "(,)", "(9223372036854775808,)", "(99999999999999999999,)", "(1.5,)",
        "(3L,)", "(1 2)", "(3)", "[3]", "3", "None", "(3,"})
    CHECK_FALSE(of_shape(bad).empty());
  CHECK(of_shape("(2, -3)") == "f: byte 24: shape: expected integers of 0..2^63-1");
  CHECK(of_shape("(2, 9223372036854775808)") ==
        "f: byte 24: shape: expected integers of 0..2^63-1");
  CHECK(of_shape("(3)") == "f: byte 22: shape: expected ,");
  std::string many = "(";
  for (int axis = 0; axis < 64; ++axis) many += "1,";
  CHECK(of_shape(many + ")").empty());
  CHECK(of_shape(many + "1)") == "f: byte 149: expected at most 64 axes");
}

TEST_CASE("the dictionary", "[fast]") {
  const std::string all = "'descr': '<f4', 'fortran_order': True, 'shape': (2,)";
  CHECK(parse_npy_header("f", "{" + all + "}", kBegin).fortran_order);
  CHECK(message("{" + all + ", }   \n").empty());
  CHECK(message("{" + all + "}x") ==
        "f: byte 64: expected the header to end in spaces and one newline");
  CHECK(message("{" + all + "}\n\n") ==
        "f: byte 65: expected the header to end in spaces and one newline");
  CHECK(message("") == "f: byte 10: expected {");
  CHECK(message("{" + all) == "f: byte 63: expected , or }");
  CHECK(message("{" + all + ", 'shape': (2,)}") == "f: byte 72: expected the key 'shape' once");
  CHECK(message("{" + all + ", 'more': 1}") ==
        "f: byte 71: expected the keys 'descr', 'fortran_order' and 'shape' only");
  CHECK(message("{'descr': '<f4', 'shape': (2,)}") == "f: byte 41: expected a key 'fortran_order'");
  CHECK(message("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}") ==
        "f: byte 44: fortran_order: expected True or False");
}

TEST_CASE("a written header is read back", "[fast]") {
  for (const ArrayShape& shape : {ArrayShape{}, ArrayShape{7}, ArrayShape{1, 2, 3},
                                  ArrayShape(kMostAxes, 9223372036854775807)}) {
    const std::string text = format_npy_header(ArrayType::int16, shape);
    CHECK(text.size() % 64 == 0);
    const NpyHeader header = parse_npy_header("f", text.substr(10), 10);
    CHECK(header.type == ArrayType::int16);
    CHECK(header.shape == shape);
    CHECK_FALSE(header.fortran_order);
    CHECK_FALSE(header.big_endian);
  }
}

}  // namespace
}  // namespace numemu::npy_header_test
