// Operations on formats and on units, record by record: computed, made as vectors, verified.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/text/verification.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/explain.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/oracle/verify.hpp"

struct numemu_operation {
  numemu_operation(numemu::oracle::Subject given, numemu::api::UnitPtr owner)
      : unit(std::move(owner)),
        subject(std::move(given)),
        layout(numemu::oracle::layout_of(subject)),
        line(numemu::oracle::header_line(subject)) {}

  numemu::api::UnitPtr unit;  ///< null: an operation on formats, or a unit of the catalogue
  numemu::oracle::Subject subject;
  numemu::oracle::Layout layout;
  std::string line;
};

struct numemu_vectors {
  numemu::api::UnitPtr unit;
  numemu::oracle::Generator generator;
  std::int64_t size = 0, at = 0;
};

using namespace numemu;
using c::guarded, c::required;

namespace {

constexpr oracle::Operation kOperations[] = {oracle::Operation::convert, oracle::Operation::mul,
                                             oracle::Operation::add, oracle::Operation::fma,
                                             oracle::Operation::dot};
/// Records at a time: a batch of 64 dots of 2^16 products takes 64 MB.
constexpr std::int64_t kMostCodes = std::int64_t{1} << 22;

const oracle::Field& field(const oracle::Layout& layout, std::int32_t f) {
  if (f < 0 || f >= std::ssize(layout))
    throw usage_error(fmt::format("field: expected 0 to {}, found {}", layout.size() - 1, f));
  return layout[static_cast<std::size_t>(f)];
}

std::int64_t records_at_once(const oracle::Layout& layout) {
  std::int64_t codes = 1;
  for (const oracle::Field& each : layout) codes += each.count;
  return std::max<std::int64_t>(1, kMostCodes / codes);
}

/// Records [first, first + n) of the caller; `results`: with the fields that are computed.
oracle::Records records_of(const oracle::Layout& layout, std::uint64_t* const* columns,
                           std::int64_t first, std::int64_t n, bool results) {
  oracle::Records records(layout, n);
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (columns[f] == nullptr || (layout[f].result && !results)) continue;
    const std::int64_t count = layout[f].count;
    std::copy_n(columns[f] + first * count, n * count, records.columns[f].begin());
  }
  return records;
}

void check_columns(std::int64_t n, std::uint64_t* const* columns) {
  if (n < 0) throw usage_error(fmt::format("n: expected at least 0, found {}", n));
  required(columns, "columns");
}

/// Calls visit(first, count) for pieces that fit the memory.
template <class Visit>
void in_pieces(const oracle::Layout& layout, std::int64_t n, const Visit& visit) {
  const std::int64_t most = records_at_once(layout);
  for (std::int64_t first = 0; first < n; first += most) visit(first, std::min(most, n - first));
}

/// The number of the record in the whole call.
[[noreturn]] void fail_at(const oracle::RecordError& error, std::int64_t first) {
  throw oracle::RecordError(first + error.record, error.text);
}

}  // namespace

const char* numemu_operation_name(int32_t i) {
  return i < 0 || i >= std::ssize(kOperations) ? nullptr : oracle::to_string(kOperations[i]).data();
}

numemu_status numemu_operation_open(const char* name, const numemu_format* from,
                                    const numemu_format* to, const numemu_rounding* rounding,
                                    int64_t k, numemu_operation** out) {
  return guarded([&] {
    required(out, "operation") = nullptr;
    const Conversion how = c::conversion_to(*required(to, "to").format, rounding, nullptr);
    *out = new numemu_operation(
        oracle::operation_subject(oracle::parse_operation(&required(name, "name")),
                                  *required(from, "from").format, *how.format, how.rounding,
                                  how.overflow, k == 0 ? 1 : k),
        nullptr);
  });
}

