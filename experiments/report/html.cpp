// Puts the page together: sentences, figures, tables, and the data as inert JSON. Figures come from
// the charts' own usermeta: order, title, caption, the data they need and the lists they offer.
#include "experiments/report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/configurations.hpp"
#include "experiments/report/datasets.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/headline.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

namespace {

struct Figure {
  std::string_view name;
  Json meta;
};

std::vector<Figure> ordered(const std::vector<Asset>& charts) {
  std::vector<Figure> out;
  for (const Asset& chart : charts) {
    const Json spec = Json::parse_or_null(chart.text);
    const Json* meta = json_at(spec, {"usermeta"});
    if (!meta || !meta->is_object()) {
      throw Error(fmt::format("chart '{}': expected a JSON object with usermeta", chart.name));
    }
    out.push_back({chart.name, *meta});
  }
  std::stable_sort(out.begin(), out.end(), [](const Figure& a, const Figure& b) {
    return json_number(a.meta, {"order"}).value_or(0) < json_number(b.meta, {"order"}).value_or(0);
  });
  return out;
}

/// Whether the data set `data` has a record, and one whose field `needs` is not null.
bool has_data(const Json& meta, const Json& datasets) {
  const Json* data = json_at(datasets, {json_text(meta, {"data"}).c_str()});
  if (!data || !data->is_array()) return false;
  const std::string needs = json_text(meta, {"needs"});
  return std::any_of(data->begin(), data->end(), [&needs](const Json& record) {
    return needs.empty() || json_number(record, {needs.c_str()}).has_value();
  });
}

/// Figures of special rows are "quiet"; others are not missed where those rows have a figure of
/// their own: points with the field `replaced_by`, or one layer at a time.
bool is_missed(const Json& meta, const Json& datasets) {
  if (json_text(meta, {"quiet"}) == "true") return false;
  const std::string field = json_text(meta, {"replaced_by"});
  return field.empty() || (!has_data({{"data", "points"}, {"needs", field}}, datasets) &&
                           !has_data({{"data", "sensitivity"}}, datasets));
}

std::string control(const std::string& kind) {
  const auto select = [](const char* id, const char* label) {
    return fmt::format("<label for=\"{0}\">{1}</label> <select id=\"{0}\"></select> ", id, label);
  };
  if (kind == "point") return "<p class=\"control\">" + select("point", "Configuration") + "</p>";
  if (kind == "tensor") {
    return "<p class=\"control\">" + select("tensor", "Tensor") + select("format", "Format") +
           "</p>";
  }
  return "";
}

/// Captions are ours; placeholders become the words given for them. Others are left to `open`.
std::string caption_with(const std::string& caption, const CaptionWords& words,
                         std::string (*text)(std::string_view), std::string (*open)(std::string)) {
  std::string out;
  for (std::size_t i = 0; i < caption.size(); ++i) {
    const std::size_t close = caption[i] == '{' ? caption.find('}', i) : caption.npos;
    if (close == caption.npos) {
      out += text(caption.substr(i, 1));
      continue;
    }
    const std::string name = caption.substr(i + 1, close - i - 1);
    const auto known = words.find(name);
    out += known != words.end() ? text(known->second) : open(name);
    i = close;
  }
  return out;
}

/// Open placeholders become spans that the script keeps up to date.
std::string caption_html(const std::string& caption, const CaptionWords& words) {
  return caption_with(caption, words, html_text, [](std::string name) {
    return fmt::format("<span data-say=\"{}\"></span>", html_text(name));
  });
}

/// Open placeholders stay.
std::string caption_text(const std::string& caption, const CaptionWords& words) {
  return caption_with(
      caption, words, [](std::string_view text) { return std::string(text); },
      [](std::string name) { return "{" + name + "}"; });
}

}  // namespace

std::string figures_html(const std::vector<Asset>& charts, const Json& datasets,
                         const CaptionWords& words, std::vector<std::string>& absent) {
  std::string out;
  int number = 0;
  for (const Figure& figure : ordered(charts)) {
    const std::string title = json_text(figure.meta, {"title"});
    if (!has_data(figure.meta, datasets)) {
      if (is_missed(figure.meta, datasets))
        absent.push_back(fmt::format("{} ({})", title, json_text(figure.meta, {"empty"})));
      continue;
    }
    out += fmt::format(
        "<figure{} id=\"fig-{}\">{}<div class=\"plot\" data-chart=\"{}\"></div>"
        "<figcaption><b>Figure {}. {}.</b> {}</figcaption></figure>\n",
        json_text(figure.meta, {"wide"}) == "true" ? " class=\"wide\"" : "", html_text(figure.name),
        control(json_text(figure.meta, {"control"})), html_text(figure.name), ++number,
        caption_html(title, words), caption_html(json_text(figure.meta, {"caption"}), words));
  }
  return out;
}

