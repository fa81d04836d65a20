// Records in the layout of the golden files.
#include "emu/oracle/recording/records.hpp"

#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"

namespace numemu::oracle::recording::records_test {

TEST_CASE("a dense record without scales is laid out like the golden ones", "[fast]") {
  CHECK(record_bytes(instruction("mma", "m16n8k16.f32.f16.f16.f32")) == 16 * 2 + 16 * 2 + 4 + 4);
  CHECK(record_bytes(instruction("tc5bs", "m128n8k64.block16.f32.e2m1.e2m1.ue4m3")) ==
        64 + 64 + 4 + 4 + 4 + 4);
  CHECK(record_bytes(instruction("mmasp", "m16n8k32.f32.f16.f16.f32")) == 32 + 64 + 4 + 8 + 4);
}

}  // namespace numemu::oracle::recording::records_test
