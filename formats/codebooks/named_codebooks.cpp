#include "formats/codebooks/named_codebooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "formats/call_text.hpp"
#include "formats/codebooks/codebook.hpp"
#include "formats/codebooks/lloyd_max.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu {
namespace {

constexpr int kMostBits = 16;
constexpr int kLargestExponent = 126;  // of float32 numbers whose inverses are normal, too

// Tensors of float32 in the library that introduced it.
constexpr float kNormalFloat[] = {-1.0f,        -0.69619280f, -0.52507305f,  -0.39491749f,
                                  -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
                                  0.079580300f, 0.16093020f,  0.24611230f,   0.33791524f,
                                  0.44070983f,  0.56261700f,  0.72295684f,   1.0f};
constexpr float kAbnormalFloat[] = {-1.0f,        -0.69441008f, -0.51243739f, -0.3736951f,
                                    -0.25607552f, -0.14982478f, -0.04934812f, 0.0f,
                                    0.04273164f,  0.12934483f,  0.21961274f,  0.31675666f,
                                    0.42563882f,  0.55496234f,  0.72424863f,  1.0f};

const NamedCodebook& row_of(std::string_view head) {
  for (const NamedCodebook& row : named_codebooks())
    if (row.shape.substr(0, row.shape.find('(')) == head) return row;
  throw std::logic_error("no such codebook");
}

Format format_of(std::string_view head, std::string name, const std::vector<double>& entries) {
  const NamedCodebook& row = row_of(head);
  auto codebook = std::make_shared<const Codebook>(entries, name);
  return {.name = std::move(name),
          .kind = Kind::codebook,
          .bits = static_cast<int>(std::bit_width(codebook->size() - 1)),
          .field_zero = FieldZero::scale,
          .source = std::string(row.source),
          .doc = fmt::format("{} ({} entries in ascending order)", row.doc, codebook->size()),
          .codebook = std::move(codebook)};
}

/// The arguments of one text, with what errors say.
struct CodebookCall {
  std::string_view text;
  CallText call = parse_call(text);

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("format '{}': {}", text, what));
  }
  void expect(std::size_t least, std::size_t most) const {
    if (call.arguments.size() < least || call.arguments.size() > most)
      fail(fmt::format("expected {}", row_of(call.name).shape));
  }
  int number(std::size_t i, const char* part, int least, int most, int usual) const {
    if (i >= call.arguments.size()) return usual;
    const auto value = whole_argument(call.arguments[i], least, most);
    if (!value)
      fail(fmt::format("{} is '{}', expected {} to {}", part, call.arguments[i], least, most));
    return static_cast<int>(*value);
  }
};

Format posit_format(const CodebookCall& c) {
  c.expect(1, 2);
  const int n = c.number(0, "N", 3, kMostBits, 0), es = c.number(1, "ES", 0, 5, 2);
  if ((n - 2) << es > 1022) c.fail("its largest number is beyond float64, expected a smaller ES");
  std::vector<double> entries;
  const std::uint32_t codes = 1u << n, nar = codes / 2;
  for (std::uint32_t i = 1; i < codes; ++i)
    entries.push_back(posit_value((nar + i) % codes, n, es));
  return format_of("posit", fmt::format("posit({},{})", n, es), entries);
}

Format log_format(const CodebookCall& c) {
  c.expect(1, 2);
  const int b = c.number(0, "B", 3, kMostBits, 0), f = c.number(1, "F", 0, 8, 0);
  const int largest = (1 << (b - 2)) - 1, one = 1 << f;
  if (largest > kLargestExponent * one)
    c.fail("its largest number is beyond float32, expected fewer bits B or a larger F");
  std::vector<double> entries = {0};
  for (int e = -largest; e <= largest; ++e) {
    const int whole = e >> f;
    const double power =
        std::ldexp(portable::exp2(static_cast<double>(e - whole * one) / one), whole);
    entries.push_back(static_cast<double>(static_cast<float>(power)));
  }
  std::vector<double> all;
  for (std::size_t i = entries.size(); i-- > 1;) all.push_back(-entries[i]);
  all.insert(all.end(), entries.begin(), entries.end());
  return format_of("log", fmt::format("log({},{})", b, f), all);
}

Format lloyd_format(const CodebookCall& c) {
  c.expect(2, 2);
  const int n = c.number(1, "N", 2, kMostLevels, 0);
  std::vector<double> entries;
  try {
    entries = lloyd_max(c.call.arguments[0], n);
  } catch (const Error& error) {
    c.fail(error.what());
  }
  for (double& entry : entries) entry = static_cast<double>(static_cast<float>(entry));
  return format_of("lloyd", fmt::format("lloyd({},{})", c.call.arguments[0], n), entries);
}

}  // namespace

const std::vector<NamedCodebook>& named_codebooks() {
  static const std::vector<NamedCodebook> rows = {
      {"nf4", "QLoRA, NeurIPS 2023; bitsandbytes", "NormalFloat: quantiles of a normal law"},
      {"af4", "Yoshida 2023, arXiv 2306.06965", "AbnormalFloat for blocks of 64"},
      {"posit(N,ES)", "Posit Standard 2022", "Posits without NaR"},
      {"log(B,F)", "Miyashita et al. 2016, arXiv 1603.01025",
       "0 and powers of two with F fraction bits in the exponent"},
      {"lloyd(LAW,N)", "Max 1960, Lloyd 1982", "N levels with the least squared error of a law"},
  };
  return rows;
}

double posit_value(std::uint32_t bits, int n, int es) {
  const std::uint32_t mask = (1u << n) - 1, sign = 1u << (n - 1);
  if (bits == 0) return 0;
  const bool negative = (bits & sign) != 0;
  const std::uint32_t magnitude = negative ? (~bits + 1) & mask : bits;
  // The regime: a run of equal bits below the sign.
  const std::uint32_t aligned = magnitude << (32 - n + 1);
  const bool ones = aligned >> 31 != 0;
  const int run = std::min(n - 1, ones ? std::countl_one(aligned) : std::countl_zero(aligned));
  const int regime = ones ? run - 1 : -run;
  const int left = std::max(0, n - 1 - run - 1);  // bits of exponent and fraction
  const std::uint32_t rest = magnitude & ((1u << left) - 1);
  const int fraction_bits = std::max(0, left - es);
  // Exponent bits that are cut off are zeros.
  const auto exponent = static_cast<int>(rest >> fraction_bits) << (es - (left - fraction_bits));
  const std::uint32_t one = 1u << fraction_bits;
  const double value = std::ldexp(static_cast<double>(one | (rest & (one - 1))),
                                  regime * (1 << es) + exponent - fraction_bits);
  return negative ? -value : value;
}

bool is_named_codebook(std::string_view text) {
  const std::string head = parse_call(text).name;
  return std::ranges::any_of(named_codebooks(), [&](const NamedCodebook& row) {
    return row.shape.substr(0, row.shape.find('(')) == head;
  });
}

Format parse_named_codebook(std::string_view text) {
  const CodebookCall c{text};
  if (text == "nf4")
    return format_of("nf4", "nf4", {std::begin(kNormalFloat), std::end(kNormalFloat)});
  if (text == "af4")
    return format_of("af4", "af4", {std::begin(kAbnormalFloat), std::end(kAbnormalFloat)});
  if (c.call.name == "posit") return posit_format(c);
  if (c.call.name == "log") return log_format(c);
  if (c.call.name == "lloyd") return lloyd_format(c);
  c.fail(fmt::format("expected {}", c.call.name));
}

}  // namespace numemu