numemu_status numemu_operation_of_unit(const numemu_unit* unit, const numemu_format* a,
                                       const numemu_format* b, int64_t k, numemu_operation** out) {
  return guarded([&] {
    required(out, "operation") = nullptr;
    const api::UnitPtr& owner = required(unit, "unit").unit;
    *out = new numemu_operation(
        oracle::unit_subject(*owner, k, a == nullptr ? nullptr : a->format,
                             b == nullptr ? (a == nullptr ? nullptr : a->format) : b->format),
        owner);
  });
}

numemu_status numemu_operation_of_line(const char* line, numemu_operation** out) {
  return guarded([&] {
    required(out, "operation") = nullptr;
    *out = new numemu_operation(oracle::parse_header(&required(line, "line")), nullptr);
  });
}

void numemu_operation_close(numemu_operation* operation) { delete operation; }
const char* numemu_operation_line(const numemu_operation* operation) {
  return operation == nullptr ? "" : operation->line.c_str();
}
int32_t numemu_operation_fields(const numemu_operation* operation) {
  return operation == nullptr ? 0 : static_cast<int32_t>(operation->layout.size());
}

numemu_status numemu_operation_describe(const numemu_operation* operation, int32_t f,
                                        numemu_field* out) {
  return guarded([&] {
    const oracle::Field& one = field(required(operation, "operation").layout, f);
    c::give({.size = 0,
             .name = one.name.c_str(),
             .format = one.format == nullptr ? nullptr : one.format->name.c_str(),
             .bits = one.bits,
             .is_result = one.result,
             .count = one.count},
            out, "field");
  });
}

numemu_status numemu_operation_compute(const numemu_operation* operation, int64_t n,
                                       uint64_t* const* columns) {
  return guarded([&] {
    const auto& [unit, subject, layout, line] = required(operation, "operation");
    check_columns(n, columns);
    in_pieces(layout, n, [&](std::int64_t first, std::int64_t count) {
      oracle::Records records = records_of(layout, columns, first, count, false);
      try {
        oracle::evaluate(subject, records);
      } catch (const oracle::RecordError& error) {
        fail_at(error, first);
      }
      for (std::size_t f = 0; f < layout.size(); ++f)
        if (layout[f].result && columns[f] != nullptr)
          std::ranges::copy(records.columns[f], columns[f] + first * layout[f].count);
    });
  });
}

numemu_status numemu_operation_explain(const numemu_operation* operation, uint64_t* const* columns,
                                       int64_t i, char* text, size_t room, size_t* length) {
  return guarded([&] {
    const auto& [unit, subject, layout, line] = required(operation, "operation");
    check_columns(i, columns);
    oracle::Compared compared;
    compared.name = "record";
    oracle::Verifier verifier(subject, compared);
    const std::vector<oracle::Records> one = {records_of(layout, columns, i, 1, true)};
    verifier.check(one);
    std::string out;
    for (const std::string& each : oracle::parting(subject, one[0], nullptr)) out += each + "\n";
    c::write_text(out, text, room, length);
  });
}

numemu_status numemu_vectors_open(const numemu_operation* operation, const char* style,
                                  int32_t level, uint64_t seed, int64_t n, numemu_vectors** out) {
  return guarded([&] {
    required(out, "vectors") = nullptr;
    const numemu_operation& given = required(operation, "operation");
    if (level != 1 && level != 2)
      throw usage_error(fmt::format("level: expected 1 or 2, found {}", level));
    if (n < 0) throw usage_error(fmt::format("n: expected at least 0, found {}", n));
    oracle::Subject subject = given.subject;
    subject.style = style == nullptr ? "mixed" : style;
    subject.level = level;
    subject.seed = seed;
    auto made =
        std::make_unique<numemu_vectors>(numemu_vectors{given.unit, oracle::Generator(subject)});
    const std::int64_t limit = made->generator.limit();
    if (limit != 0 && n > limit)
      throw usage_error(fmt::format("n: expected at most {}, all records of style {}, found {}",
                                    limit, subject.style, n));
    made->size = n != 0 ? n : limit != 0 ? limit : level == 1 ? 10'000 : 1'000'000;
    *out = made.release();
  });
}
void numemu_vectors_close(numemu_vectors* vectors) { delete vectors; }
int64_t numemu_vectors_size(const numemu_vectors* vectors) {
  return vectors == nullptr ? 0 : vectors->size;
}

