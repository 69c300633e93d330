#include "hearth/caffe/data/hdf5_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/data/handle.h"
#include "hearth/caffe/data/hdf5_library.h"
#include "hearth/caffe/tensor/shape_count.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

using Shape = std::vector<int64_t>;

std::vector<hsize_t> ToExtents(const Shape& shape) { return {shape.begin(), shape.end()}; }

Hdf5Handle SpaceOf(const Shape& shape) {
  const std::vector<hsize_t> extents = ToExtents(shape);
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose};
}

// The step, in bytes, by which a file in memory grows.
constexpr size_t kMemoryStep = 1 << 20;

// Limits for the size that a dataset claims, because the HDF5 library fills in values that the file
// does not contain. Up to 2^20 values are always accepted, since writers may leave that many labels
// unwritten if all are zero. Beyond that, each stored byte allows 1,100 values, because deflate
// expands one byte to at most 1,032.
constexpr int64_t kAlwaysTaken = 1 << 20;
constexpr uint64_t kMaxValuesPerByte = 1100;

// In bytes. The only text in Caffe's files is the name of the weights file in a solver's state.
constexpr size_t kLongestText = 1 << 16;

// The HDF5 library calls this before it follows a link to another file. -1 makes it fail.
herr_t RefuseLink(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

// Options for opening objects without following links to other files. A link could name any file of
// this machine, or one whose read blocks forever.
hid_t WithinTheFile() {
  static const hid_t access = [] {
    const hid_t list = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_elink_cb(list, RefuseLink, nullptr);
    return list;
  }();
  return access;
}

// False if the dataset's values are in other files: raw files ("external") or datasets of other
// HDF5 files ("virtual").
bool HoldsItsValues(hid_t dataset) {
  const Hdf5Handle options(H5Dget_create_plist(dataset), H5Pclose);
  return H5Pget_external_count(options.get()) == 0 && H5Pget_layout(options.get()) != H5D_VIRTUAL;
}

}  // namespace

class Hdf5File::Impl {
 public:
  Impl(std::string name, Hdf5Handle file) : name_(std::move(name)), file_(std::move(file)) {}
  ~Impl() {
    const Hdf5Lock lock;
    // Closes the file under the lock; the member itself is destroyed after the lock is released.
    const Hdf5Handle last = std::move(file_);
  }

