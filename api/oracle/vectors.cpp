// Test vectors: records by batches on all threads, in their order.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/files/sv_package.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using namespace oracle;

/// Records of one level where their number is not given.
constexpr std::int64_t kUsual[] = {10000, 1000000};
/// The most bytes of files that are made in memory.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;

/// Options that say what a unit's description says already.
void refuse_beside_unit(const VectorOptions& o) {
  for (const auto& [option, value] : {std::pair("--format", &o.format),
                                      {"--from", &o.from},
                                      {"--to", &o.to},
                                      {"--rounding", &o.rounding},
                                      {"--overflow", &o.overflow}}) {
    if (!value->empty())
      throw Error(
          fmt::format("{}: expected with --op: a unit has its own{}", option,
                      value == &o.format ? " (--format-a, --format-b where it takes any)" : ""));
  }
}

Subject operation_of(const VectorOptions& o) {
  if (o.op.empty()) throw usage_error("expected --unit or --op, one of them");
  const Operation operation = parse_operation(o.op);
  for (const auto& [option, value] :
       {std::pair("--format-a", &o.format_a), {"--format-b", &o.format_b}}) {
    if (!value->empty()) throw usage_error(fmt::format("{}: expected with --unit", option));
  }
  if (!o.format.empty() && !o.from.empty())
    throw usage_error("--format, --from: expected one of them");
  const std::string& from = o.from.empty() ? o.format : o.from;
  const bool converts = row_of(operation).arithmetic == Arithmetic::number;
  if (from.empty())
    throw usage_error(converts ? "expected --from F and --to F"
                               : "expected --format F, the format of the operands");
  if (converts && o.to.empty()) throw usage_error("expected --to F");
  if (o.k && operation != Operation::dot)
    throw usage_error("--k: expected with --op dot or --unit");
  // Conversions default as `encode` does, arithmetic as IEEE 754.
  const std::string usual = converts ? "saturate" : "ieee";
  constexpr std::int64_t kProducts = 32;
  const Format& operands = find_format(from);
  return operation_subject(operation, operands,
                           o.to.empty() ? usual_result(operation, operands) : find_format(o.to),
                           parse_rounding(o.rounding.empty() ? "rne" : o.rounding),
                           parse_overflow(o.overflow.empty() ? usual : o.overflow),
                           operation == Operation::dot ? o.k.value_or(kProducts) : 1);
}

std::int64_t number_of(std::optional<std::int64_t> n, const Generator& generator) {
  const std::int64_t limit = generator.limit(), usual = kUsual[generator.subject().level - 1];
  if (generator.subject().style == "exhaustive") {
    if (n && *n > limit)
      throw usage_error(
          fmt::format("--n: expected at most {}, the inputs there are, found {}", limit, *n));
    return n.value_or(limit);
  }
  // All combinations of edges where they are not many more than the usual records.
  constexpr std::int64_t kSome = 10;
  return n.value_or(limit != 0 && limit <= kSome * usual ? limit : usual);
}

/// Throws where files that are made in memory would be too large.
void require_room(std::int64_t n, std::int64_t record_bytes) {
  const std::int64_t most = kMostBytes / record_bytes;
  if (n > most)
    throw usage_error(
        fmt::format("--n: expected at most {} records in a file made in memory, found {}: "
                    "text, csv and jsonl go to standard output in any number",
                    most, n));
}

}  // namespace

