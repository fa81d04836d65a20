#include "cli/profile_table.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <map>

#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "emu/net/run_context.hpp"

namespace numemu::cli {
namespace {

constexpr std::size_t kLongest = 25;

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

void print(const std::vector<net::ProfileRow>& rows, double wall) {
  std::map<net::SectionKind, double> kinds;
  double total = 0;
  for (const net::ProfileRow& row : rows) {
    kinds[row.kind] += row.seconds;
    total += row.seconds;
  }
  say("");
  say("{:.2f} s of wall time, {:.2f} s in sections on up to {} threads:", wall, total,
      omp_get_max_threads());
  for (const auto& [kind, seconds] : kinds)
    say("  {:9} {:8.3f} s  {}", net::to_string(kind), seconds, percent(seconds, total));
  say("  outside matrix units: {}", percent(total - kinds[net::SectionKind::gemm], total));
  say("");
  std::vector<std::vector<std::string>> table;
  double rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const net::ProfileRow& row = rows[i];
    if (i >= kLongest) {
      rest += row.seconds;
      continue;
    }
    table.push_back(
        {row.layer, row.what, std::string(net::to_string(row.kind)), std::to_string(row.calls),
         fmt::format("{:.3f}", row.seconds), percent(row.seconds, total),
         row.macs > 0 && row.seconds > 0 ? fmt::format("{:.1f}", row.macs / row.seconds * 1e-9)
                                         : ""});
  }
  if (rest > 0)
    table.push_back(
        {"(the rest)", "", "", "", fmt::format("{:.3f}", rest), percent(rest, total), ""});
  write_talk(
      api::text_table({"layer", "operator", "part", "calls", "seconds", "share", "GMAC/s"}, table));
}

}  // namespace

void add_profile(Command& command, bool& profile) {
  command.flag("--profile", profile, "Print the time per operator and per GEMM on stderr");
}

ProfiledRun::ProfiledRun(bool profile) : profile_(profile), start_(seconds()) {
  if (!profile_) return;
  net::RunScope::current().profile.emplace(&seconds);
  rest_.emplace(net::SectionKind::data, "", "(outside all sections)");
}

ProfiledRun::~ProfiledRun() {
  rest_.reset();
  if (!profile_) return;
  print(net::RunScope::current().profile->rows(), seconds() - start_);
  net::RunScope::current().profile.reset();
}

}  // namespace numemu::cli
