// Float32Converter against the reference over all 2^32 inputs, and near every breakpoint.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "formats/float32_converter.hpp"
#include "tests/catch.hpp"
#include "tests/formats/step_function.hpp"

namespace numemu::float32_converter_exhaustive_test {
namespace {

using proof::Outcome;
using proof::Step;

constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};
constexpr RoundingMode kModes[] = {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                   RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd};

std::vector<const Format*> named_small_formats() {
  std::vector<const Format*> list;
  for (const Format* f : named_formats())
    if (f->bits <= 8) list.push_back(f);
  return list;
}

std::vector<const Format*> p3109_small_formats() {
  std::vector<const Format*> list;
  for (int k = 3; k <= 8; ++k)
    for (int p = 1; p <= k; ++p)
      for (const char* kind : {"se", "sf", "ue", "uf"}) {
        if (kind[0] == 's' && p == k) continue;
        list.push_back(&find_format("binary" + std::to_string(k) + "p" + std::to_string(p) + kind));
      }
  return list;
}

// 1 if some of n results is not `want`.
template <class T>
std::int64_t differing(const T* got, std::int64_t n, T want) {
  if (n == 0) return 0;
  const auto rest = static_cast<std::size_t>(n - 1) * sizeof(T);
  return got[0] != want || std::memcmp(got, got + 1, rest) != 0 ? 1 : 0;
}

// Results of consecutive bit patterns from `first` on, compared step by step.
class Range {
 public:
  static constexpr std::int64_t kMost = 4096;

  std::int64_t differences(const Float32Converter& converter, const std::vector<Step>& steps,
                           std::uint32_t first, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) x_[i] = first + static_cast<std::uint32_t>(i);
    const auto* x = reinterpret_cast<const float*>(x_);
    auto* y = reinterpret_cast<float*>(y_);
    converter.round(x, n, y, flags_);
    converter.encode(x, n, codes_, code_flags_);
    std::int64_t count = compare(steps, first, n, true);
    converter.round(x, n, y);
    converter.encode(x, n, codes_);
    count += compare(steps, first, n, false);
    return count;
  }

 private:
  std::int64_t compare(const std::vector<Step>& steps, std::uint32_t first, std::int64_t n,
                       bool with_flags) const {
    auto step = std::upper_bound(steps.begin(), steps.end(), first,
                                 [](std::uint32_t x, const Step& s) { return x < s.first; }) -
                1;
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++step) {
      const std::int64_t end =
          step + 1 == steps.end()
              ? n
              : std::min<std::int64_t>(n, std::int64_t{(step + 1)->first} - std::int64_t{first});
      const Outcome& want = step->outcome;
      count += differing(y_ + i, end - i, want.value);
      count += differing(codes_ + i, end - i, static_cast<std::uint8_t>(want.code));
      if (with_flags) {
        count += differing(flags_ + i, end - i, want.flags);
        count += differing(code_flags_ + i, end - i, want.flags);
      }
      i = end;
    }
    return count;
  }

  alignas(64) std::uint32_t x_[kMost], y_[kMost];
  alignas(64) std::uint8_t codes_[kMost], flags_[kMost], code_flags_[kMost];
};

std::string name_of(const Conversion& c) {
  return c.format->name + " " + to_string(c.rounding) + " " + to_string(c.overflow) +
         (c.format->kind == Kind::integer && c.format->is_signed
              ? (c.symmetric ? " symmetric" : " full range")
              : "");
}

std::int64_t differences_everywhere(const Conversion& c) {
  const Float32Converter converter(c);
  const std::vector<Step> steps = proof::step_function(c);
  constexpr std::int64_t kAll = std::int64_t{1} << 32;
  std::int64_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count)
  for (std::int64_t first = 0; first < kAll; first += Range::kMost) {
    static thread_local Range range;
    count += range.differences(converter, steps, static_cast<std::uint32_t>(first), Range::kMost);
  }
  return count;
}

