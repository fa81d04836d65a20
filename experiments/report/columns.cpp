#include "experiments/report/columns.hpp"

#include <fmt/format.h>

#include "experiments/report/escape.hpp"
#include "experiments/report/record.hpp"
#include "experiments/report/report.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// An end of the margin's interval, of a row that a gate has judged.
ReportCell margin_end(const Record& r, std::optional<double> Ends::*end) {
  const Member<Ends> ends = r.row->gate ? r.row->gate->margin_ci99 : Member<Ends>();
  return ends ? number_cell((*ends).*end) : ReportCell();
}

/// What a score has at `member`.
ReportCell score_cell(const Record& r, const std::string& name, Member<double> RowScore::*member) {
  const RowScore* const score = r.row->score(name);
  return score ? number_cell(score->*member) : ReportCell();
}

ReportCell score_end(const Record& r, const std::string& name, Member<Ends> RowScore::*interval,
                     std::optional<double> Ends::*end) {
  const RowScore* const score = r.row->score(name);
  return score && score->*interval ? number_cell((*(score->*interval)).*end) : ReportCell();
}

ReportCell sqnr_end(const Record& r, std::size_t end) {
  const auto ends = r.sqnr_interval();
  return ends ? ReportCell(end == 0 ? ends->first : ends->second) : ReportCell();
}

/// Spreadsheets take a text that begins so for a formula and run it; an apostrophe, which they do
/// not show, makes it a text.
std::string spreadsheet_text(const std::string& text) {
  return text.find_first_of("=+-@\t\r") == 0 ? "'" + text : text;
}

}  // namespace

ReportCell number_cell(const std::optional<double>& number) {
  return number ? ReportCell(*number) : ReportCell();
}

ReportCell text_cell(const std::string& text) {
  return text.empty() ? ReportCell() : ReportCell(text);
}

