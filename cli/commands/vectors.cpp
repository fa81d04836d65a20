// numemu vectors: records of inputs and expected results, for testbenches and kernels.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/progress.hpp"
#include "emu/oracle/file_forms.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

using namespace oracle;

struct VectorsOptions {
  std::string unit, op, format, from, to, format_a, format_b, out;
  std::string rounding, overflow, style = "mixed", form = "text";
  std::optional<std::int64_t> n, k;
  std::int64_t level = 1;
  std::uint64_t seed = 0;
  bool quiet = false;
};

/// Records of one level where --n is not given.
constexpr std::int64_t kUsual[] = {10000, 1000000};
/// The most bytes of files that are made in memory.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;

/// Options that say what a unit's description says already.
void refuse_beside_unit(const VectorsOptions& o) {
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

Subject operation_of(const VectorsOptions& o) {
  if (o.op.empty()) throw Error("expected --unit or --op, one of them");
  const Operation operation = parse_operation(o.op);
  for (const auto& [option, value] :
       {std::pair("--format-a", &o.format_a), {"--format-b", &o.format_b}}) {
    if (!value->empty()) throw Error(fmt::format("{}: expected with --unit", option));
  }
  if (!o.format.empty() && !o.from.empty()) throw Error("--format, --from: expected one of them");
  const std::string& from = o.from.empty() ? o.format : o.from;
  if (from.empty())
    throw Error(operation == Operation::convert
                    ? "expected --from F and --to F"
                    : "expected --format F, the format of the operands");
  if (operation == Operation::convert && o.to.empty()) throw Error("expected --to F");
  if (o.k && operation != Operation::dot) throw Error("--k: expected with --op dot or --unit");
  // Conversions default as `encode` does, arithmetic as IEEE 754.
  const std::string usual = operation == Operation::convert ? "saturate" : "ieee";
  constexpr std::int64_t kProducts = 32;
  return operation_subject(operation, find_format(from), find_format(o.to.empty() ? from : o.to),
                           parse_rounding(o.rounding.empty() ? "rne" : o.rounding),
                           parse_overflow(o.overflow.empty() ? usual : o.overflow),
                           operation == Operation::dot ? o.k.value_or(kProducts) : 1);
}

Subject subject_of(const VectorsOptions& o, std::unique_ptr<unit::Unit>& own) {
  Subject s;
  if (o.unit.empty()) {
    s = operation_of(o);
  } else {
    if (!o.op.empty()) throw Error("--unit, --op: expected one of them");
    refuse_beside_unit(o);
    if (o.unit.ends_with(".json")) own = unit::make_unit(unit::read_description(o.unit));
    const Format* a = o.format_a.empty() ? nullptr : &find_format(o.format_a);
    s = unit_subject(own != nullptr ? *own : unit::find_unit(o.unit), o.k.value_or(0), a,
                     o.format_b.empty() ? a : &find_format(o.format_b));
  }
  s.seed = o.seed;
  s.level = static_cast<int>(o.level);
  s.style = o.style;
  return s;
}

std::int64_t number_of(const VectorsOptions& o, const Generator& generator) {
  const std::int64_t limit = generator.limit(), usual = kUsual[o.level - 1];
  if (o.style == "exhaustive") {
    if (o.n && *o.n > limit)
      throw Error(
          fmt::format("--n: expected at most {}, the inputs there are, found {}", limit, *o.n));
    return o.n.value_or(limit);
  }
  // All combinations of edges where they are not many more than the usual records.
  constexpr std::int64_t kSome = 10;
  return o.n.value_or(limit != 0 && limit <= kSome * usual ? limit : usual);
}

/// Calls `use` with every batch in its order; `make` runs on all threads before.
template <class Product>
void in_order(const Generator& generator, std::int64_t n, bool quiet,
              const std::function<void(Records&, Product&)>& make,
              const std::function<void(Product&)>& use) {
  constexpr std::int64_t kBatchCodes = 1 << 15, kLong = 1 << 20;
  std::int64_t codes = 0;
  for (const Field& f : generator.layout()) codes += f.count;
  const std::int64_t batch = std::clamp<std::int64_t>(kBatchCodes / codes, 16, 8192);
  const std::int64_t round = batch * omp_get_max_threads() * 4;
  Progress progress("vectors", n, "records", quiet || n * codes < kLong);
  for (std::int64_t first = 0; first < n; first += round) {
    const std::int64_t count = std::min(round, n - first), batches = (count + batch - 1) / batch;
    std::vector<Product> products(static_cast<std::size_t>(batches));
    std::vector<std::exception_ptr> errors(products.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t b = 0; b < batches; ++b) {
      try {
        Records records(generator.layout(), std::min(batch, count - b * batch));
        generator.fill(first + b * batch, records);
        make(records, products[static_cast<std::size_t>(b)]);
      } catch (...) {
        errors[static_cast<std::size_t>(b)] = std::current_exception();
      }
    }
    for (std::size_t b = 0; b < products.size(); ++b) {
      if (errors[b] != nullptr) std::rethrow_exception(errors[b]);
      use(products[b]);
    }
    progress.show(static_cast<double>(first + count));
  }
}

/// Throws where files that are made in memory would be too large.
void require_room(std::int64_t n, std::int64_t record_bytes) {
  const std::int64_t most = kMostBytes / record_bytes;
  if (n > most)
    throw Error(
        fmt::format("--n: expected at most {} records in a file made in memory, found {}: "
                    "text, csv and jsonl go to standard output in any number",
                    most, n));
}

void to_standard_output(FileForm form, const Generator& generator, std::int64_t n, bool quiet) {
  const auto write = [](const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
      throw std::system_error(errno, std::generic_category());
  };
  write(form_head(form, generator.subject(), generator.layout()));
  in_order<std::string>(
      generator, n, quiet,
      [&](Records& r, std::string& text) { append_records(form, generator.layout(), r, text); },
      write);
}

void to_text_file(FileForm form, const Generator& generator, std::int64_t n,
                  const VectorsOptions& o) {
  const Layout& layout = generator.layout();
  std::string all = form_head(form, generator.subject(), layout), sample;
  append_records(form, layout, Records(layout, 1), sample);
  constexpr std::int64_t kClass = 16;
  require_room(n, static_cast<std::int64_t>(sample.size()) + kClass);
  in_order<std::string>(
      generator, n, o.quiet,
      [&](Records& r, std::string& text) { append_records(form, layout, r, text); },
      [&](std::string& text) { all += text; });
  OutputFiles files;
  files.add_text("vectors", o.out, all);
  files.publish();
}

void to_npz(const Generator& generator, std::int64_t n, const VectorsOptions& o) {
  require_room(n, NpzWriter::record_bytes(generator.layout()));
  NpzWriter writer(generator.subject(), generator.layout());
  in_order<Records>(
      generator, n, o.quiet, [](Records& r, Records& made) { made = std::move(r); },
      [&](Records& made) { writer.append(made); });
  OutputFiles files;
  files.add_text("vectors", o.out, writer.file());
  files.publish();
}

/// PREFIX.a.hex, PREFIX.b.hex and so on.
void to_ports(const Generator& generator, std::int64_t n, const VectorsOptions& o) {
  const Layout& layout = generator.layout();
  std::int64_t bytes = 0;
  constexpr std::int64_t kClass = 20;
  for (const Field& f : layout) bytes += (f.count * f.bits + 3) / 4 + kClass;
  require_room(n, bytes);
  std::vector<std::string> ports(layout.size(), port_head(generator.subject()));
  in_order<std::vector<std::string>>(
      generator, n, o.quiet,
      [&](Records& r, std::vector<std::string>& texts) {
        texts.resize(layout.size());
        for (std::size_t f = 0; f < layout.size(); ++f)
          append_port(layout[f], r, static_cast<int>(f), texts[f]);
      },
      [&](std::vector<std::string>& texts) {
        for (std::size_t f = 0; f < layout.size(); ++f) ports[f] += texts[f];
      });
  OutputFiles files;
  for (std::size_t f = 0; f < layout.size(); ++f)
    files.add_text(layout[f].name, o.out + "." + layout[f].name + ".hex", ports[f]);
  files.publish();
}

int run_vectors(const VectorsOptions& o) {
  const FileForm form = parse_file_form(o.form);
  const bool in_files = form == FileForm::npz || form == FileForm::readmemh;
  if (in_files && (o.out.empty() || o.out == "-"))
    throw Error(fmt::format("--out: expected a {} with --file-format {}",
                            form == FileForm::npz ? "file" : "prefix of files", o.form));
  std::unique_ptr<unit::Unit> own;
  const Generator generator(subject_of(o, own));
  const std::int64_t n = number_of(o, generator);
  if (!o.out.empty() && o.out != "-" && form != FileForm::readmemh) {
    require_replaceable(o.out);
    require_distinct_paths({{"--out", o.out, false}},
                           {{"--unit", o.unit.ends_with(".json") ? o.unit : "", false}});
  }
  if (form == FileForm::npz) {
    to_npz(generator, n, o);
  } else if (form == FileForm::readmemh) {
    to_ports(generator, n, o);
  } else if (o.out.empty() || o.out == "-") {
    to_standard_output(form, generator, n, o.quiet);
  } else {
    to_text_file(form, generator, n, o);
  }
  if (!o.quiet) {
    for (const auto& [option, name] :
         {std::pair("--format", &o.format), {"--from", &o.from}, {"--to", &o.to}})
      note_short_names(option, *name);
  }
  return kFine;
}

}  // namespace

