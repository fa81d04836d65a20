// The sessions of the documents: every command shown after `$ ` runs and prints what the document
// shows.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace commands_documents_test {

namespace {

using namespace numemu::test;

using Lines = std::vector<std::string>;

struct Command {
  int line = 0;
  std::string text;
  Lines shown;
};

/// What stands below one heading; its commands run in one folder, which is empty at first.
struct Section {
  std::string title;
  std::vector<Command> commands;

  bool needs(const std::string& word) const {
    return std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
      return command.text.find(word + " ") != std::string::npos;
    });
  }
};

bool begins(const std::string& line, const std::string& start) { return line.rfind(start, 0) == 0; }

Lines lines_of(const std::string& path) {
  std::ifstream in(path);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The fenced commands of a document. A here-document (<<'EOF') belongs to its command.
std::vector<Section> sections(const std::string& path) {
  std::vector<Section> found(1);
  bool fenced = false, here = false;
  const Lines lines = lines_of(path);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    std::vector<Command>& commands = found.back().commands;
    if (here) {
      commands.back().text += "\n" + line;
      here = line != "EOF";
    } else if (begins(line, "```")) {
      fenced = !fenced;
    } else if (!fenced && begins(line, "#")) {
      found.push_back({line, {}});
    } else if (fenced && begins(line, "$ ")) {
      commands.push_back({static_cast<int>(i) + 1, line.substr(2), {}});
      here = line.find("<<'EOF'") != std::string::npos;
    } else if (fenced && !commands.empty()) {
      commands.back().shown.push_back(line);
    }
  }
  return found;
}

/// A shown line that begins with ... is any number of printed ones.
bool shows(const Lines& shown, const Lines& printed) {
  auto at = printed.begin();
  bool omitted = false;
  for (const std::string& line : shown) {
    if (begins(line, "...")) {
      omitted = true;
      continue;
    }
    if (omitted) at = std::find(at, printed.end(), line);
    if (at == printed.end() || *at != line) return false;
    ++at;
    omitted = false;
  }
  return omitted || at == printed.end();
}

/// Commands that take over two seconds, on a loaded machine, print progress: "sweep  98 %  ...".
Lines without_progress(Lines lines) {
  std::erase_if(lines, [](const std::string& line) {
    const size_t percent = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz ");
    const size_t end = line.find_first_not_of("0123456789", percent);
    return percent > 0 && end != percent &&
           line.compare(std::min(end, line.size()), 4, " %  ") == 0;
  });
  return lines;
}

bool has(const std::string& tool) {
  return std::system((tool + " --version >/dev/null 2>&1").c_str()) == 0;
}

/// The number of commands that ran.
int check_section(const std::string& document, const Section& section) {
  const std::pair<std::string, std::string> tools[] = {
      {"python3", "python3"}, {"cc", "cc"}, {"numemu plot", "node"}};
  for (const auto& [word, tool] : tools) {
    if (section.needs(word) && !has(tool)) {
      WARN("skipped: no " + tool + " for " + document + ", " + section.title);
      return 0;
    }
  }
  const Scratch s;
  std::filesystem::create_symlink(NUMEMU_PROGRAM, s.path + "/numemu");
  std::filesystem::create_symlink(NUMEMU_SOURCE "/docs", s.path + "/docs");
  for (const Command& command : section.commands) {
    s.file("step.sh", command.text + "\n");
    const std::string run = "cd " + s.path + " && NUMEMU_CACHE=" + s.path +
                            "/cache sh step.sh >printed.txt 2>&1 </dev/null";
    INFO(document << ":" << command.line << ": " << command.text << "\nexit status "
                  << std::system(run.c_str()) << ", printed:\n"
                  << read_file(s.path + "/printed.txt"));
    CHECK(shows(command.shown, without_progress(lines_of(s.path + "/printed.txt"))));
  }
  return static_cast<int>(section.commands.size());
}

}  // namespace

TEST_CASE("documents: an omission is any number of lines, everything else is compared", "[fast]") {
  const Lines printed = {"a", "b", "c"};
  CHECK(shows({"a", "b", "c"}, printed));
  CHECK(shows({"a", "..."}, printed));
  CHECK(shows({"...", "c"}, printed));
  CHECK(shows({"... (2 more)", "b", "c"}, printed));
  CHECK_FALSE(shows({"a", "b"}, printed));
  CHECK_FALSE(shows({"a", "...", "b"}, printed));
  CHECK_FALSE(shows({"a", "...", "d"}, printed));
  CHECK_FALSE(shows({"a", "b", "c", "d"}, printed));
  CHECK_FALSE(shows({}, printed));
}

TEST_CASE("documents: their commands print what they show", "[fast]") {
  Lines documents = {"README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(NUMEMU_SOURCE "/docs")) {
    // tests/bindings/sv runs that of SystemVerilog, whose commands need simulators.
    if (entry.path().extension() == ".md" && entry.path().stem() != "bindings-sv") {
      documents.push_back("docs/" + entry.path().filename().string());
    }
  }
  std::sort(documents.begin(), documents.end());
  int commands = 0;
  for (const std::string& document : documents) {
    for (const Section& section : sections(NUMEMU_SOURCE "/" + document)) {
      if (!section.commands.empty()) commands += check_section(document, section);
    }
  }
  CHECK(commands > 10);
}

}  // namespace commands_documents_test
