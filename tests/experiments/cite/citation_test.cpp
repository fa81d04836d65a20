// What identifies a run, as text and BibTeX.
#include "experiments/cite/citation.hpp"

#include "formats/digest.hpp"
#include "formats/storage/json.hpp"
#include "policies/canonical_json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace citation_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("citation: a sweep by digests of its configuration, network and data", "[fast]") {
  std::vector<Json> json = sample::rows();
  for (Json& row : json) {
    row["point"]["weights"] = "weights-digest";
    row["point"]["images"] = "images-digest";
  }
  const std::vector<Row> rows = read_rows(json);
  const Json sweep = sample::sweep();
  const Citation c = citation_of(rows, &sweep, nullptr, {"1.2.3"});
  CHECK(c.version == "1.2.3");
  CHECK(c.numerics == rows[0].version);
  CHECK(c.command == "numemu sweep sweep.json");
  // That of the file, as sha256sum prints it.
  const std::string digest = numemu::sha256_hex(numemu::policies::canonical_json(sweep) + "\n");
  const std::string text = citation_text(c);
  for (const std::string& part :
       {"sweep.json: " + digest, std::string("network lenet: weights-digest"),
        std::string("data glyphs: images-digest"), std::string("version: numemu 1.2.3")})
    CHECK(has(text, part));
  CHECK(c.key == "numemu-" + digest.substr(0, 8));
  CHECK(has(bibtex(c), "@misc{numemu-" + digest.substr(0, 8) +
                           ",\n  title = {numemu sweep of lenet on glyphs}"));
  // One other rule is another run.
  Json other = sweep;
  other["seed"] = 77;
  CHECK(citation_of(rows, &other, nullptr, {"1.2.3"}).key != c.key);
}

TEST_CASE("citation: an experiment by the command that runs it again", "[fast]") {
  Json experiment = sample::experiment();
  experiment["name"] = "kure";
  experiment["seed"] = std::uint64_t{5};
  experiment["settings"] = {{"net", "mlp"}, {"dist", "student-t:4 'x'"}};
  const Citation c = citation_of({}, nullptr, &experiment, {"1"});
  CHECK(c.command ==
        "numemu experiment kure --set net=mlp --set 'dist=student-t:4 '\\''x'\\''' --seed 5");
}

TEST_CASE("citation: text for LaTeX", "[fast]") {
  CHECK(latex_text("a_b & 5 % {x} \\y") == "a\\_b \\& 5 \\% \\{x\\} \\textbackslash{}y");
  CHECK(latex_text("−1 ± 2\n") == "$-$1 $\\pm$ 2 ");
  CHECK(latex_text("naïve") == "naïve");
}

}  // namespace citation_test