void add_vectors(Program& program) {
  auto options = std::make_shared<VectorsOptions>();
  Command& command = program.command("vectors", [options] { return run_vectors(*options); });
  command.option("--unit U", options->unit, "A matrix unit, or a .json file that describes one");
  command.option("--op OP", options->op, "convert, mul, add, fma or dot: exact, rounded once");
  command.option("--format F", options->format, "Format of the operands of --op");
  command.option("--from F", options->from, "The same: what is converted");
  command.option("--to F", options->to, "Format of the result and of c (default: --format)");
  command.option("--format-a F", options->format_a, "Format of A where the unit takes any");
  command.option("--format-b F", options->format_b, "Format of B (default: --format-a)");
  command
      .option("--k K", options->k,
              "Products of a dot, or of a unit (default: one instruction, or 32)")
      .whole(1, kMostProducts);
  command.option("--rounding R", options->rounding,
                 "Of --op: rne, rna, rtz, rup, rdn, rodd, sr(N) or sr(N,a|b|c|odd) (default: rne)");
  command.option("--overflow O", options->overflow,
                 "Of --op: saturate, propagate or ieee (default: saturate for convert, else ieee)");
  command
      .option("--style S", options->style,
              "mixed, random, edges, exhaustive, cancel, subnormal, overflow, ties, alignment, "
              "near_ties or carry")
      .show_default();
  command.option("--level L", options->level, "1, or 2: more edges, a million records")
      .show_default()
      .whole(1, 2);
  command.option("--n N", options->n, "Records (default: 10000 at level 1, 1000000 at level 2)")
      .whole(1, std::int64_t{1} << 40);
  command.option("--seed S", options->seed, "Seed of the inputs").show_default();
  command
      .option("--file-format F", options->form,
              "text, csv, jsonl, npz or readmemh (a file per port)")
      .show_default();
  command.option("--out FILE", options->out,
                 "Where to (default: standard output); with readmemh: FILE.a.hex, FILE.b.hex, ...");
  command.flag("--quiet", options->quiet, "Print no progress");
  add_threads(command);
}

}  // namespace numemu::cli
