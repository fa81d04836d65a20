#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "api/text/verification.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"

struct numemu_vectors {
  numemu::api::UnitPtr unit;  ///< of the subject, which it keeps
  numemu::api::Vectors vectors;
  std::int64_t at = 0;
};

namespace numemu::c {
namespace {

/// Records as the caller has them: a column of codes for each field, any of which may be NULL.
using Columns = std::uint64_t* const*;

/// Throws Error unless the columns can hold n records.
void require_columns(const oracle::Layout& layout, Columns columns, std::int64_t n) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / sizeof(std::uint64_t);
  std::int64_t most = 1;
  for (const oracle::Field& field : layout) most = std::max(most, field.count);
  require_within("n", n, 0, kMost / most);
  if (n != 0) required(columns, "columns");
}

/// Records [first, first + n) without their results, or with them. A column that is NULL is all 0.
oracle::Records records_of(const oracle::Layout& layout, Columns columns, std::int64_t first,
                           std::int64_t n, bool results) {
  oracle::Records records(layout, n);
  if (n == 0) return records;  // columns may be NULL
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (columns[f] == nullptr || (layout[f].result && !results)) continue;
    const std::int64_t count = layout[f].count;
    std::copy_n(columns[f] + first * count, n * count, records.columns[f].begin());
  }
  return records;
}

/// Writes fields from record `first` on: the results, or all.
void give_records(const oracle::Layout& layout, const oracle::Records& records, std::int64_t first,
                  Columns columns, bool inputs) {
  if (records.size == 0) return;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (columns[f] == nullptr || (!layout[f].result && !inputs)) continue;
    std::copy(records.columns[f].begin(), records.columns[f].end(),
              columns[f] + first * layout[f].count);
  }
}

/// Calls body(first, n) for pieces of some records over threads. The first piece that throws
/// decides what is thrown.
void in_pieces(const oracle::Layout& layout, std::int64_t n,
               const std::function<void(std::int64_t first, std::int64_t n)>& body) {
  constexpr std::int64_t kCodes = 1 << 14, kLeast = 16;
  std::int64_t codes = 0;
  for (const oracle::Field& field : layout) codes += field.count;
  const std::int64_t piece = std::max(kCodes / codes, kLeast);
  if (n <= piece) {
    if (n > 0) body(0, n);
    return;
  }
  const std::int64_t pieces = (n + piece - 1) / piece;
  std::int64_t failed = pieces;
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t p = 0; p < pieces; ++p) {
    try {
      body(p * piece, std::min(piece, n - p * piece));
    } catch (...) {
#pragma omp critical(numemu_c_pieces)
      if (p < failed) {
        failed = p;
        error = std::current_exception();
      }
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

numemu_operation* handle_of(const oracle::Subject& subject, api::UnitPtr unit) {
  return new numemu_operation{subject, std::move(unit), oracle::layout_of(subject),
                              oracle::header_line(subject)};
}

oracle::Tolerance tolerance_of(const numemu_tolerance& given) {
  require_within("tolerance: nan", given.nan, NUMEMU_NAN_ANY, NUMEMU_NAN_PAYLOAD);
  return {.nan = static_cast<oracle::NanMatch>(given.nan),
          .zero = given.ignore_zero_sign != 0 ? oracle::ZeroSign::ignore : oracle::ZeroSign::strict,
          .ulps = given.ulps};
}

std::int64_t number_of(const std::optional<oracle::MismatchedRecord>& found) {
  return found ? found->one.number[0] : -1;
}

}  // namespace
}  // namespace numemu::c

using namespace numemu;
using namespace numemu::c;

const char* numemu_operation_name(int32_t i) {
  const auto names = oracle::operation_names();
  return i < 0 || i >= std::ssize(names) ? nullptr : names[static_cast<std::size_t>(i)].data();
}

numemu_status numemu_operation_open(const char* name, const numemu_format* from,
                                    const numemu_format* to, const numemu_rounding* rounding,
                                    int64_t k, numemu_operation** out) {
  return call([&] {
    required(out, "out") = nullptr;
    const Format& source = *required(from, "from").format;
    const numemu_rounding how = rounding_of(rounding);
    const oracle::Operation operation = oracle::parse_operation(&required(name, "name"));
    require_within("k", k, 0, operation == oracle::Operation::dot ? INT64_MAX : 1);
    *out = handle_of(oracle::operation_subject(
                         operation, source,
                         to == nullptr ? oracle::usual_result(operation, source) : *to->format,
                         how.rounding, how.overflow, std::max<std::int64_t>(k, 1)),
                     nullptr);
  });
}

numemu_status numemu_operation_of_unit(const numemu_unit* handle, const numemu_format* a,
                                       const numemu_format* b, int64_t k, numemu_operation** out) {
  return call([&] {
    required(out, "out") = nullptr;
    const api::UnitPtr& unit = required(handle, "unit").unit;
    const Format* of_a = format_of(a);
    *out = handle_of(oracle::unit_subject(*unit, k, of_a, b == nullptr ? of_a : b->format), unit);
  });
}

numemu_status numemu_operation_of_line(const char* line, numemu_operation** out) {
  return call([&] {
    required(out, "out") = nullptr;
    const std::string text = &required(line, "line");
    const api::UnitPtr unit = api::unit_described("line", text);
    *out = handle_of(oracle::parse_header(text, unit.get()), unit);
  });
}

void numemu_operation_close(numemu_operation* operation) { delete operation; }

const char* numemu_operation_line(const numemu_operation* operation) {
  return operation == nullptr ? nullptr : operation->line.c_str();
}

int32_t numemu_operation_fields(const numemu_operation* operation) {
  return operation == nullptr ? 0 : static_cast<std::int32_t>(operation->layout.size());
}

