// Records really are what their class claims, in exact rationals and by units of other parameters;
// the same seed gives the same records everywhere.
#include "emu/oracle/generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "emu/oracle/files/text.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/rational_codec.hpp"

namespace numemu::oracle::generator_test {
namespace {

Subject subject(const std::string& line, const std::string& style, std::uint64_t seed = 1) {
  Subject s = parse_header("# numemu-vectors 1 " + line);
  s.style = style;
  s.seed = seed;
  return s;
}

Records records_of(const Generator& generator, std::int64_t n, std::int64_t first = 0) {
  Records records(generator.layout(), n);
  generator.fill(first, records);
  return records;
}

std::string text_of(const Subject& s, std::int64_t n) {
  const Generator generator(s);
  std::string text;
  append_text(generator.layout(), records_of(generator, n), text);
  return text;
}

/// The numbers of a record in rationals, read by a codec that shares nothing with the product's.
class Exact {
 public:
  Exact(const Subject& s, const Layout& layout)
      : s_(s), layout_(layout), a_(s.a->name), b_(s.b->name), to_(s.to->name) {}

  /// Every term of the exact result; empty where an input is no number.
  std::vector<Rational> terms(const Records& r, std::int64_t i) const {
    std::vector<Rational> all;
    if (s_.operation == Operation::convert) {
      finite_ = true;
      return {number(a_, r.code(0, i))};
    }
    finite_ = true;
    for (std::int64_t k = 0; k < s_.k; ++k) {
      const Rational x = number(a_, r.code(0, i * s_.k + k)),
                     y = number(b_, r.code(1, i * s_.k + k));
      if (s_.operation == Operation::add) {
        all = {x, y};
      } else {
        all.push_back(x * y);
      }
    }
    if (const int c = find_field(layout_, "c"); c >= 0) all.push_back(number(to_, r.code(c, i)));
    return finite_ ? all : std::vector<Rational>{};
  }
  static Rational sum(const std::vector<Rational>& terms) {
    Rational total = 0;
    for (const Rational& t : terms) total += t;
    return total;
  }
  const RationalCodec& to() const { return to_; }
  const RationalCodec& a() const { return a_; }

 private:
  Rational number(const RationalCodec& codec, std::uint64_t code) const {
    const Decoded d = codec.decode(code);
    finite_ = finite_ && d.kind != Class::nan && d.kind != Class::infinite;
    return d.negative ? Rational(-d.magnitude) : d.magnitude;
  }
  Subject s_;
  Layout layout_;
  RationalCodec a_, b_, to_;
  mutable bool finite_ = true;
};

const std::vector<std::string> kSubjects = {
    "op=convert from=float16 to=float8_e4m3fn rounding=rne overflow=saturate",
    "op=convert from=float32 to=float16 rounding=rtz overflow=ieee",
    "op=mul from=float16 to=float16 rounding=rne overflow=ieee",
    "op=mul from=float8_e5m2 to=float8_e4m3fn rounding=rup overflow=ieee",
    "op=add from=float16 to=float16 rounding=rne overflow=ieee",
    "op=fma from=float8_e5m2 to=float16 rounding=rne overflow=ieee",
    "op=dot from=float8_e4m3fn to=float16 rounding=rne overflow=ieee k=8",
    "unit=nvidia.h100.mma.f16.f16"};

constexpr std::int64_t kRecords = 100;

/// Records of one style, and their numbers.
struct Styled {
  Subject s;
  Generator generator;
  Exact exact;
  Records r;
  Styled(const std::string& line, const std::string& style)
      : s(subject(line, style)),
        generator(s),
        exact(s, generator.layout()),
        r(records_of(generator, kRecords)) {}

