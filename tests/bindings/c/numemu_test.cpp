// The C library gives the bits of the C++ functions, and refuses what it cannot take.
#include "bindings/c/numemu.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api/formats.hpp"
#include "api/oracle.hpp"
#include "api/units.hpp"
#include "emu/oracle/evaluate.hpp"
#include "formats/codec.hpp"
#include "policies/mask/mask_tensor.hpp"
#include "tests/catch.hpp"

namespace c_library_test {

using namespace numemu;

namespace {

/// All 0 but its size.
template <class T>
T sized(std::size_t size = sizeof(T)) {
  T made = {};
  made.size = size;
  return made;
}

/// Its shape is three axes at most.
struct View {
  template <class T>
  View(numemu_type type, std::vector<T>& data, std::vector<std::int64_t> extents,
       std::vector<std::int64_t> steps = {})
      : shape(std::move(extents)), strides(std::move(steps)) {
    array = {data.data(), type, static_cast<std::int32_t>(shape.size()), shape.data(),
             strides.empty() ? nullptr : strides.data()};
  }
  View(const View&) = delete;
  operator const numemu_array*() const { return &array; }
  std::vector<std::int64_t> shape, strides;
  numemu_array array = {};
};

/// n numbers of many sizes.
std::vector<float> numbers(std::int64_t n) {
  std::vector<float> x;
  const RandomSource random{.seed = 5};
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint64_t>(2 * i);
    x.push_back(std::ldexp(static_cast<float>(random.uniform(at) - 0.5),
                           static_cast<int>(random.bits(at + 1, 4))));
  }
  return x;
}

numemu_format* format(const char* name) {
  numemu_format* handle = nullptr;
  REQUIRE(numemu_format_open(name, &handle) == NUMEMU_OK);
  return handle;
}

numemu_unit* unit(const std::string& name) {
  numemu_unit* handle = nullptr;
  REQUIRE(numemu_unit_open(name.c_str(), &handle) == NUMEMU_OK);
  return handle;
}

bool message_has(const char* text) {
  INFO(numemu_message());
  return std::string(numemu_message()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("C: conversions give the codes, flags and counts of the C++ functions", "[fast]") {
  constexpr std::int64_t kRows = 7, kColumns = 9;
  std::vector<float> x = numbers(kRows * kColumns), back(x.size());
  numemu_rounding* sr = nullptr;
  REQUIRE(numemu_rounding_open("sr(8)", "saturate", &sr) == NUMEMU_OK);
  auto random = sized<numemu_random>();
  random.seed = 3;
  for (const char* name : {"float8_e4m3fn", "float4_e2m1fn", "float16", "int8"}) {
    INFO(name);
    numemu_format* to = format(name);
    const api::EncodedArray expected =
        api::encode(api::float32({kRows, kColumns}, x), name,
                    {.rounding = "sr(8)", .overflow = "saturate", .seed = 3}, true);
    const std::int64_t bytes = bytes_of(expected.codes.array.type);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(bytes) * x.size()), flags(x.size());
    const numemu_type type = bytes == 1 ? NUMEMU_UINT8 : NUMEMU_UINT16;
    const View in(NUMEMU_FLOAT32, x, {kRows, kColumns}), out(type, codes, {kRows, kColumns}),
        raised(NUMEMU_UINT8, flags, {kRows, kColumns});
    auto counts = sized<numemu_counts>();
    REQUIRE(numemu_encode(to, sr, &random, nullptr, in, out, raised, &counts) == NUMEMU_OK);
    CHECK(std::memcmp(codes.data(), expected.codes.array.data.data(), codes.size()) == 0);
    CHECK(std::memcmp(flags.data(), expected.flags.data.data(), flags.size()) == 0);
    CHECK(counts.inexact == expected.counts.inexact);
    // A transposed view has the elements that a transposed copy has.
    std::vector<std::uint8_t> turned(codes.size());
    const View columns(type, turned, {kRows, kColumns}, {bytes, bytes * kRows});
    REQUIRE(numemu_encode(to, sr, &random, nullptr, in, columns, nullptr, nullptr) == NUMEMU_OK);
    CHECK(turned[static_cast<std::size_t>(bytes)] ==
          codes[static_cast<std::size_t>(bytes * kColumns)]);
    const View values(NUMEMU_FLOAT32, back, {kRows, kColumns});
    REQUIRE(numemu_decode(to, out, values) == NUMEMU_OK);
    const Array numbers_of = api::decode(expected.codes);
    CHECK(std::memcmp(back.data(), numbers_of.data.data(), back.size() * sizeof(float)) == 0);
    std::uint64_t code = 0;
    double value = 0;
    REQUIRE(numemu_encode_one(to, nullptr, x[5], 0, &code, nullptr) == NUMEMU_OK);
    CHECK(code == encode(find_format(name), value_of(x[5]), {}, Overflow::saturate).code);
    REQUIRE(numemu_decode_one(to, code, &value) == NUMEMU_OK);
    CHECK(value == to_double(decode(find_format(name), code)));
    numemu_format_close(to);
  }
  numemu_rounding_close(sr);
}

TEST_CASE("C: codebooks are formats like others", "[fast]") {
  std::vector<float> x = numbers(64), back(x.size());
  const View in(NUMEMU_FLOAT32, x, {64}), values(NUMEMU_FLOAT32, back, {64});
  for (const char* name : {"nf4", "af4", "posit(8,1)", "log(4,3)", "lloyd(normal,16)"}) {
    INFO(name);
    numemu_format* to = format(name);
    const api::EncodedArray expected = api::encode(api::float32({64}, x), name, {});
    std::vector<std::uint8_t> codes(x.size());
    const View out(NUMEMU_UINT8, codes, {64});
    REQUIRE(numemu_encode(to, nullptr, nullptr, nullptr, in, out, nullptr, nullptr) == NUMEMU_OK);
    CHECK(std::memcmp(codes.data(), expected.codes.array.data.data(), codes.size()) == 0);
    REQUIRE(numemu_decode(to, out, values) == NUMEMU_OK);
    const Array numbers_of = api::decode(expected.codes);
    CHECK(numbers_of.type == ArrayType::float32);
    CHECK(std::memcmp(back.data(), numbers_of.data.data(), back.size() * sizeof(float)) == 0);
    numemu_format_close(to);
  }
}

TEST_CASE("C: blocks, masks and random bits", "[fast]") {
  constexpr std::int64_t kRows = 8, kColumns = 64;
  std::vector<float> x = numbers(kRows * kColumns), values(x.size()), again(x.size());
  for (const char* name : {"mxfp4", "nvfp4", "group(int4,32,float16,zp)", "group(nf4,64,float16)",
                           "mx(posit(8,1),32)", "group(log(4,3),32,float16)",
                           "group(lloyd(normal,16),64,float16)", "group(int4,4x16,float16)"}) {
    INFO(name);
    numemu_block* block = nullptr;
    REQUIRE(numemu_block_open(name, &block) == NUMEMU_OK);
    auto facts = sized<numemu_block_facts>();
    REQUIRE(numemu_block_describe(block, &facts) == NUMEMU_OK);
    const std::int64_t shape[] = {kRows, kColumns};
    std::int64_t scale_shape[NUMEMU_MOST_AXES];
    std::int32_t axes = 0;
    REQUIRE(numemu_block_scale_shape(block, 2, shape, -1, &axes, scale_shape) == NUMEMU_OK);
    REQUIRE(axes == 2);
    std::vector<std::uint8_t> codes(x.size()), zeros(x.size());
    std::vector<std::uint16_t> scales(x.size());
    const View in(NUMEMU_FLOAT32, x, {kRows, kColumns}),
        out(NUMEMU_FLOAT32, values, {kRows, kColumns}),
        of_codes(facts.code_type, codes, {kRows, kColumns}),
        of_scales(facts.scale_type, scales, {scale_shape[0], scale_shape[1]}),
        of_zeros(facts.zero_point_type, zeros, {scale_shape[0], scale_shape[1]}),
        second(NUMEMU_FLOAT32, again, {kRows, kColumns});
    float tensor_scale = 0;
    auto parts = sized<numemu_quantized>();
    parts.values = out;
    parts.codes = of_codes;
    parts.scales = of_scales;
    if (facts.has_zero_points != 0) parts.zero_points = of_zeros;
    parts.tensor_scale = &tensor_scale;
    REQUIRE(numemu_quantize(block, nullptr, nullptr, nullptr, in, &parts, nullptr) == NUMEMU_OK);
    const api::QuantizedArray expected = api::quantize(
        api::view_of(ArrayType::float32, {kRows, kColumns}, x.data()), {.block = name});
    CHECK(std::memcmp(values.data(), expected.values.data.data(), values.size() * 4) == 0);
    CHECK(tensor_scale == expected.counts.tensor_scale);
    parts.values = second;
    REQUIRE(numemu_dequantize(block, nullptr, &parts) == NUMEMU_OK);
    CHECK(again == values);
    // The scales of the numbers, given, give their codes; those of the numbers times 4 give others.
    std::vector<std::uint8_t> same(x.size()), zeros_again(x.size());
    const View of_same(facts.code_type, same, {kRows, kColumns}),
        of_zeros_again(facts.zero_point_type, zeros_again, {scale_shape[0], scale_shape[1]});
    auto given = sized<numemu_quantize_options>();
    given.scales = of_scales;
    if (facts.has_tensor_scale != 0) given.tensor_scale = &tensor_scale;
    parts.codes = of_same;
    parts.scales = nullptr;
    if (facts.has_zero_points != 0) parts.zero_points = of_zeros_again;
    REQUIRE(numemu_quantize(block, nullptr, nullptr, &given, in, &parts, nullptr) == NUMEMU_OK);
    CHECK(same == codes);
    for (float& value : x) value *= 4;
    REQUIRE(numemu_quantize(block, nullptr, nullptr, &given, in, &parts, nullptr) == NUMEMU_OK);
    CHECK(same != codes);
    for (float& value : x) value /= 4;
    given.scale_rule = "mse";
    CHECK(numemu_quantize(block, nullptr, nullptr, &given, in, &parts, nullptr) == NUMEMU_USAGE);
    CHECK(message_has("scales: expected NULL: the scale rule chooses them"));
    given.scale_rule = nullptr;
    given.scales = in;
    CHECK(numemu_quantize(block, nullptr, nullptr, &given, in, &parts, nullptr) != NUMEMU_OK);
    CHECK(message_has("scales: "));
    numemu_block_close(block);
  }
  for (const char* rule : {"greedy(2:4)", "transposable(2:4)", "mvue(1:2)"}) {
    INFO(rule);
    numemu_mask* mask = nullptr;
    REQUIRE(numemu_mask_open(rule, &mask) == NUMEMU_OK);
    std::vector<std::uint8_t> keep(x.size()), expected_keep(x.size());
    const View in(NUMEMU_FLOAT32, x, {kRows, kColumns}),
        out(NUMEMU_FLOAT32, values, {kRows, kColumns}), kept(NUMEMU_UINT8, keep, {kRows, kColumns});
    REQUIRE(numemu_mask_apply(mask, nullptr, in, out, kept) == NUMEMU_OK);
    policies::mask_tensor(policies::parse_mask(rule), {.stream = Stream::mask},
                          {.rows = kRows, .width = kColumns}, 0, 0, x.data(), again.data(),
                          expected_keep.data());
    CHECK(values == again);
    CHECK(keep == expected_keep);
    numemu_mask_close(mask);
  }
  std::uint32_t words[3];
  auto random = sized<numemu_random>();
  random.seed = 9;
  REQUIRE(numemu_random_bits(&random, 8, 5, 3, words) == NUMEMU_OK);
  CHECK(words[2] == RandomSource{.seed = 9}.bits(7, 8));
}

TEST_CASE("C: products, traces and explanations", "[fast]") {
  constexpr std::int64_t kM = 3, kN = 4, kK = 64;
  std::vector<std::uint8_t> a, b;
  const RandomSource random{.seed = 2};
  for (std::uint64_t i = 0; i < kM * kK; ++i) a.push_back(random.bits(i, 8) % 0x7f);
  for (std::uint64_t i = 0; i < kN * kK; ++i) b.push_back(0x80 | random.bits(i + 999, 8) % 0x7f);
  std::vector<float> d(kM * kN);
  numemu_unit* h100 = unit("h100.wgmma.e4m3.f32");
  const View of_a(NUMEMU_UINT8, a, {kM, kK}), of_b(NUMEMU_UINT8, b, {kK, kN}, {1, kK}),
      of_d(NUMEMU_FLOAT32, d, {kM, kN});
  auto product = sized<numemu_product>();
  product.a = of_a;
  product.b = of_b;
  product.d = of_d;
  REQUIRE(numemu_multiply(h100, &product) == NUMEMU_OK);
  const Format& e4m3 = find_format("float8_e4m3fn");
  const auto expected = api::gemm(api::open_unit("h100.wgmma.e4m3.f32"),
                                  {.a = {&e4m3, api::view_of(ArrayType::uint8, {kM, kK}, a.data())},
                                   .b = {&e4m3, api::view_of(ArrayType::uint8, {kN, kK}, b.data())},
                                   .b_by_columns = true});
  CHECK(std::memcmp(d.data(), expected->d.data.data(), d.size() * sizeof(float)) == 0);

  char text[16];
  std::size_t length = 0;
  REQUIRE(numemu_trace_text(h100, &product, 5, text, sizeof text, &length) == NUMEMU_OK);
  CHECK(std::string(text) == "D[1,1] of nvidi");
  CHECK(length > sizeof text);
  numemu_trace* trace = nullptr;
  REQUIRE(numemu_trace_open(h100, &product, 5, &trace) == NUMEMU_OK);
  const std::int64_t steps = numemu_trace_steps(trace);
  auto step = sized<numemu_trace_step>();
  REQUIRE(numemu_trace_step_of(trace, steps - 1, &step) == NUMEMU_OK);
  // The register has 10 mantissa bits fewer than D.
  CHECK(step.result << 10 == std::bit_cast<std::uint32_t>(d[5]));
  auto term = sized<numemu_trace_term>();
  REQUIRE(numemu_trace_term_of(trace, 0, 0, &term) == NUMEMU_OK);
  CHECK(numemu_trace_step_of(trace, steps, &step) == NUMEMU_USAGE);
  numemu_trace_close(trace);
  std::vector<char> lines(4096);
  REQUIRE(numemu_explain(h100, &product, 5, std::bit_cast<std::uint32_t>(d[5]) + 1, lines.data(),
                         lines.size(), &length) == NUMEMU_OK);
  CHECK(length > 0);

  auto facts = sized<numemu_unit_facts>();
  REQUIRE(numemu_unit_describe(h100, &facts) == NUMEMU_OK);
  CHECK(std::string(facts.a) == "float8_e4m3fn");
  CHECK(facts.d_type == NUMEMU_FLOAT32);
  // The canonical text under another name opens a unit that computes the same.
  REQUIRE(numemu_unit_json(h100, lines.data(), lines.size(), nullptr) == NUMEMU_OK);
  std::string description = lines.data();
  description.replace(description.find("nvidia.h100"), 11, "mine");
  numemu_unit* same = unit(description);
  std::vector<float> second(d.size());
  const View of_second(NUMEMU_FLOAT32, second, {kM, kN});
  product.d = of_second;
  REQUIRE(numemu_multiply(same, &product) == NUMEMU_OK);
  CHECK(second == d);
  numemu_unit_close(same);
  numemu_unit_close(h100);
}

TEST_CASE("C: records are computed, made, verified and explained for every operation", "[fast]") {
  numemu_format* half = format("float16");
  numemu_format* whole = format("int32");
  std::vector<numemu_operation*> all;
  for (std::int32_t i = 0; numemu_operation_name(i) != nullptr; ++i) {
    const std::string name = numemu_operation_name(i);
    all.push_back(nullptr);
    // Without a format of results they have the usual one.
    REQUIRE(numemu_operation_open(name.c_str(), half, name == "to_integer" ? whole : nullptr,
                                  nullptr, name == "dot" ? 4 : 1, &all.back()) == NUMEMU_OK);
  }
  REQUIRE(all.size() == oracle::operation_names().size());
  numemu_unit* sparse = unit("nvidia.h100.wgmma.e4m3.f32.sp24");
  all.push_back(nullptr);
  REQUIRE(numemu_operation_of_unit(sparse, nullptr, nullptr, 0, &all.back()) == NUMEMU_OK);
  for (numemu_operation* one : all) {
    INFO(numemu_operation_line(one));
    constexpr std::int64_t kRecords = 200;
    const oracle::Subject subject = oracle::parse_header(numemu_operation_line(one));
    oracle::Subject made = subject;
    made.seed = 4;
    oracle::Records expected(oracle::layout_of(subject), kRecords);
    oracle::Generator(made).fill(0, expected);
    std::vector<std::vector<std::uint64_t>> room = expected.columns;
    std::vector<std::uint64_t*> columns;
    int result = -1;
    for (std::int32_t f = 0; f < numemu_operation_fields(one); ++f) {
      auto field = sized<numemu_field>();
      REQUIRE(numemu_operation_describe(one, f, &field) == NUMEMU_OK);
      auto& column = room[static_cast<std::size_t>(f)];
      REQUIRE(static_cast<std::int64_t>(column.size()) == kRecords * field.count);
      column.assign(column.size(), 0);
      columns.push_back(column.data());
      if (field.is_result != 0 && result < 0) result = f;
    }
    numemu_vectors* vectors = nullptr;
    REQUIRE(numemu_vectors_open(one, nullptr, 1, 4, kRecords, &vectors) == NUMEMU_OK);
    std::int64_t got = 0;
    REQUIRE(numemu_vectors_next(vectors, 2 * kRecords, columns.data(), &got) == NUMEMU_OK);
    CHECK(got == kRecords);
    CHECK(room == expected.columns);
    numemu_vectors_close(vectors);
    const auto at = static_cast<std::size_t>(result);
    room[at].assign(room[at].size(), 0);
    REQUIRE(numemu_operation_compute(one, kRecords, columns.data()) == NUMEMU_OK);
    CHECK(room == expected.columns);

    room[at][7] ^= 1;
    auto tolerance = sized<numemu_tolerance>();
    tolerance.nan = NUMEMU_NAN_PAYLOAD;
    auto verdict = sized<numemu_verdict>();
    std::vector<char> text(1 << 16);
    // No records: nothing is read, wherever they would be.
    REQUIRE(numemu_operation_verify(one, nullptr, 0, nullptr, &verdict, nullptr, 0, nullptr) ==
            NUMEMU_OK);
    CHECK(verdict.records == 0);
    CHECK(numemu_operation_compute(one, 0, nullptr) == NUMEMU_OK);
    std::vector<std::uint64_t*> without = columns;
    without[at] = nullptr;
    CHECK(numemu_operation_verify(one, &tolerance, kRecords, without.data(), &verdict, nullptr, 0,
                                  nullptr) == NUMEMU_USAGE);
    CHECK(message_has("columns: results"));
    REQUIRE(numemu_operation_verify(one, &tolerance, kRecords, columns.data(), &verdict,
                                    text.data(), text.size(), nullptr) == NUMEMU_OK);
    CHECK(verdict.records == kRecords);
    CHECK(verdict.mismatches == 1);
    CHECK(verdict.first == 7);
    CHECK(std::string(text.data()).find("record 7") != std::string::npos);
    REQUIRE(numemu_operation_explain(one, columns.data(), 7, text.data(), text.size(), nullptr) ==
            NUMEMU_OK);
    CHECK(text[0] != 0);
    room[0][3 * (room[0].size() / kRecords)] = std::uint64_t{1} << 40;
    CHECK(numemu_operation_compute(one, kRecords, columns.data()) == NUMEMU_VALUE);
    CHECK(message_has("record 3"));
    numemu_operation_close(one);
  }
  numemu_operation* of_line = nullptr;
  CHECK(numemu_operation_of_line("# numemu-vectors 1 op=mul", &of_line) == NUMEMU_VALUE);
  CHECK(numemu_operation_open("mul", half, half, nullptr, 2, &of_line) == NUMEMU_USAGE);
  numemu_unit_close(sparse);
  numemu_format_close(half);
  numemu_format_close(whole);
}

TEST_CASE("C: hostile arrays are refused before anything is read or allocated", "[fast]") {
  numemu_format* e4m3 = format("e4m3fn");
  std::vector<float> x(16);
  std::vector<std::uint8_t> codes(16);
  const View good(NUMEMU_UINT8, codes, {16});
  const auto status = [&](const numemu_array& in) {
    return numemu_encode(e4m3, nullptr, nullptr, nullptr, &in, good, nullptr, nullptr);
  };
  const std::int64_t plain[] = {16}, negative[] = {-1}, huge[] = {INT64_MAX / 2, 8},
                     many[] = {std::int64_t{1} << 50}, nothing[] = {0}, far[] = {INT64_MAX / 8};
  CHECK(status({x.data(), NUMEMU_FLOAT32, 1, plain, nullptr}) == NUMEMU_OK);
  CHECK(status({x.data(), NUMEMU_FLOAT32, 1, negative, nullptr}) == NUMEMU_USAGE);
  CHECK(status({x.data(), NUMEMU_FLOAT32, 2, huge, nullptr}) == NUMEMU_USAGE);
  CHECK(status({x.data(), NUMEMU_FLOAT32, 1, many, nothing}) == NUMEMU_MEMORY);
  CHECK(message_has("memory"));
  CHECK(status({x.data(), NUMEMU_FLOAT32, 1, plain, far}) == NUMEMU_USAGE);
  CHECK(status({x.data(), NUMEMU_FLOAT32, 9, plain, nullptr}) == NUMEMU_USAGE);
  CHECK(status({x.data(), NUMEMU_FLOAT32, -1, plain, nullptr}) == NUMEMU_USAGE);
  CHECK(status({x.data(), NUMEMU_FLOAT32, 1, nullptr, nullptr}) == NUMEMU_USAGE);
  CHECK(status({x.data(), 11, 1, plain, nullptr}) == NUMEMU_USAGE);
  CHECK(status({x.data(), NUMEMU_INT32, 1, plain, nullptr}) == NUMEMU_VALUE);
  CHECK(status({nullptr, NUMEMU_FLOAT32, 1, plain, nullptr}) == NUMEMU_USAGE);
  CHECK(numemu_encode(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        NUMEMU_USAGE);
  // Unaligned numbers are copied.
  std::vector<char> bytes(16 * sizeof(float) + 1);
  x[3] = 2;
  std::memcpy(bytes.data() + 1, x.data(), 16 * sizeof(float));
  CHECK(status({bytes.data() + 1, NUMEMU_FLOAT32, 1, plain, nullptr}) == NUMEMU_OK);
  CHECK(codes[3] == 0x40);
  numemu_format* unknown = e4m3;
  CHECK(numemu_format_open("float99", &unknown) == NUMEMU_VALUE);
  CHECK(unknown == nullptr);
  // A structure of an older version keeps what lies beyond its size.
  auto facts = sized<numemu_format_facts>(offsetof(numemu_format_facts, type));
  facts.largest = 7;
  REQUIRE(numemu_format_describe(e4m3, &facts) == NUMEMU_OK);
  CHECK(facts.bits == 8);
  CHECK(facts.largest == 7);
  facts.size = 0;
  CHECK(numemu_format_describe(e4m3, &facts) == NUMEMU_USAGE);
  numemu_format_close(e4m3);
}

TEST_CASE("C: what a stranger gets wrong is refused by its name", "[fast]") {
  numemu_format* e4m3 = format("e4m3fn");
  numemu_format* float32 = format("float32");
  numemu_unit* h100 = unit("h100.wgmma.e4m3.f32");
  numemu_format* none = nullptr;
  numemu_rounding* rounding = nullptr;
  numemu_unit* opened = nullptr;
  numemu_block* block = nullptr;
  numemu_mask* mask = nullptr;
  numemu_operation* operation = nullptr;
  std::vector<char> json(1 << 16);
  REQUIRE(numemu_unit_json(h100, json.data(), json.size(), nullptr) == NUMEMU_OK);
  const auto lie = [&](const std::string& from, const std::string& to) {
    std::string text = json.data();
    text.replace(text.find("nvidia."), 7, "mine.");
    text.replace(text.find(from), from.size(), to);
    return numemu_unit_open(text.c_str(), &opened);
  };
  std::uint64_t code = 0;
  double number = 0;
  std::uint32_t words[4];
  auto random = sized<numemu_random>();
  const std::int64_t shape[] = {INT64_MAX, INT64_MAX};
  std::int64_t scales[NUMEMU_MOST_AXES];
  std::int32_t axes = 0;
  const auto refused = [](numemu_status status, numemu_status expected, const char* text) {
    INFO(text);
    CHECK(status == expected);
    CHECK(message_has(text));
  };
  refused(numemu_format_open("\xff\xfe\n", &none), NUMEMU_VALUE, "unknown format '\\xff\\xfe");
  refused(numemu_format_open(std::string(1 << 20, 'a').c_str(), &none), NUMEMU_VALUE, "aaa");
  refused(numemu_format_open("e99m99", &none), NUMEMU_VALUE, "outside 1..15");
  refused(numemu_format_open("codebook(/dev/zero)", &none), NUMEMU_FILE, "regular file");
  refused(numemu_format_open("e4m3fn", nullptr), NUMEMU_USAGE, "format: ");
  refused(numemu_rounding_open("sr(99999999999999999999)", nullptr, &rounding), NUMEMU_VALUE,
          "1..32 random bits");
  refused(numemu_unit_open("{", &opened), NUMEMU_VALUE, "line 1 column 2");
  refused(numemu_unit_open(("{\"a\":" + std::string(1 << 20, '[')).c_str(), &opened), NUMEMU_VALUE,
          "64 levels");
  refused(lie("\"group\": 32", "\"group\": 3"), NUMEMU_VALUE, "group: expected a divisor");
  refused(lie("\"group\": 32", "\"group\": 1e300"), NUMEMU_VALUE, "group: expected an integer");
  refused(lie("\"fraction_bits\": 13", "\"fraction_bits\": -1"), NUMEMU_VALUE, "fraction_bits");
  refused(lie("\"e8m13\"", "[]"), NUMEMU_VALUE, "accumulator.format: expected a string");
  refused(numemu_block_open("mx(e4m3fn,99999999999)", &block), NUMEMU_VALUE, "outside 1..");
  refused(numemu_block_scale_shape(nullptr, 2, shape, -1, &axes, scales), NUMEMU_USAGE, "block: ");
  refused(numemu_mask_open("greedy(1:1000000000)", &mask), NUMEMU_VALUE, "pattern '1:1000000000'");
  refused(numemu_mask_open("greedy(2:4,repair=adaprune)", &mask), NUMEMU_USAGE, "a network");
  refused(numemu_operation_open("dot", float32, float32, nullptr, -5, &operation), NUMEMU_USAGE,
          "k: expected 0 to");
  refused(numemu_operation_open("dot", float32, float32, nullptr, INT64_MAX, &operation),
          NUMEMU_VALUE, "k: expected 1 to");
  refused(numemu_operation_of_unit(h100, nullptr, nullptr, INT64_MAX, &operation), NUMEMU_VALUE,
          "k: expected 1 to");
  refused(numemu_operation_of_line("", &operation), NUMEMU_VALUE, "# numemu-vectors 1");
  refused(numemu_decode_one(e4m3, 256, &number), NUMEMU_VALUE, "256 is not a code");
  refused(numemu_encode_one(e4m3, nullptr, 1, 0, nullptr, nullptr), NUMEMU_USAGE, "code: ");
  refused(numemu_random_bits(&random, 33, 0, 4, words), NUMEMU_USAGE, "bits: expected 1 to 32");
  random.size = 3;
  refused(numemu_random_bits(&random, 8, 0, 4, words), NUMEMU_USAGE, "random: size");
  refused(numemu_set_threads(-1), NUMEMU_USAGE, "most: expected 0 to");
  CHECK(numemu_encode_one(e4m3, nullptr, std::nan(""), 0, &code, nullptr) == NUMEMU_OK);
  CHECK(code == 0x7f);
  // What was refused left no handle.
  CHECK(none == nullptr);
  CHECK(rounding == nullptr);
  CHECK(opened == nullptr);
  CHECK(block == nullptr);
  CHECK(mask == nullptr);
  CHECK(operation == nullptr);
  numemu_format_close(nullptr);
  numemu_unit_close(h100);
  numemu_format_close(float32);
  numemu_format_close(e4m3);
}

TEST_CASE("C: products of hostile arrays", "[fast]") {
  constexpr std::int64_t kK = 32;
  numemu_unit* h100 = unit("h100.wgmma.e4m3.f32");
  numemu_format* float32 = format("float32");
  std::vector<std::uint8_t> a(kK + 1, 0x38), b(kK, 0x38);
  a[0] = 0x40;  // 2; the others are 1
  std::vector<char> place(sizeof(float) + 1);
  const std::int64_t row[] = {1, kK}, empty[] = {0, kK}, no_depth[] = {1, 0}, one[] = {1},
                     zero[] = {0}, huge[] = {std::int64_t{1} << 31, std::int64_t{1} << 31},
                     long_row[] = {1, std::int64_t{1} << 31}, cube[] = {1, 1, 1},
                     backwards[] = {-kK, -1}, same[] = {0, 0};
  numemu_array of_a = {a.data(), NUMEMU_UINT8, 2, row, nullptr}, of_b = of_a;
  of_b.data = b.data();
  numemu_array of_d = {place.data(), NUMEMU_FLOAT32, 1, one, nullptr};
  auto p = sized<numemu_product>();
  p.a = &of_a;
  p.b = &of_b;
  p.d = &of_d;
  p.dots = 1;
  const auto sum = [&](const numemu_array& first, const numemu_array& d) {
    const numemu_array a_before = of_a, d_before = of_d;
    of_a = first;
    of_d = d;
    REQUIRE(numemu_multiply(h100, &p) == NUMEMU_OK);
    float x = 0;
    std::memcpy(&x, d.data, sizeof x);
    of_a = a_before;
    of_d = d_before;
    return x;
  };
  CHECK(sum(of_a, of_d) == 33);
  CHECK(sum({a.data() + kK - 1, NUMEMU_UINT8, 2, row, backwards}, of_d) == 33);
  CHECK(sum({a.data(), NUMEMU_UINT8, 2, row, same}, of_d) == 64);
  CHECK(sum({a.data() + 1, NUMEMU_UINT8, 2, row, nullptr},
            {place.data() + 1, NUMEMU_FLOAT32, 1, one, nullptr}) == 32);
  const auto refused = [&](const numemu_array& first, numemu_status expected, const char* text) {
    const numemu_array before = of_a;
    of_a = first;
    INFO(text);
    CHECK(numemu_multiply(h100, &p) == expected);
    CHECK(message_has(text));
    of_a = before;
  };
  refused({a.data(), NUMEMU_UINT8, 2, huge, nullptr}, NUMEMU_VALUE, "a: shape: expected at most");
  // Refused before 2 GiB are copied.
  refused({a.data(), NUMEMU_UINT8, 2, long_row, same}, NUMEMU_VALUE, "a: shape: expected at most");
  refused({a.data(), NUMEMU_UINT8, 3, cube, nullptr}, NUMEMU_VALUE, "a: shape: expected N x K");
  refused({a.data(), NUMEMU_UINT8, 0, nullptr, nullptr}, NUMEMU_VALUE, "a: shape: ");
  refused({reinterpret_cast<void*>(~std::uintptr_t{0}), NUMEMU_UINT8, 2, row, nullptr},
          NUMEMU_USAGE, "address space");
  refused({a.data(), NUMEMU_UINT8, 2, empty, nullptr}, NUMEMU_VALUE, "shape");
  refused({a.data(), NUMEMU_UINT8, 2, no_depth, nullptr}, NUMEMU_VALUE, "shape");
  of_a.shape = of_b.shape = no_depth;
  CHECK(numemu_multiply(h100, &p) == NUMEMU_OK);  // C, which is +0
  of_a.shape = of_b.shape = empty;
  CHECK(numemu_multiply(h100, &p) == NUMEMU_VALUE);
  CHECK(message_has("d: shape: expected [0]"));
  of_d.shape = zero;
  CHECK(numemu_multiply(h100, &p) == NUMEMU_OK);
  of_a.shape = of_b.shape = row;
  of_d.shape = one;
  p.format_a = float32;
  refused(of_a, NUMEMU_USAGE, "contradicts unit");
  p.format_a = nullptr;
  p.meta_layout = "none";
  refused(of_a, NUMEMU_VALUE, "none");
  p.meta_layout = nullptr;
  p.meta = &of_b;
  refused(of_a, NUMEMU_VALUE, "is dense");
  p.meta = nullptr;
  p.scale_a = &of_b;
  refused(of_a, NUMEMU_VALUE, "no block scales");
  p.scale_a = nullptr;
  p.size = 7;
  refused(of_a, NUMEMU_USAGE, "product: size");
  CHECK(numemu_multiply(nullptr, &p) == NUMEMU_USAGE);
  CHECK(numemu_multiply(h100, nullptr) == NUMEMU_USAGE);
  numemu_format_close(float32);
  numemu_unit_close(h100);
}

TEST_CASE("C: a handle may outlive those that it was made from", "[fast]") {
  numemu_unit* h100 = unit("h100.wgmma.e4m3.f32");
  std::vector<char> json(1 << 16);
  REQUIRE(numemu_unit_json(h100, json.data(), json.size(), nullptr) == NUMEMU_OK);
  std::string text = json.data();
  text.replace(text.find("nvidia."), 7, "mine.");
  numemu_unit* own = unit(text);
  numemu_operation* dot = nullptr;
  REQUIRE(numemu_operation_of_unit(own, nullptr, nullptr, 4, &dot) == NUMEMU_OK);
  numemu_unit_close(own);
  numemu_vectors* vectors = nullptr;
  REQUIRE(numemu_vectors_open(dot, nullptr, 1, 0, 4, &vectors) == NUMEMU_OK);
  std::vector<std::vector<std::uint64_t>> room(8, std::vector<std::uint64_t>(16));
  std::vector<std::uint64_t*> columns;
  for (auto& column : room) columns.push_back(column.data());
  REQUIRE(numemu_operation_compute(dot, 4, columns.data()) == NUMEMU_OK);
  numemu_operation_close(dot);
  std::int64_t got = 0;
  REQUIRE(numemu_vectors_next(vectors, 4, columns.data(), &got) == NUMEMU_OK);
  CHECK(got == 4);
  numemu_vectors_close(vectors);
  numemu_unit_close(h100);
}

TEST_CASE("C: eight threads share handles and have messages of their own", "[fast]") {
  numemu_unit* h100 = unit("h100.wgmma.e4m3.f32");
  constexpr int kThreads = 8, kCalls = 50;
  std::vector<int> wrong(kThreads, 0);
  const auto work = [&](int t) {
    std::vector<std::uint8_t> codes(32, static_cast<std::uint8_t>(0x30 + t));
    std::vector<float> d(1);
    const View ab(NUMEMU_UINT8, codes, {32}), of_d(NUMEMU_FLOAT32, d, {1});
    auto product = sized<numemu_product>();
    product.a = product.b = ab;
    product.d = of_d;
    product.dots = 1;
    const std::string name = "format" + std::to_string(t);
    const float x = static_cast<float>(
        to_double(decode(find_format("float8_e4m3fn"), static_cast<std::uint64_t>(0x30 + t))));
    for (int i = 0; i < kCalls; ++i) {
      numemu_format* none = nullptr;
      wrong[t] += numemu_format_open(name.c_str(), &none) != NUMEMU_VALUE;
      wrong[t] += numemu_multiply(h100, &product) != NUMEMU_OK || d[0] != 32 * x * x;
      wrong[t] += std::string(numemu_message()).find(name) == std::string::npos;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(kThreads, 0));
  numemu_unit_close(h100);
}

TEST_CASE("C: results without flags are those with flags", "[fast]") {
  constexpr std::int64_t kRecords = 200;
  for (const char* name : {"h100.wgmma.e4m3.f32", "a100.mma.s8.s32", "h100.wgmma.e4m3.f32.sp24",
                           "neutral.exact.mx32", "neutral.exact"}) {
    INFO(name);
    numemu_unit* const of = unit(name);
    numemu_format* const e4m3 = format("float8_e4m3fn");
    auto facts = sized<numemu_unit_facts>();
    REQUIRE(numemu_unit_describe(of, &facts) == NUMEMU_OK);
    numemu_operation* dot = nullptr;
    REQUIRE(numemu_operation_of_unit(of, facts.a == nullptr ? e4m3 : nullptr, nullptr, 64, &dot) ==
            NUMEMU_OK);
    numemu_vectors* vectors = nullptr;
    REQUIRE(numemu_vectors_open(dot, "mixed", 1, 3, kRecords, &vectors) == NUMEMU_OK);
    const std::int32_t fields = numemu_operation_fields(dot);
    std::vector<std::vector<std::uint64_t>> room, computed;
    std::vector<std::uint64_t*> columns, without;
    for (std::int32_t f = 0; f < fields; ++f) {
      auto field = sized<numemu_field>();
      REQUIRE(numemu_operation_describe(dot, f, &field) == NUMEMU_OK);
      room.emplace_back(static_cast<std::size_t>(kRecords * field.count));
      computed.push_back(room.back());
    }
    for (std::vector<std::uint64_t>& column : room) columns.push_back(column.data());
    std::int64_t made = 0;
    REQUIRE(numemu_vectors_next(vectors, kRecords, columns.data(), &made) == NUMEMU_OK);
    int results = 0;
    for (std::int32_t f = 0; f < fields; ++f) {
      auto field = sized<numemu_field>();
      numemu_operation_describe(dot, f, &field);
      const bool flags = std::string(field.name) == "flags";
      const auto at = static_cast<std::size_t>(f);
      without.push_back(flags ? nullptr : field.is_result != 0 ? computed[at].data() : columns[at]);
      results += field.is_result != 0 && !flags;
    }
    REQUIRE(results == 1);
    REQUIRE(numemu_operation_compute(dot, made, without.data()) == NUMEMU_OK);
    for (std::int32_t f = 0; f < fields; ++f) {
      const auto at = static_cast<std::size_t>(f);
      if (without[at] == computed[at].data()) CHECK(computed[at] == room[at]);
    }
    numemu_vectors_close(vectors);
    numemu_operation_close(dot);
    numemu_format_close(e4m3);
    numemu_unit_close(of);
  }
}

TEST_CASE("C: structures keep their layout", "[fast]") {
  // 64-bit machines: a change breaks programs that were compiled before.
  CHECK(sizeof(numemu_array) == 32);
  CHECK(offsetof(numemu_array, shape) == 16);
  CHECK(sizeof(numemu_format_facts) == 72);
  CHECK(sizeof(numemu_counts) == 48);
  CHECK(sizeof(numemu_random) == 40);
  CHECK(sizeof(numemu_block_facts) == 72);
  CHECK(sizeof(numemu_quantized) == 48);
  CHECK(sizeof(numemu_quantize_options) == 64);
  CHECK(sizeof(numemu_field) == 40);
  CHECK(sizeof(numemu_tolerance) == 32);
  CHECK(sizeof(numemu_verdict) == 64);
  CHECK(sizeof(numemu_unit_facts) == 120);
  CHECK(sizeof(numemu_product) == 128);
  CHECK(offsetof(numemu_product, seed) == 120);
  CHECK(sizeof(numemu_trace_step) == 72);
  CHECK(sizeof(numemu_trace_term) == 72);
}

}  // namespace c_library_test
