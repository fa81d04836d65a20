// Base64: the vectors of RFC 4648, every byte in every place, texts that are none.
#include "formats/storage/base64.hpp"

#include "tests/catch.hpp"

namespace numemu::base64_test {
namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

TEST_CASE("base64 of the vectors of RFC 4648, and back", "[fast]") {
  for (const auto& [plain, text] : {std::pair("", ""),
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    INFO(text);
    CHECK(base64(bytes_of(plain)) == text);
    CHECK(read_base64(text) == bytes_of(plain));
  }
}

TEST_CASE("every byte in every place of a group is read back", "[fast]") {
  for (std::size_t length = 1; length <= 4; ++length) {
    for (std::size_t place = 0; place < length; ++place) {
      std::vector<std::uint8_t> bytes(length, 0xa5);
      for (int value = 0; value < 256; ++value) {
        bytes[place] = static_cast<std::uint8_t>(value);
        CHECK(read_base64(base64(bytes)) == bytes);
      }
    }
  }
}

TEST_CASE("texts that base64 does not give are none", "[fast]") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "====", "Z===", "Zm 8",
                           "Zm9-", "=g==", "Zm9v\n"})
    CHECK_FALSE(read_base64(text));
}

}  // namespace numemu::base64_test
