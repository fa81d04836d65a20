// A data set seen otherwise: images of another size, training labels with noise. A view is a data
// set of its own, with its own digest.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"

namespace numemu::net {

struct DataView {
  /// Height and width of the images, each the mean of the stored pixels under it, by area; 0: as
  /// stored. Augmentation comes first and counts stored pixels.
  std::int64_t image_size = 0;
  /// Share of the training labels that are replaced, each by one of the other classes, which are
  /// equally likely. Validation and test labels stay.
  double label_noise = 0;
  std::uint64_t seed = 0;  ///< of the labels
};

/// "image-size 20 label-noise 0.1 seed 3", what is not used left out; "" where nothing is changed.
std::string to_string(const DataView&);

/// The set as seen; the set itself where nothing is changed. The seed decides which labels are
/// replaced, by the number of the sample: the same for any epoch and order. Throws Error naming the
/// option where the set has no images (image_size), or several targets or one class (label_noise).
Dataset view_of(const Dataset&, const DataView&);

/// The set with these of its test samples as its test, in this order; one may come again. The
/// digest is the set's.
Dataset chosen_test(const Dataset&, std::vector<std::int64_t> samples);

/// The set seen at its output i alone.
Dataset at_output(const Dataset&, std::size_t output);

/// The set with the targets of a network's outputs (shapes are those of one sample), in their
/// order; those that it has none of are without. Throws Error for targets of an output that is not
/// there.
Dataset at_outputs(const Dataset&, std::span<const NamedShape> outputs);

/// The set with the calibration samples of another one: its training samples, or its test samples
/// where it has none. Throws Error where their inputs have another shape.
Dataset calibrated_on(const Dataset&, const Dataset& calibration);

/// A set without samples apart from the test, with the first 512 of the test in the place of
/// calibration samples: for figures that calibrate nothing.
Dataset with_test_reference(const Dataset&);

/// What is to be said of the calibration samples of such sets: that they are the test's, or that
/// some are among its first 1024, which says nothing unless something `calibrates` on them. "" for
/// others.
std::string calibration_note(const Dataset&, bool calibrates = true);

/// The set with its first `count` training samples as calibration samples. Throws Error for none or
/// for more than there are.
Dataset with_calibration(const Dataset&, std::int64_t count);

}  // namespace numemu::net
