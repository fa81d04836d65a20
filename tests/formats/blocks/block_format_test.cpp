// Block formats by name: rows, descriptions, canonical spelling, bits, refusals.
#include "formats/blocks/block_format.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace block_format_test {

using namespace numemu;
using Catch::Contains;

TEST_CASE("the rows of blocks.def are what their sources say", "[fast]") {
  struct Row {
    const char *name, *element, *scale;
    int exponent;
    std::int64_t size;
    bool tensor_scale;
    double bits;
    const char* rule;
  };
  const Row rows[] = {
      {"mxfp8_e4m3", "float8_e4m3fn", "float8_e8m0fnu", 0, 32, false, 8.25, "floor"},
      {"mxfp8_e5m2", "float8_e5m2", "float8_e8m0fnu", 0, 32, false, 8.25, "floor"},
      {"mxfp6_e2m3", "float6_e2m3fn", "float8_e8m0fnu", 0, 32, false, 6.25, "floor"},
      {"mxfp6_e3m2", "float6_e3m2fn", "float8_e8m0fnu", 0, 32, false, 6.25, "floor"},
      {"mxfp4", "float4_e2m1fn", "float8_e8m0fnu", 0, 32, false, 4.25, "floor"},
      {"mxint8", "int8", "float8_e8m0fnu", -6, 32, false, 8.25, "floor"},
      {"nvfp4", "float4_e2m1fn", "float8_e4m3fn", 0, 16, true, 4.5, "absmax"},
  };
  CHECK(named_block_formats().size() == std::size(rows));
  for (const Row& row : rows) {
    INFO(row.name);
    const BlockFormat& f = find_block_format(row.name);
    CHECK(f.name == row.name);
    CHECK(f.element->name == row.element);
    CHECK(f.scale->name == row.scale);
    CHECK(f.element_exponent == row.exponent);
    CHECK(f.span == Span::block);
    CHECK(f.size == row.size);
    CHECK(f.tensor_scale == row.tensor_scale);
    CHECK(f.affine == Affine::sym);
    CHECK(f.bits_per_element() == row.bits);
    CHECK(f.default_rule == row.rule);
    CHECK(f.power_of_two_scale() == !row.tensor_scale);
    CHECK_FALSE(f.source.empty());
    CHECK_FALSE(f.doc.empty());
  }
}

TEST_CASE("descriptions have one canonical spelling that reads back", "[fast]") {
  const std::pair<const char*, const char*> names[] = {
      {"mx(e2m1,32)", "mxfp4"},
      {" mx( float4_e2m1fn , 32 ) ", "mxfp4"},
      {"mx(int8,32)", "mxint8"},
      {"mx(i8,16)", "mx(int8,16)"},
      {"mx(e4m3fn,032)", "mxfp8_e4m3"},
      {"mx(e3m2b5+finite,8)", "mx(e3m2b5+finite,8)"},
      {"mx(binary8p3se,64)", "mx(binary8p3se,64)"},
      {"bfp(4, 16)", "bfp(4,16)"},
      {"group(int4, 128, float16)", "group(int4,128,float16)"},
      {"group(i4,128,half,sym)", "group(int4,128,float16)"},
      {"group(u4,32,bf16,zp)", "group(uint4,32,bfloat16,zp)"},
      {"group(uint4,32,float16,min)", "group(uint4,32,float16,min)"},
      {"group(int8,tensor,float32)", "group(int8,tensor,float32)"},
      {"group(int8,channel,f32)", "group(int8,channel,float32)"},
      {"group(int8,row,e4m3fn)", "group(int8,row,float8_e4m3fn)"},
      {"group(e4m3fn,128,float32)", "group(float8_e4m3fn,128,float32)"},
      {"group(int8,32,e8m0)", "group(int8,32,float8_e8m0fnu)"},
  };
  for (const auto& [given, canonical] : names) {
    INFO(given);
    const BlockFormat& f = find_block_format(given);
    CHECK(f.name == canonical);
    CHECK(&find_block_format(f.name) == &f);
  }
}

TEST_CASE("the parts of a description arrive", "[fast]") {
  const BlockFormat& zp = find_block_format("group(uint4,64,float16,zp)");
  CHECK(zp.affine == Affine::zp);
  CHECK(zp.size == 64);
  CHECK(zp.scale_bits() == 20);
  CHECK(zp.bits_per_element() == 4 + 20.0 / 64);
  CHECK(find_block_format("group(uint4,32,float16,min)").bits_per_element() == 4 + 48.0 / 32);
  CHECK(find_block_format("group(int4,128,float16)").bits_per_element() == 4.125);
  CHECK(find_block_format("group(int4,row,float16)").bits_per_element() == 4);
  CHECK(find_block_format("group(int4,row,float16)").span == Span::row);
  CHECK(find_block_format("bfp(2,1)").element->name == "int2");
  CHECK(find_block_format("bfp(8,32)").element_exponent == 0);
  CHECK(find_block_format("mx(int8,16)").element_exponent == -6);
  // A power of two is chosen by its exponent only where nothing shifts the elements.
  CHECK(find_block_format("group(int8,32,e8m0)").power_of_two_scale());
  CHECK(find_block_format("group(int8,32,e8m0)").default_rule == "ceil");
  CHECK_FALSE(find_block_format("group(int8,32,e8m0,zp)").power_of_two_scale());
  CHECK(find_block_format("group(int8,32,float16)").default_rule == "absmax");
  CHECK(&scaled_format(find_format("int8"), Span::channel, 0) ==
        &find_block_format("group(int8,channel,float32)"));
  CHECK(&scaled_format(find_format("e4m3fn"), Span::block, 128) ==
        &find_block_format("group(float8_e4m3fn,128,float32)"));
}

