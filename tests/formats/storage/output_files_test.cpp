// Files that belong together: digests, kills between the renames, several writers and a reader.
#include "formats/storage/output_files.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "formats/digest.hpp"
#include "formats/random.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::output_files_test {
namespace {

/// Codes, scales of one byte and flags, all of which name their writer.
struct Trio {
  test::TemporaryFolder folder;
  std::string codes = folder / "c.npy", scales = folder / "s.npy", flags = folder / "f.npy";

  void publish(std::uint8_t writer) const {
    OutputFiles files;
    files.add_codes("codes", codes, find_format("int8"), {1}, &writer,
                    {.numemu = "1", .rounding = "sr(" + std::to_string(writer) + ")"});
    files.add_codes("scales", scales, find_format("float8_e8m0fnu"), {1}, &writer,
                    {.numemu = "1", .rounding = "sr(" + std::to_string(writer) + ")"});
    files.add_array("flags", flags, ArrayType::uint8, {1}, &writer);
    files.publish();
  }

  /// Who wrote what a reader of all three finds; "" where it is refused.
  std::string found() const {
    std::string writers;
    try {
      std::vector<StoredArray> all =
          open_together({{codes, "codes"}, {scales, "scales"}, {flags, "flags"}});
      for (StoredArray& array : all)
        writers += std::to_string(read_array(array).as<std::uint8_t>()[0]);
      for (const StoredArray& array : all) {
        if (array.sidecar) writers += array.sidecar->rounding->substr(3, 1);
      }
    } catch (const Error&) {
      return "";
    }
    return writers;
  }
  std::int64_t entries() const {
    return std::distance(std::filesystem::directory_iterator(folder.path()),
                         std::filesystem::directory_iterator());
  }
};

bool of_one_writer(const std::string& writers) {
  return writers.find_first_not_of(writers.substr(0, 1)) == std::string::npos;
}

TEST_CASE("sidecars have the digests of all files", "[fast]") {
  const Trio t;
  t.publish(1);
  CHECK(t.entries() == 5);
  CHECK(t.found() == "11111");
  const auto digest = [](const std::string& path) { return sha256_hex(test::read_file(path)); };
  const Sidecar codes = read_sidecar(t.codes).value(), scales = read_sidecar(t.scales).value();
  CHECK(codes.sha256 == digest(t.codes));
  CHECK(codes.written_with == std::map<std::string, std::string>{{"flags", digest(t.flags)},
                                                                 {"scales", digest(t.scales)}});
  CHECK(scales.sha256 == digest(t.scales));
  CHECK(scales.written_with.at("codes") == codes.sha256);
  const std::uint8_t code = 1;
  write_codes(t.folder / "alone.npy", find_format("int8"), {1}, &code, {.numemu = "1"});
  CHECK(read_sidecar(t.folder / "alone.npy")->written_with.empty());
  CHECK(read_sidecar(t.folder / "alone.npy")->sha256 == digest(t.folder / "alone.npy"));
}

TEST_CASE("a writer killed at any moment leaves files of one run", "[fast]") {
  const Trio t;
  const RandomSource random{.seed = 5};
  t.publish(1);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (std::uint8_t writer = 2;; writer = static_cast<std::uint8_t>(5 - writer))
        t.publish(writer);
    }
    usleep(1000 + static_cast<useconds_t>(random.bits(i, 14)));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    // What is there, without a look at digests.
    std::string there;
    for (const std::string& path : {t.codes, t.scales, t.flags}) {
      if (std::filesystem::exists(path))
        there += std::to_string(read_npy(path).as<std::uint8_t>()[0]);
      if (const auto about = read_sidecar(path)) there += about->rounding->substr(3, 1);
    }
    CAPTURE(i, there);
    REQUIRE(there.size() >= 1);  // the first file is never missing
    CHECK(of_one_writer(there));
    CHECK(of_one_writer(t.found()));
  }
  t.publish(1);
  CHECK(t.found() == "11111");
}

TEST_CASE("several writers of one name, and a reader meanwhile", "[fast]") {
  const Trio t;
  t.publish(1);
  std::vector<pid_t> children;
  for (std::uint8_t writer = 1; writer <= 3; ++writer) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int i = 0; i < 12; ++i) t.publish(writer);
    _exit(0);
  }
  std::size_t running = children.size(), looks = 0, refused = 0;
  while (running > 0) {
    const std::string found = t.found();
    ++looks;
    refused += found.empty();
    if (!of_one_writer(found)) FAIL_CHECK("found " << found);
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) > 0) {
      CHECK(status == 0);
      --running;
    }
  }
  CAPTURE(looks, refused);
  CHECK(refused == 0);
  CHECK(t.found().size() == 5);
  CHECK(t.entries() == 5);
}

TEST_CASE("a sidecar that cannot be written leaves nothing", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  std::filesystem::create_directory(path + ".json");
  const std::uint8_t code = 1;
  CHECK(test::message_of([&] {
          write_codes(path, find_format("int8"), {1}, &code, {.numemu = "1"});
        }) == path + ".json: expected a regular file or a new name");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(std::filesystem::is_directory(path + ".json"));
}

TEST_CASE("an old sidecar goes before the new codes come", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  test::write_file(path + ".json", R"({"numemu":"1","format":"int4"})");
  const std::uint8_t code = 1;
  OutputFiles files;
  files.add_codes("codes", path, find_format("int8"), {1}, &code, {.numemu = "1"});
  // No file takes the place of a folder: the run ends between the two.
  std::filesystem::create_directory(path);
  CHECK(test::message_of([&] { files.publish(); }) ==
        path + ": expected a regular file or a new name");
  CHECK_FALSE(std::filesystem::exists(path + ".json"));
}

TEST_CASE("codes that cannot be written leave the old pair", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.safetensors";
  const std::uint8_t codes[3] = {1, 2, 3};
  const Format& f = find_format("float4_e2m1fn");
  write_codes(path, f, {2}, codes, {.numemu = "1"});
  // Three codes of four bits do not end on a byte.
  CHECK_FALSE(test::message_of([&] { write_codes(path, f, {3}, codes, {.numemu = "1"}); }).empty());
  CHECK(read_codes(path, {}).array.shape == ArrayShape{2});
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()),
                      std::filesystem::directory_iterator()) == 2);
}

}  // namespace
}  // namespace numemu::output_files_test
