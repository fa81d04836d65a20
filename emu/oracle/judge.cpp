#include "emu/oracle/judge.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

namespace {

constexpr std::array<std::string_view, kMismatches> kNames{
    "none",  "X or Z digits", "NaN",     "saturation", "infinity", "sign of zero",
    "flush", "sign",          "one ulp", "more ulps",  "flags"};

}  // namespace

std::string_view name_of(Mismatch m) { return kNames[static_cast<std::size_t>(m)]; }

Comparer::Comparer(const Format* format, int bits, Tolerance tolerance)
    : format_(format), tolerance_(tolerance), bits_(format != nullptr ? format->bits : bits) {
  if (format_ == nullptr) {
    sign_ = std::uint64_t{1} << (bits_ - 1);
    largest_ = sign_ - 1;
    return;
  }
  sign_ = format_->sign_bit();
  largest_ = format_->largest_code();
  if (format_->kind == Kind::floating)
    smallest_normal_ = std::uint64_t{1} << format_->mantissa_bits;
  if (format_->has_nan()) canonical_ = format_->nan_code();
}

Comparer::Sort Comparer::sort(std::uint64_t code) const {
  if (format_ == nullptr || format_->kind != Kind::floating) return Sort::number;
  const Class decoded = decode(*format_, code).kind;
  return decoded == Class::nan        ? Sort::nan
         : decoded == Class::infinite ? Sort::infinity
                                      : Sort::number;
}

std::int64_t Comparer::place(std::uint64_t code) const {
  if (format_ != nullptr && format_->kind == Kind::floating) {
    if (decode(*format_, code).kind == Class::zero) return 0;
    const auto magnitude = static_cast<std::int64_t>(code & ~sign_);
    return (code & sign_) != 0 ? -magnitude : magnitude;
  }
  // Unsigned integers of 64 bits keep their order, counted from 2^63.
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  if (sign_ == 0) return static_cast<std::int64_t>(bits_ == 64 ? code ^ kTop : code);
  if (bits_ == 1) return static_cast<std::int64_t>(code);
  // Two's complement: the sign bit weighs minus its value.
  return static_cast<std::int64_t>(((code & (2 * sign_ - 1)) ^ sign_) - sign_);
}

CodeComparison Comparer::compare_unequal(std::uint64_t want, std::uint64_t got) const {
  const Sort sorts[] = {sort(want), sort(got)};
  const bool any_nan = sorts[0] == Sort::nan || sorts[1] == Sort::nan;
  const auto is_largest = [&](std::uint64_t code) { return (code & ~sign_) == largest_; };
  if (any_nan) {
    if (sorts[0] == sorts[1]) {
      const bool equal = tolerance_.nan == NanMatch::any ||
                         (tolerance_.nan == NanMatch::canonical && got == canonical_);
      if (equal) return {};
      return {Mismatch::nan, std::nullopt, true};
    }
    const bool saturated =
        !format_->has_infinity() && is_largest(sorts[0] == Sort::nan ? got : want);
    return {saturated ? Mismatch::saturation : Mismatch::nan, std::nullopt};
  }
  if (want == got) return {};
  const std::int64_t places[] = {place(want), place(got)};
  const auto low = static_cast<std::uint64_t>(std::min(places[0], places[1]));
  std::uint64_t ulps = static_cast<std::uint64_t>(std::max(places[0], places[1])) - low;
  ulps = (ulps >> narrower_) + ((ulps & ((std::uint64_t{1} << narrower_) - 1)) != 0);
  if (sorts[0] == Sort::infinity || sorts[1] == Sort::infinity)
    return {ulps == 1 ? Mismatch::saturation : Mismatch::infinity, ulps};
  if (ulps == 0) {
    const bool equal = ((want ^ got) & sign_) == 0 || tolerance_.zero == ZeroSign::ignore;
    return {equal ? Mismatch::none : Mismatch::zero_sign, 0};
  }
  if (ulps <= tolerance_.ulps) return {Mismatch::none, ulps};
  return {finite_mismatch(places[0], places[1], ulps), ulps};
}

Mismatch Comparer::finite_mismatch(std::int64_t want, std::int64_t got, std::uint64_t ulps) const {
  const bool floating = format_ != nullptr && format_->kind == Kind::floating;
  if (floating) {
    const auto tiny = [&](std::int64_t place) {
      return static_cast<std::uint64_t>(place < 0 ? -place : place) <= smallest_normal_;
    };
    if ((want == 0 && tiny(got)) || (got == 0 && tiny(want))) return Mismatch::flush;
  } else {
    const std::int64_t top = place(largest_), bottom = place(sign_);
    const bool limit = want == top || want == bottom || got == top || got == bottom;
    if (limit && ulps > 1) return Mismatch::saturation;
  }
  if (got != INT64_MIN && want == -got) return Mismatch::sign;
  return ulps == 1 ? Mismatch::one_ulp : Mismatch::ulps;
}

