// The rows of the specification, and the formulas of P3109 and of the descriptors.
#include "tests/oracle/specification.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/pattern.hpp"

namespace numemu::oracle {
namespace {

std::vector<Specified> make_rows() {
  using enum Reserved;
  using enum Lowest;
  std::vector<Specified> rows = {
      {"float8_e5m2", 5, 2, 15, inf_and_nan, subnormals, true, false, false, 57344, 0x1p-14,
       0x1p-16},
      {"float8_e4m3fn", 4, 3, 7, all_ones, subnormals, true, false, false, 448, 0x1p-6, 0x1p-9},
      {"float8_e4m3", 4, 3, 7, inf_and_nan, subnormals, true, false, false, 240, 0x1p-6, 0x1p-9},
      {"float8_e3m4", 3, 4, 3, inf_and_nan, subnormals, true, false, false, 15.5, 0x1p-2, 0x1p-6},
      {"float8_e5m2fnuz", 5, 2, 16, negative_zero, subnormals, true, false, false, 57344, 0x1p-15,
       0x1p-17},
      {"float8_e4m3fnuz", 4, 3, 8, negative_zero, subnormals, true, false, false, 240, 0x1p-7,
       0x1p-10},
      {"float8_e4m3b11fnuz", 4, 3, 11, negative_zero, subnormals, true, false, false, 30, 0x1p-10,
       0x1p-13},
      {"float8_e8m0fnu", 8, 0, 127, all_ones, normals, false, false, false, 0x1p127, 0x1p-127,
       0x1p-127},
      {"float6_e3m2fn", 3, 2, 3, nothing, subnormals, true, false, false, 28, 0x1p-2, 0x1p-4},
      {"float6_e2m3fn", 2, 3, 1, nothing, subnormals, true, false, false, 7.5, 1, 0x1p-3},
      {"float4_e2m1fn", 2, 1, 1, nothing, subnormals, true, false, false, 6, 1, 0.5},
      {"hfp8_e4m3", 4, 3, 11, nothing, subnormals, true, false, false, 30, 0x1p-10, 0x1p-13},
      {"hfp8_e4m3_nosub", 4, 3, 11, nothing, normals_and_zero, true, false, false, 30,
       0x1p-11 * 1.125, 0x1p-11 * 1.125},
      {"hfp8_e5m2", 5, 2, 15, inf_and_nan, subnormals, true, false, false, 57344, 0x1p-14, 0x1p-16},
      {"hfp8_e5m2_finite", 5, 2, 15, nothing, subnormals, true, false, false, 114688, 0x1p-14,
       0x1p-16},
      {"hfp16_e6m9", 6, 9, 31, inf_and_nan, subnormals, true, false, false, 4290772992, 0x1p-30,
       0x1p-39},
      {"dlfloat16", 6, 9, 31, nan_or_inf, normals_and_zero, true, false, false, 8573157376,
       0x1p-31 * (1 + 0x1p-9), 0x1p-31 * (1 + 0x1p-9)},
      {"tfloat32", 8, 10, 127, inf_and_nan, subnormals, true, false, false, 0x1.ffcp127, 0x1p-126,
       0x1p-136},
      {"float16", 5, 10, 15, inf_and_nan, subnormals, true, false, false, 65504, 0x1p-14, 0x1p-24},
      {"bfloat16", 8, 7, 127, inf_and_nan, subnormals, true, false, false, 0x1.fep127, 0x1p-126,
       0x1p-133},
      {"float32", 8, 23, 127, inf_and_nan, subnormals, true, false, false, 0x1.fffffep127, 0x1p-126,
       0x1p-149},
      {"float64", 11, 52, 1023, inf_and_nan, subnormals, true, false, false, 0x1.fffffffffffffp1023,
       0x1p-1022, 0x1p-1074},
  };
  for (Specified& row : rows) row.bits = row.e + row.m + (row.is_signed ? 1 : 0);
  for (const bool is_signed : {true, false}) {
    for (int bits = 2; bits <= 8; ++bits) {
      Specified row;
      row.name = (is_signed ? "int" : "uint") + std::to_string(bits);
      row.is_signed = is_signed;
      row.integer = true;
      row.max = (1 << (is_signed ? bits - 1 : bits)) - 1;
      row.min_normal = row.min_positive = 1;
      row.bits = bits;
      rows.push_back(row);
    }
  }
  Specified sign;
  sign.name = "sign1";
  sign.integer = sign.sign_only = true;
  sign.lowest = Lowest::normals;  // there is no zero
  sign.max = sign.min_normal = sign.min_positive = 1;
  sign.bits = 1;
  rows.push_back(sign);
  return rows;
}

Specified p3109(const std::vector<std::string>& match) {
  const int k = std::stoi(match[1]), p = std::stoi(match[2]);
  Specified f;
  f.is_signed = match[3] == "s";
  f.reserved = match[4] == "e" ? Reserved::p3109_extended : Reserved::p3109_finite;
  f.bits = k;
  f.m = p - 1;
  f.e = f.is_signed ? k - p : k - p + 1;
  // signed: floor(2^(K-P-1)), which is 2^(K-P-1) as P < K; unsigned: 2^(K-P)
  f.bias = f.is_signed ? 1 << (k - p - 1) : 1 << (k - p);
  return f;
}

Specified descriptor(const std::vector<std::string>& match) {
  Specified f;
  f.e = std::stoi(match[1]);
  f.m = std::stoi(match[2]);
  f.bias = !match[4].empty() ? std::stoi(match[4]) : (1 << (f.e - 1)) - 1;
  const std::string options = match[5];
  const auto has = [&](const char* word) { return options.find(word) != std::string::npos; };
  f.reserved = has("+nan1")     ? Reserved::all_ones
               : has("+fnuz")   ? Reserved::negative_zero
               : has("+finite") ? Reserved::nothing
                                : Reserved::inf_and_nan;
  f.lowest = has("+nosub") ? Lowest::normals_and_zero
             : has("+ftz") ? Lowest::zeros
                           : Lowest::subnormals;
  f.is_signed = !has("+unsigned");
  f.bits = f.e + f.m + (f.is_signed ? 1 : 0);
  return f;
}

}  // namespace

const std::vector<Specified>& specified_rows() {
  static const std::vector<Specified> rows = make_rows();
  return rows;
}

Specified specified(std::string_view name) {
  for (const Specified& row : specified_rows())
    if (row.name == name) return row;
  static const test::Pattern family("binary([0-9]+)p([0-9]+)([su])([ef])");
  static const test::Pattern described("e([0-9]+)m([0-9]+)(b(-?[0-9]+))?((\\+[a-z0-9]+)*)");
  const std::string text(name);
  Specified f;
  if (const auto groups = family.whole(text); !groups.empty()) {
    f = p3109(groups);
  } else if (const auto described_by = described.whole(text); !described_by.empty()) {
    f = descriptor(described_by);
  } else {
    throw std::invalid_argument("the specification has no format " + text);
  }
  f.name = text;
  return f;
}

std::vector<std::string> p3109_names(int k) {
  std::vector<std::string> names;
  for (const char sign : {'s', 'u'}) {
    for (int p = 1; p <= (sign == 's' ? k - 1 : k); ++p) {
      for (const char range : {'e', 'f'})
        names.push_back("binary" + std::to_string(k) + "p" + std::to_string(p) + sign + range);
    }
  }
  return names;
}

std::vector<std::string> descriptor_names(int bits) {
  std::vector<std::string> names;
  for (int e = 1; e <= bits; ++e) {
    for (int m = 0; e + m <= bits; ++m) {
      for (const std::string specials : {"+ieee", "+nan1", "+fnuz", "+finite"}) {
        for (const std::string lowest : {"", "+nosub", "+ftz"}) {
          for (const std::string sign : {"", "+unsigned"}) {
            if (e + m + (sign.empty() ? 1 : 0) > bits) continue;
            if (specials == "+fnuz" && !sign.empty()) continue;
            // What the reserved codes and the flushed ones leave must hold a number besides zero.
            const int reserved = specials == "+ieee" ? 1 << m : specials == "+nan1" ? 1 : 0;
            const int largest = (1 << (e + m)) - 1 - reserved;
            if (largest < (lowest == "+ftz" ? 1 << m : 1)) continue;
            names.push_back("e" + std::to_string(e) + "m" + std::to_string(m) + specials + lowest +
                            sign);
          }
        }
      }
    }
  }
  return names;
}

}  // namespace numemu::oracle
