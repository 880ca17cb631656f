package io.orbitkv.manager;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Properties;

/**
 * Who this Manager is.
 *
 * @param epochHigh high half of the random epoch of this process life
 * @param epochLow low half, never 0
 * @param version software version
 * @param pid process id
 */
record ManagerIdentity(long epochHigh, long epochLow, String version, int pid) {
  /** A new epoch for this process. */
  static ManagerIdentity create(int pid) {
    SecureRandom random = new SecureRandom();
    long low = random.nextLong();
    while (low == 0) { // 0 means that the epoch is not known
      low = random.nextLong();
    }
    return new ManagerIdentity(random.nextLong(), low, readVersion(), pid);
  }

  private static String readVersion() {
    try (InputStream in = ManagerIdentity.class.getResourceAsStream("version.properties")) {
      Properties properties = new Properties();
      properties.load(in);
      return properties.getProperty("version");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The epoch as bytes, high half first. */
  byte[] epochBytes() {
    return ByteBuffer.allocate(2 * Long.BYTES).putLong(epochHigh).putLong(epochLow).array();
  }

  /** The epoch as text. */
  String epochText() {
    return HexFormat.of().formatHex(epochBytes());
  }
}