Subject subject_of(const VectorOptions& o, UnitPtr& own) {
  if (o.level < 1 || o.level > 2)
    throw usage_error(fmt::format("--level: expected 1 or 2, found {}", o.level));
  if (o.n && *o.n < 1) throw usage_error(fmt::format("--n: expected at least 1, found {}", *o.n));
  if (o.k && (*o.k < 1 || *o.k > oracle::kMostProducts))
    throw usage_error(fmt::format("--k: expected 1 to {}, found {}", oracle::kMostProducts, *o.k));
  Subject s;
  if (o.unit.empty() && o.opened == nullptr) {
    s = operation_of(o);
  } else {
    if (!o.op.empty()) throw usage_error("--unit, --op: expected one of them");
    refuse_beside_unit(o);
    own = o.opened;
    if (own == nullptr && is_unit_file(o.unit)) own = open_unit(o.unit);
    const Format* a = o.format_a.empty() ? nullptr : &find_format(o.format_a);
    const Format* b = o.format_b.empty() ? a : &find_format(o.format_b);
    if (own == nullptr) own = open_unit(o.unit);
    s = unit_subject(*own, o.k.value_or(0), a, b);
  }
  if (!o.epilogue.requantize.empty())
    s = oracle::codes_subject(s, unit::parse_requantization(o.epilogue.requantize),
                              find_format(o.epilogue.format), o.epilogue.low, o.epilogue.high);
  s.seed = o.seed;
  s.level = static_cast<int>(o.level);
  s.style = o.style;
  return s;
}

namespace {

/// The numbers that the options give to every record.
oracle::EpilogueConstants constants_of(const Subject& s, const EpilogueFiles& given) {
  oracle::EpilogueConstants constants;
  if (!s.codes) return constants;
  for (const auto& [option, text] : {std::pair("--bias", &given.bias),
                                     {"--factor", &given.factor},
                                     {"--multiplier", &given.multiplier},
                                     {"--shift", &given.shift}}) {
    if (is_results_file(*text) || (text == &given.bias && !text->empty()))
      throw usage_error(fmt::format(
          "{}: expected {}, found '{}'", option,
          text == &given.bias ? "none: records have theirs" : "one number for all records", *text));
  }
  EpilogueNumbers numbers = numbers_of(given);
  const bool drawn = given.factor.empty() && given.multiplier.empty() && given.shift.empty();
  if (drawn) numbers.factor.values = {1};
  const unit::Epilogue e = make_epilogue(*s.unit, numbers);
  if (given.zero_point) constants.zero_point = e.zero_point;
  if (drawn) return constants;
  if (!e.factors.empty()) constants.factor = e.factors.front();
  if (!e.fixed_factors.empty()) constants.fixed = e.fixed_factors.front();
  return constants;
}

}  // namespace

UnitPtr unit_described(const std::string& file, std::string_view header) {
  const std::string text(oracle::described_in(header));
  if (text.empty()) return nullptr;
  return unit::make_unit(unit::parse_description(text, file + ": line 1: description"));
}

Vectors::Vectors(const VectorOptions& o) {
  const Subject subject = subject_of(o, unit_);
  generator_.emplace(subject, constants_of(subject, o.epilogue));
  size_ = number_of(o.n, *generator_);
}

Vectors::Vectors(const Subject& subject, std::optional<std::int64_t> n) {
  generator_.emplace(subject);
  size_ = number_of(n, *generator_);
}

template <class Piece>
void Vectors::in_order(const std::function<void(Records&, Piece&)>& make,
                       const std::function<void(Piece&)>& use,
                       const OnProgress& on_progress) const {
  constexpr std::int64_t kBatchCodes = 1 << 15, kLong = 1 << 20;
  const std::int64_t n = size_;
  std::int64_t codes = 0;
  for (const Field& f : layout()) codes += f.count;
  const std::int64_t batch = std::clamp<std::int64_t>(kBatchCodes / codes, 16, 8192);
  const std::int64_t round = batch * omp_get_max_threads() * 4;
  const auto tell = [&](std::int64_t done) {
    if (on_progress && n * codes >= kLong)
      on_progress("records", static_cast<double>(done), static_cast<double>(n));
  };
  tell(0);
  for (std::int64_t first = 0; first < n; first += round) {
    const std::int64_t count = std::min(round, n - first), batches = (count + batch - 1) / batch;
    std::vector<Piece> pieces(static_cast<std::size_t>(batches));
    std::vector<std::exception_ptr> errors(pieces.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t b = 0; b < batches; ++b) {
      try {
        Records records(layout(), std::min(batch, count - b * batch));
        fill(first + b * batch, records);
        make(records, pieces[static_cast<std::size_t>(b)]);
      } catch (...) {
        errors[static_cast<std::size_t>(b)] = std::current_exception();
      }
    }
    for (std::size_t b = 0; b < pieces.size(); ++b) {
      if (errors[b] != nullptr) std::rethrow_exception(errors[b]);
      use(pieces[b]);
    }
    tell(first + count);
  }
}