  Place place(std::int64_t i) const { return exact.to().place(Exact::sum(exact.terms(r, i))); }
  /// Records of that class for which `holds(i)`.
  template <class Holds>
  std::int64_t count(const Holds& holds) const {
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < r.size; ++i) right += r.class_name(i) == s.style && holds(i);
    return right;
  }
};

/// The largest of some terms, without its sign.
Rational largest_of(const std::vector<Rational>& terms) {
  Rational largest = 0;
  for (const Rational& t : terms) largest = std::max(largest, Rational(abs(t)));
  return largest;
}

TEST_CASE("ties lie halfway between two neighbours", "[fast]") {
  for (const std::string& line : kSubjects) {
    INFO(line);
    const Styled all(line, "ties");
    std::set<std::uint64_t> results;
    CHECK(all.count([&](std::int64_t i) {
      const Place place = all.place(i);
      results.insert(place.low);
      return !place.on_value && !place.beyond && place.to_middle == std::strong_ordering::equal;
    }) == kRecords);
    CHECK(results.size() > 15);
  }
}

TEST_CASE("overflows are a unit in the last place beyond the largest number", "[fast]") {
  for (const std::string& line : kSubjects) {
    INFO(line);
    const Styled all(line, "overflow");
    const int flags = find_field(all.generator.layout(), "flags");
    std::int64_t negative = 0;
    CHECK(all.count([&](std::int64_t i) {
      const Place place = all.place(i);
      negative += place.negative;
      return place.kind == Class::finite && place.beyond &&
             (flags < 0 || (all.r.code(flags, i) & kOverflow) != 0);
    }) == kRecords);
    CHECK(negative > 20);
    CHECK(negative < 80);
  }
}

TEST_CASE("sums that cancel are below half of their largest term", "[fast]") {
  for (const std::string& line : kSubjects) {
    INFO(line);
    const Subject s = subject(line, "cancel");
    if (s.operation == Operation::convert || s.operation == Operation::mul) {
      CHECK_THROWS_WITH(Generator(s), Catch::StartsWith("style cancel: "));
      continue;
    }
    const Styled all(line, "cancel");
    std::int64_t zeros = 0;
    CHECK(all.count([&](std::int64_t i) {
      const std::vector<Rational> terms = all.exact.terms(all.r, i);
      const Rational sum = abs(Exact::sum(terms));
      zeros += sum == 0;
      return 2 * sum < largest_of(terms);
    }) == kRecords);
    CHECK(zeros < 70);
  }
}

TEST_CASE("subnormal records have a subnormal input or result", "[fast]") {
  for (const std::string& line : kSubjects) {
    INFO(line);
    const Styled all(line, "subnormal");
    const Layout& layout = all.generator.layout();
    std::vector<std::optional<RationalCodec>> codecs;
    for (const Field& f : layout) {
      codecs.emplace_back();
      if (f.format != nullptr && !f.result) codecs.back().emplace(f.format->name);
    }
    const auto tiny = [](const RationalCodec& codec, const Rational& x) {
      return x != 0 && Rational(abs(x)) < rational(codec.smallest_normal());
    };
    std::int64_t by_result = 0;
    CHECK(all.count([&](std::int64_t i) {
      bool any = tiny(all.exact.to(), Exact::sum(all.exact.terms(all.r, i)));
      by_result += any;
      for (std::size_t f = 0; f < layout.size(); ++f) {
        for (std::int64_t e = 0; codecs[f] && e < layout[f].count && !any; ++e) {
          const std::uint64_t code = all.r.code(static_cast<int>(f), i * layout[f].count + e);
          any = tiny(*codecs[f], codecs[f]->decode(code).magnitude);
        }
      }
      return any;
    }) == kRecords);
    CHECK(by_result > 5);
  }
}

/// D of record i by the unit's own product, with another number of kept bits.
std::uint64_t with_kept_bits(const Subject& s, const Layout& layout, const Records& r,
                             std::int64_t i, int more) {
  unit::UnitDescription u = *s.unit->description();
  u.name = "own";
  u.alignment.fraction_bits += more;
  const auto unit = unit::make_unit(u);
  const auto codes = [&](const char* name) {
    const int f = find_field(layout, name);
    std::vector<std::uint64_t> containers;
    if (f < 0) return containers;
    const Field& field = layout[static_cast<std::size_t>(f)];
    containers.resize(static_cast<std::size_t>(field.count));
    for (std::int64_t e = 0; e < field.count; ++e)
      store_code(*field.format, containers.data(), e, r.code(f, i * field.count + e));
    return containers;
  };
  const auto a = codes("a"), b = codes("b"), c = codes("c"), sa = codes("sa"), sb = codes("sb");
  const unit::Gather row = unit::Gather::matrix(1, s.k);
  std::uint64_t d = 0;
  unit::Gemm g{1, 1, s.k, {s.a, a.data(), &row}, {s.b, b.data(), &row}, c.data(), &d};
  if (!sa.empty()) {
    g.scale_a = reinterpret_cast<const std::uint8_t*>(sa.data());
    g.scale_b = reinterpret_cast<const std::uint8_t*>(sb.data());
  }
  unit->multiply(g);
  return d;
}

TEST_CASE("records of alignment tell a unit from one with other kept bits", "[fast]") {
  for (const std::string name :
       {"nvidia.h100.wgmma.e4m3.f32", "nvidia.a100.mma.f16.f32", "nvidia.v100.mma.f16.f16",
        "amd.mi300.mfma.e4m3fnuz.f32", "nvidia.b200.tcgen05.e2m1.f32.nv16",
        "nvidia.b200.tcgen05.e4m3.f32.mx32"}) {
    INFO(name);
    const Subject s = subject("unit=" + name, "alignment");
    const Generator generator(s);
    constexpr std::int64_t kAligned = 40;
    const Records r = records_of(generator, kAligned);
    const int d = find_field(generator.layout(), "d");
    std::int64_t right = 0, last = 0, first_cut = 0;
    for (std::int64_t i = 0; i < kAligned; ++i) {
      const bool is_last = r.class_name(i) == "alignment_F";
      last += is_last;
      first_cut += r.class_name(i) == "alignment_F+1";
      REQUIRE(with_kept_bits(s, generator.layout(), r, i, 0) == r.code(d, i));
      right += with_kept_bits(s, generator.layout(), r, i, is_last ? -1 : 1) != r.code(d, i);
    }
    CHECK(right == kAligned);
    CHECK(last + first_cut == kAligned);
    CHECK(last > 0);
    CHECK(first_cut > 5);
  }
}

/// |x - the middle of its gap| in units of the gap.
Rational from_middle(const RationalCodec& codec, const Place& place, const Rational& x) {
  const auto number = [&](std::uint64_t code) { return codec.decode(code).magnitude; };
  const Rational low = number(place.low), high = number(place.low + 1);
  return Rational(abs(Rational(abs(x)) - (low + high) / 2)) / (high - low);
}

TEST_CASE("near ties are no ties, and lie as near as operands allow", "[fast]") {
  struct Case {
    std::string line;
    int near;  ///< at most 2^-near units in the last place from a tie
  };
  for (const auto& [line, near] :
       {Case{"op=convert from=float32 to=float8_e4m3fn rounding=rne overflow=saturate", 20},
        Case{"op=convert from=float64 to=float16 rounding=rne overflow=ieee", 20},
        Case{"op=fma from=float32 to=float32 rounding=rne overflow=ieee", 20},
        Case{"op=dot from=float8_e4m3fn to=float16 rounding=rne overflow=ieee k=8", 20},
        Case{"op=add from=float32 to=float8_e5m2 rounding=rne overflow=ieee", 20},
        Case{"op=mul from=float32 to=bfloat16 rounding=rne overflow=ieee", 14},
        Case{"unit=nvidia.h100.mma.f16.f16", 20}}) {
    INFO(line);
    const Styled all(line, "near_ties");
    Rational most = 1;
    for (int i = 0; i < near; ++i) most /= 2;
    std::int64_t close = 0;
    CHECK(all.count([&](std::int64_t i) {
      const Place place = all.place(i);
      const Rational x = Exact::sum(all.exact.terms(all.r, i));
      close += from_middle(all.exact.to(), place, x) <= most;
      return !place.on_value && !place.beyond && place.to_middle != std::strong_ordering::equal;
    }) == kRecords);
    CHECK(close > 80);
  }
}

TEST_CASE("mixed files of level 1 catch roundings in two steps", "[fast]") {
  const Subject s =
      subject("op=convert from=float32 to=float8_e4m3fn rounding=rne overflow=saturate", "mixed");
  const Generator generator(s);
  const Records r = records_of(generator, 10000);
  for (const char* name : {"float16", "bfloat16", "tfloat32"}) {
    INFO(name);
    const Format& wide = find_format(name);
    std::int64_t caught = 0;
    for (std::int64_t i = 0; i < r.size; ++i) {
      const Value first =
          decode(wide, encode(wide, decode(*s.a, r.code(0, i)), {}, Overflow::ieee).code);
      caught += encode(*s.to, first, {}, Overflow::saturate).code != r.code(1, i);
    }
    CHECK(caught > 300);
  }
}

TEST_CASE("carries reach the next power of two, or log2(K) bits above the products", "[fast]") {
  for (const std::string& line : kSubjects) {
    INFO(line);
    const Subject s = subject(line, "carry");
    if (&line == &kSubjects[3]) {  // products of 3 bits have no four ones in front
      CHECK_THROWS_WITH(Generator(s), Catch::StartsWith("style carry: "));
      continue;
    }
    const Styled all(line, "carry");
    const std::uint64_t ones = (std::uint64_t{1} << s.to->mantissa_bits) - 1;
    std::int64_t by_sum = 0;
    CHECK(all.count([&](std::int64_t i) {
      const std::vector<Rational> terms = all.exact.terms(all.r, i);
      const Rational sum = abs(Exact::sum(terms));
      const Place place = all.place(i);
      const bool rounding = !place.on_value && (place.low & ones) == ones;
      by_sum += !rounding;
      return rounding || (s.k > 1 && 2 * sum > largest_of(terms) * s.k);
    }) == kRecords);
    CHECK((s.k > 1) == (by_sum > 20));
  }
}

TEST_CASE("exhaustive files have every input once, in order", "[fast]") {
  const Generator generator(subject(
      "op=fma from=float4_e2m1fn to=float4_e2m1fn rounding=rne overflow=saturate", "exhaustive"));
  REQUIRE(generator.limit() == 4096);
  const Records r = records_of(generator, 4096);
  std::int64_t in_order = 0;
  for (std::int64_t i = 0; i < 4096; ++i)
    in_order +=
        (r.code(0, i) << 8 | r.code(1, i) << 4 | r.code(2, i)) == static_cast<std::uint64_t>(i);
  CHECK(in_order == 4096);
  CHECK(Generator(
            subject("op=convert from=float32 to=int8 rounding=rne overflow=saturate", "exhaustive"))
            .limit() == std::int64_t{1} << 32);
  CHECK_THROWS_WITH(
      Generator(subject("op=convert from=float32 to=int8 rounding=sr(1) overflow=saturate",
                        "exhaustive")),
      "style exhaustive: expected at most 2^32 inputs, convert of float32 to int8 has more");
}

TEST_CASE("edges are combined, and reach zeros, infinities and NaN", "[fast]") {
  const Subject s = subject("op=add from=float16 to=float16 rounding=rne overflow=ieee", "edges");
  const Generator generator(s);
  const std::int64_t n = generator.limit();
  const Records r = records_of(generator, n);
  std::set<std::pair<std::uint64_t, std::uint64_t>> pairs;
  std::set<std::uint64_t> codes;
  for (std::int64_t i = 0; i < n; ++i) {
    pairs.emplace(r.code(0, i), r.code(1, i));
    codes.insert(r.code(0, i));
  }
  CHECK(static_cast<std::int64_t>(pairs.size()) == n);
  for (const std::uint64_t edge : {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3bff, 0x3c00, 0x3c01,
                                   0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01})
    CHECK(codes.count(edge) == 1);
  Subject more = s;
  more.level = 2;
  CHECK(Generator(more).limit() > 4 * n);
}

TEST_CASE("records do not depend on how files are cut", "[fast]") {
  for (const std::string& line : kSubjects) {
    INFO(line);
    const Generator generator(subject(line, "mixed", 5));
    const Records all = records_of(generator, 40);
    std::string whole, parts;
    append_text(generator.layout(), all, whole);
    for (std::int64_t first = 0; first < 40; first += 8)
      append_text(generator.layout(), records_of(generator, 8, first), parts);
    CHECK(whole == parts);
    CHECK(text_of(subject(line, "mixed", 6), 40) != whole);
  }
}

TEST_CASE("mixed files have every class the subject has", "[fast]") {
  const auto classes = [](const std::string& line) {
    const Generator generator(subject(line, "mixed"));
    const Records r = records_of(generator, 90);
    std::set<std::string> names;
    for (std::int64_t i = 0; i < 90; ++i) names.emplace(r.class_name(i));
    return names;
  };
  using Names = std::set<std::string>;
  CHECK(classes(kSubjects[0]) ==
        Names{"carry", "edges", "near_ties", "overflow", "random", "subnormal", "ties"});
  CHECK(classes(kSubjects[7]) == Names{"alignment_F", "alignment_F+1", "cancel", "carry", "edges",
                                       "near_ties", "overflow", "random", "subnormal", "ties"});
  CHECK(classes("unit=intel.emr.vpdpbusds.u8xs8.s32") ==
        Names{"cancel", "carry", "edges", "overflow", "random"});
  CHECK(classes("op=convert from=float8_e4m3fn to=float32 rounding=rne overflow=ieee") ==
        Names{"edges", "random", "subnormal"});
}

TEST_CASE("sums that cannot overflow are told by the largest operands", "[fast]") {
  std::int64_t never = 0;
  for (const char* from : {"float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "int8", "float16"}) {
    for (const char* to : {"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32"}) {
      for (const int k : {1, 2, 3, 100}) {
        const Subject s = subject(
            fmt::format("op=dot from={} to={} k={} rounding=rne overflow=ieee", from, to, k),
            "random");
        const Layout layout = layout_of(s);
        Classifier classifier(s, layout);
        if (classifier.may_overflow()) continue;
        ++never;
        INFO(from << " " << to << " " << k);
        Records r(layout, 1);
        for (const int f : {0, 1, 2}) {
          const Field& field = layout[static_cast<std::size_t>(f)];
          std::ranges::fill(r.columns[static_cast<std::size_t>(f)], field.format->largest_code());
        }
        CHECK_FALSE(classifier.is(Style::overflow, r, 0));
      }
    }
  }
  CHECK(never == 44);
}

TEST_CASE("styles that a subject does not have are refused by name", "[fast]") {
  // At once, however long its sums are.
  CHECK_THROWS_WITH(Generator(subject("unit=h100.wgmma.e4m3.f32 k=65536", "overflow")),
                    "style overflow: unit nvidia.h100.wgmma.e4m3.f32 has none: its largest "
                    "operands give no more than float32 has");
  CHECK_THROWS_WITH(Generator(subject("unit=f32.sequential from=float16", "alignment")),
                    "style alignment: unit neutral.f32.sequential has none: it aligns no addends");
  CHECK_THROWS_WITH(
      Generator(
          subject("op=convert from=float8_e4m3fn to=float32 rounding=rne overflow=ieee", "ties")),
      "style ties: convert of float8_e4m3fn to float32 has none: none of 2000 tries was one");
  CHECK_THROWS_WITH(Generator(subject(kSubjects[0], "tie")),
                    "unknown style 'tie'; did you mean 'ties'?");
}

TEST_CASE("the same seed gives the same records everywhere", "[fast]") {
  const auto digest = [](const std::string& line) {
    return sha256_hex(text_of(subject(line, "mixed", 123), 200)).substr(0, 16);
  };
  CHECK(digest(kSubjects[0]) == "ecd771e7603c5ba5");
  CHECK(digest(kSubjects[2]) == "6749c2676a45e6fe");
  CHECK(digest(kSubjects[5]) == "f1cbb457b8dd4f1c");
  CHECK(digest(kSubjects[6]) == "6317f0a84061201b");
  CHECK(digest("unit=nvidia.h100.wgmma.e4m3.f32 k=32") == "7b61605ccd382b3b");
  CHECK(digest("unit=neutral.mac.e5m10.sr8 from=float16 k=4") == "e4a32752b187d1f6");
}

}  // namespace
}  // namespace numemu::oracle::generator_test
