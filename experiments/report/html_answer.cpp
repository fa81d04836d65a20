// What a reader came for: the best points or the ranking of layers, what is not finite, notes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/not_finite_text.hpp"

namespace numemu::experiments {
namespace {

std::string paragraph(const std::vector<std::string>& sentences, const char* between = " ") {
  std::string out;
  for (const std::string& sentence : sentences)
    out += (out.empty() ? "" : between) + html_text(sentence);
  return out.empty() ? "" : "<p class=\"headline\">" + out + "</p>\n";
}

/// Longer lists of names fold up.
constexpr std::size_t kListed = 12;

const char* answer_words(std::optional<Verdict> little) {
  return little == Verdict::holds ? "yes" : little == Verdict::fails ? "no" : "undecided";
}

std::string limit_words(bool texts) {
  return texts ? fmt::format("{:g} bits per character", kSmallRise)
               : fmt::format("{:.1f} points", 100 * kSmallLoss);
}

bool any_text(const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const Record& r) { return r.bits_per_character.has_value(); });
}

/// What a row reached, and its change from float32: two cells.
std::string result_cells(const Record& r) {
  if (r.bits_per_character)
    return html_number_cell(r.bits_per_character, html_number(r.bits_per_character, 4)) +
           html_number_cell(r.bits_change(), html_number(r.bits_change(), 4, true));
  return html_number_cell(r.top1, html_share(r.top1, std::nullopt, std::nullopt, false)) +
         html_number_cell(r.difference,
                          html_share(r.difference, r.difference_low, r.difference_high, true));
}

std::vector<std::string> result_titles(bool texts) {
  return texts ? std::vector<std::string>{">Bits per character", ">Change"}
               : std::vector<std::string>{">Top-1, %", ">Change, points"};
}

std::string best_table(const std::vector<Record>& records) {
  const std::vector<const Record*> best = best_points(records);
  if (best.empty()) return "";
  const bool texts = any_text(records);
  std::vector<std::string> titles = {"Configuration",
                                     texts ? fmt::format("Adds < {:g}", kSmallRise)
                                           : fmt::format("Loses < {:.1f}", 100 * kSmallLoss),
                                     ">Bits W / A"};
  for (const std::string& title : result_titles(texts)) titles.push_back(title);
  titles.insert(titles.end(), {">SQNR, dB", ">Predicted, dB", "Unit"});
  std::string out =
      "<h2 id=\"h-best\">Best points</h2>\n<p class=\"facts\">No other configuration has as few "
      "bits and loses less. The change from float32 is paired by sample, with its 95 % interval; "
      "it decides the verdict.</p>" +
      html_table_start("Best points", titles);
  const Record* safe = cheapest_safe(records);
  for (const Record* r : best) {
    out += fmt::format("<tr{}><th scope=\"row\">{}</th>", r == safe ? " class=\"baseline\"" : "",
                       html_text(r->label)) +
           fmt::format("<td class=\"verdict {}\">{}</td>",
                       to_string(loses_little(*r).value_or(Verdict::undecided)),
                       answer_words(loses_little(*r))) +
           html_number_cell(r->mean_bits(), html_number(r->bits_weight, 2) + " / " +
                                                html_number(r->bits_activation, 2)) +
           result_cells(*r) + html_measured_cell(*r) + html_predicted_cell(*r) +
           html_text_cell(short_unit(r->unit)) + "</tr>";
  }
  return out + kTableEnd;
}

std::string not_finite_table(const std::vector<Record>& records) {
  std::vector<const Record*> lost;
  for (const Record& r : records) {
    if (r.not_finite) lost.push_back(&r);
  }
  if (lost.empty()) return "";
  std::stable_sort(lost.begin(), lost.end(), [](const Record* a, const Record* b) {
    return a->difference.value_or(0) < b->difference.value_or(0);
  });
  std::vector<std::string> titles = {"Configuration"};
  for (const std::string& title : result_titles(any_text(records))) titles.push_back(title);
  titles.emplace_back("Where and why");
  std::string out = "<h2 id=\"h-lost\">Numbers that are NaN or infinite</h2>\n" +
                    html_table_start("Outputs that are not finite", titles);
  for (const Record* r : lost) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(r->name)) + result_cells(*r) +
           "<td class=\"why\">";
    for (const std::string& sentence : not_finite_sentences(*r->row))
      out += html_text(sentence) + "<br>";
    out += "</td></tr>";
  }
  return out + kTableEnd;
}

