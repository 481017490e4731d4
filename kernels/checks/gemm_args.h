#pragma once

#include "kernels/device/portable.h"

namespace bimetal::kernels {

// The element formats of the matrices. A check of one precision may run several (fp8: two).
enum GemmFormat : uint32_t {
  kGemmFp64,
  kGemmFp32,
  kGemmTf32,
  kGemmFp16,
  kGemmBf16,
  kGemmE4m3fn,    // OCP fp8
  kGemmE5m2,      // OCP fp8
  kGemmE4m3fnuz,  // fp8 of MI300
  kGemmE5m2fnuz,  // fp8 of MI300
  kGemmInt8,
};

// Operands lie in chunks of 64 bytes along k: chunk c of row r begins at byte (c * rows + r) * 64,
// for A (rows of A) and for B (columns of B) alike. A wave's loads of one chunk are contiguous.
constexpr uint32_t kGemmChunkBytes = 64;
constexpr uint32_t kGemmFragment = 16;  // rows and columns of one fragment of the result

struct GemmRecord {
  uint64_t token;  // Mix(args.token + slot): proves that the wave ran in this launch
  uint64_t unit;   // the compute unit that it ran on
};

// One launch: each block computes `tiles_per_block` square tiles of C = passes * A * B into slots
// of their own, row by row: slot s holds tile GemmTile(args.salt, s, tiles). Tiles are numbered
// down the columns. REQUIRES on devices: tiles_per_block and the tiles of a column are multiples of
// 4, and a block has 128 or 256 threads.
struct GemmArgs {
  const void* a;
  const void* b;
  void* c;              // 4 bytes an element, 8 for fp64
  GemmRecord* records;  // one a slot
  uint64_t token;
  uint64_t mask;     // every result is stored xor this: an old result is no result
  uint32_t rows;     // of A; whole tiles
  uint32_t columns;  // of B; whole tiles
  uint32_t chunks;   // along k
  uint32_t passes;   // times that the product is added up
  uint32_t salt;     // which slots compute which tiles
  uint32_t tiles_per_block;
};

// Scattered, so that every tile is computed by many units and every unit computes many tiles, in
// whatever order blocks come to units. Four neighbouring slots hold four neighbouring tiles of one
// column: what a warp group of Hopper multiplies together.
BM_INLINE uint32_t GemmTile(uint32_t salt, uint64_t slot, uint32_t tiles) {
  if (tiles < 4) return static_cast<uint32_t>(slot % tiles);
  const uint64_t group = Mix((static_cast<uint64_t>(salt) << 40) + slot / 4) % (tiles / 4);
  return static_cast<uint32_t>(group * 4 + slot % 4);
}

}  // namespace bimetal::kernels
