// Results made elsewhere: files of records, arrays of a kernel, folders that GPUs recorded.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "emu/oracle/codes_of_sums.hpp"
#include "emu/oracle/record.hpp"
#include "emu/unit/reference/step.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes_file.hpp"

namespace numemu::api {
namespace {

using oracle::Operation;
using oracle::Records;
using oracle::Subject;

oracle::JudgeOptions compared_by(const Equality& equality) {
  oracle::JudgeOptions compared;
  compared.tolerance = equality.tolerance;
  compared.most_mismatches = equality.most_mismatches;
  return compared;
}

/// What the first line of a file of `numemu vectors` would say.
const std::string& required(const std::string& text, const char* option, const char* what = "one") {
  if (text.empty())
    throw usage_error(
        fmt::format("{}: expected {}, as the file has no first line with it", option, what));
  return text;
}

/// What the options alone say; `k` of a foreign layout. Of a unit, which it opens.
Subject told_subject(const RecordsTold& o, std::int64_t k, UnitPtr& unit) {
  if (o.unit.empty()) {
    const Operation operation = oracle::parse_operation(required(o.op, "--unit or --op"));
    const Format& from = find_format(required(o.from, "--from"));
    const Format& to = o.to.empty() ? oracle::usual_result(operation, from) : find_format(o.to);
    return oracle::operation_subject(
        operation, from, to, parse_rounding(o.rounding.empty() ? "rne" : o.rounding),
        parse_overflow(required(o.overflow, "--overflow", "saturate, propagate or ieee")),
        std::max<std::int64_t>(k, 1));
  }
  const auto format = [](const std::string& name) {
    return name.empty() ? nullptr : &find_format(name);
  };
  const Format* const b = format(o.format_b);
  const Format* const a = format(o.format_a);
  unit = open_unit(o.unit);
  const Subject s = oracle::unit_subject(*unit, k, a, b);
  if (o.requantize.empty()) return s;
  return oracle::codes_subject(s, unit::parse_requantization(o.requantize),
                               find_format(o.format_d.empty() ? "int8" : o.format_d), o.low,
                               o.high);
}

/// Refuses operands that are not those of the file's first line.
void require_told(const RecordsTold& o, const std::string& name, const Subject& s) {
  const auto require = [&](const char* option, bool agrees, const auto& found) {
    if (!agrees)
      throw usage_error(
          fmt::format("{}: expected {} or nothing, as {} has it", option, found, name));
  };
  const auto format = [&](const char* option, const std::string& told, const Format* own) {
    const std::string found = own != nullptr ? own->name : "nothing";
    require(option, told.empty() || (own != nullptr && find_format(told).name == found), found);
  };
  require("--k", o.k == 0 || o.k == s.k, s.k);
  format("--from", o.from, s.a);
  format("--to", o.to, s.to);
  format("--format-a", o.format_a, s.a);
  format("--format-b", o.format_b, s.b);
  if (!o.requantize.empty()) {
    const std::string_view own = s.codes ? unit::row_of(s.codes->how).name : "nothing";
    require("--requantize", o.requantize == own, own);
    format("--format-d", o.format_d, s.to);
    require("--low", !o.low || *o.low == s.codes->low, s.codes->low);
    require("--high", !o.high || *o.high == s.codes->high, s.codes->high);
  }
  if (s.unit != nullptr && (!o.rounding.empty() || !o.overflow.empty()))
    throw usage_error(fmt::format("{}: not allowed with the unit's vectors of {}",
                                  o.rounding.empty() ? "--overflow" : "--rounding", name));
}

/// The file's first line, except for what the options say instead.
/// `depth`: products of a record as the file has them, where it tells.
Subject subject_of(const RecordsTold& o, const std::string& name, const std::string& header,
                   std::int64_t depth, UnitPtr& unit) {
  if (header.empty()) return told_subject(o, o.k == 0 ? depth : o.k, unit);
  Subject s;
  at(name + ": line 1", [&] {
    unit = o.unit.empty() ? unit_described(name, header) : open_unit(o.unit);
    s = oracle::parse_header(header, unit.get());
  });
  if (!o.unit.empty() && s.unit == nullptr)
    throw usage_error(
        fmt::format("--unit: {} holds vectors of operation {}", name, to_string(s.operation)));
  if (!o.op.empty() && (s.unit != nullptr || oracle::parse_operation(o.op) != s.operation))
    throw usage_error(fmt::format(
        "--op: {} contradicts {}, whose vectors are of {}", o.op, name,
        s.unit != nullptr ? "unit " + s.unit->row().name : std::string(to_string(s.operation))));
  require_told(o, name, s);
  if (!o.rounding.empty()) s.rounding = parse_rounding(o.rounding);
  if (!o.overflow.empty()) s.overflow = parse_overflow(o.overflow);
  return s;
}

/// Records of either kind of file.
class Source {
 public:
  Source(const std::string& in, const RecordsTold& o) {
    if (o.fields.empty()) {
      file_.emplace(in);
      subject = subject_of(o, file_->name(), file_->header(), file_->depth(), unit);
      return;
    }
    oracle::Layout fields = oracle::parse_fields(o.fields);
    const int b = oracle::find_field(fields, "b");
    subject = told_subject(o, b < 0 ? 1 : fields[static_cast<std::size_t>(b)].count, unit);
    stream_.emplace(in);
    foreign_.emplace(std::move(fields), o.order, subject, stream_->name(), text_of(*stream_));
  }

