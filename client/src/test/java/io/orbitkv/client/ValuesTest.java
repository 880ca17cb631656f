package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.SocketPaths;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ValuesTest {
  @Test
  void shouldSliceHashesWithoutACopy() {
    byte[] packed = new byte[64];
    for (int i = 0; i < packed.length; i++) {
      packed[i] = (byte) i;
    }
    BlockHashes hashes = BlockHashes.of(packed, 16);
    assertThat(hashes.size()).isEqualTo(4);
    assertThat(hashes.slice(1, 3).get(0)).startsWith(16, 17).hasSize(16);
    assertThat(hashes.slice(0, 2)).isEqualTo(BlockHashes.of(List.of(hashes.get(0), hashes.get(1))));
    assertThatThrownBy(() -> BlockHashes.of(new byte[30], 15))
        .hasMessage("hash bytes=15, allowed=16..32");
    assertThatThrownBy(() -> BlockHashes.of(new byte[33], 16)).hasMessageContaining("bytes=33");
    assertThatThrownBy(() -> BlockHashes.of(List.of(new byte[16], new byte[17])))
        .hasMessageContaining("bytes of hash 1=17");
  }

  @Test
  void shouldFindTheSocket() {
    assertThat(SocketPaths.defaultSocket(Map.of("ORBITKV_SOCKET", "/x/s"), 5))
        .isEqualTo(Path.of("/x/s"));
    assertThat(SocketPaths.defaultSocket(Map.of("XDG_RUNTIME_DIR", "/run/user/5"), 5))
        .isEqualTo(Path.of("/run/user/5/orbitkv/manager.sock"));
    assertThat(SocketPaths.defaultSocket(Map.of(), 0))
        .isEqualTo(Path.of("/run/orbitkv/manager.sock"));
    assertThat(SocketPaths.defaultSocket(Map.of("ORBITKV_SOCKET", ""), 5))
        .isEqualTo(Path.of("/tmp/orbitkv-5/orbitkv/manager.sock"));
  }

  @Test
  void shouldFailAtOnceWithoutAManager(@TempDir Path folder) {
    ClientConfig config = ClientConfig.defaults().withSocket(folder.resolve("none.sock"));
    assertThatThrownBy(() -> OrbitKvClient.connect(config))
        .isInstanceOf(ManagerUnavailableException.class)
        .hasMessageContaining("none.sock");
    assertThatThrownBy(() -> AdminClient.status(folder.resolve("none.sock"), Duration.ofSeconds(1)))
        .isInstanceOf(ManagerUnavailableException.class);
  }

  @Test
  void shouldRefuseMemoryThatEndsBeforeItsPages() {
    try (Arena arena = Arena.ofConfined()) {
      GroupSpec spec = GroupSpec.contiguous(arena.allocate(4096 * 3 - 1), 4096, 3);
      assertThatThrownBy(() -> GroupMemory.of(spec, true))
          .isInstanceOf(OrbitKvException.class)
          .hasMessageContaining("page=2");
    }
  }

  @Test
  void shouldJoinNeighbouringSegments() {
    try (Arena arena = Arena.ofConfined()) {
      List<GroupSpec.Segment> segments =
          List.of(new GroupSpec.Segment(0, 256), new GroupSpec.Segment(256, 256));
      GroupSpec spec =
          new GroupSpec(
              1,
              io.orbitkv.channel.GroupKind.PREFIX,
              0,
              2,
              List.of(new GroupSpec.Layer(arena.allocate(1024), 0, 512, segments)));
      GroupMemory memory = GroupMemory.of(spec, true);
      assertThat(memory.length).containsExactly(512);
      assertThat(memory.blockBytes).isEqualTo(512);
    }
  }

  @Test
  void shouldKeepClaimsBeyondARegistration() {
    PageClaims first = PageClaims.enter(4096);
    first.claim(new int[] {1});
    first.leave();
    PageClaims second = PageClaims.enter(4096);
    assertThatThrownBy(() -> second.claim(new int[] {1})).isInstanceOf(OrbitKvException.class);
    first.release(new int[] {1});
    second.claim(new int[] {1});
    second.release(new int[] {1});
    second.leave();
  }

  @Test
  void shouldRehearseBothDirectionsToTheirEnd() {
    Rehearsal.Played played = Rehearsal.play();
    assertThat(played.restore().await(Duration.ZERO).status()).isEqualTo(Status.OK);
    assertThat(played.restore().pagesFree()).isTrue();
    PublishResult saved = played.save().waitSave(Duration.ZERO).orElseThrow();
    assertThat(saved.stored()).isEqualTo(played.blocks());
    assertThat(played.lookup().prefix()).isEqualTo(played.blocks());
    played.save().close();
    assertThatNoException().isThrownBy(Rehearsal::repeat); // it requires the end of each operation
  }
}
