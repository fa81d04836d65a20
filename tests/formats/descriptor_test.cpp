// Formats described by name: what each part does, canonical spelling, and the errors.
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"

namespace numemu::descriptor_test {
namespace {

using Catch::Matchers::Message;

TEST_CASE("descriptor: a row with the same encoding is found", "[fast]") {
  CHECK(find_format("e4m3").name == "float8_e4m3");
  CHECK(find_format("e4m3+nan1").name == "float8_e4m3fn");
  CHECK(find_format("e4m3b8+fnuz").name == "float8_e4m3fnuz");
  CHECK(find_format("e4m3b11+finite+nosub").name == "hfp8_e4m3_nosub");
  CHECK(find_format("e5m10").name == "float16");
  CHECK(find_format("e8m23+ieee").name == "float32");
  CHECK(find_format("e6m9").name == "hfp16_e6m9");
  CHECK(find_format("e4m3b12+fnuz").name == "e4m3b12+fnuz");
}

TEST_CASE("descriptor: canonical spelling leaves out defaults and orders the parts", "[fast]") {
  CHECK(find_format("e3m3b3+ieee").name == "e3m3");
  CHECK(find_format("e3m3b4+unsigned+ftz+finite").name == "e3m3b4+finite+ftz+unsigned");
  CHECK(&find_format("e3m3b4+unsigned+ftz+finite") == &find_format("e3m3b4+finite+ftz+unsigned"));
  CHECK(find_format("e3m3b-2").bias == -2);
  CHECK(find_format("e3m3b-2").name == "e3m3b-2");
  const Format& f = find_format("e3m3b4+finite+ftz+unsigned");
  CHECK((f.bits == 6 && !f.is_signed && f.field_zero == FieldZero::flush && f.bias == 4));
}

TEST_CASE("descriptor: leading zeros are not part of a name", "[fast]") {
  CHECK(find_format("binary08p3se").name == "binary8p3se");
  CHECK(&find_format("binary8p03se") == &find_format("binary8p3se"));
  CHECK(find_format("e04m03").name == "float8_e4m3");
  CHECK(find_format("e3m3b004").name == "e3m3b4");
  CHECK(find_format("e02m01").name == find_format("e2m1").name);
}

TEST_CASE("descriptor: the canonical name is read back as the same format", "[fast]") {
  // e2m1, e2m3 and e3m2 are aliases of the OCP elements, which have no infinities.
  for (const std::string name : {"e2m1", "e2m3", "e3m2"}) {
    CHECK_FALSE(find_format(name).has_infinity());
    CHECK(find_format(name + "+ieee").name == name + "+ieee");
    CHECK(find_format(name + "+ieee").has_infinity());
  }
  CHECK(find_format("e2m1b1").name == "e2m1+ieee");
  for (int e = 1; e <= 8; ++e) {
    for (int m = 0; m <= 7; ++m) {
      for (const std::string tail : {"+ieee", "+nan1", "+finite", "b2", "b2+finite+unsigned"}) {
        const std::string name = "e" + std::to_string(e) + "m" + std::to_string(m) + tail;
        if (e + m < 3) continue;  // some of these have no finite value but zero
        INFO(name);
        CHECK(&find_format(find_format(name).name) == &find_format(name));
      }
    }
  }
}

TEST_CASE("descriptor: P3109 parameters", "[fast]") {
  const Format& s = find_format("binary8p3se");
  CHECK((s.exponent_bits == 5 && s.mantissa_bits == 2 && s.bias == 16 &&
         s.specials == Specials::p3109_extended));
  const Format& u = find_format("binary8p3uf");
  CHECK((u.exponent_bits == 6 && u.mantissa_bits == 2 && u.bias == 32 &&
         u.specials == Specials::p3109_finite));
  for (int k = 3; k <= 15; ++k) {
    for (int p = 1; p <= k; ++p) {
      for (const std::string tail : {"se", "sf", "ue", "uf"}) {
        const std::string name = "binary" + std::to_string(k) + "p" + std::to_string(p) + tail;
        if (tail[0] == 's' && p == k) continue;
        CHECK(find_format(name).bits == k);
        CHECK(find_format(name).name == name);
      }
    }
  }
}

TEST_CASE("descriptor: errors name the part", "[fast]") {
  const std::pair<const char*, const char*> cases[] = {
      {"e16m2", "format 'e16m2': exponent bits = 16 is outside 1..15"},
      {"e0m2", "format 'e0m2': exponent bits = 0 is outside 1..15"},
      {"e4m24", "format 'e4m24': mantissa bits = 24 is outside 0..23"},
      {"e99999999999m2", "format 'e99999999999m2': exponent bits = 99999999999 is outside 1..15"},
      {"e4m3b99999", "format 'e4m3b99999': bias = 99999 is outside -32767..32767"},
      {"e4m3b-99999999999",
       "format 'e4m3b-99999999999': bias = -99999999999 is outside -32767..32767"},
      {"binary99999999999p3se",
       "format 'binary99999999999p3se': width K = 99999999999 is outside 3..15"},
      {"e4m3+inf",
       "format 'e4m3+inf': unknown part '+inf', expected +ieee +nan1 +fnuz +finite +nosub +ftz "
       "+unsigned"},
      {"e4m3+",
       "format 'e4m3+': unknown part '+', expected +ieee +nan1 +fnuz +finite +nosub +ftz "
       "+unsigned"},
      {"e4m3+nan1+fnuz",
       "format 'e4m3+nan1+fnuz': part '+fnuz' contradicts or repeats an earlier one"},
      {"e4m3+ftz+nosub",
       "format 'e4m3+ftz+nosub': part '+nosub' contradicts or repeats an earlier one"},
      {"e4m3+fnuz+unsigned",
       "format 'e4m3+fnuz+unsigned': +fnuz needs a sign; +unsigned formats have no code for -0"},
      {"e1m0", "format 'e1m0': no finite value but zero, use more exponent bits or +finite"},
      {"e1m2+ftz",
       "format 'e1m2+ftz': no finite value but zero, use more exponent bits or +finite"},
      {"binary2p1se", "format 'binary2p1se': width K = 2 is outside 3..15"},
      {"binary16p8se", "format 'binary16p8se': width K = 16 is outside 3..15"},
      {"binary8p8se", "format 'binary8p8se': precision P = 8 is outside 1..7"},
      {"binary8p9ue", "format 'binary8p9ue': precision P = 9 is outside 1..8"},
  };
  for (const auto& [name, message] : cases)
    CHECK_THROWS_MATCHES(find_format(name), Error, Message(message));
  for (const char* name : {"e4", "em3", "e4m", "e4m3b", "e4m3x", "binary8", "binary8p3",
                           "binary8p3sx", "binary8p3see"})
    CHECK_FALSE(parse_descriptor(name).has_value());
}

}  // namespace
}  // namespace numemu::descriptor_test