namespace {

constexpr const char* kNoCharts =
    "<p class=\"notice\">This program was built without its charting libraries (Node.js was "
    "missing, or npm could not fetch them), so the report has tables only. For the charts install "
    "<code>node</code> and <code>npm</code>, build again (<code>cmake --build</code>) and run "
    "<code>numemu report</code> on the sweep's folder. The rows need not be computed again.</p>";

std::string subject(const std::vector<ReportRow>& records) {
  std::set<std::string> nets, data;
  for (const ReportRow& r : records) {
    if (const std::string& net = r.row->point.net; !net.empty()) nets.insert(net);
    if (const std::string& set = r.row->point.data; !set.empty()) data.insert(set);
  }
  const std::string question =
      asks_for_layers(records) ? ranking_question(records) : "accuracy against bits";
  if (nets.empty() || data.empty()) return capitalised(question);
  return fmt::format("{} on {}: {}", joined(nets, ", "), joined(data, ", "), question);
}

/// Of an experiment without rows.
std::string facts(const Json& experiment) {
  const ExperimentFile file = read_experiment(experiment);
  return html_text(fmt::format("seed {} · numerics version {}",
                               file.seed ? fmt::format("{}", *file.seed) : "", file.version));
}

std::string facts(const std::vector<ReportRow>& records) {
  std::set<std::string> versions, seeds;
  for (const ReportRow& r : records) {
    if (!r.row->version.empty()) versions.insert(r.row->version);
    if (r.seed) seeds.insert(fmt::format("{:.0f}", *r.seed));
  }
  std::string out = fmt::format("{} row{}", records.size(), records.size() == 1 ? "" : "s");
  const auto add = [&out](const char* name, const std::set<std::string>& words) {
    for (const std::string& word : words) {
      out +=
          fmt::format("{}{}", &word == &*words.begin() ? fmt::format(" · {} ", name) : ", ", word);
    }
  };
  add("seed", seeds);
  add("numerics version", versions);
  return html_text(out);
}

std::string role_words(const ReportRole& role) {
  if (!role.quantized) return "float32";
  return fmt::format("{} ({}, {}, {} per {})", role.format, role.rounding, role.overflow,
                     role.scale, role.granularity);
}

std::string point_words(const ReportRow& r) {
  std::string out = fmt::format("weights {}; activations {}; unit {}", role_words(r.weight),
                                role_words(r.activation), r.unit);
  for (const std::string& more : {r.other, r.settings, r.not_finite_words()})
    if (!more.empty()) out += "; " + more;
  return out;
}

/// "Predictions leave out what these units' arithmetic adds: ...": part of a caption.
std::string ignored_words(const std::vector<ReportRow>& records) {
  std::vector<std::string> units;
  for (const ReportRow& r : records) {
    const std::string unit = short_unit(r.unit);
    if (r.unit_ignored() && std::find(units.begin(), units.end(), unit) == units.end())
      units.push_back(unit);
  }
  return units.empty() ? ""
                       : fmt::format("Predictions exclude the rounding noise of these units: {}.",
                                     listed_names(units));
}

/// What the drop-down list of points offers: rows that have layers to draw.
Json point_choices(const std::vector<ReportRow>& records, const Json& layers) {
  std::set<std::size_t> drawn;
  for (const Json& layer : layers) drawn.insert(layer["i"].get<std::size_t>());
  Json out = Json::array();
  for (const ReportRow& r : records) {
    if (!drawn.contains(r.position)) continue;
    out.push_back({{"i", r.position},
                   {"text", fmt::format("{}: {}, {}", r.position + 1, r.label, short_unit(r.unit))},
                   {"words", point_words(r)}});
  }
  return out;
}

/// The words of charts that are about what the rows are judged by.
CaptionWords measure_words(const std::vector<ReportRow>& records) {
  const Measure& measure = measure_of(records);
  return {{"figure", capitalised(measure.words)},
          {"axis", measure.title},
          {"better", measure.falls ? "less" : "more"}};
}

std::string worded(std::string_view chart, const std::vector<ReportRow>& records) {
  std::string text(chart);
  for (const auto& [name, words] : measure_words(records)) {
    const std::string mark = "{" + name + "}";
    for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + words.size()))
      text.replace(at, mark.size(), words);
  }
  return text;
}