std::string loss_lists(const std::vector<Record>& records) {
  std::string out;
  const std::string limit = limit_words(any_text(records));
  for (const auto& [little, words] : {std::pair(Verdict::holds, "Lose less than {}"),
                                      {Verdict::undecided, "Undecided: the interval holds {}"},
                                      {Verdict::fails, "Lose {} or more"}}) {
    const std::vector<std::string> labels = labels_by_loss(records, little);
    if (labels.empty()) continue;
    std::string names;
    for (const std::string& label : labels)
      names += (names.empty() ? "<span>" : ", <span>") + html_text(label) + "</span>";
    if (labels.size() > kListed)
      names = fmt::format("<details><summary>{} configurations</summary>{}</details>",
                          labels.size(), names);
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", fmt::format(fmt::runtime(words), limit), names);
  }
  if (out.empty()) return "";
  const bool units = std::any_of(records.begin(), records.end(),
                                 [](const Record& r) { return r.name != r.label; });
  return "<dl class=\"losses\">" + out + "</dl>" +
         (units ? "<p class=\"facts\">Where no unit is named, all units agree.</p>" : "");
}

std::string notes_list(const std::vector<Record>& records) {
  std::string out;
  for (const SharedNote& note : shared_notes(records)) {
    const bool all = note.names.size() == records.size();
    out += fmt::format(
        "<li>{}{}</li>", html_text(note.text),
        all ? "" : fmt::format(" <small>({})</small>", html_text(listed_names(note.names))));
  }
  return out.empty() ? "" : "<h2 id=\"h-notes\">Notes</h2><ul class=\"notes\">" + out + "</ul>";
}

std::string ranking_cell(const Record* r) {
  if (!r) return html_number_cell(std::nullopt, kNone);
  const std::string change = r->bits_per_character
                                 ? html_number(r->bits_change(), 4, true)
                                 : html_share(r->difference, std::nullopt, std::nullopt, true);
  if (r->not_finite && !r->sqnr_db)
    return fmt::format("<td class=\"n lost\">NaN <small>{}</small></td>", change);
  return html_number_cell(r->sqnr_db,
                          html_number(r->sqnr_db, 1) + fmt::format(" <small>{}</small>", change));
}

std::string ranking_table(const LayerRanking& ranking, bool texts) {
  std::vector<std::string> titles = {"#", "Layer"};
  for (const std::string& format : ranking.formats) titles.push_back(">" + format);
  std::string out = html_table_start("Layers, the most sensitive first", titles);
  int place = 0;
  for (const RankedLayer& layer : ranking.layers) {
    const bool all = layer.name == layer_words("*");
    out +=
        fmt::format("<tr{}><td>{}</td><th scope=\"row\">{}</th>", all ? " class=\"baseline\"" : "",
                    all ? "" : fmt::format("{}", ++place), html_text(layer.name));
    for (const Record* cell : layer.cells) out += ranking_cell(cell);
    out += "</tr>";
  }
  return "<h2 id=\"h-ranking\">Layers, the most sensitive first</h2>\n" + out + kTableEnd +
         fmt::format(
             "<p class=\"facts\">Signal-to-noise ratio of the network's output in dB when "
             "only this layer has the format; below it the change from float32 in {}. "
             "Layers stand in the order of their mean over the formats.</p>",
             texts ? "bits per character" : "points of top-1");
}

}  // namespace

std::string answer_section(const std::vector<Record>& records) {
  std::string out;
  if (asks_for_layers(records)) {
    const LayerRanking ranking = rank_layers(records);
    out = paragraph(ranking_sentences(ranking), "<br>") +
          ranking_table(ranking, any_text(records)) + not_finite_table(records);
  } else {
    out = paragraph(headline(records)) + best_table(records) + not_finite_table(records) +
          loss_lists(records);
  }
  return out + notes_list(records);
}

}  // namespace numemu::experiments