  template <typename... Args>
  void Check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) return;
    Throw(ErrorCode::kDataLoss, "{}: {}{}", name_, fmt::format(format, std::forward<Args>(args)...),
          Hdf5Reason());
  }

  // Returns true if there is an object with this path. Checks each prefix of the path, because
  // H5Lexists fails for a path whose parent does not exist.
  bool Has(const std::string& path) const {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      if (H5Lexists(file_.get(), path.substr(0, end).c_str(), WithinTheFile()) <= 0) {
        return false;
      }
      if (end == std::string::npos) return true;
    }
  }

  Hdf5Handle OpenDataset(const std::string& path) const {
    Require(Has(path), ErrorCode::kNotFound, "{} has no dataset {}", name_, path);
    Hdf5Handle dataset(H5Dopen2(file_.get(), path.c_str(), WithinTheFile()), H5Dclose);
    Check(dataset.ok(), "{} is not a dataset", path);
    Require(HoldsItsValues(dataset.get()), ErrorCode::kDataLoss,
            "{}: the dataset {} stores its values in another file, which is not supported", name_,
            path);
    return dataset;
  }

  Hdf5Handle OpenNumbers(const std::string& path) const {
    Hdf5Handle dataset = OpenDataset(path);
    const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
    const H5T_class_t kind = H5Tget_class(type.get());
    Check(kind == H5T_FLOAT || kind == H5T_INTEGER, "the dataset {} does not hold numbers", path);
    return dataset;
  }

  static Shape ShapeOf(const Hdf5Handle& dataset) {
    const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
    std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    return {extents.begin(), extents.end()};
  }

  // Throws if the dataset claims more values than its stored bytes can contain.
  int64_t CountOf(const std::string& path, const Hdf5Handle& dataset) const {
    const Shape shape = ShapeOf(dataset);
    const std::optional<int64_t> count = caffe::CountOf(shape);
    Check(count.has_value(), "the dataset {} of shape ({}) is larger than the limit of {} values",
          path, fmt::join(shape, ", "), kMaxBlobValues);
    const uint64_t stored = H5Dget_storage_size(dataset.get());
    const int64_t needed = std::max(*count, ChunkCount(dataset));
    Check(needed <= kAlwaysTaken || static_cast<uint64_t>(needed) / kMaxValuesPerByte <= stored,
          "the dataset {} claims {} values, but contains {} bytes", path, needed, stored);
    return *count;
  }

  // Number of values in a chunk, which the library always reads in full; 0 if the dataset is not
  // chunked.
  static int64_t ChunkCount(const Hdf5Handle& dataset) {
    const Hdf5Handle options(H5Dget_create_plist(dataset.get()), H5Pclose);
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    const int axes = H5Pget_layout(options.get()) == H5D_CHUNKED
                         ? H5Pget_chunk(options.get(), H5S_MAX_RANK, extents.data())
                         : 0;
    if (axes <= 0) return 0;
    const Shape chunk(extents.begin(), extents.begin() + axes);
    return caffe::CountOf(chunk).value_or(kMaxBlobValues);
  }

  Hdf5Handle Make(const std::string& path, hid_t type, const Hdf5Handle& space,
                  hid_t options = H5P_DEFAULT) {
    Hdf5Handle dataset(
        H5Dcreate2(file_.get(), path.c_str(), type, space.get(), H5P_DEFAULT, options, H5P_DEFAULT),
        H5Dclose);
    Check(dataset.ok(), "cannot create the dataset {}", path);
    return dataset;
  }

  void Write(const std::string& path, hid_t type, const Hdf5Handle& space, const void* values) {
    const Hdf5Handle dataset = Make(path, type, space);
    Check(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
          "cannot write the dataset {}", path);
  }

  // Creates an empty dataset that can grow along its first axis. The library requires chunks for
  // that, so a chunk has the size of the first appended rows.
  void MakeGrowing(const std::string& path, const Shape& rows) {
    std::vector<hsize_t> extents = ToExtents(rows), limits = extents;
    const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_chunk(options.get(), static_cast<int>(extents.size()), extents.data());
    extents[0] = 0;
    limits[0] = H5S_UNLIMITED;
    const Hdf5Handle space(
        H5Screate_simple(static_cast<int>(extents.size()), extents.data(), limits.data()),
        H5Sclose);
    Make(path, H5T_NATIVE_FLOAT, space, options.get());
  }

  const std::string& name() const { return name_; }
  hid_t file() const { return file_.get(); }

 private:
  const std::string name_;
  Hdf5Handle file_;
};

Hdf5File::Hdf5File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() = default;

// Opens a file from its bytes, which the library copies.
Hdf5File Hdf5File::OpenImage(const std::string& bytes, const std::string& uri) {
  const Hdf5Lock lock;
  // The library requires open files to have different names.
  static int count = 0;
  const std::string name = fmt::format("image {}", ++count);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), kMemoryStep, /*backing_store=*/false);
  // The cast is safe because the library only copies the bytes.
  H5Pset_file_image(access.get(), const_cast<char*>(bytes.data()), bytes.size());
  Hdf5Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file.ok())
    Throw(ErrorCode::kDataLoss, "cannot read {} as an HDF5 file{}", uri, Hdf5Reason());
  return Hdf5File(std::make_unique<Impl>(uri, std::move(file)));
}

Hdf5File Hdf5File::OpenPath(const std::string& path) {
  const Hdf5Lock lock;
  Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file.ok())
    Throw(ErrorCode::kDataLoss, "cannot read {} as an HDF5 file{}", path, Hdf5Reason());
  return Hdf5File(std::make_unique<Impl>(path, std::move(file)));
}