namespace {

/// Codes of all kept records together: 64 MiB.
constexpr std::int64_t kMostKept = std::int64_t{1} << 23;
constexpr std::int64_t kMostWrong = 1024, kMostRight = 4096;
constexpr std::int64_t kBatchCodes = std::int64_t{1} << 18, kBatchRecords = 8192;

std::int64_t codes_of(const Layout& layout) {
  std::int64_t codes = 0;
  for (const Field& field : layout) codes += field.count;
  return codes;
}

Comparer comparer_of(const Subject& s, const Tolerance& tolerance) {
  const int bits =
      s.to != nullptr ? s.to->bits : unit::result_register(*s.unit->description()).bits;
  Comparer comparer(s.to, bits, tolerance);
  if (s.unit == nullptr || s.to == nullptr) return comparer;
  const unit::UnitDescription& u = *s.unit->description();
  comparer.set_canonical_nan(u.nan_code);
  const Format* held = unit::result_register(u).format;
  if (held != nullptr && held->exponent_bits == s.to->exponent_bits)
    comparer.set_narrower_by(s.to->mantissa_bits - held->mantissa_bits);
  return comparer;
}

/// Metadata with digits that nobody knows becomes 0, 1, .. of each group: its record is unknown,
/// not wrong.
void make_metadata_legal(const Subject& s, const Layout& layout, Records& records) {
  const int e = find_field(layout, "e");
  if (e < 0) return;
  const auto at = static_cast<std::size_t>(e);
  const std::int64_t count = layout[at].count, kept = s.unit->description()->sparsity.kept;
  for (std::int64_t i = 0; i < records.size; ++i) {
    if (!records.has_unknown(layout, e, i)) continue;
    for (std::int64_t p = 0; p < count; ++p)
      records.columns[at][static_cast<std::size_t>(i * count + p)] =
          static_cast<std::uint64_t>(p % kept);
  }
}

}  // namespace

void Tally::add(const CodeComparison& c) {
  ++records;
  ++by_mismatch[static_cast<std::size_t>(c.mismatch)];
  both_nan += c.both_nan;
  if (c.mismatch == Mismatch::none) {
    tolerated += c.ulps != 0u;
  } else if (c.ulps.value_or(0) != 0) {
    ++by_ulps[static_cast<std::size_t>(std::bit_width(*c.ulps) - 1)];
  }
}

void for_each_part(std::size_t n, const std::function<void(std::size_t)>& work) {
  unit::for_each_tile(static_cast<std::int64_t>(n), 1, unit::kParallelMacs,
                      {.rows = 1, .lanes = 1, .granule = 1}, [&](const unit::Tile& tile) {
                        for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i)
                          work(static_cast<std::size_t>(i));
                      });
}

Judge::Judge(const Subject& subject, const JudgeOptions& compared)
    : Judge(subject, {}, layout_of(subject), comparer_of(subject, compared.tolerance), compared) {}

Judge::Judge(const Subject& subject, Rule rule, Layout layout, const Comparer& comparer,
             const JudgeOptions& compared)
    : subject_(subject),
      rule_(std::move(rule)),
      layout_(std::move(layout)),
      compared_(compared),
      result_(find_field(layout_, subject.unit != nullptr ? "d" : "out")),
      flags_(compared.flags ? find_field(layout_, "flags") : -1),
      comparer_(comparer),
      judged_{.family = rule_.family, .name = rule_.name} {
  // Each with the two records before it.
  const std::int64_t most = std::max<std::int64_t>(kMostKept / (3 * codes_of(layout_)), 4);
  most_wrong_ = compared.samples ? std::min(kMostWrong, most) : 0;
  most_right_ = std::min(kMostRight, most);
}

std::vector<CodeComparison> Judge::compare(const Records& computed, const Records& given,
                                           bool exact) const {
  const Comparer comparer = exact ? comparer_.without_ulps() : comparer_;
  const bool any_integer = !exact && compared_.tolerance.any_invalid_integer && flags_ >= 0 &&
                           subject_.unit == nullptr && subject_.to->kind == Kind::integer;
  const auto fields = static_cast<int>(layout_.size());
  std::vector<CodeComparison> all;
  all.reserve(static_cast<std::size_t>(given.size));
  for (std::int64_t i = 0; i < given.size; ++i) {
    bool unknown = false;
    for (int f = 0; f < fields; ++f) unknown |= given.has_unknown(layout_, f, i);
    CodeComparison c = unknown
                           ? CodeComparison{Mismatch::unknown, std::nullopt}
                           : comparer.compare(computed.code(result_, i), given.code(result_, i));
    if (flags_ >= 0) {
      const std::uint64_t want = computed.code(flags_, i), got = given.code(flags_, i);
      if (!unknown && any_integer && (got & want & kInvalid) != 0) c.mismatch = Mismatch::none;
      if (c.mismatch == Mismatch::none && got != want) c.mismatch = Mismatch::flags;
    }
    all.push_back(c);
  }
  return all;
}

