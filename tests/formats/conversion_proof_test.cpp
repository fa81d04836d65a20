// Conversions between formats, every code: both loops, codes and flags, against the oracle.
#include <cstring>

#include "formats/convert.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::conversion_proof_test {
namespace {

using oracle::ProofTally;
using oracle::RationalCodec;

// An array of codes in the containers of its format.
class Codes {
 public:
  Codes(const Format& f, std::size_t n) : f_(f), bytes_(n * container_bytes(f)) {}

  void set(std::size_t i, std::uint64_t code) {
    code <<= f_.container_shift;
    const auto write = [&]<class Container>(Container) {
      const auto container = static_cast<Container>(code);
      std::memcpy(&bytes_[i * sizeof container], &container, sizeof container);
    };
    with_container(write);
  }
  std::uint64_t get(std::size_t i) const {
    std::uint64_t code = 0;
    const auto read = [&]<class Container>(Container container) {
      std::memcpy(&container, &bytes_[i * sizeof container], sizeof container);
      code = container;
    };
    with_container(read);
    return code >> f_.container_shift;
  }
  void* data() { return bytes_.data(); }

 private:
  void with_container(const auto& use) const {
    switch (container_bytes(f_)) {
      case 1:
        return use(std::uint8_t{});
      case 2:
        return use(std::uint16_t{});
      case 4:
        return use(std::uint32_t{});
      default:
        return use(std::uint64_t{});
    }
  }
  const Format& f_;
  std::vector<std::uint8_t> bytes_;
};

// All codes of one format, and what the oracle reads in them.
struct Source {
  explicit Source(const std::string& name) : format(find_format(name)), codes(format, count()) {
    const RationalCodec codec(format.name);
    for (std::size_t code = 0; code < count(); ++code) {
      codes.set(code, code);
      const oracle::Decoded v = codec.decode(code);
      values.push_back({v.kind, v.negative, oracle::dyadic(v.magnitude), v.signalling});
    }
  }
  std::size_t count() const { return std::size_t{1} << format.bits; }

  const Format& format;
  Codes codes;
  std::vector<oracle::Input> values;
};

std::uint32_t word_at(std::size_t i) { return static_cast<std::uint32_t>(i) * 2654435761U; }

// convert_codes_reference() and convert_codes() of every code of the source.
ProofTally convert(Source& source, const RationalCodec& target,
                   const std::vector<Rounding>& rules) {
  const Format& to = find_format(target.format().name);
  const std::size_t n = source.count();
  ProofTally tally{.formats = 1, .first = {}};
  std::vector<oracle::Place> places;
  std::vector<std::uint32_t> words;
  places.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    places.push_back(source.values[i].place(target));
    words.push_back(word_at(i));
  }
  for (const Rounding& rounding : rules) {
    std::vector<oracle::Plan> plans;
    plans.reserve(n);
    for (const oracle::Place& place : places) plans.push_back(target.plan(place, rounding));
    for (const Overflow overflow : oracle::kOverflows) {
      const Conversion c{.format = &to,
                         .rounding = rounding,
                         .overflow = overflow,
                         .symmetric = target.format().symmetric,
                         .random_words = rounding.stochastic() ? words.data() : nullptr};
      for (const bool fast : {false, true}) {
        Codes out(to, n);
        std::vector<std::uint8_t> flags(n);
        const FlagCounts counts = (fast ? convert_codes : convert_codes_reference)(
            c, source.format, source.codes.data(), static_cast<std::int64_t>(n), out.data(),
            flags.data(), 0);
        FlagCounts counted;
        counted.elements = static_cast<std::int64_t>(n);
        for (std::size_t i = 0; i < n; ++i) {
          const Encoded want = target.encode(plans[i], overflow, words[i]);
          counted.add(want.flags);
          tally.compare({out.get(i), flags[i]}, want, [&] {
            return std::string(fast ? "fast " : "reference ") + source.format.name + " code " +
                   std::to_string(i) + " to " +
                   oracle::describe(to.name, source.values[i], rounding, overflow);
          });
        }
        if (!(counts == counted) && tally.differences++ == 0)
          tally.first = source.format.name + " to " + to.name + ": the flags are counted wrong";
      }
    }
  }
  return tally;
}

std::vector<Rounding> rne_and_rtz() {
  return {{.mode = RoundingMode::rne}, {.mode = RoundingMode::rtz}};
}

