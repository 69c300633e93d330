// Conformance tests of all file systems. HEARTH_TEST_FILES_URI=hdfs://host:port/folder adds a real
// HDFS to them. The folder is created and removed.
#include "hearth/storage/file_system.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/storage/file.h"
#include "hearth/storage/hadoop_conf.h"
#include "hearth/storage/libhdfs.h"
#include "hearth/storage/testing/webhdfs_server_testing.h"
#include "hearth/storage/uri.h"
#include "hearth/storage/webhdfs.h"

namespace hearth::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file system, and a folder in it for one test.
class Fixture {
 public:
  virtual ~Fixture() = default;
  virtual FileSystem& files() = 0;
  virtual std::string folder() = 0;
};

class LocalFixture : public Fixture {
 public:
  LocalFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "hearth_files_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~LocalFixture() override { std::filesystem::remove_all(folder_); }
  FileSystem& files() override { return For(folder_); }
  std::string folder() override { return folder_; }

 private:
  std::string folder_;
};

class WebHdfsFixture : public Fixture {
 public:
  WebHdfsFixture() : files_({.addresses = {server_.address()}, .user = "alice"}) {
    files_.MakeFolders(folder());
  }
  FileSystem& files() override { return files_; }
  std::string folder() override { return "hdfs://cluster/tests/some where"; }

 protected:
  WebHdfsServer server_;
  WebHdfs files_;
};

class HttpFsFixture : public WebHdfsFixture {
 public:
  HttpFsFixture() { server_.ActAsHttpFs(); }
};

// HDFS through the fake libhdfs, whose files are in a local folder. Empty jar files suffice on the
// class path, because only their names are checked.
class LibHdfsFixture : public Fixture {
 public:
  LibHdfsFixture() : files_("hdfs://cluster", "alice") {
    for (const char* jar : {"hadoop-common-3.jar", "commons-lang3-3.jar"}) {
      AtomicFile(Join(local_.folder(), jar)).Commit();
    }
    setenv("CLASSPATH", (local_.folder() + "/*").c_str(), 1);
    setenv("HEARTH_LIBHDFS", HEARTH_STAND_IN_LIBHDFS, 1);
    setenv("STAND_IN_LIBHDFS_FOLDER", local_.folder().c_str(), 1);
    files_.MakeFolders(folder());
    unsetenv("CLASSPATH");
    unsetenv("HEARTH_LIBHDFS");
  }
  FileSystem& files() override { return files_; }
  std::string folder() override { return "hdfs://cluster/tests/some where"; }

 private:
  LocalFixture local_;
  LibHdfsFiles files_;
};

class RealFixture : public Fixture {
 public:
  RealFixture() : folder_(Environment("HEARTH_TEST_FILES_URI")) {
    For(folder_).Delete(folder_, /*recursive=*/true);
    For(folder_).MakeFolders(folder_);
  }
  ~RealFixture() override { For(folder_).Delete(folder_, /*recursive=*/true); }
  FileSystem& files() override { return For(folder_); }
  std::string folder() override { return folder_; }

 private:
  std::string folder_;
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Fixture>()> make;
};

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {{"Local", [] { return std::make_unique<LocalFixture>(); }},
                             {"WebHdfs", [] { return std::make_unique<WebHdfsFixture>(); }},
                             {"HttpFs", [] { return std::make_unique<HttpFsFixture>(); }},
                             {"LibHdfs", [] { return std::make_unique<LibHdfsFixture>(); }}};
  if (!Environment("HEARTH_TEST_FILES_URI").empty()) {
    kinds.push_back({"Real", [] { return std::make_unique<RealFixture>(); }});
  }
  return kinds;
}

class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  std::string Uri(const std::string& name) { return Join(fixture_->folder(), name); }
  FileSystem& files() { return fixture_->files(); }

  void Write(const std::string& name, std::string_view bytes) {
    const auto file = files().Create(Uri(name));
    file->Append(bytes);
    file->Commit();
  }
  std::string Read(const std::string& name) { return files().ReadAll(Uri(name)); }
  std::vector<std::string> Names(const std::string& folder = "") {
    std::vector<std::string> names;
    for (const FileStatus& each : files().List(folder.empty() ? fixture_->folder() : Uri(folder))) {
      names.push_back(NameOf(each.uri));
    }
    return names;
  }
  ErrorCode CodeOf(const std::function<void()>& call) { return Thrown(call).code(); }

  std::unique_ptr<Fixture> fixture_ = GetParam().make();
};