std::int64_t differences_near_steps(const Conversion& c) {
  constexpr std::int64_t kNear = 16;  // a whole vector on either side
  const Float32Converter converter(c);
  const std::vector<Step> steps = proof::step_function(c);
  static Range range;
  std::int64_t count = 0;
  for (const Step& step : steps) {
    const std::int64_t first =
        std::clamp<std::int64_t>(std::int64_t{step.first} - kNear, 0, 0xffffffff - 2 * kNear);
    count += range.differences(converter, steps, static_cast<std::uint32_t>(first), 2 * kNear);
  }
  return count;
}

// Calls body with every conversion of these formats that the vector loops serve.
template <class Body>
void each_conversion(const std::vector<const Format*>& formats, RoundingMode mode,
                     Overflow overflow, Body body) {
  for (const Format* f : formats) {
    for (const bool symmetric : {true, false}) {
      if (!symmetric && !(f->kind == Kind::integer && f->is_signed)) continue;
      const Conversion c{
          .format = f, .rounding = {.mode = mode}, .overflow = overflow, .symmetric = symmetric};
      if (Float32Converter(c).fast()) body(c);
    }
  }
}

void prove_everywhere(const std::vector<const Format*>& formats, const char* what) {
  const auto start = std::chrono::steady_clock::now();
  std::int64_t conversions = 0;
  for (const RoundingMode mode : kModes)
    for (const Overflow overflow : kOverflows)
      each_conversion(formats, mode, overflow, [&](const Conversion& c) {
        ++conversions;
        INFO(name_of(c));
        CHECK(differences_everywhere(c) == 0);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::printf("%5.0f s  %4lld  %s: all 2^32 inputs\n", seconds,
                    static_cast<long long>(conversions), name_of(c).c_str());
        std::fflush(stdout);
      });
  std::printf("%s: %lld conversions x 2^32 inputs, values, codes and flags, with and without\n",
              what, static_cast<long long>(conversions));
  CHECK(conversions > 0);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A number that changes with the commit, so that successive runs prove different slots.
unsigned commit_number() {
  const std::string git = NUMEMU_SOURCE "/.git/";
  constexpr std::string_view kReference = "ref: ";
  std::string id = first_line(git + "HEAD");
  if (id.starts_with(kReference)) id = first_line(git + id.substr(kReference.size()));
  unsigned number = 0;
  for (const char c : id) number = number * 31 + static_cast<unsigned char>(c);
  return number;
}

TEST_CASE("one slot of modes agrees with the reference near every breakpoint", "[fast]") {
  constexpr unsigned kSlots = std::size(kModes) * std::size(kOverflows);
  const unsigned slot = commit_number() % kSlots;
  const RoundingMode mode = kModes[slot % std::size(kModes)];
  const Overflow overflow = kOverflows[slot / std::size(kModes)];
  for (const auto& formats : {named_small_formats(), p3109_small_formats()})
    each_conversion(formats, mode, overflow, [&](const Conversion& c) {
      INFO(name_of(c));
      CHECK(differences_near_steps(c) == 0);
    });
}

TEST_CASE("every mode agrees with the reference near every breakpoint", "[slow]") {
  for (const auto& formats : {named_small_formats(), p3109_small_formats()})
    for (const RoundingMode mode : kModes)
      for (const Overflow overflow : kOverflows)
        each_conversion(formats, mode, overflow, [&](const Conversion& c) {
          INFO(name_of(c));
          CHECK(differences_near_steps(c) == 0);
        });
}

TEST_CASE("the named formats of at most 8 bits agree with the reference on all floats",
          "[exhaustive]") {
  prove_everywhere(named_small_formats(), "named formats of at most 8 bits");
}

TEST_CASE("the P3109 formats of at most 8 bits agree with the reference on all floats",
          "[exhaustive-all]") {
  prove_everywhere(p3109_small_formats(), "P3109 formats of at most 8 bits");
}

}  // namespace
}  // namespace numemu::float32_converter_exhaustive_test