Json page_data(const std::vector<ReportRow>& records, Json datasets, Json experiment,
               const std::vector<Asset>& charts) {
  Json out;
  out["units"] = swept_units(records);
  out["choices"] = point_choices(records, datasets["layers"]);
  const ReportRow* chosen = cheapest_safe(records);
  out["chosen"] = chosen ? Json(chosen->position) : Json();
  for (const Asset& chart : charts)
    out["charts"][std::string(chart.name)] = Json::parse(worded(chart.text, records));
  out["datasets"] = std::move(datasets);
  out["experiment"] = std::move(experiment);
  return out;
}

std::string unit_control(const std::vector<std::string>& units) {
  std::string options = units.size() > 1 ? "<option value=\"\">all units</option>" : "";
  for (const std::string& unit : units)
    options += fmt::format("<option>{}</option>", html_text(unit));
  return fmt::format(
      "<p class=\"control\"><label for=\"unit\">Unit in the figures</label> "
      "<select id=\"unit\">{}</select></p>",
      options);
}

CaptionWords caption_words(const std::vector<ReportRow>& records) {
  CaptionWords words = measure_words(records);
  words["conditions"] = capitalised(conditions(records));
  words["ignored"] = ignored_words(records);
  return words;
}

/// Without those of predictions where rows have none.
std::vector<Asset> charts_for(const std::vector<ReportRow>& records, const ReportAssets& assets) {
  std::vector<Asset> charts = assets.charts;
  if (!any_predictions(records))
    std::erase_if(charts, [](const Asset& chart) {
      return chart.name == "predicted" || chart.name == "expected";
    });
  return charts;
}

/// With the figures of an experiment first, as they stand on the page.
Json with_figures(Json page, const std::vector<DrawnFigure>& drawn) {
  Json& figures = page["figures"] = Json::array();
  for (const DrawnFigure& figure : drawn) {
    Json one = {{"name", figure.name},
                {"chart", figure.chart},
                {"title", figure.title},
                {"caption", figure.caption}};
    if (figure.number) one["number"] = *figure.number;
    figures.push_back(std::move(one));
  }
  return page;
}

std::vector<DrawnFigure> drawn_of_experiment(const Json& charts) {
  std::vector<DrawnFigure> out;
  for (std::size_t i = 0; i < charts.size(); ++i)
    out.push_back({fmt::format("e{}", i + 1), "experiment", charts[i]["title"].get<std::string>(),
                   charts[i]["caption"].get<std::string>(), i});
  return out;
}

/// The figures that `datasets` can fill.
void add_drawn(std::vector<DrawnFigure>& out, const std::vector<Asset>& charts,
               const Json& datasets, const CaptionWords& words) {
  for (const Figure& figure : ordered(charts)) {
    if (!has_data(figure.meta, datasets)) continue;
    out.push_back({std::string(figure.name), std::string(figure.name),
                   caption_text(json_text(figure.meta, {"title"}), words),
                   caption_text(json_text(figure.meta, {"caption"}), words)});
  }
}

std::string figures_section(const std::vector<ReportRow>& records, const ReportAssets& assets,
                            const Json& datasets) {
  if (assets.libraries.empty()) return kNoCharts;
  std::vector<std::string> absent;
  const std::vector<Asset> charts = charts_for(records, assets);
  const CaptionWords words = caption_words(records);
  const std::string figures = figures_html(charts, datasets, words, absent);
  std::string out = figures.empty() ? "" : unit_control(swept_units(records));
  out += "<div class=\"figures\">" + figures + "</div>";
  if (!absent.empty()) {
    out += "<p class=\"notice\">Not drawn: ";
    for (const std::string& title : absent) {
      out += fmt::format("{}{}", &title == &absent.front() ? "" : "; ", html_text(title));
    }
    out += ".</p>";
  }
  return out;
}

/// How to cite the run, folded; after everything else.
std::string citation_section(const ReportInput& input) {
  const Citation citation = citation_of(*input.rows, input.sweep, input.experiment, input.program);
  return "<section aria-label=\"Cite this run\">\n<details class=\"cite\"><summary>Cite this "
         "run</summary>\n<pre>" +
         html_text(citation_text(citation)) + "</pre>\n<pre>" + html_text(bibtex(citation)) +
         "</pre>\n</details>\n</section>\n";
}

std::string page_scripts(const std::vector<ReportRow>& records, const Json& datasets,
                         const Json& experiment, const ReportAssets& assets) {
  const std::string own = "<script>" + html_script(assets.script) + "</script>";
  if (assets.libraries.empty()) return own;
  return "<script type=\"application/json\" id=\"report-data\">" +
         html_json(page_data(records, datasets, experiment, assets.charts)) +
         "</script>\n<script>" + html_script(assets.libraries) + "</script>\n" + own;
}

}  // namespace