void Vectors::write(FileForm form, const std::function<void(const std::string&)>& to,
                    const OnProgress& on_progress) const {
  to(form_head(form, subject(), layout()));
  in_order<std::string>(
      [&](Records& r, std::string& text) { append_records(form, layout(), r, text); },
      [&](std::string& text) { to(text); }, on_progress);
}

void Vectors::write_file(FileForm form, const std::string& path,
                         const OnProgress& on_progress) const {
  OutputFiles files;
  if (form == FileForm::npz) {
    require_room(size_, NpzWriter::record_bytes(layout()));
    NpzWriter writer(subject(), layout());
    in_order<Records>([](Records& r, Records& made) { made = std::move(r); },
                      [&](Records& made) { writer.append(made); }, on_progress);
    files.add_text("vectors", path, writer.file());
  } else if (form == FileForm::readmemh || form == FileForm::sv) {
    const bool package = form == FileForm::sv;
    const std::string name = package ? package_name(path) : "";
    std::int64_t bytes = 0;
    constexpr std::int64_t kClass = 20;
    for (const Field& f : layout()) bytes += (f.count * f.bits + 3) / 4 + kClass;
    require_room(size_, bytes);
    std::vector<std::string> ports(layout().size(), port_head(subject()));
    // The classes are numbered in their order, so by one thread.
    SvPackage sv;
    std::string classes = port_head(subject());
    struct Ports {
      std::vector<std::string> texts;
      Records records;
    };
    in_order<Ports>(
        [&](Records& r, Ports& made) {
          made.texts.resize(layout().size());
          for (std::size_t f = 0; f < layout().size(); ++f)
            append_port(layout()[f], r, static_cast<int>(f), made.texts[f]);
          if (package) made.records = std::move(r);
        },
        [&](Ports& made) {
          for (std::size_t f = 0; f < layout().size(); ++f) ports[f] += made.texts[f];
          sv.append_classes(made.records, classes);
        },
        on_progress);
    for (std::size_t f = 0; f < layout().size(); ++f)
      files.add_text(layout()[f].name, port_file(path, layout()[f].name), ports[f]);
    if (package) {
      files.add_text("class", port_file(path, "class"), classes);
      files.add_text("package", path + "_pkg.sv", sv.text(name, subject(), layout()));
    }
  } else {
    std::string all, sample;
    append_records(form, layout(), Records(layout(), 1), sample);
    constexpr std::int64_t kClass = 16;
    require_room(size_, static_cast<std::int64_t>(sample.size()) + kClass);
    write(
        form, [&](const std::string& text) { all += text; }, on_progress);
    files.add_text("vectors", path, all);
  }
  files.publish();
}

Verified verify_records(const oracle::Subject& subject, const oracle::Records& records,
                        const Equality& equality, bool flags, bool explained) {
  const oracle::Layout layout = oracle::layout_of(subject);
  oracle::require_codes(layout, records, true);
  oracle::JudgeOptions compared;
  compared.tolerance = equality.tolerance;
  compared.most_mismatches = equality.most_mismatches;
  compared.flags = flags && oracle::find_field(layout, "flags") >= 0;
  compared.place = "record";
  Verified verified{oracle::Judge(subject, compared), compared.name, nullptr, nullptr};
  verified.place = "record";
  std::int64_t first = 0;
  verified.complete = verified.judge.judge([&](std::int64_t most, oracle::Records& batch) {
    const std::int64_t n = std::min(most, records.size - first);
    batch = oracle::slice(layout, records, first, n);
    batch.classes = records.classes;
    std::copy_n(records.class_of.begin() + first, n, batch.class_of.begin());
    std::iota(batch.line.begin(), batch.line.end(), first);
    first += n;
    return n != 0;
  });
  if (explained) verified.explanation = oracle::explain(verified.judge);
  return verified;
}

}  // namespace numemu::api
