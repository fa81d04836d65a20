// Descriptions of units: read, and read again from their canonical form.
#include "emu/unit/description/json.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(description)(const std::uint8_t* data, std::size_t size) {
  using namespace numemu;
  const std::string text(fuzz::text_of(data, size));
  std::string form;
  const bool loaded = fuzz::run(size, fuzz::kTight, [&] {
    form = unit::description_json(unit::parse_description(text, "unit.json"));
  });
  if (loaded && unit::description_json(unit::parse_description(form, "again")) != form)
    fuzz::finding();
  return 0;
}
