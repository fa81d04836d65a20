// A scale rule chooses what the elements of a tensor, channel or block are divided by; one file
// each in formats/scaling/rules/.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blocks/block_format.hpp"
#include "formats/quantize.hpp"

namespace numemu {

/// The float32 elements that will share the scale, and how they will be converted.
struct ScaleRequest {
  const float* x = nullptr;
  std::int64_t n = 0;
  const Conversion* conversion = nullptr;
  /// Null: a float32 scale, symmetric. Otherwise its scale format, affine kind and tensor scale
  /// count, and the rule returns a positive value of the scale format (zero: see absmax).
  const BlockFormat* block = nullptr;
  float tensor_scale = 1;                           ///< it will multiply the scale
  RoundingMode scale_rounding = RoundingMode::rup;  ///< to the scale format
};

/// A batch of blocks that each get a power-of-two scale 2^s.
struct ExponentRequest {
  const BlockFormat* format = nullptr;
  const Conversion* conversion = nullptr;
  std::int64_t blocks = 0;
  const float* amax = nullptr;  ///< of each block the largest finite magnitude, 0 for none
  /// Only for rules with reads_elements: the finite elements of block b are x[offsets[b]] to
  /// x[offsets[b + 1] - 1].
  const float* x = nullptr;
  const std::int64_t* offsets = nullptr;
  std::int32_t* exponents = nullptr;  ///< out: s of each block, inside the scale format's range
};

struct ScaleRule;

/// What stands in the parentheses of "NAME(A,B)": a rule, a number, or one of some texts. Reading,
/// the canonical text, messages and the table in docs/recipes.md come from this.
struct ScaleArgument {
  enum class Kind : std::uint8_t { rule, number, choice } kind = Kind::rule;
  std::string_view name, help;
  double least = 0, most = 0;                  ///< of a number
  std::vector<std::string_view> choices = {};  ///< of a text; the first is the default
};

/// The arguments of a text; a rule takes at most one of each kind.
struct ScaleArguments {
  std::string text;  ///< canonical, of the whole rule
  const ScaleRule* rule = nullptr;
  double number = 0;
  std::size_t choice = 0;
};

/// A rule never runs the quantizer: predictions use the same rules.
struct ScaleRule {
  std::string name;
  const char* summary = "";
  /// The largest magnitude is put near the format's largest value: refused for formats whose range
  /// is too wide for products in float32 (docs/adr/0005).
  bool fills_range = false;
  /// A scale is kept beside the codes and counts among the stored bits.
  bool stores_scale = true;
  /// A finite positive scale for x / scale. NaN and infinite elements are ignored; 1 when nothing
  /// else is left. Null: the rule has powers of two only.
  std::function<float(const ScaleRequest&)> scale = nullptr;
  /// The exponents s of a batch of blocks, by integers. Null: the rule has real scales only.
  std::function<void(const ExponentRequest&)> exponents = nullptr;
  /// The rule compares scales by the errors of all elements, which it reads more than once;
  /// exponents() gets them, too. Where false exponents() needs the largest magnitudes alone.
  bool reads_elements = false;
  /// scale() also serves zero points, minima and tensor scales.
  bool serves_affine = false;
  /// Of rules whose real scale puts the largest magnitude on an element: those elements. Of several
  /// scales it is the one with the least squared error, of equal ones the first. Null: other rules.
  std::vector<double> (*lands_on)(const Conversion&) = nullptr;
  bool needs_largest_alone = false;  ///< scale() of a block without a shift: its largest magnitude
  const char* alias = nullptr;       ///< a short name; recipes and results have `name`
  bool serves_tensor_scale = false;  ///< scale() also serves tensor scales
  /// Of a rule with arguments, which has neither scale nor exponents: what they are, and the rule
  /// that they make, but for its name and summary. Throws Error where they cannot serve together.
  std::vector<ScaleArgument> arguments = {};
  ScaleRule (*make)(const ScaleArguments&) = nullptr;
};

/// The rule of that name, with its arguments in parentheses where it takes some, for one real scale
/// per tensor or channel. Throws Error with the nearest known name, and for rules that have powers
/// of two only. The rule lives as long as the program.
const ScaleRule& find_scale_rule(std::string_view name);
/// The rule of that name for that block format; throws Error naming the rules that serve it.
const ScaleRule& find_scale_rule(std::string_view name, const BlockFormat&);
/// Throws Error naming the nearest rules where none, whatever scales it chooses, has that name;
/// `others` are accepted in its place.
void require_scale_rule(std::string_view name, const std::vector<std::string>& others = {});
/// The rule can choose the scales of that block format.
bool serves(const ScaleRule&, const BlockFormat&);
/// The names of the rules that serve a block format, and how those with arguments are written:
/// "detuned(RULE,FACTOR)".
struct ServingRules {
  std::vector<std::string> names, with_arguments;
};
ServingRules rules_serving(const BlockFormat&);
/// Every file's rule; those with arguments as they are without.
std::vector<const ScaleRule*> all_scale_rules();
/// The canonical text of the rule that a text means; the text itself where there is none.
std::string scale_rule_name(std::string_view text);

/// Largest value up to which a range may be filled: products of two such operands stay below 2^112
/// and 2^15 of them below 2^127.
inline constexpr double kWidestFilled = 0x1p56;

/// The largest magnitude that conversion gives without saturating: the largest finite value, for
/// signed integers 2^(b-1) - 1.
double largest_element(const Conversion&);
/// amax / largest_element rounded upward to float32, so that amax itself never saturates; 1 when
/// amax is 0.
float absmax_scale(double amax, const Conversion&);
/// The same for another element than the largest: amax lands on it or below.
float scale_to(double amax, double element);
/// The largest finite |x|, 0 for none.
double largest_magnitude(const float* x, std::int64_t n);

/// A rule's real scale for a request with a block format: what the elements reach (sym: the largest
/// magnitude; zp: from the smallest to the largest of the elements and 0; min: from the smallest to
/// the largest element) over what the codes reach (sym, min: the largest code; zp: all of them),
/// divided by the tensor scale, exact, and rounded once to the scale format by scale_rounding. It
/// saturates at the format's largest value and is at least its smallest unless there is nothing to
/// reach: then 1, or with a tensor scale the code of zero.
float absmax_block_scale(const ScaleRequest&);
/// absmax_block_scale() of sym for another element than the largest.
float block_scale_to(const ScaleRequest&, const Value& element);
/// Whether one of the elements is finite and not 0, so that the scale matters.
bool has_magnitude(const ScaleRequest&);
/// `scale` rounded to the scale format of the request, saturated, at least its smallest value.
float round_scale(const ScaleRequest&, float scale);

}  // namespace numemu
