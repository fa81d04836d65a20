#include "experiments/cite/citation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "formats/digest.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"
#include "policies/canonical_json.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kMostDigests = 8;  // of a kind; a run over more is identified by its sweep

/// A word of a shell: quoted where it needs to be.
std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

void add_digests(Citation& out, const std::string& what,
                 const std::set<std::pair<std::string, std::string>>& found) {
  std::size_t n = 0;
  for (const auto& [name, digest] : found) {
    if (digest.empty() || n++ >= kMostDigests) continue;
    out.digests.emplace_back(name.empty() ? what : what + " " + name, digest);
  }
}

void cite_rows(Citation& out, const std::vector<Row>& rows) {
  std::set<std::string> nets, data, versions;
  std::set<std::pair<std::string, std::string>> weights, graphs, images;
  std::string recipes;
  for (const Row& row : rows) {
    nets.insert(row.point.net);
    data.insert(row.point.data);
    versions.insert(row.version);
    weights.emplace(row.point.net, row.point.weights);
    graphs.emplace(row.point.net, row.point.graph);
    images.emplace(row.point.data, row.point.images);
    recipes += policies::canonical_json(row.point.recipe) + "\n";
  }
  if (out.numerics.empty()) out.numerics = joined(versions, ", ");
  if (out.title.empty())
    out.title = fmt::format("numemu sweep of {} on {}", joined(nets, ", "), joined(data, ", "));
  out.digests.emplace_back("recipes", sha256_hex(recipes));
  add_digests(out, "network", weights);
  add_digests(out, "graph", graphs);
  add_digests(out, "data", images);
}

}  // namespace

Citation citation_of(const std::vector<Row>& rows, const Json* sweep, const Json* experiment,
                     const CitedProgram& program) {
  Citation out;
  out.version = program.version;
  if (experiment && experiment->is_object()) {
    const ExperimentFile file = read_experiment(*experiment);
    out.title = "numemu experiment " + file.name;
    out.numerics = file.version;
    out.command = "numemu experiment " + shell_word(file.name);
    if (file.settings.is_object()) {
      for (const auto& [key, value] : file.settings.items())
        out.command +=
            " --set " +
            shell_word(key + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
    }
    if (file.seed) out.command += fmt::format(" --seed {}", *file.seed);
    out.digests.emplace_back("conclusion", sha256_hex(experiment->dump()));
  } else {
    out.command = "numemu sweep sweep.json";
    if (sweep && !sweep->empty())
      out.digests.emplace_back("sweep.json", sha256_hex(policies::canonical_json(*sweep) + "\n"));
  }
  if (!rows.empty()) cite_rows(out, rows);
  std::string key = "numemu";
  if (!out.digests.empty()) key += "-" + out.digests.front().second.substr(0, 8);
  out.key = key;
  return out;
}

std::string citation_text(const Citation& c) {
  std::string out = c.title + "\n";
  out += fmt::format("version: numemu {}{}\n", c.version,
                     c.numerics.empty() ? "" : ", numerics version " + c.numerics);
  out += "command: " + c.command + "\n";
  for (const auto& [what, digest] : c.digests) out += fmt::format("{}: {}\n", what, digest);
  return out;
}

std::string latex_text(std::string_view text) {
  struct Sign {
    std::string_view from, to;
  };
  static constexpr std::array<Sign, 24> kSigns = {{{"\\", "\\textbackslash{}"},
                                                   {"&", "\\&"},
                                                   {"%", "\\%"},
                                                   {"$", "\\$"},
                                                   {"#", "\\#"},
                                                   {"_", "\\_"},
                                                   {"{", "\\{"},
                                                   {"}", "\\}"},
                                                   {"~", "\\textasciitilde{}"},
                                                   {"^", "\\textasciicircum{}"},
                                                   {"<", "\\textless{}"},
                                                   {">", "\\textgreater{}"},
                                                   {"|", "\\textbar{}"},
                                                   {"\"", "''"},
                                                   {"±", "$\\pm$"},
                                                   {"−", "$-$"},
                                                   {"×", "$\\times$"},
                                                   {"≤", "$\\le$"},
                                                   {"≥", "$\\ge$"},
                                                   {"≠", "$\\ne$"},
                                                   {"∞", "$\\infty$"},
                                                   {"√", "$\\surd$"},
                                                   {"–", "--"},
                                                   {"·", "$\\cdot$"}}};
  std::string out;
  while (!text.empty()) {
    const auto sign =
        std::ranges::find_if(kSigns, [&](const Sign& s) { return text.starts_with(s.from); });
    if (sign != kSigns.end()) {
      out += sign->to;
      text.remove_prefix(sign->from.size());
      continue;
    }
    const auto c = static_cast<unsigned char>(text.front());
    out += c < 0x20 || c == 0x7f ? ' ' : text.front();
    text.remove_prefix(1);
  }
  return out;
}

std::string bibtex(const Citation& c) {
  std::string note = fmt::format("Command: {}", latex_text(c.command));
  for (const auto& [what, digest] : c.digests)
    note += fmt::format("; {} {}", latex_text(what), latex_text(digest));
  return fmt::format(
      "@misc{{{},\n  title = {{{}}},\n  howpublished = {{numemu {}{}}},\n  note = {{{}}}\n}}\n",
      c.key, latex_text(c.title), latex_text(c.version),
      c.numerics.empty() ? "" : ", numerics version " + latex_text(c.numerics), note);
}

}  // namespace numemu::experiments
