// What the program carries: device code of the right kind for the right architectures.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "kernels/checks/gemm.h"
#include "kernels/checks/gemm_data.h"
#include "kernels/checks/modules.h"

namespace bimetal::kernels {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint16_t kMachineAmdGpu = 224;
constexpr std::uint16_t kMachineCuda = 190;

const ModuleImage* const kModules[] = {&MemoryPatternModule(), &ComputeChecksumModule(),
                                       &GemmModule()};

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether an architecture has the precision of a kernel "bm_gemm_fp16.kd" or
// "bm_gemm_rate_fp16.kd".
bool GemmKernelExists(std::string_view arch, std::string_view descriptor) {
  for (const GemmPrecision& precision : kGemmPrecisions) {
    for (std::size_t i = 0; i < precision.count; ++i) {
      const std::string end = std::string("_") + FormatInfo(precision.formats[i]).name + ".kd";
      if (descriptor.ends_with(end)) return GemmHasPrecision(arch, precision);
    }
  }
  return true;
}

TEST(EmbeddedImagesTest, HipImagesAreCodeObjectsOfTheirArchitecture) {
  if (BIMETAL_HAS_HIP == 0) GTEST_SKIP() << "built with BIMETAL_HIP=OFF";
  // EF_AMDGPU_MACH of the LLVM AMDGPU back end.
  const std::map<std::string_view, std::uint32_t> machs = {
      {"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}, {"gfx1100", 0x41}};
  for (const ModuleImage* module : kModules) {
    // gfx950 is built where the compiler knows it.
    ASSERT_GE(module->hip_images.size(), machs.size() - 1);
    for (const HipImage& image : module->hip_images) {
      ASSERT_GT(image.bytes.size(), sizeof(Elf64_Ehdr));
      Elf64_Ehdr header;
      std::memcpy(&header, image.bytes.data(), sizeof(header));
      EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
      EXPECT_EQ(header.e_machine, kMachineAmdGpu);
      EXPECT_EQ(header.e_flags & 0xff, machs.at(image.arch)) << image.arch;
      for (std::size_t i = 0; i < module->host->count; ++i) {
        const std::string descriptor = std::string(module->host->kernels[i].name) + ".kd";
        // A precision that the architecture lacks has no kernel there.
        if (module == &GemmModule() && !GemmKernelExists(image.arch, descriptor)) continue;
        EXPECT_NE(Text(image.bytes).find(descriptor), std::string_view::npos) << descriptor;
      }
    }
  }
}

TEST(EmbeddedImagesTest, FatbinHoldsACubinForEachArchitecture) {
  if (BIMETAL_HAS_CUDA == 0) GTEST_SKIP() << "built with BIMETAL_CUDA=OFF";
  for (const ModuleImage* module : kModules) {
    EXPECT_THAT(module->cuda_archs, ElementsAre("sm_75", "sm_80", "sm_86", "sm_89", "sm_90",
                                                "sm_100", "compute_75", "compute_100"));
    ASSERT_GT(module->cuda_fatbin.size(), 16u);
    std::uint32_t magic = 0;
    std::memcpy(&magic, module->cuda_fatbin.data(), sizeof(magic));
    EXPECT_EQ(magic, kFatbinMagic);
  }
}

// The entries of a fatbin: a 16-byte header, then entries of {u16 kind, u16, u32 header bytes,
// u64 payload bytes, ..., u32 arch at 28}. Kind 1 is PTX, 2 is an ELF.
TEST(EmbeddedImagesTest, FatbinEntriesNameTheirArchitectures) {
  if (BIMETAL_HAS_CUDA == 0) GTEST_SKIP() << "built with BIMETAL_CUDA=OFF";
  for (const ModuleImage* module : kModules) {
    std::map<std::pair<int, std::uint32_t>, int> entries;
    const std::byte* data = module->cuda_fatbin.data();
    std::size_t at = 16;
    while (at + 64 <= module->cuda_fatbin.size()) {
      std::uint16_t kind = 0;
      std::uint32_t header = 0;
      std::uint64_t payload = 0;
      std::uint32_t arch = 0;
      std::memcpy(&kind, data + at, 2);
      std::memcpy(&header, data + at + 4, 4);
      std::memcpy(&payload, data + at + 8, 8);
      std::memcpy(&arch, data + at + 28, 4);
      ASSERT_GE(header, 32u);
      ++entries[{kind, arch}];
      if (kind == 2) {
        Elf64_Ehdr elf;
        std::memcpy(&elf, data + at + header, sizeof(elf));
        EXPECT_EQ(std::memcmp(elf.e_ident, ELFMAG, SELFMAG), 0);
        EXPECT_EQ(elf.e_machine, kMachineCuda);
      }
      at += header + payload;
    }
    const std::map<std::pair<int, std::uint32_t>, int> expected = {
        {{1, 75}, 1}, {{1, 100}, 1}, {{2, 75}, 1}, {{2, 80}, 1},
        {{2, 86}, 1}, {{2, 89}, 1},  {{2, 90}, 1}, {{2, 100}, 1}};
    EXPECT_EQ(entries, expected) << module->name;
  }
}

}  // namespace
}  // namespace bimetal::kernels