std::string cell_text(const ReportCell& cell) {
  if (const double* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

const std::vector<Column>& record_columns() {
#define NUMEMU_TEXT(name, field)                                   \
  Column {                                                         \
    name, true, [](const Record& r) { return text_cell(r.field); } \
  }
#define NUMEMU_NUMBER(name, field)                                    \
  Column {                                                            \
    name, false, [](const Record& r) { return number_cell(r.field); } \
  }
#define NUMEMU_GATE_TEXT(name, member)                                    \
  Column {                                                                \
    name, true, [](const Record& r) {                                     \
      return r.row->gate ? text_cell(r.row->gate->member) : ReportCell(); \
    }                                                                     \
  }
#define NUMEMU_GATE_NUMBER(name, member)                                 \
  Column {                                                               \
    name, false, [](const Record& r) {                                   \
      return r.row->gate && r.row->gate->member                          \
                 ? ReportCell(static_cast<double>(*r.row->gate->member)) \
                 : ReportCell();                                         \
    }                                                                    \
  }
  static const std::vector<Column> columns = {
      NUMEMU_TEXT("key", key),
      NUMEMU_TEXT("name", name),
      NUMEMU_TEXT("recipe", recipe),
      NUMEMU_TEXT("net", net),
      NUMEMU_TEXT("data", data),
      NUMEMU_NUMBER("eval_images", eval_images),
      NUMEMU_NUMBER("seed", seed),
      NUMEMU_TEXT("weights_digest", weights_digest),
      NUMEMU_TEXT("weight_format", weight.format),
      NUMEMU_TEXT("weight_rounding", weight.rounding),
      NUMEMU_TEXT("weight_overflow", weight.overflow),
      NUMEMU_TEXT("weight_scale", weight.scale),
      NUMEMU_TEXT("weight_granularity", weight.granularity),
      NUMEMU_TEXT("weight_axis", weight.axis),
      NUMEMU_TEXT("weight_mask", weight.mask),
      NUMEMU_TEXT("activation_format", activation.format),
      NUMEMU_TEXT("activation_rounding", activation.rounding),
      NUMEMU_TEXT("activation_overflow", activation.overflow),
      NUMEMU_TEXT("activation_scale", activation.scale),
      NUMEMU_TEXT("activation_granularity", activation.granularity),
      NUMEMU_TEXT("activation_axis", activation.axis),
      NUMEMU_TEXT("activation_mask", activation.mask),
      NUMEMU_TEXT("unit", unit),
      NUMEMU_TEXT("dgrad_unit", dgrad_unit),
      NUMEMU_TEXT("wgrad_unit", wgrad_unit),
      NUMEMU_TEXT("other", other),
      NUMEMU_TEXT("settings", settings),
      NUMEMU_TEXT("judged_by", judged.measure->name),
      NUMEMU_NUMBER("bits_weight", bits_weight),
      NUMEMU_NUMBER("bits_product_weight", bits_product_weight),
      NUMEMU_NUMBER("bits_activation", bits_activation),
      NUMEMU_NUMBER("top1", top1),
      NUMEMU_NUMBER("n", images),
      NUMEMU_NUMBER("ci95_low", ci_low),
      NUMEMU_NUMBER("ci95_high", ci_high),
      NUMEMU_NUMBER("loss", loss),
      NUMEMU_NUMBER("bits_per_character", bits_per_character),
      NUMEMU_NUMBER("perplexity", perplexity),
      NUMEMU_NUMBER("baseline_bits_per_character", baseline_bits_per_character),
      NUMEMU_NUMBER("baseline_top1", baseline_top1),
      NUMEMU_NUMBER("difference", difference),
      NUMEMU_NUMBER("difference_ci95_low", difference_low),
      NUMEMU_NUMBER("difference_ci95_high", difference_high),
      NUMEMU_NUMBER("sqnr_db", sqnr_db),
      NUMEMU_NUMBER("sqnr_error_db", sqnr_error_db),
      {"sqnr_ci95_low", false, [](const Record& r) { return sqnr_end(r, 0); }},
      {"sqnr_ci95_high", false, [](const Record& r) { return sqnr_end(r, 1); }},
      NUMEMU_NUMBER("sqnr_without_mean_db", centred_db),
      NUMEMU_NUMBER("sqnr_gained_db", gained_db),
      NUMEMU_NUMBER("gain", gain),
      NUMEMU_NUMBER("predicted_sqnr_db", predicted_sqnr_db),
      NUMEMU_NUMBER("predicted_sqnr_gained_db", predicted_gained_db),
      NUMEMU_NUMBER("predicted_gain", predicted_gain),
      NUMEMU_TEXT("left_out", left_out),
      NUMEMU_TEXT("not_finite", not_finite_words()),
      NUMEMU_TEXT("notes", all_notes()),
      NUMEMU_TEXT("version", version),
      NUMEMU_GATE_TEXT("gate", verdict),
      NUMEMU_GATE_TEXT("gate_target", target),
      NUMEMU_GATE_NUMBER("gate_required", required),
      NUMEMU_GATE_NUMBER("gate_margin", margin),
      {"gate_margin_ci99_low", false, [](const Record& r) { return margin_end(r, &Ends::low); }},
      {"gate_margin_ci99_high", false, [](const Record& r) { return margin_end(r, &Ends::high); }},
      NUMEMU_GATE_NUMBER("gate_images_needed", images_needed),
  };
#undef NUMEMU_GATE_TEXT
#undef NUMEMU_GATE_NUMBER
#undef NUMEMU_TEXT
#undef NUMEMU_NUMBER
  return columns;
}

std::vector<Column> exported_columns(const std::vector<Record>& records) {
  std::vector<Column> columns = record_columns();
  for (const std::string& name : score_columns(records)) {
    const auto add = [&](const char* end, const auto& cell) {
      columns.push_back({"score_" + name + end, false, cell});
    };
    const auto number = [&](const char* end, Member<double> RowScore::*member) {
      add(end, [=](const Record& r) { return score_cell(r, name, member); });
    };
    const auto ends = [&](const std::string& key, Member<Ends> RowScore::*interval) {
      add((key + "_low").c_str(),
          [=](const Record& r) { return score_end(r, name, interval, &Ends::low); });
      add((key + "_high").c_str(),
          [=](const Record& r) { return score_end(r, name, interval, &Ends::high); });
    };
    number("", &RowScore::value);
    ends("_ci95", &RowScore::ci95);
    number("_baseline", &RowScore::baseline);
    number("_difference", &RowScore::difference);
    ends("_difference_ci95", &RowScore::difference_ci95);
  }
  return columns;
}

void write_csv(const ReportInput& input, const std::string& path) {
  std::string out;
  const std::vector<Record> records = read_records(*input.rows);
  const std::vector<Column> columns = exported_columns(records);
  for (const Column& column : columns) out += (out.empty() ? "" : ",") + csv_field(column.name);
  out += "\r\n";
  for (const Record& record : records) {
    std::string line;
    bool first = true;
    for (const Column& column : columns) {
      if (!first) line += ',';
      first = false;
      const std::string text = cell_text(column.value(record));
      line += csv_field(column.is_text ? spreadsheet_text(text) : text);
    }
    out += line + "\r\n";
  }
  write_atomically(path, {out});
}

}  // namespace numemu::experiments
