// Every dtype that stores codes names a format of its width.
#include "formats/format.hpp"
#include "formats/storage/safetensors.hpp"
#include "tests/catch.hpp"

namespace numemu::safetensors_type_test {
namespace {

TEST_CASE("a dtype and its format", "[fast]") {
  for (const std::string_view name : safetensors_code_types()) {
    const SafetensorsType* type = safetensors_type(name);
    REQUIRE(type != nullptr);
    const Format& format = find_format(type->format);
    CHECK(format.name == type->format);
    CHECK(format.bits == type->bits);
    CHECK(safetensors_type_of_format(format.name) == type);
  }
  CHECK(safetensors_type_of_format("") == nullptr);
  CHECK(safetensors_type_of_format("int4") == nullptr);
}

}  // namespace
}  // namespace numemu::safetensors_type_test