std::string experiment_scripts(const Json& charts, const ReportAssets& assets) {
  return page_scripts({}, chart_datasets({}, nullptr), charts, assets);
}

std::string with_section(std::string_view page, std::string_view name, bool keep) {
  const std::string open = fmt::format("{{{{#{}}}}}", name),
                    close = fmt::format("{{{{/{}}}}}", name);
  const std::size_t first = page.find(open), last = page.find(close);
  if (first == page.npos || last == page.npos || last < first) return std::string(page);
  const std::string_view inside = page.substr(first + open.size(), last - first - open.size());
  return std::string(page.substr(0, first))
      .append(keep ? inside : "")
      .append(page.substr(last + close.size()));
}

std::string fill_template(std::string_view page,
                          const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = open == page.npos ? page.npos : page.find("}}", open);
    if (close == page.npos) return out.append(page);
    out.append(page.substr(0, open));
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto found = std::find_if(values.begin(), values.end(),
                                    [name](const auto& value) { return value.first == name; });
    out.append(found == values.end() ? page.substr(open, close + 2 - open) : found->second);
    page.remove_prefix(close + 2);
  }
}

std::string render_html(const ReportInput& input, const ReportAssets& assets) {
  const std::vector<ReportRow> records = report_rows(*input.rows, input.folder);
  const Verdicts verdicts = judge_predictions(records);
  const Json datasets = chart_datasets(records, input.tensors),
             experiment = experiment_charts(input.experiment);
  const bool charts = !assets.libraries.empty();
  // An experiment may have no rows; then the page has only its section.
  const bool alone = records.empty() && input.experiment && input.experiment->is_object();
  constexpr std::size_t kSideBySide = 2;
  ExperimentFigures figures;
  if (charts)
    figures = {experiment_figures(experiment, 0, kSideBySide),
               experiment_figures(experiment, kSideBySide)};
  else if (alone && !experiment.empty())
    figures.others = kNoCharts;
  const bool predictions = any_predictions(records);
  // A ranking of layers precedes the conclusion of the experiment; other rows follow it.
  const bool layers = asks_for_layers(records);
  const std::string title =
      alone ? "Experiment " + read_experiment(*input.experiment).name : subject(records);
  return fill_template(
      with_section(with_section(assets.page, "rows", !alone), "predictions", predictions),
      {{"title", html_text(title)},
       {"facts", alone ? facts(*input.experiment) : facts(records)},
       {"style", std::string(assets.style)},
       {"gate", gate_paragraph(records, input.unfinished)},
       {"experiment", experiment_section(input.experiment, figures)},
       {"answer", alone || layers ? "" : answer_section(records)},
       {"layers", layers ? answer_section(records) : ""},
       {"figures", figures_section(records, assets, datasets) + notes_section(records)},
       {"citation", citation_section(input)},
       {"verdicts", verdict_tables(verdicts)},
       {"points", points_table(records)},
       {"sweep",
        input.sweep ? html_text(input.sweep->dump(1, Json::NotUtf8::replace)) : "not recorded"},
       {"scripts", page_scripts(records, datasets, experiment, assets)}});
}

Json paper_page(const ReportInput& input, const ReportAssets& assets) {
  const std::vector<ReportRow> records = report_rows(*input.rows, input.folder);
  const Json datasets = chart_datasets(records, input.tensors),
             experiment = experiment_charts(input.experiment);
  std::vector<DrawnFigure> drawn = drawn_of_experiment(experiment);
  if (!records.empty())
    add_drawn(drawn, charts_for(records, assets), datasets, caption_words(records));
  return with_figures(page_data(records, datasets, experiment, assets.charts), drawn);
}

Json paper_page(const std::vector<NamedChart>& named, const Json& datasets,
                const ReportAssets& assets) {
  Json charts = Json::array();
  std::vector<DrawnFigure> drawn;
  for (const NamedChart& one : named) {
    const Json ready = experiment_charts(std::vector<Chart>{one.chart});
    if (ready.empty()) continue;
    drawn.push_back(drawn_of_experiment(ready).front());
    drawn.back().name = one.name;
    drawn.back().number = charts.size();
    charts.push_back(ready[0]);
  }
  add_drawn(drawn, assets.charts, datasets, {});
  return with_figures(page_data({}, datasets, charts, assets.charts), drawn);
}

void write_html(const ReportInput& input, const std::string& path) {
  write_atomically(path, {render_html(input, embedded_assets())});
}

}  // namespace numemu::experiments
