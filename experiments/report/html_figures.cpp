// Figures from the charts' own usermeta: order, title, caption, the data they need and the lists
// they offer.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
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

/// Captions are ours; placeholders become the words given for them, others spans that the script
/// keeps up to date.
std::string caption_html(const std::string& caption, const CaptionWords& words) {
  std::string out;
  for (std::size_t i = 0; i < caption.size(); ++i) {
    const std::size_t close = caption[i] == '{' ? caption.find('}', i) : caption.npos;
    if (close == caption.npos) {
      out += html_text(caption.substr(i, 1));
      continue;
    }
    const std::string name = caption.substr(i + 1, close - i - 1);
    if (const auto known = words.find(name); known != words.end()) {
      out += html_text(known->second);
    } else {
      out += fmt::format("<span data-say=\"{}\"></span>", html_text(name));
    }
    i = close;
  }
  return out;
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

}  // namespace numemu::experiments