  bool read(const oracle::Layout& layout, std::int64_t most, Records& records) {
    return file_ ? file_->read(layout, most, records) : foreign_->read(most, records);
  }
  bool has_flags(const oracle::Layout& layout) const {
    if (oracle::find_field(layout, "flags") < 0) return false;
    return file_ ? file_->has_optional() : foreign_->has("flags");
  }
  const std::string& name() const { return file_ ? file_->name() : stream_->name(); }
  const char* place() const { return file_ ? file_->place() : "line"; }
  std::int64_t size() const { return file_ ? file_->size() : stream_->size(); }
  std::int64_t consumed() const { return file_ ? file_->consumed() : stream_->consumed(); }

  UnitPtr unit;
  Subject subject;

 private:
  std::optional<RecordFile> file_;
  std::optional<ByteStream> stream_;
  std::optional<oracle::ForeignReader> foreign_;
};

/// Codes of C or D in the containers that units use.
std::uint64_t result_code(const Format* format, const Array& array, std::int64_t i) {
  if (format != nullptr) return load_code(*format, array.data.data(), i);
  std::uint64_t code = 0;  // the lowest bytes of a little-endian integer
  const auto bytes = static_cast<std::size_t>(bytes_of(array.type));
  std::memcpy(&code, array.data.data() + i * static_cast<std::int64_t>(bytes), bytes);
  return code;
}

/// Of element e of a row of A or a column of B.
std::int64_t place(const unit::Gather& gather, std::int64_t line, std::int64_t e) {
  return std::int64_t{gather.row[static_cast<std::size_t>(line)]} +
         gather.depth[static_cast<std::size_t>(e)];
}

/// A place in which arrays may be read or written by mistake.
struct Arrangement {
  std::string name;
  std::optional<unit::Gather> a, b;      ///< how A or B is read
  std::function<Place(Place)> c = {};    ///< which element of C counts
  std::function<Place(Place)> all = {};  ///< which output stands there
};

/// Outputs of products as records, built where one is needed.
class ProductRecords {
 public:
  ProductRecords(const oracle::Subject& subject, std::shared_ptr<const Product> arrays,
                 std::shared_ptr<const Array> given, const std::optional<FollowedBy>& follows)
      : subject_(subject),
        layout_(oracle::layout_of(subject)),
        arrays_(std::move(arrays)),
        given_(std::move(given)),
        follows_(follows) {}

  void append(std::int64_t output, Records& to) const {
    Records one(layout_, 1);
    write(output, {}, one, 0, true);
    oracle::append_record(layout_, one, 0, to);
  }

  /// The inputs of outputs under another arrangement.
  void rearrange(const Arrangement& other, const std::vector<std::int64_t>& outputs,
                 Records& to) const {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      write(outputs[i], other, to, static_cast<std::int64_t>(i), false);
  }

  const oracle::Layout& layout() const { return layout_; }

