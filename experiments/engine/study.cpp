#include "experiments/engine/study.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/engine/paired_claims.hpp"

namespace numemu::experiments {

stats::PairedInterval gain(const SeedFigures& figures, std::size_t method, std::size_t on) {
  return stats::paired_interval(figures[method], figures[on]);
}

ResultTable study_table(std::string title, std::size_t methods,
                        const std::vector<StudyColumn>& columns) {
  ResultTable table{std::move(title), {}, {}};
  table.rows.resize(methods);
  for (const StudyColumn& column : columns) {
    table.header.push_back(column.header);
    for (std::size_t m = 0; m < methods; ++m) table.rows[m].push_back(column.cell(m));
  }
  return table;
}

StudyColumn name_column(std::string header, std::vector<std::string> names) {
  return {std::move(header), [names = std::move(names)](std::size_t m) { return names[m]; }};
}

StudyColumn mean_column(std::string header, const SeedFigures& figures, int digits) {
  return {std::move(header), [figures, digits](std::size_t m) {
            const double mean = stats::paired_interval(figures[m]).mean;
            return std::isfinite(mean) ? fmt::format("{:.{}f}", mean, digits) : "-";
          }};
}

StudyColumn difference_column(std::string header, const SeedFigures& figures, int digits) {
  return {std::move(header), [figures, digits](std::size_t m) {
            const double mean = gain(figures, m).mean;
            return m > 0 && std::isfinite(mean) ? fmt::format("{:+.{}f}", mean, digits) : "-";
          }};
}

StudyColumn interval_column(const SeedFigures& figures, int digits) {
  return {"95 % interval", [figures, digits](std::size_t m) {
            return m > 0 ? interval_text(gain(figures, m), "-", digits) : std::string("-");
          }};
}

ChartPoint gain_point(double x, std::string name, const stats::PairedInterval& gain) {
  return {.x = x, .name = std::move(name), .y = gain.mean, .low = gain.low, .high = gain.high};
}

Chart gain_chart(std::string title, std::string caption, std::string y,
                 const std::vector<std::string>& methods, const SeedFigures& figures) {
  Chart chart{.kind = Chart::Kind::bars,
              .title = std::move(title),
              .caption = std::move(caption),
              .y = std::move(y),
              .series = {{"measured", {}, false}}};
  for (std::size_t m = 1; m < methods.size(); ++m)
    chart.series[0].points.push_back(
        gain_point(static_cast<double>(m), methods[m], gain(figures, m)));
  return chart;
}

}  // namespace numemu::experiments