TEST_P(FileSystemTest, ReadsWrittenData) {
  std::string bytes(300'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7919 >> 3);
  const auto file = files().Create(Uri("a"));
  file->Append("begin");
  file->Append(bytes);
  file->Commit();
  EXPECT_EQ(Read("a"), "begin" + bytes);
  const auto status = files().Stat(Uri("a"));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->size, 300'005u);
  EXPECT_FALSE(status->is_folder);
  EXPECT_EQ(status->uri, Uri("a"));
  EXPECT_GT(status->modified_ms, 1'600'000'000'000);
}

TEST_P(FileSystemTest, KeepsAnEmptyFile) {
  Write("empty", "");
  EXPECT_EQ(Read("empty"), "");
  EXPECT_EQ(files().Stat(Uri("empty"))->size, 0u);
}

TEST_P(FileSystemTest, FilesAppearOnlyWhenCommitted) {
  Write("a", "old");
  {
    const auto file = files().Create(Uri("a"));
    file->Append("new");
    EXPECT_EQ(Read("a"), "old");
  }
  EXPECT_EQ(Read("a"), "old");
  EXPECT_THAT(Names(), ElementsAre("a")) << "what is not committed is not left behind";
  Write("a", "newer");
  EXPECT_EQ(Read("a"), "newer");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_P(FileSystemTest, ReadsAtOffsets) {
  Write("a", "0123456789");
  const auto file = files().Open(Uri("a"));
  EXPECT_EQ(file->size(), 10u);
  std::string buffer(20, '-');
  EXPECT_EQ(file->ReadAt(7, buffer.data(), 20), 3u);
  EXPECT_EQ(buffer.substr(0, 4), "789-");
  EXPECT_EQ(file->ReadAt(2, buffer.data(), 3), 3u);
  EXPECT_EQ(buffer.substr(0, 3), "234");
  EXPECT_EQ(file->ReadAt(10, buffer.data(), 1), 0u);
  EXPECT_EQ(file->ReadAt(1'000'000, buffer.data(), 1), 0u);
}

TEST_P(FileSystemTest, ReadsManySmallRangesFromSeveralThreads) {
  std::string bytes(700'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  Write("a", bytes);
  const auto file = files().Open(Uri("a"));
  std::vector<std::thread> threads;
  std::vector<std::string> read(2);
  for (std::string& mine : read) {
    threads.emplace_back([&mine, &file] {
      std::string chunk(1000, '\0');
      while (const size_t count = file->ReadAt(mine.size(), chunk.data(), chunk.size())) {
        mine.append(chunk, 0, count);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read[0], bytes);
  EXPECT_EQ(read[1], bytes);
}

TEST_P(FileSystemTest, ListsAFolderByName) {
  for (const char* name : {"e", "a", "d 1", "b%2", "c"}) Write(name, "12");
  files().MakeFolders(Uri("f/g"));
  EXPECT_THAT(Names(), ElementsAre("a", "b%2", "c", "d 1", "e", "f"));
  EXPECT_THAT(Names("f"), ElementsAre("g"));
  EXPECT_THAT(Names("f/g"), ElementsAre());
  const auto all = files().List(fixture_->folder());
  EXPECT_EQ(all[0].uri, Uri("a"));
  EXPECT_EQ(all[0].size, 2u);
  EXPECT_TRUE(all[5].is_folder);
  EXPECT_EQ(Read("d 1"), "12");
  EXPECT_EQ(CodeOf([&] { files().List(Uri("nothing")); }), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf([&] { files().List(Uri("a")); }), ErrorCode::kInvalidArgument);
}

TEST_P(FileSystemTest, ReportsMissingFiles) {
  EXPECT_FALSE(files().Stat(Uri("nothing")));
  EXPECT_FALSE(files().Delete(Uri("nothing"), false));
  const Error error = Thrown([&] { files().Open(Uri("nothing")); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr(Uri("nothing")));
  EXPECT_EQ(CodeOf([&] { Read("nothing"); }), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf([&] { files().Rename(Uri("nothing"), Uri("a")); }), ErrorCode::kNotFound);
}

TEST_P(FileSystemTest, RenameReplacesAFile) {
  Write("a", "1");
  Write("b", "22");
  files().Rename(Uri("a"), Uri("b"));
  EXPECT_EQ(Read("b"), "1");
  EXPECT_THAT(Names(), ElementsAre("b"));
  files().MakeFolders(Uri("folder/inner"));
  files().Rename(Uri("b"), Uri("folder/inner/c"));
  files().Rename(Uri("folder"), Uri("moved"));
  EXPECT_EQ(Read("moved/inner/c"), "1");
  Write("d", "3");
  EXPECT_EQ(CodeOf([&] { files().Rename(Uri("d"), Uri("moved")); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Read("d"), "3");
}

TEST_P(FileSystemTest, DeletesAFolderRecursively) {
  files().MakeFolders(Uri("a/b"));
  files().MakeFolders(Uri("a/b"));  // creating an existing folder is not an error
  Write("a/b/c", "1");
  EXPECT_EQ(CodeOf([&] { files().Delete(Uri("a"), false); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Read("a/b/c"), "1");
  EXPECT_TRUE(files().Delete(Uri("a/b/c"), false));
  EXPECT_TRUE(files().Delete(Uri("a"), true));
  EXPECT_FALSE(files().Stat(Uri("a")));
}

TEST_P(FileSystemTest, AppendCreatesAFileAndAppends) {
  files().Append(Uri("log"), "one ");
  files().Append(Uri("log"), "two");
  EXPECT_EQ(Read("log"), "one two");
}

TEST_P(FileSystemTest, CreateFailsIfAFolderHasTheName) {
  files().MakeFolders(Uri("folder"));
  EXPECT_EQ(CodeOf([&] { files().Create(Uri("folder")); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { files().Create(Uri("folder/")); }), ErrorCode::kInvalidArgument);
  EXPECT_THAT(Names("folder"), ElementsAre());
}

TEST_P(FileSystemTest, RenameToTheSameNameKeepsTheFile) {
  Write("a", "1");
  files().Rename(Uri("a"), Uri("a"));
  EXPECT_EQ(Read("a"), "1");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_P(FileSystemTest, AcceptsSpecialCharactersInNames) {
  const std::string longest = std::string(250, 'n');
  for (const std::string name : {"100%", "a#b?c&d=e", "a b+c;d", "\xc3\xa4\xe2\x82\xac", "a\\b'\"",
                                 "%2e%2e", longest.c_str()}) {
    Write(name, name);
    EXPECT_EQ(Read(name), name);
    EXPECT_THAT(Names(), ElementsAre(name));
    EXPECT_EQ(files().Stat(Uri(name))->size, name.size());
    files().Rename(Uri(name), Uri(name + '~'));
    EXPECT_TRUE(files().Delete(Uri(name + '~'), false));
  }
}

TEST_P(FileSystemTest, RejectsAFolderAsAFileAndAFileAsAFolder) {
  files().MakeFolders(Uri("folder"));
  EXPECT_EQ(CodeOf([&] { files().Open(Uri("folder"))->size(); }), ErrorCode::kInvalidArgument);
  Write("file", "1");
  EXPECT_THROW(files().MakeFolders(Uri("file/below")), Error);
  EXPECT_THROW(
      {
        auto file = files().Create(Uri("folder"));
        file->Append("1");
        file->Commit();
      },
      Error);
  EXPECT_TRUE(files().Stat(Uri("folder"))->is_folder);
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(For, RejectsUnknownSchemes) {
  const Error error = Thrown([] { For("gopher://host/a"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(error.message(), HasSubstr("gopher:"));
  EXPECT_THAT(Thrown([] { For("hdfs:/a"); }).message(), HasSubstr("hdfs:///path"));
  EXPECT_EQ(&For("hdfs://one:1/a"), &For("hdfs://one:1/b"));
  EXPECT_NE(&For("hdfs://one:1/a"), &For("hdfs://two:1/a"));
}

TEST(For, RejectsPasswordsWithoutPrintingThem) {
  for (const char* uri : {"hdfs://alice:sesame@nn/a", "s3://key:sesame@bucket/a"}) {
    EXPECT_THAT(Thrown([&] { For(uri); }).message(),
                testing::AllOf(HasSubstr("***@"), testing::Not(HasSubstr("sesame"))));
  }
}

TEST(Rename, RejectsAnotherCluster) {
  WebHdfsServer server;
  WebHdfs files({.addresses = {server.address()}, .user = "alice"});
  files.Create("hdfs://one/a")->Commit();
  EXPECT_EQ(Thrown([&] { files.Rename("hdfs://one/a", "hdfs://two/b"); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(files.Stat("hdfs://one/a"));
  LibHdfsFiles by_library("hdfs://one", "alice");
  EXPECT_EQ(Thrown([&] { by_library.Rename("hdfs://one/a", "hdfs://two/b"); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(Glob, MatchesEachComponentOfThePath) {
  LocalFixture fixture;
  const std::string root = fixture.folder();
  for (const char* name : {"a1/x.rec", "a2/x.rec", "a2/y.rec", "a2/.hidden.rec", "b/x.rec"}) {
    fixture.files().MakeFolders(FolderOf(Join(root, name)));
    AtomicFile(Join(root, name)).Commit();
  }
  const auto match = [&](const std::string& pattern) {
    std::vector<std::string> names;
    for (const std::string& uri : Glob(Join(root, pattern)))
      names.push_back(uri.substr(root.size()));
    return names;
  };
  EXPECT_THAT(match("a*/*.rec"), ElementsAre("/a1/x.rec", "/a2/x.rec", "/a2/y.rec"));
  EXPECT_THAT(match("a?/x.rec"), ElementsAre("/a1/x.rec", "/a2/x.rec"));
  EXPECT_THAT(match("[!a]/*"), ElementsAre("/b/x.rec"));
  EXPECT_THAT(match("a2/.*"), ElementsAre("/a2/.hidden.rec"));
  EXPECT_THAT(match("b/x.rec"), ElementsAre("/b/x.rec"));
  EXPECT_THAT(match("c*/*"), ElementsAre());
  EXPECT_THAT(match("b/nothing"), ElementsAre());
  EXPECT_THAT(match("a*/"), ElementsAre("/a1", "/a2"));
}

}  // namespace
}  // namespace hearth::storage