 private:
  void write(std::int64_t output, const Arrangement& how, Records& to, std::int64_t i,
             bool results) const {
    for (std::size_t f = 0; f < layout_.size(); ++f) {
      if (layout_[f].result && !results) continue;
      for (std::int64_t e = 0; e < layout_[f].count; ++e)
        to.columns[f][static_cast<std::size_t>(i * layout_[f].count + e)] =
            code(layout_[f], output, e, how);
    }
  }

  std::uint64_t code(const oracle::Field& field, std::int64_t output, std::int64_t e,
                     const Arrangement& how) const {
    const unit::Batch& batch = arrays_->batch;
    const unit::Gemm& g = batch.first;
    if (field.name == "d") return result_code(subject_.to, *given_, output);
    Place here = place_of(output, batch);
    if (how.all) here = how.all(here);
    const auto [product, i, j] = here;
    const std::int64_t row = (batch.a_stride == 0 ? 0 : product * g.m) + i;
    const std::int64_t column = (batch.b_stride == 0 ? 0 : product * g.n) + j;
    const unit::UnitDescription& u = *subject_.unit->description();
    if (field.name == "a")
      return load_code(*g.a.format, g.a.codes,
                       product * batch.a_stride + place(how.a ? *how.a : *g.a.gather, i, e));
    if (field.name == "b")
      return load_code(*g.b.format, g.b.codes,
                       product * batch.b_stride + place(how.b ? *how.b : *g.b.gather, j, e));
    if (field.name == "sa") return g.scale_a[row * field.count + e];
    if (field.name == "sb") return g.scale_b[column * field.count + e];
    if (field.name == "e") return g.kept[row * field.count + e];
    if (field.name == "c") {
      if (g.c == nullptr) return 0;
      const Place of_c = how.c ? how.c(here) : here;
      return result_code(subject_.unit->c_format(), arrays_->c,
                         batch.c_shared ? of_c.i * g.n + of_c.j : output_of(of_c, batch));
    }
    if (follows_) return epilogue_code(field, j);
    if (field.name == "r")
      return unit::Draw{g.seed, g.tensor, output_of(here, batch)}.at(
          e, u.accumulator.rounding.random_bits);
    return 0;
  }

  /// What the epilogue has for a column.
  std::uint64_t epilogue_code(const oracle::Field& field, std::int64_t column) const {
    const unit::Epilogue& e = follows_->epilogue;
    const auto at = [column](const auto& numbers) {
      return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(column)];
    };
    const auto code = [&](std::int64_t number) {
      return static_cast<std::uint64_t>(number) & ~std::uint64_t{0} >> (64 - field.bits);
    };
    if (field.name == "bias") return e.bias.empty() ? 0 : code(at(e.bias));
    if (field.name == "factor") return std::bit_cast<std::uint32_t>(at(e.factors));
    if (field.name == "multiplier") return code(at(e.fixed_factors).multiplier);
    return code(field.name == "shift" ? at(e.fixed_factors).shift : e.zero_point);
  }

