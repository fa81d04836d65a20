// A folder of one test's files, removed at its end.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

struct Scratch {
  explicit Scratch(const std::string& name)
      : folder(std::filesystem::temp_directory_path() /
               ("numemu-report-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(folder); }

  std::string operator/(const std::string& file) const { return (folder / file).string(); }
  std::string read(const std::string& file) const {
    std::ifstream in(folder / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }

  std::filesystem::path folder;
};
