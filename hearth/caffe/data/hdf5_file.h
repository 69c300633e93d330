// The subset of HDF5 that Caffe's files need: groups, numeric datasets, texts. Objects are named by
// their path, such as "/data/conv1/0". Files may be used from any thread, but only one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::caffe {

// Failures name the file and the object: kNotFound, or kDataLoss for unreadable data. Reading takes
// no more memory than a large multiple of the file's size, whatever the file claims.
class Hdf5File {
 public:
  // Opens for reading. The library itself may crash on a damaged file (docs/decisions/063-...).
  static Hdf5File Open(const std::string& uri);
  // Creates or replaces a file, which grows while it is written.
  static Hdf5File Create(const std::string& uri);
  // Creates a file in memory; Save writes it.
  static Hdf5File InMemory();

  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  ~Hdf5File();

  // Name of the file in messages.
  const std::string& name() const;
  bool Has(const std::string& path) const;
  bool IsGroup(const std::string& path) const;
  // Equal for all names of one group or dataset: links give it several.
  std::string Identity(const std::string& path) const;
  // Names of a group's members, in alphabetical order. Throws if one is a link to another file.
  std::vector<std::string> Children(const std::string& group) const;
  // Shape of a numeric dataset.
  std::vector<int64_t> ShapeOf(const std::string& path) const;
  std::vector<float> ReadFloats(const std::string& path) const;
  int ReadInt(const std::string& path) const;
  std::string ReadText(const std::string& path) const;

  // Creates the group and its parents if they do not exist.
  void MakeGroup(const std::string& path);
  void WriteFloats(const std::string& path, const std::vector<int64_t>& shape, const float* values);
  void WriteInt(const std::string& path, int value);
  void WriteText(const std::string& path, const std::string& text);
  // Appends rows to the dataset, which the first call creates. `shape` is that of the new rows.
  // They are in the file on return.
  void AppendRows(const std::string& path, const std::vector<int64_t>& shape, const float* values);

  // Writes a file that was created in memory to disk; it appears when it is complete.
  void Save(const std::string& uri) const;

 private:
  class Impl;
  explicit Hdf5File(std::unique_ptr<Impl> impl);
  static Hdf5File OpenImage(const std::string& bytes, const std::string& uri);
  static Hdf5File OpenPath(const std::string& path);

  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::caffe