Checked Judge::checked(const Records& given) const {
  Sample sample;
  if (rule_.inputs || rule_.results) sample.records = given;
  Records computed = given;
  make_metadata_legal(subject_, layout_, computed);
  try {
    computed = predict(subject_, rule_, std::move(computed), sample);
  } catch (const RecordError& error) {
    throw Error(fmt::format("{}: {} {}: {}", compared_.name, compared_.place,
                            given.line[static_cast<std::size_t>(error.record)], error.text));
  }
  Checked o;
  o.records = &given;
  o.append = [this, &given](std::int64_t i, Records& to) { append_record(layout_, given, i, to); };
  o.compared = compare(computed, given, false);
  o.want = std::move(computed.columns[static_cast<std::size_t>(result_)]);
  if (flags_ >= 0) o.want_flags = std::move(computed.columns[static_cast<std::size_t>(flags_)]);
  return o;
}

std::int64_t batch_records(const Layout& layout) {
  return std::clamp<std::int64_t>(kBatchCodes / codes_of(layout), 1, kBatchRecords);
}

bool Judge::judge(const BatchReader& read, const std::function<void()>& told) {
  const std::int64_t most = batch_records(layout_);
  std::vector<Records> batches(static_cast<std::size_t>(omp_get_max_threads()));
  for (;;) {
    std::size_t filled = 0;
    while (filled < batches.size() && read(most, batches[filled])) ++filled;
    if (filled == 0) return true;
    if (!check({batches.data(), filled})) return false;
    if (told) told();
  }
}

bool Judge::check(std::span<const Records> batches) {
  std::vector<Checked> all(batches.size());
  for_each_part(batches.size(), [&](std::size_t i) { all[i] = checked(batches[i]); });
  return std::all_of(all.begin(), all.end(), [&](const Checked& one) { return take(one); });
}

bool Judge::take(const Checked& checked) {
  for (std::int64_t i = 0; i < std::ssize(checked.compared); ++i) {
    const CodeComparison& c = checked.compared[static_cast<std::size_t>(i)];
    ClassTally& own = class_tally(checked.records == nullptr ? "" : checked.records->class_name(i));
    if (c.mismatch != Mismatch::none) {
      find(checked, i, own);
    } else if (compared_.samples && c.ulps == 0u) {
      keep_right(checked, i);
    }
    judged_.tally.add(c);
    own.tally.add(c);
    if (compared_.most_mismatches != 0 && judged_.tally.mismatches() == compared_.most_mismatches)
      return false;
  }
  if (checked.compared.empty()) return true;
  const std::int64_t size = std::ssize(checked.compared);
  Records last;
  for (std::int64_t back = std::min<std::int64_t>(2, size + last_.size); back > 0; --back)
    append_earlier(checked, size, back, last);
  last_ = std::move(last);
  return true;
}

void Judge::append_earlier(const Checked& checked, std::int64_t i, std::int64_t back,
                           Records& to) const {
  if (i >= back || last_.size == 0) return checked.append(std::max<std::int64_t>(i - back, 0), to);
  append_record(layout_, last_, std::max<std::int64_t>(last_.size + i - back, 0), to);
}

void Judge::add_to(Sample& sample, const Checked& checked, std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  checked.append(i, sample.records);
  append_earlier(checked, i, 1, sample.before);
  append_earlier(checked, i, 2, sample.earlier);
  sample.want.push_back(checked.want[at]);
  sample.want_flags.push_back(checked.want_flags.empty() ? 0 : checked.want_flags[at]);
  sample.number.push_back(judged_.tally.records);
}

void Judge::find(const Checked& checked, std::int64_t i, ClassTally& own) {
  const CodeComparison& c = checked.compared[static_cast<std::size_t>(i)];
  const auto distance = [](const CodeComparison& x) {
    return std::pair(x.mismatch != Mismatch::unknown, x.ulps.value_or(~std::uint64_t{0}));
  };
  const bool is_first = !judged_.first,
             is_worst = !judged_.worst || distance(c) > distance(judged_.worst->comparison);
  if (is_first || is_worst || !own.first) {
    MismatchedRecord finding{c, {}};
    add_to(finding.one, checked, i);
    if (is_first) judged_.first = finding;
    if (!own.first) own.first = finding;
    if (is_worst) judged_.worst = std::move(finding);
  }
  if (c.mismatch != Mismatch::unknown && wrong_.size() < most_wrong_) add_to(wrong_, checked, i);
}

void Judge::keep_right(const Checked& checked, std::int64_t i) {
  if (right_.size() == most_right_ && judged_.tally.matches() % stride_ == 0) {
    // Every second one goes, and from now on so many fewer come.
    Sample half;
    for (std::int64_t r = 0; r < right_.size(); r += 2) append_record(layout_, right_, r, half);
    right_ = std::move(half);
    stride_ *= 2;
  }
  if (judged_.tally.matches() % stride_ == 0) add_to(right_, checked, i);
}

ClassTally& Judge::class_tally(std::string_view name) {
  for (ClassTally& known : judged_.classes) {
    if (known.name == name) return known;
  }
  judged_.classes.push_back({std::string(name), {}, {}});
  return judged_.classes.back();
}

}  // namespace numemu::oracle
