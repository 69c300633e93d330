// HDF5 files as far as Caffe's need them: groups, datasets of numbers, texts. Objects are named by
// their path, such as "/data/conv1/0". Files may be used from any thread, each by one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::caffe {

// Failures name the file and the object: kNotFound, kDataLoss for what cannot be read. Whatever a
// file says of itself, reading takes no more memory than a large multiple of its size.
class Hdf5File {
 public:
  // For reading, which a child process has tried before (hdf5_trial.h): damage that crashes the
  // library is kDataLoss.
  static Hdf5File Open(const std::string& uri);
  // A new file in place of one that was there; it grows while it is written.
  static Hdf5File Create(const std::string& uri);
  // A new file in memory; Save writes it.
  static Hdf5File InMemory();

  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  ~Hdf5File();

  // What messages call the file.
  const std::string& name() const;
  bool Has(const std::string& path) const;
  bool IsGroup(const std::string& path) const;
  // Equal for all names of one group or dataset: links give it several.
  std::string Identity(const std::string& path) const;
  // Names of what is in a group, in alphabetical order. Throws where one is in another file.
  std::vector<std::string> Children(const std::string& group) const;
  // Of a dataset of numbers.
  std::vector<int64_t> ShapeOf(const std::string& path) const;
  std::vector<float> ReadFloats(const std::string& path) const;
  int ReadInt(const std::string& path) const;
  std::string ReadText(const std::string& path) const;

  // Creates the group and those above it if they do not exist yet.
  void MakeGroup(const std::string& path);
  void WriteFloats(const std::string& path, const std::vector<int64_t>& shape, const float* values);
  void WriteInt(const std::string& path, int value);
  void WriteText(const std::string& path, const std::string& text);
  // Adds rows at the end of the dataset; creates it at the first call. `shape` is that of the
  // new rows. They are in the file on return.
  void AppendRows(const std::string& path, const std::vector<int64_t>& shape, const float* values);

  // Writes a file that was made in memory to disk; it appears when it is complete.
  void Save(const std::string& uri) const;

 private:
  class Impl;
  explicit Hdf5File(std::unique_ptr<Impl> impl);
  static Hdf5File OpenImage(const std::string& bytes, const std::string& uri);
  static Hdf5File OpenPath(const std::string& path);

  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::caffe
