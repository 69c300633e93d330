// The subset of HDF5 that Caffe's files need: groups, numeric datasets, texts. Objects are named by
// their path, such as "/data/conv1/0". Files may be used from any thread, but only one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::caffe {

// An HDF5 file. Error messages name the file and the object. The code is kNotFound for missing
// objects and kDataLoss for unreadable data. Memory use is limited to a large multiple of the
// file's size, whatever sizes the file claims.
class Hdf5File {
 public:
  // Opens a file for reading. The HDF5 library may crash on a damaged file
  // (docs/decisions/063-...).
  static Hdf5File Open(const std::string& uri);
  // Creates or replaces a file on disk. Rows are written to it as they are appended.
  static Hdf5File Create(const std::string& uri);
  // Creates a file in memory; Save writes it.
  static Hdf5File InMemory();

  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  ~Hdf5File();

  // The file's name in messages.
  const std::string& name() const;
  bool Has(const std::string& path) const;
  bool IsGroup(const std::string& path) const;
  // A string that identifies a group or dataset: the same for all names that links give the object.
  std::string Identity(const std::string& path) const;
  // Names of a group's members, in alphabetical order. Throws if a member is a link to another
  // file.
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
  // Appends rows to the dataset, which the first call creates. `shape` is the shape of the new
  // rows. On return they have been flushed to the file.
  void AppendRows(const std::string& path, const std::vector<int64_t>& shape, const float* values);

  // Writes a file that was created in memory to `uri`, where it appears only when complete.
  void Save(const std::string& uri) const;

 private:
  class Impl;
  explicit Hdf5File(std::unique_ptr<Impl> impl);
  static Hdf5File OpenImage(const std::string& bytes, const std::string& uri);
  static Hdf5File OpenPath(const std::string& path);

  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::caffe
