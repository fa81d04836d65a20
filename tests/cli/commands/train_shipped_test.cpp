// The documented commands make the shipped checkpoints again, byte for byte.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"

namespace train_shipped_test {

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("training again gives the bytes of the shipped checkpoints", "[slow]") {
  char name[] = "/tmp/numemu-shipped-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  for (const std::string net : {"mlp", "lenet"}) {
    const std::string command =
        "NUMEMU_CACHE=" + folder + "/cache '" NUMEMU_PROGRAM "' train --net " + net +
        " --data glyphs --store f16 --quiet --out " + folder + " >/dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    const std::string file = "/" + net + "-glyphs.safetensors";
    CHECK(content(folder + file) == content(NUMEMU_SOURCE "/data" + file));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace train_shipped_test