Hdf5File Hdf5File::Open(const std::string& uri) {
  if (!storage::IsLocal(uri)) return OpenImage(storage::ReadFile(uri), uri);
  const std::string path = storage::LocalPath(uri);
  Require(std::filesystem::exists(path), ErrorCode::kNotFound, "there is no HDF5 file {}", path);
  return OpenPath(path);
}

Hdf5File Hdf5File::Create(const std::string& uri) {
  const std::string path = storage::LocalPath(uri);
  const Hdf5Lock lock;
  Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  if (!file.ok()) {
    Throw(ErrorCode::kInvalidArgument, "cannot create the HDF5 file {}{}", path, Hdf5Reason());
  }
  return Hdf5File(std::make_unique<Impl>(path, std::move(file)));
}

Hdf5File Hdf5File::InMemory() {
  const Hdf5Lock lock;
  // The library requires open files to have different names, including those in memory.
  static int count = 0;
  const std::string name = fmt::format("memory {}", ++count);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), kMemoryStep, /*backing_store=*/false);
  Hdf5Handle file(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  Require(file.ok(), ErrorCode::kInternal, "cannot create an HDF5 file in memory{}", Hdf5Reason());
  return Hdf5File(std::make_unique<Impl>("an HDF5 file", std::move(file)));
}

const std::string& Hdf5File::name() const { return impl_->name(); }

bool Hdf5File::Has(const std::string& path) const {
  const Hdf5Lock lock;
  return impl_->Has(path);
}

bool Hdf5File::IsGroup(const std::string& path) const {
  const Hdf5Lock lock;
  const Hdf5Handle object(H5Oopen(impl_->file(), path.c_str(), WithinTheFile()), H5Oclose);
  return object.ok() && H5Iget_type(object.get()) == H5I_GROUP;
}

std::string Hdf5File::Identity(const std::string& path) const {
  const Hdf5Lock lock;
  H5G_stat_t info;  // deprecated, but available in all versions of the library
  impl_->Check(H5Gget_objinfo(impl_->file(), path.c_str(), /*follow_link=*/true, &info) >= 0,
               "cannot inspect {}", path);
  return fmt::format("{} {} {} {}", info.fileno[0], info.fileno[1], info.objno[0], info.objno[1]);
}

std::vector<std::string> Hdf5File::Children(const std::string& group) const {
  const Hdf5Lock lock;
  Require(impl_->Has(group), ErrorCode::kNotFound, "{} has no group {}", impl_->name(), group);
  struct Found {
    std::vector<std::string> names;
    std::string outside;  // name of a link to another file
  } found;
  // A link to another file is recorded here and rejected later, because an exception must not pass
  // through the library's C code.
  const H5L_iterate_t take = [](hid_t, const char* name, const H5L_info_t* link,
                                void* out) -> herr_t {
    auto& here = *static_cast<Found*>(out);
    here.names.emplace_back(name);
    if (link->type != H5L_TYPE_HARD && link->type != H5L_TYPE_SOFT) here.outside = name;
    return 0;
  };
  impl_->Check(H5Literate_by_name(impl_->file(), group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
                                  take, &found, WithinTheFile()) >= 0,
               "{} is not a group", group);
  Require(found.outside.empty(), ErrorCode::kDataLoss,
          "{}: {} in {} is a link into another file, which is not supported", impl_->name(),
          found.outside, group);
  return found.names;
}

Shape Hdf5File::ShapeOf(const std::string& path) const {
  const Hdf5Lock lock;
  return Impl::ShapeOf(impl_->OpenNumbers(path));
}

std::vector<float> Hdf5File::ReadFloats(const std::string& path) const {
  const Hdf5Lock lock;
  const Hdf5Handle dataset = impl_->OpenNumbers(path);
  std::vector<float> values(impl_->CountOf(path, dataset));
  impl_->Check(
      H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0,
      "cannot read the dataset {}", path);
  return values;
}