std::vector<RationalCodec> targets(int low, int high) {
  std::vector<RationalCodec> list;
  for (const Format* f : named_formats()) {
    if (f->bits < low || f->bits > high) continue;
    oracle::Specified spec = oracle::specified(f->name);
    list.emplace_back(spec);
    spec.symmetric = true;
    if (spec.integer && spec.is_signed && !spec.sign_only) list.emplace_back(spec);
  }
  return list;
}

ProofTally convert_pairs(int low, int high, const std::vector<RationalCodec>& to,
                         const std::vector<Rounding>& rules) {
  ProofTally tally;
  for (const Format* from : named_formats()) {
    if (from->bits < low || from->bits > high) continue;
    Source source(from->name);
    for (const RationalCodec& target : to) tally += convert(source, target, rules);
  }
  return tally;
}

void report(const std::string& what, const ProofTally& tally) {
  WARN(tally.report(what));
  CHECK(tally.formats > 0);
  CHECK(tally.differences == 0);
}

TEST_CASE("conversion: named formats up to 8 bits to each other, every code, rne and rtz",
          "[fast]") {
  report("pairs of named formats up to 8 bits x rne rtz x 3 overflows x 2 paths",
         convert_pairs(1, 8, targets(1, 8), rne_and_rtz()));
}

TEST_CASE("conversion: named formats up to 16 bits to each other, every code, rne and rtz",
          "[slow]") {
  ProofTally tally = convert_pairs(9, 16, targets(1, 16), rne_and_rtz());
  tally += convert_pairs(1, 8, targets(9, 16), rne_and_rtz());
  report("pairs of named formats with one of 9 to 16 bits x rne rtz x 3 overflows x 2 paths",
         tally);
}

TEST_CASE("conversion: named formats up to 8 bits in every mode and sr(8)", "[slow]") {
  report(
      "pairs of named formats up to 8 bits x 6 modes and sr(8) x 4 variants x 3 overflows "
      "x 2 paths",
      convert_pairs(1, 8, targets(1, 8), oracle::roundings({8})));
}

TEST_CASE("conversion: 16-bit formats to formats up to 8 bits in every mode and sr(23)", "[slow]") {
  report(
      "named formats of 9 to 16 bits to those up to 8 x 6 modes and sr(23) x 4 variants "
      "x 3 overflows x 2 paths",
      convert_pairs(9, 16, targets(1, 8), oracle::roundings({23})));
}

TEST_CASE("conversion: tfloat32 from and to every named format up to 16 bits", "[slow]") {
  ProofTally tally = convert_pairs(17, 19, targets(1, 19), rne_and_rtz());
  tally += convert_pairs(1, 16, targets(17, 19), rne_and_rtz());
  report("tfloat32 and named formats up to 16 bits x rne rtz x 3 overflows x 2 paths", tally);
}

TEST_CASE("conversion: formats up to 8 bits to tfloat32, float32 and float64", "[fast]") {
  report(
      "named formats up to 8 bits to tfloat32, float32, float64 x rne rtz x 3 overflows x 2 paths",
      convert_pairs(1, 8, targets(17, 64), rne_and_rtz()));
}

ProofTally convert_family(int low, int high) {
  ProofTally tally;
  const RationalCodec small("float8_e4m3fn"), half("float16");
  Source from_small("float8_e4m3fn"), from_half("float16");
  for (int k = low; k <= high; ++k) {
    for (const std::string& name : oracle::p3109_names(k)) {
      Source source(name);
      tally += convert(source, small, rne_and_rtz());
      tally += convert(source, half, rne_and_rtz());
      const RationalCodec target(name);
      tally += convert(from_small, target, rne_and_rtz());
      if (k > 6 || high > 8) tally += convert(from_half, target, rne_and_rtz());
    }
  }
  return tally;
}

TEST_CASE("conversion: P3109 up to K = 6 against float8_e4m3fn and float16", "[fast]") {
  report(
      "P3109 K 3..6 from float8_e4m3fn, to float8_e4m3fn and float16 x rne rtz x 3 overflows "
      "x 2 paths",
      convert_family(3, 6));
}

TEST_CASE("conversion: the whole P3109 family against float8_e4m3fn and float16", "[slow]") {
  report("P3109 K 3..15 from and to float8_e4m3fn, float16 x rne rtz x 3 overflows x 2 paths",
         convert_family(3, 15));
}

}  // namespace
}  // namespace numemu::conversion_proof_test
