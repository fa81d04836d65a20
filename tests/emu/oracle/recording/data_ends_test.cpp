// Kinds of data at the ends of types (tiny, widest, zeros, specials) and scales have what they are
// named for: counted on a thousand tiles for every type and sparsity.
#include <map>
#include <set>

#include "emu/oracle/recording/data.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/decoded_tile.hpp"

namespace numemu::oracle::recording::data_ends_test {
namespace {

TEST_CASE("the tiny kind holds subnormals of A, of B and of C by turns", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (is_integer(i.a)) return;
    std::int64_t subnormal[3] = {}, all[3] = {}, near_the_bottom = 0, dots = 0;
    const int floor = 1 - info(i.c).bias;
    each_tile(number, DataKind::tiny, [&](const Decoded& d) {
      const auto turn = static_cast<std::size_t>(d.turn % 3);
      const Element e = turn == 0 ? i.a : turn == 1 ? i.b : i.c;
      const std::uint64_t fields = Parts(e).fields;
      for (const Line& line : turn == 0 ? d.a : turn == 1 ? d.b : d.c)
        for (const std::uint64_t code : line.codes) {
          ++all[turn];
          const std::uint64_t magnitude = code & fields;
          if (magnitude != 0 && magnitude >> Parts(e).mantissa == 0) ++subnormal[turn];
        }
      if (turn != 2 || i.block != 0) return;
      each_product(i, d, 0, 0, [&](std::size_t, const Value& a, const Value& b) {
        if (a.kind == Class::zero || b.kind == Class::zero) return;
        ++dots;
        const int exponent = exponent_of(a) + exponent_of(b);
        if (exponent > floor - 26 && exponent < floor + 6) ++near_the_bottom;
      });
    });
    for (std::size_t turn = 0; turn < 3; ++turn) CHECK(subnormal[turn] * 5 > all[turn]);
    const bool reaches = 2 * (1 - info(i.a).bias) <= floor;
    if (reaches && i.block == 0) CHECK(near_the_bottom * 10 > dots * 9);
  });
}

TEST_CASE("the widest kind holds every exponent and no special", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (is_integer(i.a)) return;
    std::set<std::uint64_t> codes, fields;
    std::size_t special = 0;
    each_tile(number, DataKind::widest, [&](const Decoded& d) {
      for (const std::vector<Line>* lines : {&d.a, &d.c, &d.scale_a})
        for (const Line& line : *lines)
          for (const Value& v : line.values)
            if (v.kind == Class::nan || v.kind == Class::infinite) ++special;
      for (const Line& row : d.a)
        for (const std::uint64_t code : row.codes) {
          if (info(i.a).bits <= 8) codes.insert(code);
          fields.insert((code & Parts(i.a).fields) >> Parts(i.a).mantissa);
        }
    });
    CHECK(special == 0);
    const Parts a(i.a);
    if (info(i.a).bits <= 8) CHECK(codes.size() == 2 * (a.largest + 1));
    if (i.a != Element::f64) CHECK(fields.size() == static_cast<std::size_t>(a.top) + 1);
  });
}

TEST_CASE("half of the zeros kind is zero of both signs, and so is C", "[fast]") {
  for_each([](int number, const Instruction& i) {
    std::int64_t zeros = 0, negative = 0, all = 0, c_codes = 0, c_negative = 0;
    each_tile(number, DataKind::zeros, [&](const Decoded& d) {
      for (const std::vector<Line>* lines : {&d.a, &d.b})
        for (const Line& line : *lines)
          for (const Value& v : line.values) {
            ++all;
            if (v.kind == Class::zero) ++zeros;
            if (v.kind == Class::zero && v.negative) ++negative;
          }
      for (const Line& row : d.c)
        for (const Value& v : row.values) {
          REQUIRE(v.kind == Class::zero);
          ++c_codes;
          if (v.negative) ++c_negative;
        }
    });
    CAPTURE(all, zeros, negative);
    CHECK(zeros * 100 > all * 48);
    CHECK(zeros * 100 < all * 65);
    if (is_integer(i.a)) return;
    CHECK(negative * 5 > all);
    CHECK(c_negative * 100 > c_codes * 40);
    CHECK(c_negative * 100 < c_codes * 60);
  });
}

TEST_CASE("second turns: wide products stay below overflow, zeros meet small ones", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (is_integer(i.a)) return;
    const Parts c(i.c);
    const int most_c = c.exponent_of(c.top), least_a = 2 - (1 << (info(i.a).exponent_bits - 1));
    const bool wide_a = info(i.a).exponent_bits >= 8;
    std::int64_t overflows = 0, finite = 0, small = 0;
    each_tile(number, DataKind::widest, [&](const Decoded& d) {
      if (d.turn % 2 == 0) return;
      each_product(i, d, 3, 2, [&](std::size_t, const Value& a, const Value& b) {
        if (a.kind == Class::zero || b.kind == Class::zero) return;
        if (exponent_of(a) + exponent_of(b) > most_c - 5) ++overflows;
      });
    });
    each_tile(number, DataKind::zeros, [&](const Decoded& d) {
      if (d.turn % 2 == 0) return;
      for (const Line& row : d.a)
        for (const Value& v : row.values) {
          if (v.kind == Class::zero) continue;
          ++finite;
          if (exponent_of(v) >= least_a && exponent_of(v) <= least_a + 6) ++small;
        }
    });
    CHECK(overflows == 0);
    if (wide_a) CHECK(small == finite);
    CHECK(finite > 0);
  });
}

