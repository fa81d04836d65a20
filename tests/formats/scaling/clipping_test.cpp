// What the rule floor clips: the overreach against the largest blocks that the quantizer gives.
#include "formats/scaling/clipping.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "formats/scaling/quantize_blocks.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "tests/catch.hpp"

namespace numemu::clipping_test {

TEST_CASE("floor: by how much the largest magnitude exceeds the largest element", "[fast]") {
  for (const char* name : {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2",
                           "mxint8", "mx(nf4,32)", "mx(posit(6,1),32)", "mx(e3m0,32)"}) {
    const BlockFormat& f = find_block_format(name);
    // A lone number just below two: its block has the scale of one, and what is left of it is
    // largest / overreach.
    const float x = std::nextafter(2.0f, 0.0f);
    float y = 0;
    BlockQuantization how{.format = &f, .rule = &find_scale_rule("floor", f)};
    how.element = {.format = f.element, .rounding = {}};
    quantize_blocks(how, block_layout(f, {1}, 0), &x, {}, &y);
    INFO(name << " " << y);
    CHECK(2 / floor_overreach(f) == Approx(y));
    CHECK(clipping_note(f, "floor").empty() == (floor_overreach(f) < 1.6));
    CHECK(clipping_note(f, "ceil").empty());
  }
  CHECK(floor_overreach(find_block_format("mxfp4")) == Approx(4.0 / 3));
  CHECK(floor_overreach(find_block_format("mx(nf4,32)")) == 2);
  CHECK(clipping_note(find_block_format("nvfp4"), "absmax").empty());
}

TEST_CASE("floor: the note names ceil where the largest elements are dense", "[fast]") {
  for (const auto& [name, dense] : {std::pair("mx(nf4,32)", true),
                                    {"mx(af4,32)", true},
                                    {"mx(posit(6,1),32)", false},
                                    {"mx(posit(8,0),32)", false},
                                    {"mx(e3m0,32)", false}}) {
    const std::string note = clipping_note(find_block_format(name), "floor");
    INFO(name << ": " << note);
    CHECK((note.find("ceil") != note.npos) == dense);
    CHECK(note.ends_with("mse has the least error"));
  }
}

}  // namespace numemu::clipping_test
