// Runs an entry function with libFuzzer's signature on a corpus and on mutations of it:
//   fuzz_x CORPUS_FOLDER [seconds] [seed]
// First runs every input of the corpus unchanged, then mutated inputs for the given time. The seed
// determines the mutations. An input that crashes, hangs or needs too much memory is saved as
// crash-<target>.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Hooks of the sanitizers, which end the process themselves. Without a sanitizer the first is null.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
// Weak, because a target may define different options.
extern "C" __attribute__((weak, visibility("default"))) const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:hard_rss_limit_mb=2048:handle_segv=1:detect_leaks=1";
}
extern "C" __attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1";
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

using Bytes = std::string;

constexpr size_t kLargestInput = 1 << 16;
constexpr unsigned kSecondsPerInput = 10;
constexpr rlim_t kMemoryBytes = rlim_t{3} << 30;

const Bytes* current = nullptr;
char crash_file[256];

// Called while the process dies, so it may only do what is allowed in a signal handler.
void SaveCurrent() {
  if (current == nullptr) return;
  const int fd = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, current->data(), current->size()) < 0) return;
  close(fd);
  constexpr char kSaid[] = "the input is in ";
  if (write(STDERR_FILENO, kSaid, sizeof kSaid - 1) > 0 &&
      write(STDERR_FILENO, crash_file, std::strlen(crash_file)) > 0) {
    [[maybe_unused]] const ssize_t end = write(STDERR_FILENO, "\n", 1);
  }
}

void OnSignal(int number) {
  if (number == SIGALRM) {
    constexpr char kSaid[] = "one input takes too long\n";
    [[maybe_unused]] const ssize_t said = write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  }
  SaveCurrent();
  signal(number, SIG_DFL);
  raise(number);
}

void WatchForTheEnd(const char* program) {
  const std::string name = std::filesystem::path(program).filename();
  std::snprintf(crash_file, sizeof crash_file, "crash-%s", name.c_str());
  // __builtin_trap() raises SIGILL, which the sanitizers do not handle.
  for (const int number : {SIGALRM, SIGABRT, SIGILL}) signal(number, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(SaveCurrent);
    return;  // the shadow memory needs an unlimited address space
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE}) signal(number, OnSignal);
  const rlimit memory = {kMemoryBytes, kMemoryBytes};
  setrlimit(RLIMIT_AS, &memory);
}

void RunOne(const Bytes& input) {
  current = &input;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
  current = nullptr;
}

std::vector<Bytes> ReadCorpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());  // so that a seed gives the same inputs everywhere
  std::vector<Bytes> corpus;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  Mutator(std::vector<Bytes> corpus, uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  Bytes Next() {
    Bytes input = Any();
    for (size_t changes = 1 + Below(5); changes > 0; --changes) Change(&input);
    if (input.size() > kLargestInput) input.resize(kLargestInput);
    return input;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  const Bytes& Any() { return corpus_[Below(corpus_.size())]; }

  void Change(Bytes* input) {
    if (input->empty()) *input = Any();
    if (input->empty()) input->push_back('\0');
    const size_t at = Below(input->size());
    const size_t left = input->size() - at;
    switch (Below(8)) {
      case 0:
        (*input)[at] ^= static_cast<char>(1 << Below(8));
        break;
      case 1:
        (*input)[at] = static_cast<char>(Below(256));
        break;
      case 2:
        input->resize(at);
        break;
      case 3:
        input->erase(at, 1 + Below(std::min<size_t>(left, 16)));
        break;
      case 4:  // repeat a range
        input->insert(at, input->substr(at, 1 + Below(std::min<size_t>(left, 64))));
        break;
      case 5:
        PutNumber(input, at);
        break;
      case 6: {  // splice with another input
        const Bytes& other = Any();
        if (!other.empty()) input->replace(at, left, other, Below(other.size()), Bytes::npos);
        break;
      }
      default:
        input->insert(at, 1 + Below(8), static_cast<char>(Below(256)));
    }
  }

  // Overwrites bytes with numbers that are likely to violate bounds if they are sizes or offsets.
  void PutNumber(Bytes* input, size_t at) {
    constexpr uint64_t kEdges[] = {0,          1,          0x7f,       0x80,       0xff,
                                   0x7fff,     0xffff,     0x7fffffff, 0x80000000, 0xffffffff,
                                   1ull << 40, 1ull << 48, 1ull << 62, 1ull << 63, ~0ull};
    uint64_t number = kEdges[Below(std::size(kEdges))] + Below(3) - 1;
    const size_t width = std::min<size_t>(size_t{1} << Below(4), input->size() - at);
    if (Below(2) == 0) number = __builtin_bswap64(number) >> (64 - 8 * width) % 64;
    std::memcpy(input->data() + at, &number, width);
  }

  const std::vector<Bytes> corpus_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [seconds] [seed]\n", argv[0]);
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  WatchForTheEnd(argv[0]);
  std::vector<Bytes> corpus = ReadCorpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no input\n", argv[1]);
    return 2;
  }
  for (const Bytes& input : corpus) RunOne(input);
  const size_t kept = corpus.size();
  Mutator mutator(std::move(corpus), seed);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  uint64_t runs = 0;
  for (; Clock::now() < end; ++runs) RunOne(mutator.Next());
  std::printf("%zu inputs kept and %llu made from them: nothing happened\n", kept,
              static_cast<unsigned long long>(runs));
  return 0;
}
