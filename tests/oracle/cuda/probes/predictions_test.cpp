// The printed predictions: every question stands there, and known answers stand in their rows.
#include "tests/oracle/cuda/probes/predictions.hpp"

#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "emu/oracle/probes/probes.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::recording::predictions_test {
namespace {

/// Printed once for each chip.
const std::string& printed(std::string_view chip) {
  static std::map<std::string, std::string> kept;
  std::string& text = kept[std::string(chip)];
  if (text.empty()) {
    std::ostringstream out;
    print_predictions(out, std::string(chip));
    text = out.str();
  }
  return text;
}

/// The first row of a probe on an instruction.
std::string row(const std::string& text, const std::string& where, const std::string& probe) {
  const std::size_t at = text.find("| " + where + " | " + probe + " |");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST_CASE("predictions name every question and the published answers", "[fast]") {
  const std::string& text = printed("H100");
  for (const OpenQuestion& question : open_questions())
    CHECK(text.find(std::string("### ") + question.id + "\n") != std::string::npos);
  // The two predictions of the published probe file, specifications section 3.
  const std::string zero = row(text, "mma m16n8k16.f32.bf16.bf16.f32", "Z1");
  CHECK(zero.find("`0x32c00000`") != std::string::npos);
  CHECK(zero.find("`0x32c30300`") != std::string::npos);
  const std::string tie = row(text, "mma m16n8k16.f16.f16.f16.f16", "H0");
  CHECK(tie.find("`0x0000`") < tie.find("`0x0001`"));  // the floor of -21 first
  CHECK(text.find("wgmma m64n8k32.f32.e4m3.e4m3 |") != std::string::npos);
  CHECK(text.find("mmabs") == std::string::npos);  // Hopper has none
}

TEST_CASE("predictions of other chips hold their instructions", "[fast]") {
  const std::string& text = printed("RTXBlackwell");
  CHECK(text.find("mmabs m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3 |") != std::string::npos);
  CHECK(text.find("wgmma") == std::string::npos);
  CHECK(printed("B200").find("| tc5bs ") != std::string::npos);
}

TEST_CASE("the document of open questions lists all of them", "[fast]") {
  const std::string text = test::read_file(NUMEMU_SOURCE "/docs/hardware.md");
  for (const OpenQuestion& question : open_questions())
    CHECK(text.find(std::string("\n| ") + question.id + " | ") != std::string::npos);
}

TEST_CASE("the documents are what the rules say", "[fast]") {
  for (const auto& [chip, file] :
       {std::pair{"H100", "h100.md"}, {"RTXBlackwell", "rtxblackwell.md"}}) {
    const std::string path = std::string(NUMEMU_SOURCE "/docs/hardware/") + file;
    const std::string text = test::read_file(path);
    INFO(path << ": ./build/release/tests/oracle/cuda/numemu_predictions " << chip << " prints it");
    const std::size_t tables = text.find("\n### ") + 1;
    REQUIRE(tables != 0);
    const std::string& own = printed(chip);
    CHECK(text.substr(tables) == own.substr(own.find("### ")));
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::predictions_test