int Hdf5File::ReadInt(const std::string& path) const {
  const Hdf5Lock lock;
  const Hdf5Handle dataset = impl_->OpenNumbers(path);
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  impl_->Check(H5Sget_simple_extent_npoints(space.get()) == 1, "{} is not a single number", path);
  int value = 0;
  impl_->Check(H5Dread(dataset.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0,
               "cannot read the dataset {}", path);
  return value;
}

std::string Hdf5File::ReadText(const std::string& path) const {
  const Hdf5Lock lock;
  const Hdf5Handle dataset = impl_->OpenDataset(path);
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const bool is_text = H5Tget_class(type.get()) == H5T_STRING && !H5Tis_variable_str(type.get());
  impl_->Check(is_text, "the dataset {} is not text", path);
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const size_t size = H5Tget_size(type.get());
  impl_->Check(H5Sget_simple_extent_npoints(space.get()) == 1 && size <= kLongestText,
               "{} is not a single text of at most {} bytes", path, kLongestText);
  std::string text(size, '\0');
  impl_->Check(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) >= 0,
               "cannot read the dataset {}", path);
  // The library pads short texts with zeros.
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

void Hdf5File::MakeGroup(const std::string& path) {
  const Hdf5Lock lock;
  if (impl_->Has(path)) return;
  const Hdf5Handle options(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(options.get(), 1);
  const Hdf5Handle group(
      H5Gcreate2(impl_->file(), path.c_str(), options.get(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  impl_->Check(group.ok(), "cannot create the group {}", path);
}

void Hdf5File::WriteFloats(const std::string& path, const Shape& shape, const float* values) {
  const Hdf5Lock lock;
  impl_->Write(path, H5T_NATIVE_FLOAT, SpaceOf(shape), values);
}

void Hdf5File::WriteInt(const std::string& path, int value) {
  const Hdf5Lock lock;
  impl_->Write(path, H5T_NATIVE_INT, SpaceOf({1}), &value);
}

void Hdf5File::WriteText(const std::string& path, const std::string& text) {
  const Hdf5Lock lock;
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), text.size() + 1);
  impl_->Write(path, type.get(), {H5Screate(H5S_SCALAR), H5Sclose}, text.c_str());
}

void Hdf5File::AppendRows(const std::string& path, const Shape& shape, const float* values) {
  const Hdf5Lock lock;
  if (!impl_->Has(path)) impl_->MakeGrowing(path, shape);
  const Hdf5Handle dataset = impl_->OpenDataset(path);
  const Shape old = Impl::ShapeOf(dataset);
  const bool same_rows = std::equal(old.begin() + 1, old.end(), shape.begin() + 1, shape.end());
  Require(same_rows, ErrorCode::kInvalidArgument,
          "{}: rows of another shape cannot be added to the dataset {}", impl_->name(), path);
  // Extends the dataset and writes the rows to the new part. The data space is fetched again,
  // because it has grown. The flush writes the rows to the file, so that they survive a crash of
  // the trainer.
  std::vector<hsize_t> extents = ToExtents(shape), start(shape.size(), 0), count = extents;
  start[0] = static_cast<hsize_t>(old[0]);
  extents[0] += start[0];
  bool done = H5Dset_extent(dataset.get(), extents.data()) >= 0;
  const Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  done = done && H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, SpaceOf(shape).get(), space.get(),
                          H5P_DEFAULT, values) >= 0;
  done = done && H5Fflush(impl_->file(), H5F_SCOPE_LOCAL) >= 0;
  impl_->Check(done, "cannot write the dataset {}", path);
}

void Hdf5File::Save(const std::string& uri) const {
  std::string image;
  {
    const Hdf5Lock lock;
    impl_->Check(H5Fflush(impl_->file(), H5F_SCOPE_LOCAL) >= 0, "cannot flush it");
    const ssize_t size = H5Fget_file_image(impl_->file(), nullptr, 0);
    impl_->Check(size > 0, "cannot get its bytes");
    image.resize(static_cast<size_t>(size));
    impl_->Check(H5Fget_file_image(impl_->file(), image.data(), image.size()) == size,
                 "cannot get its bytes");
  }
  // The lock is not held here, since writing to a remote file may take long.
  storage::AtomicFile file(uri);
  file.Append(image);
  file.Commit();
}

}  // namespace hearth::caffe