numemu_status numemu_operation_describe(const numemu_operation* operation, int32_t f,
                                        numemu_field* out) {
  return call([&] {
    const oracle::Layout& layout = required(operation, "operation").layout;
    require_within("f", f, 0, std::ssize(layout) - 1);
    const oracle::Field& own = layout[static_cast<std::size_t>(f)];
    numemu_field field = {};
    field.name = own.name.c_str();
    field.format = own.format == nullptr ? nullptr : own.format->name.c_str();
    field.bits = own.bits;
    field.is_result = own.result;
    field.count = own.count;
    give(field, out, "field");
  });
}

numemu_status numemu_operation_compute(const numemu_operation* operation, int64_t n,
                                       uint64_t* const* columns) {
  return call([&] {
    const oracle::Layout& layout = required(operation, "operation").layout;
    require_columns(layout, columns, n);
    const int flags = oracle::find_field(layout, "flags");
    const bool told = flags < 0 || (n > 0 && columns[flags] != nullptr);
    in_pieces(layout, n, [&](std::int64_t first, std::int64_t count) {
      oracle::Records records = records_of(layout, columns, first, count, false);
      try {
        oracle::require_codes(layout, records, false);
        told ? oracle::evaluate(operation->subject, records)
             : oracle::evaluate_without_flags(operation->subject, layout, records);
      } catch (const oracle::RecordError& error) {
        throw oracle::RecordError(first + error.record, error.text);
      }
      give_records(layout, records, first, columns, false);
    });
  });
}

numemu_status numemu_operation_explain(const numemu_operation* operation, uint64_t* const* columns,
                                       int64_t i, char* text, size_t room, size_t* length) {
  return call([&] {
    const numemu_operation& o = required(operation, "operation");
    require_within("i", i, 0, std::numeric_limits<std::int64_t>::max() - 1);
    require_columns(o.layout, columns, i + 1);
    const oracle::Records one = records_of(o.layout, columns, i, 1, true);
    oracle::require_codes(o.layout, one, true);
    give_text(api::explain_record(o.subject, one), text, room, length);
  });
}

numemu_status numemu_operation_verify(const numemu_operation* operation,
                                      const numemu_tolerance* given, int64_t n,
                                      uint64_t* const* columns, numemu_verdict* out, char* text,
                                      size_t room, size_t* length) {
  return call([&] {
    const numemu_operation& o = required(operation, "operation");
    require_columns(o.layout, columns, n);
    const numemu_tolerance tolerance = taken(given, "tolerance");
    // A column that is not there reads as 0, which no result may.
    for (std::size_t f = 0; n != 0 && f < o.layout.size(); ++f)
      if (o.layout[f].result && (o.layout[f].name != "flags" || tolerance.compare_flags != 0))
        required(columns[f], "columns: results");
    // Scoreboards ask record by record, without words.
    const bool told = text != nullptr || length != nullptr;
    const api::Verified verified = api::verify_records(
        o.subject, records_of(o.layout, columns, 0, n, true),
        {.tolerance = tolerance_of(tolerance)}, tolerance.compare_flags != 0, told);
    const oracle::Judged& judged = verified.judge.judged();
    numemu_verdict verdict = {};
    verdict.records = judged.tally.records;
    verdict.matches = judged.tally.matches();
    verdict.mismatches = judged.tally.mismatches();
    verdict.tolerated = judged.tally.tolerated;
    verdict.first = number_of(judged.first);
    verdict.worst = number_of(judged.worst);
    if (const auto& worst = judged.worst)
      verdict.worst_ulps =
          worst->comparison.ulps.value_or(std::numeric_limits<std::uint64_t>::max());
    give(verdict, out, "verdict");
    if (told) give_text(api::verify_text(verified), text, room, length);
  });
}

numemu_status numemu_vectors_open(const numemu_operation* operation, const char* style,
                                  int32_t level, uint64_t seed, int64_t n, numemu_vectors** out) {
  return call([&] {
    required(out, "out") = nullptr;
    const numemu_operation& o = required(operation, "operation");
    require_within("level", level, 1, 2);
    require_within("n", n, 0, INT64_MAX);
    oracle::Subject subject = o.subject;
    subject.style = style == nullptr ? "mixed" : style;
    subject.level = level;
    subject.seed = seed;
    *out =
        new numemu_vectors{o.unit, api::Vectors(subject, n == 0 ? std::nullopt : std::optional(n))};
  });
}

void numemu_vectors_close(numemu_vectors* vectors) { delete vectors; }

int64_t numemu_vectors_size(const numemu_vectors* vectors) {
  return vectors == nullptr ? 0 : vectors->vectors.size();
}

numemu_status numemu_vectors_next(numemu_vectors* vectors, int64_t most, uint64_t* const* columns,
                                  int64_t* got) {
  return call([&] {
    required(got, "got") = 0;
    numemu_vectors& v = required(vectors, "vectors");
    const oracle::Layout& layout = v.vectors.layout();
    require_within("most", most, 0, INT64_MAX);
    const std::int64_t n = std::min(most, v.vectors.size() - v.at);
    require_columns(layout, columns, n);
    in_pieces(layout, n, [&](std::int64_t first, std::int64_t count) {
      oracle::Records records(layout, count);
      v.vectors.fill(v.at + first, records);
      give_records(layout, records, first, columns, true);
    });
    v.at += n;
    *got = n;
  });
}

numemu_status numemu_vectors_seek(numemu_vectors* vectors, int64_t i) {
  return call([&] {
    numemu_vectors& v = required(vectors, "vectors");
    require_within("i", i, 0, v.vectors.size());
    v.at = i;
  });
}