/// What the specials kind holds of one operand.
struct Found {
  std::set<std::string> names;
  std::set<std::uint64_t> payloads;
  void look(Element e, std::uint64_t code) {
    const Value v = value_of_code(e, code);
    const std::string sign = v.negative ? "-" : "+";
    const Parts p(e);
    const std::uint64_t magnitude = (is_integer(e) ? 0 : code & p.fields) >> p.dropped;
    if (v.kind == Class::zero) names.insert(is_integer(e) ? "0" : sign + "0");
    if (v.kind == Class::infinite) names.insert(sign + "inf");
    if (v.kind == Class::nan) {
      const bool quiet = p.mantissa > 0 && (code >> (p.mantissa - 1) & 1) != 0;
      names.insert(sign + (p.specials != Specials::ieee ? "nan" : quiet ? "quiet" : "signalling"));
      payloads.insert(code);
    }
    if (is_integer(e)) {
      const std::int64_t x = integer(v), half = std::int64_t{1} << (info(e).bits - 1);
      if (x == (info(e).has_sign ? half - 1 : 2 * half - 1)) names.insert("most");
      if (x == (info(e).has_sign ? -half : 0)) names.insert("least");
    } else if (info(e).has_sign) {
      if (magnitude == p.largest >> p.dropped) names.insert(sign + "largest");
      if (magnitude == 1) names.insert(sign + "tiniest");
    }
  }
};

std::set<std::string> expected_specials(Element e) {
  if (is_integer(e)) return {"0", "least", "most"};
  std::set<std::string> names = {"+0", "-0", "+largest", "-largest", "+tiniest", "-tiniest"};
  if (info(e).specials == Specials::one_nan) names.insert({"+nan", "-nan"});
  if (info(e).specials == Specials::ieee)
    names.insert({"+inf", "-inf", "+quiet", "-quiet", "+signalling", "-signalling"});
  return names;
}

TEST_CASE("the specials kind holds every special of every operand", "[fast]") {
  for_each([](int number, const Instruction& i) {
    Found a, b, c;
    std::int64_t dots = 0, clean = 0;
    each_tile(number, DataKind::specials, [&](const Decoded& d) {
      for (const Line& row : d.a)
        for (const std::uint64_t code : row.codes) a.look(i.a, code);
      for (const Line& column : d.b)
        for (const std::uint64_t code : column.codes) b.look(i.b, code);
      for (const Line& row : d.c)
        for (const std::uint64_t code : row.codes) c.look(i.c, code);
      each_product(i, d, 1, 1,
                   [&, dirty = false](std::size_t j, const Value& x, const Value& y) mutable {
                     for (const Value& v : {x, y, d.c[1].values[1]})
                       dirty = dirty || v.kind == Class::nan || v.kind == Class::infinite;
                     if (j + 1 == static_cast<std::size_t>(i.kept())) {
                       ++dots;
                       if (!dirty) ++clean;
                     }
                   });
    });
    CHECK(a.names == expected_specials(i.a));
    CHECK(b.names == expected_specials(i.b));
    CHECK(c.names == expected_specials(i.c));
    if (info(i.a).specials == Specials::ieee && i.a != Element::e5m2) CHECK(a.payloads.size() > 20);
    CHECK(dots == tiles_of(i) / kDataKinds);
    CHECK(clean * 3 > dots);
    if (info(i.a).specials == Specials::ieee) CHECK(clean * 10 < dots * 9);
  });
}

TEST_CASE("scales hold their ends, NaN and ignored signs in the specials kind alone", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (i.block == 0) return;
    const bool e8m0 = i.scale == Element::ue8m0;
    std::map<std::uint64_t, int> special, benign;
    for (int kind = 0; kind < kDataKinds; ++kind)
      each_tile(number, static_cast<DataKind>(kind), [&](const Decoded& d) {
        const bool last = static_cast<DataKind>(kind) == DataKind::specials;
        for (const std::vector<Line>* lines : {&d.scale_a, &d.scale_b})
          for (const Line& line : *lines)
            for (const std::uint64_t code : line.codes) ++(last ? special : benign)[code];
      });
    if (e8m0) {
      for (const std::uint64_t code : {0, 254, 255}) CHECK(special[code] > 50);
      CHECK(benign.count(255) == 0);
      CHECK(benign.size() == 255);
    } else {
      for (const std::uint64_t code : {0, 0x7f, 0xff, 0x7e, 0x80}) CHECK(special[code] > 50);
      CHECK(benign.count(0x7f) == 0);
      CHECK(benign.lower_bound(0x80) == benign.end());
    }
  });
}

}  // namespace
}  // namespace numemu::oracle::recording::data_ends_test
