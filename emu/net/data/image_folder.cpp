// images:DIR: a folder for each class, or one with such folders for each split. Files are decoded
// when they are read, so memory does not grow with their number.
#include <fmt/format.h>
#include <omp.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "emu/net/data/byte_source.hpp"
#include "emu/net/data/images.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/data/picture.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu::net {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostSize = 4096, kMostImages = std::int64_t{1} << 31, kChannels = 3,
                       kMostFile = std::int64_t{1} << 28, kDigits = 16;
constexpr std::int64_t kMostFolders = std::int64_t{1} << 24;

struct ImageFile {
  std::string path;
  std::int32_t label = 0;
};

std::vector<std::string> sorted_entries(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    std::error_code none;  // a link to itself or to nothing is no folder
    if (!name.starts_with('.') && at->is_directory(none) == folders) names.push_back(name);
  }
  if (error) throw file_error(fmt::format("{}: cannot be read: {}", folder, error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

enum class FileKind : std::uint8_t { picture, other_picture, other };

FileKind kind_of(const std::string& name) {
  std::string end = fs::path(name).extension();
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto is_one_of = [&](std::initializer_list<std::string_view> ends) {
    return std::find(ends.begin(), ends.end(), end) != ends.end();
  };
  if (is_one_of({".png", ".jpg", ".jpeg"})) return FileKind::picture;
  if (is_one_of(
          {".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".avif", ".heic", ".jp2"}))
    return FileKind::other_picture;
  return FileKind::other;
}

/// The first of each class, then the second of each, so that any first N hold all classes alike.
/// Throws Error for a picture of a kind that is not read; adds the other files to `left_out`.
std::vector<ImageFile> files_of(const std::string& folder, const std::vector<std::string>& classes,
                                std::int64_t& left_out) {
  std::vector<std::pair<std::size_t, ImageFile>> placed;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const std::string own = folder + "/" + classes[label];
    std::size_t place = 0;
    for (const std::string& name : sorted_entries(own, false)) {
      const FileKind kind = kind_of(name);
      if (kind == FileKind::other_picture)
        throw Error(fmt::format("{}/{}: expected .png, .jpg or .jpeg files", own, name));
      if (kind == FileKind::picture)
        placed.push_back({place++, {own + "/" + name, static_cast<std::int32_t>(label)}});
      else
        ++left_out;
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ImageFile> files;
  for (auto& [place, file] : placed) files.push_back(std::move(file));
  return files;
}

std::string bytes_of_file(const std::string& path) {
  InputFile file(path);
  if (file.left() > kMostFile)
    throw Error(
        fmt::format("{}: expected at most {} bytes, found {}", path, kMostFile, file.left()));
  return file.read(file.left());
}

class FolderSamples final : public Samples {
 public:
  FolderSamples(SourceOptions options, const std::string& cache)
      : resize_(options.whole("resize", 0, 1, kMostSize)),
        size_(options.whole("size", 0, 1, kMostSize)) {
    const Normalisation n =
        normalisation_of(options, kChannels).value_or(Normalisation{{0, 0, 0}, {1, 1, 1}});
    table_ = normalisation_table(n.mean, n.deviation);
    find_files(options);
    const Picture first = seen(test_[0]);
    facts_.kind = DataKind::images;
    facts_.noun = "images";
    facts_.input_shape = {first.height, first.width, kChannels};
    facts_.sizes.test = static_cast<std::int64_t>(test_.size());
    facts_.sizes.train = facts_.sizes.calibration = static_cast<std::int64_t>(train_.size());
    if (validates_) {
      facts_.sizes.calibration =
          std::min<std::int64_t>(ImageSamples::kCalibration, facts_.sizes.train);
    }
    make_digest(cache);
    facts_.note = fmt::format(
        "images: {} classes, {} training and {} test images, {} x {} x 3 after {}{}{}",
        facts_.classes, facts_.sizes.train, facts_.sizes.test, first.height, first.width,
        resize_ == 0 ? "no resizing" : fmt::format("resizing to {}", resize_),
        size_ == 0 ? "" : fmt::format(" and a centre crop of {}", size_),
        (left_out_ == 0 ? ""
                        : fmt::format("; files left out, which are no images: {}", left_out_)) +
            empty_);
  }

  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    const ImageFile& file = (part == Part::test ? test_ : train_).at(static_cast<std::size_t>(id));
    const Picture picture = seen(file);
    if (Shape{picture.height, picture.width, kChannels} != facts_.input_shape) {
      throw Error(fmt::format(
          "{}: expected {} x {} pixels, as the first image, found {} x {}; give "
          "resize= and size=",
          file.path, facts_.input_shape[0], facts_.input_shape[1], picture.height, picture.width));
    }
    write_image(picture.rgb.data(), facts_.input_shape, table_, draw, id, x);
    *targets.classes = file.label;
  }

 private:
  Picture seen(const ImageFile& file) const {
    Picture picture = decode_picture(file.path, bytes_of_file(file.path));
    if (resize_ > 0) picture = resize_shorter(picture, resize_);
    if (size_ > 0) picture = crop_centre(picture, size_);
    return picture;
  }

  void find_files(const SourceOptions& options) {
    const std::string& folder = options.path();
    if (!fs::is_directory(folder)) throw Error(folder + ": expected a folder");
    std::string test = folder;
    for (const char* name : {"test", "val"}) {
      if (fs::is_directory(folder + "/train") && fs::is_directory(folder + "/" + name)) {
        test = folder + "/" + name;
        validates_ = true;
        break;
      }
    }
    const std::vector<std::string> classes = sorted_entries(test, true);
    test_ = files_of(test, classes, left_out_);
    if (test_.empty())
      throw Error(test + ": expected a folder of .png, .jpg or .jpeg files for each class");
    const auto folders = static_cast<std::int64_t>(classes.size());
    std::vector<bool> seen(classes.size());
    for (const ImageFile& file : test_) seen[static_cast<std::size_t>(file.label)] = true;
    if (const auto none = std::find(seen.begin(), seen.end(), false); none != seen.end())
      empty_ = fmt::format("; classes without test images: {}, the first is '{}'",
                           std::count(seen.begin(), seen.end(), false),
                           classes[static_cast<std::size_t>(none - seen.begin())]);
    facts_.classes = options.whole("classes", folders, folders, kMostFolders);
    const std::int64_t taken = options.whole("calibration", 0, 1, kMostImages);
    if (validates_) {
      if (taken > 0)
        options.fail("calibration", fmt::format("no such option: {}/train has the calibration "
                                                "samples; its first {} are used",
                                                folder, ImageSamples::kCalibration));
      if (sorted_entries(folder + "/train", true) != classes)
        throw Error(folder + ": expected the same class folders in train as in " + test);
      train_ = files_of(folder + "/train", classes, left_out_);
    } else if (taken > 0) {
      if (taken >= static_cast<std::int64_t>(test_.size()))
        options.fail("calibration", fmt::format("fewer than the {} images", test_.size()));
      train_.assign(test_.begin(), test_.begin() + taken);
      test_.erase(test_.begin(), test_.begin() + taken);
    }
  }

  /// Of the decoded pixels. Decoding them all takes long, so that the digest is kept under names,
  /// sizes, numbers and times of the files.
  void make_digest(const std::string& cache) {
    std::vector<const ImageFile*> files;
    for (const std::vector<ImageFile>* split : {&train_, &test_}) {
      for (const ImageFile& file : *split) files.push_back(&file);
    }
    std::string names = "numemu images 1\n";
    for (const ImageFile* file : files) {
      struct stat is;
      if (::stat(file->path.c_str(), &is) != 0)
        throw file_error(file->path + ": cannot be looked at: " + std::strerror(errno));
      // The time of the last change of status: that of the contents can be set to any other.
      names += fmt::format("{} {} {} {}.{:09}\n", fs::absolute(file->path).string(), is.st_size,
                           is.st_ino, is.st_ctim.tv_sec, is.st_ctim.tv_nsec);
    }
    const std::string folder = cache + "/images", key = sha256_hex(names),
                      kept = folder + "/" + key.substr(0, 32);
    std::string pixels = read_kept(kept, key);
    if (pixels.empty()) {
      pixels = digest_of_pixels(files);
      keep(folder, kept, pixels + sha256_hex(key + pixels));
    }
    std::string text = fmt::format(
        "images {} resize {} size {} train {} table {}\n", pixels, resize_, size_, train_.size(),
        sha256_hex({reinterpret_cast<const char*>(table_.data()), table_.size() * sizeof(float)}));
    for (const ImageFile* file : files) text += fmt::format("{} ", file->label);
    facts_.digest = sha256_hex(text).substr(0, kDigits);
  }

  static std::string digest_of_pixels(const std::vector<const ImageFile*>& files) {
    std::vector<std::string> digests(files.size());
    std::vector<std::exception_ptr> failures(files.size());
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < files.size(); ++i) {
      try {
        const Picture p = decode_picture(files[i]->path, bytes_of_file(files[i]->path));
        digests[i] =
            fmt::format("{} {} {}\n", p.height, p.width,
                        sha256_hex({reinterpret_cast<const char*>(p.rgb.data()), p.rgb.size()}));
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
    std::string text;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (failures[i]) std::rethrow_exception(failures[i]);
      text += digests[i];
    }
    return sha256_hex(text);
  }

  /// "" where nothing is kept, or not what keep() wrote for this key.
  static std::string read_kept(const std::string& path, const std::string& key) {
    constexpr std::int64_t kHex = 64;
    try {
      InputFile file(path);
      if (file.left() != 2 * kHex) return "";
      const std::string text = file.read(2 * kHex), pixels = text.substr(0, kHex);
      return text.substr(kHex) == sha256_hex(key + pixels) ? pixels : "";
    } catch (const Error&) {
      return "";
    }
  }

  static void keep(const std::string& folder, const std::string& path, const std::string& text) {
    try {
      fs::create_directories(folder);
      write_atomically(path, {text});
    } catch (const fs::filesystem_error&) {
    } catch (const Error&) {
    }
  }

  std::int64_t resize_, size_;
  bool validates_ = false;     ///< train and test are folders of their own
  std::int64_t left_out_ = 0;  ///< files that are no pictures
  std::string empty_;          ///< what the note says of classes without test images
  std::vector<float> table_;
  std::vector<ImageFile> train_, test_;
};

}  // namespace

Dataset load_image_folder(const std::string& place, const std::string& cache_folder) {
  return Dataset("images", std::make_shared<FolderSamples>(
                               SourceOptions("images", place,
                                             {"resize", "size", "normalize", "mean", "deviation",
                                              "calibration", "classes"}),
                               cache_folder));
}

}  // namespace numemu::net
