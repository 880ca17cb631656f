package io.orbitkv.bench.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.client.BlockHashes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BlockContentTest {
  @ParameterizedTest
  @ValueSource(ints = {8, 4096, 4099})
  void shouldCountWrongBytes(int blockBytes) {
    BlockContent content = new BlockContent(1, blockBytes);
    MemorySegment block = MemorySegment.ofArray(new byte[blockBytes]);
    content.fill(7, block);

    assertThat(content.wrongBytes(7, block)).isZero();
    flip(block, 0);
    flip(block, blockBytes - 1);
    assertThat(content.wrongBytes(7, block)).isEqualTo(2);
  }

  @Test
  void shouldSeeGuardedAndForeignBlocks() {
    BlockContent content = new BlockContent(1, 4096);
    MemorySegment block = MemorySegment.ofArray(new byte[4096]);

    block.fill(BlockContent.GUARD);
    assertThat(content.wrongBytes(7, block)).isGreaterThan(4000);
    content.fill(8, block);
    assertThat(content.wrongBytes(7, block)).isGreaterThan(4000);
    new BlockContent(2, 4096).fill(7, block);
    assertThat(content.wrongBytes(7, block)).isGreaterThan(4000);
  }

  @Test
  void shouldGiveEachBlockItsHash() {
    long[] ids = java.util.stream.LongStream.range(0, 1000).toArray();
    BlockHashes hashes = new BlockContent(1, 8).hashes(ids);
    Set<String> distinct = new HashSet<>();
    for (int i = 0; i < hashes.size(); i++) {
      distinct.add(java.util.HexFormat.of().formatHex(hashes.get(i)));
    }

    assertThat(distinct).hasSize(1000);
    assertThat(new BlockContent(1, 8).hashes(new long[] {5})).isEqualTo(hashes.slice(5, 6));
    assertThat(new BlockContent(2, 8).hashes(ids)).isNotEqualTo(hashes);
  }

  private static void flip(MemorySegment block, long offset) {
    block.set(ValueLayout.JAVA_BYTE, offset, (byte) ~block.get(ValueLayout.JAVA_BYTE, offset));
  }
}