  const oracle::Subject subject_;
  const oracle::Layout layout_;
  const std::shared_ptr<const Product> arrays_;
  const std::shared_ptr<const Array> given_;
  const std::optional<FollowedBy> follows_;
};

/// Arrays of the other order in memory, and rows and columns in another place.
std::vector<Arrangement> arrangements(const unit::Gemm& g, std::int64_t depth_a) {
  const std::int64_t m = g.m, n = g.n, k = g.k;
  if (m * n == 1) return {};
  const bool nk = *g.b.gather == unit::Gather::matrix(n, k);
  const unit::Gather a = unit::Gather::matrix(m, depth_a, true);
  const unit::Gather b = unit::Gather::matrix(n, k, nk);
  // Element `at` of D's memory where its rows have n elements, and of C's where they have m.
  const auto other_d = [=](Place p, std::int64_t at) { return Place{p.product, at % m, at / m}; };
  const auto other_c = [=](Place p, std::int64_t at) { return Place{p.product, at / n, at % n}; };
  const auto row = [](Place p, std::int64_t i) { return Place{p.product, i, p.j}; };
  const auto column = [](Place p, std::int64_t j) { return Place{p.product, p.i, j}; };
  return {
      {"A is transposed", a, {}, {}, {}},
      {"B is transposed", {}, b, {}, {}},
      {"A and B are transposed", a, b, {}, {}},
      {"C is transposed", {}, {}, [=](Place p) { return other_c(p, p.j * m + p.i); }, {}},
      {"D is transposed", {}, {}, {}, [=](Place p) { return other_d(p, p.i * n + p.j); }},
      {"rows of D one too late", {}, {}, {}, [=](Place p) { return row(p, (p.i + m - 1) % m); }},
      {"rows of D one too early", {}, {}, {}, [=](Place p) { return row(p, (p.i + 1) % m); }},
      {"rows of D in reverse order", {}, {}, {}, [=](Place p) { return row(p, m - 1 - p.i); }},
      {"columns of D one too late",
       {},
       {},
       {},
       [=](Place p) { return column(p, (p.j + n - 1) % n); }},
      {"columns of D one too early", {}, {}, {}, [=](Place p) { return column(p, (p.j + 1) % n); }},
      {"columns of D in reverse order", {}, {}, {}, [=](Place p) {
         return column(p, n - 1 - p.j);
       }}};
}

/// Throws Error where the folder holds no recordings.
void require_record_folder(const std::string& folder) {
  if (!oracle::is_record_folder(folder))
    throw Error(folder +
                ": expected index.tsv or conversions.tsv, as tests/oracle/cuda/run writes them");
}

}  // namespace

Verified verify_records(const std::string& in, const RecordsTold& told, const Equality& equality,
                        const OnProgress& on_progress) {
  Source source(in, told);
  const oracle::Layout layout = oracle::layout_of(source.subject);
  const std::int64_t bytes = source.size();
  constexpr std::int64_t kQuick = std::int64_t{1} << 27;  // some seconds
  const auto tell = [&](std::int64_t done) {
    if (on_progress && bytes >= kQuick)
      on_progress("bytes", static_cast<double>(done), static_cast<double>(bytes));
  };
  tell(0);

  // The first batch decides whether there are flags.
  Records first;
  if (!source.read(layout, oracle::batch_records(layout), first))
    throw Error(source.name() + ": expected records, found none");
  oracle::JudgeOptions compared = compared_by(equality);
  compared.flags = source.has_flags(layout);
  compared.name = source.name();
  compared.place = source.place();
  Verified verified{oracle::Judge(source.subject, compared), source.name(), source.unit, nullptr};
  verified.place = source.place();
  bool begun = false;
  verified.complete = verified.judge.judge(
      [&](std::int64_t most, Records& to) {
        if (std::exchange(begun, true)) return source.read(layout, most, to);
        to = std::move(first);
        return true;
      },
      [&] { tell(source.consumed()); });
  verified.explanation = oracle::explain(verified.judge);
  return verified;
}

Verified verify_product(std::unique_ptr<Product> own, Array d, const std::string& name,
                        const Equality& equality, const std::optional<FollowedBy>& follows) {
  const std::shared_ptr<Product> owner = std::move(own);
  Product& p = *owner;
  const unit::Unit& unit = *p.unit;
  const unit::Gemm& g = p.gemm;
  if (follows) {
    d = checked_codes(name, *follows->format, std::move(d)).array;
    if (d.shape != p.d.shape)
      throw Error(fmt::format("{}: shape: expected {}, the shape of D, found {}", name,
                              shape_text(p.d.shape), shape_text(d.shape)));
  } else {
    require_results(p, d, name);
  }
  const auto given = std::make_shared<const Array>(std::move(d));
  unit::multiply_batch(unit, p.batch);
  std::optional<Codes> codes;
  if (follows) codes = requantized(p, follows->epilogue, *follows->format);
  const Array& computed = codes ? codes->array : p.d;

  Subject subject = oracle::unit_subject(unit, g.k, g.a.format, g.b.format);
  if (follows)
    subject = oracle::codes_subject(subject, follows->epilogue.how, *follows->format,
                                    follows->epilogue.low, follows->epilogue.high);
  Verified verified{oracle::Judge(subject, compared_by(equality)), name, p.unit, owner};
  const auto records = std::make_shared<const ProductRecords>(subject, owner, given, follows);
  constexpr std::int64_t kPiece = std::int64_t{1} << 16;
  const std::int64_t outputs = p.batch.outputs();
  if (outputs == 0) throw Error(name + ": expected results, found none");
  for (std::int64_t first = 0; verified.complete && first < outputs; first += kPiece) {
    oracle::Checked piece;
    for (std::int64_t i = first; i < std::min(first + kPiece, outputs); ++i) {
      piece.want.push_back(result_code(subject.to, computed, i));
      piece.compared.push_back(
          verified.judge.comparer().compare(piece.want.back(), result_code(subject.to, *given, i)));
    }
    piece.append = [&](std::int64_t i, Records& to) { records->append(first + i, to); };
    verified.complete = verified.judge.take(piece);
  }
  std::vector<oracle::Rule> rules;
  for (Arrangement& other : arrangements(g, records->layout().front().count))
    rules.push_back({.family = "layout",
                     .name = other.name,
                     .inputs = [records, other](Records& to, const oracle::Sample& sample) {
                       records->rearrange(other, sample.number, to);
                     }});
  verified.explanation = oracle::explain(verified.judge, std::move(rules));
  return verified;
}

