// Every byte that is not UTF-8 is written out; everything else stays.
#include "formats/storage/utf8.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::utf8_test {
namespace {

TEST_CASE("UTF-8 stays as it is", "[fast]") {
  for (const char* text :
       {"", "a.npy", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbd",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(utf8_text(text) == text);
    CHECK(test::message_of([&] { require_utf8("--set", text); }).empty());
  }
}

TEST_CASE("other bytes are written as hexadecimal", "[fast]") {
  CHECK(utf8_text("b\xff.npy") == "b\\xff.npy");
  CHECK(utf8_text("\xc3") == "\\xc3");                             // cut short
  CHECK(utf8_text("\x80z") == "\\x80z");                           // begins with a later byte
  CHECK(utf8_text("\xc0\xaf") == "\\xc0\\xaf");                    // overlong
  CHECK(utf8_text("\xe0\x9f\xbf") == "\\xe0\\x9f\\xbf");           // overlong
  CHECK(utf8_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // surrogate
  CHECK(utf8_text("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  CHECK(test::message_of([] { require_utf8("--set", "m\xff.onnx"); }) ==
        "--set: expected a name in UTF-8, as results store it, found 'm\\xff.onnx'");
}

}  // namespace
}  // namespace numemu::utf8_test