numemu_status numemu_vectors_next(numemu_vectors* vectors, int64_t most, uint64_t* const* columns,
                                  int64_t* got) {
  return guarded([&] {
    numemu_vectors& v = required(vectors, "vectors");
    required(got, "got") = 0;
    check_columns(most, columns);
    const oracle::Layout& layout = v.generator.layout();
    const std::int64_t n = std::min(most, v.size - v.at);
    in_pieces(layout, n, [&](std::int64_t first, std::int64_t count) {
      oracle::Records records(layout, count);
      v.generator.fill(v.at + first, records);
      for (std::size_t f = 0; f < layout.size(); ++f)
        if (columns[f] != nullptr)
          std::ranges::copy(records.columns[f], columns[f] + first * layout[f].count);
    });
    v.at += n;
    *got = n;
  });
}

numemu_status numemu_vectors_seek(numemu_vectors* vectors, int64_t i) {
  return guarded([&] {
    numemu_vectors& v = required(vectors, "vectors");
    if (i < 0 || i > v.size)
      throw usage_error(fmt::format("i: expected 0 to {}, found {}", v.size, i));
    v.at = i;
  });
}

numemu_status numemu_operation_verify(const numemu_operation* operation,
                                      const numemu_tolerance* given, int64_t n,
                                      uint64_t* const* columns, numemu_verdict* verdict, char* text,
                                      size_t room, size_t* length) {
  return guarded([&] {
    const auto& [unit, subject, layout, line] = required(operation, "operation");
    check_columns(n, columns);
    for (std::size_t f = 0; f < layout.size(); ++f)
      if (layout[f].result && layout[f].name != "flags") required(columns[f], "columns: results");
    const auto told = c::members_or_zero(given, "tolerance");
    if (told.nan < NUMEMU_NAN_ANY || told.nan > NUMEMU_NAN_PAYLOAD)
      throw usage_error(fmt::format("tolerance: nan: expected 0 to 2, found {}", told.nan));
    oracle::Compared compared;
    compared.flags = told.compare_flags != 0;
    compared.tolerance.nan = static_cast<oracle::NanMatch>(told.nan);
    compared.tolerance.zero =
        told.ignore_zero_sign != 0 ? oracle::ZeroSign::ignore : oracle::ZeroSign::strict;
    compared.tolerance.ulps = told.ulps;
    compared.place = "record";
    api::Verified verified{.verifier = oracle::Verifier(subject, compared),
                           .name = "records",
                           .unit = unit,
                           .product = nullptr,
                           .place = "record"};
    in_pieces(layout, n, [&](std::int64_t first, std::int64_t count) {
      std::vector<oracle::Records> batch = {records_of(layout, columns, first, count, true)};
      for (std::int64_t i = 0; i < count; ++i) batch[0].line.push_back(first + i);
      verified.verifier.check(batch);
    });
    const oracle::Tally& tally = verified.verifier.tally();
    const auto number = [](const std::optional<oracle::MismatchedRecord>& one) {
      return one ? one->one.number[0] : -1;
    };
    const auto& worst = verified.verifier.worst();
    c::give({.size = 0,
             .records = tally.records,
             .matches = tally.matches(),
             .mismatches = tally.mismatches(),
             .tolerated = tally.tolerated,
             .first = number(verified.verifier.first()),
             .worst = number(worst),
             .worst_ulps = !worst ? 0 : worst->comparison.ulps.value_or(UINT64_MAX)},
            verdict, "verdict");
    if (text == nullptr && length == nullptr) return;
    if (tally.mismatches() != 0) verified.explanation = oracle::explain(verified.verifier);
    c::write_text(api::verify_text(verified), text, room, length);
  });
}