Verified verify_product(const std::string& unit, const ProductFiles& files, const std::string& d,
                        const Equality& equality, const EpilogueFiles& epilogue) {
  std::unique_ptr<Product> product = read_product(open_unit(unit), files);
  if (!epilogue.requantize.empty()) {
    FollowedBy follows{read_epilogue(*product, epilogue), &find_format(epilogue.format)};
    Codes codes = read_codes(d, {.format = follows.format});
    return verify_product(std::move(product), std::move(codes.array), d, equality, follows);
  }
  Array given = read_result(*product, d);
  return verify_product(std::move(product), std::move(given), d, equality);
}

std::int64_t VerifiedFolder::records() const {
  std::int64_t sum = 0;
  for (const oracle::Judgement& j : judgements) sum += j.file->count;
  return sum;
}

std::int64_t VerifiedFolder::without_rule() const {
  std::int64_t sum = 0;
  for (const oracle::Judgement& j : judgements) sum += j.rules.empty() ? j.file->count : 0;
  return sum;
}

std::int64_t VerifiedFolder::mismatches() const {
  std::int64_t sum = 0;
  for (const oracle::Judgement& j : judgements)
    sum += j.rules.empty() ? 0 : j.rules.front().tally.mismatches();
  return sum;
}

std::int64_t VerifiedFolder::wrong_conversions() const {
  return std::ranges::count_if(
      conversions, [](const oracle::ConversionReplay& v) { return v.is_first() && !v.holds(); });
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::unique_ptr<VerifiedFolder> verify_folder(const std::string& folder, const std::string& only,
                                              const std::string& unit) {
  require_record_folder(folder);
  auto report = std::make_unique<VerifiedFolder>();
  report->folder = oracle::read_record_folder(folder, only);
  const UnitPtr told = unit.empty() ? nullptr : open_unit(unit);
  report->judgements =
      oracle::judge(report->folder, told == nullptr ? nullptr : told->description());
  report->conversions = oracle::judge_conversions(folder, only);
  if (report->judgements.empty() && report->conversions.empty())
    throw Error(folder + ": expected records to verify, found none");
  if (report->without_rule() == report->records() && report->conversions.empty())
    throw Error(folder + ": expected a chip of the catalogue in the column unit, or --unit");
  return report;
}

std::vector<oracle::HashReplay> verify_hashes(
    const std::string& folder, const std::string& only,
    const std::function<void(const oracle::HashReplay&)>& done) {
  require_record_folder(folder);
  std::error_code error;
  if (!std::filesystem::exists(folder + "/hashes.tsv", error))
    throw file_error(folder +
                     "/hashes.tsv: cannot open: --hashes needs the large runs that "
                     "tests/oracle/cuda/run records");
  std::vector<oracle::HashReplay> all;
  oracle::judge_hashes(folder, only, [&](const oracle::HashReplay& v) {
    all.push_back(v);
    if (done) done(v);
  });
  if (all.empty()) throw Error(folder + "/hashes.tsv: expected large runs, found none");
  return all;
}

}  // namespace numemu::api