TEST_CASE("largest elements", "[fast]") {
  const auto largest = [](const char* name) {
    return to_double(largest_element(find_block_format(name)));
  };
  CHECK(largest("mxfp4") == 6);
  CHECK(largest("mxfp8_e4m3") == 448);
  CHECK(largest("mxint8") == 127.0 / 64);
  CHECK(largest("bfp(4,16)") == 7);
  CHECK(largest("group(uint4,32,float16,zp)") == 15);
}

TEST_CASE("wrong block formats are one line that names the part", "[fast]") {
  const std::pair<const char*, const char*> wrong[] = {
      {"mxfp5", "unknown block format 'mxfp5'; did you mean 'mxfp4'?"},
      {"nvfp", "did you mean 'nvfp4'?"},
      {"grup(int4,128,float16)", "unknown 'grup(...)'; did you mean 'group(ELEM,SIZE,SCALE)'?"},
      {"mx(e2m1,0)", "size = 0 is outside 1..1073741824"},
      {"mx(e2m1,1073741825)", "size = 1073741825 is outside 1..1073741824"},
      {"mx(e2m1,99999999999999999999)", "is outside 1..1073741824"},
      {"mx(e2m1,-1)", "size = -1 is outside"},
      {"mx(e2m1,3x)", "columns '' is not a whole number"},
      {"mx(e2m1,0x4)", "rows = 0 is outside 1..1073741824"},
      {"mx(e2m1,65536x65536)", "columns = 65536 is outside 1..16384"},
      {"mx(lloyd(normal,2),65)x", "expected a ')' at the end"},
      {"mx(e2m1,)", "size '' is not a whole number"},
      {"mx(e2m1)", "expected mx(ELEM,SIZE[,tensor-scale]), not 1 parts"},
      {"mx(e2m1,32,float16)", "expected tensor-scale, not 'float16'"},
      {"mx(e2m1,32", "expected a ')' at the end"},
      {"mx(e2m1,32)x", "expected a ')' at the end"},
      {"mx(e2m1),32)", "unexpected ')' before the end"},
      {"mx(float8_e4m3fm,32)", "did you mean 'float8_e4m3fn'?"},
      {"mx(int4,32)", "bfp(K,SIZE) has other integers"},
      {"mx(float32,32)", "at most 16 bits"},
      {"mx(e8m0,32)", "with a zero"},
      {"mx(sign1,32)", "expected a floating element"},
      {"mx(e9m2,32)", "8 exponent bits"},
      {"bfp(1,32)", "width K = 1 is outside 2..8"},
      {"bfp(9,32)", "width K = 9 is outside 2..8"},
      {"bfp(4)", "expected bfp(K,SIZE)"},
      {"group(int4,128)",
       "expected group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min][,tensor-scale])"},
      {"group(e4m3fn,32,float32,tensor-scale)", "other scales than float32"},
      {"group(int4,32,float16,zp,tensor-scale)", "a tensor scale needs sym"},
      {"group(int4,32,float16,sym,scale)", "expected tensor-scale, not 'scale'"},
      {"nvfp4(0)", "size = 0 is outside"},
      {"group(int4,chanel,float16)", "expected a size, RxC, tensor, channel or row, not 'chanel'"},
      {"group(int4,block,float16)", "expected a size, RxC, tensor, channel or row, not 'block'"},
      {"group(int4,0,float16)", "size = 0 is outside"},
      {"group(int4,128,int8)", "expected a scale of float32 or a floating format"},
      {"group(int4,128,float64)", "not float64"},
      {"group(int4,128,tf32)", "not tfloat32"},
      {"group(int4,128,float16,zero)", "expected sym, zp, min or tensor-scale, not 'zero'"},
      {"group(e4m3fn,128,float16,zp)", "zp needs integer elements"},
      {"group(sign1,128,float16)", "expected an element intK, uintK"},
  };
  for (const auto& [name, text] : wrong) {
    INFO(name);
    CHECK_THROWS_WITH(find_block_format(name), Contains(text));
  }
  CHECK_THROWS_WITH(parse_span("chanel"), Contains("did you mean 'channel'"));
  CHECK_THROWS_WITH(scaled_format(find_format("float64"), Span::tensor, 0),
                    Contains("group(float64,tensor,float32)"));
}

}  // namespace block_format_test
