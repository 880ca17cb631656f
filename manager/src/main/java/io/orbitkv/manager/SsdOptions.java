package io.orbitkv.manager;

import io.orbitkv.core.SsdConfig.WritePolicy;
import io.orbitkv.storage.SsdStore.Backend;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;

/**
 * The SSD tier that a Manager is to have, checked when it is made.
 *
 * @param paths directories, each of which gets one file
 * @param capacityBytes bytes of each file
 * @param backend how bytes are moved
 * @param policy which blocks are written
 * @param dailyWriteBytes most bytes written in a day; 0 for no limit
 * @param readFloor bytes a second of reads below which a file is by-passed; 0 for none
 * @param reset whether files that can not be used as they are give way to new ones
 */
public record SsdOptions(
    List<Path> paths,
    long capacityBytes,
    Backend backend,
    WritePolicy policy,
    long dailyWriteBytes,
    long readFloor,
    boolean reset) {
  /** Most directories. */
  public static final int MAX_PATHS = 16;

  /**
   * Checks all values.
   *
   * @throws ManagerException naming the value and the rule
   */
  public SsdOptions {
    if (paths.stream().anyMatch(path -> path.toString().isEmpty())) {
      throw new ManagerException("SSD paths=" + paths + ": one is empty");
    }
    paths = paths.stream().map(path -> path.toAbsolutePath().normalize()).toList();
    if (paths.isEmpty() || paths.size() > MAX_PATHS) {
      throw new ManagerException("SSD paths=" + paths.size() + ", allowed=1.." + MAX_PATHS);
    }
    if (new HashSet<>(paths).size() < paths.size()) {
      throw new ManagerException("SSD paths=" + paths + ": one is named twice");
    }
    if (capacityBytes <= 0) {
      throw new ManagerException(
          "SSD capacity bytes=" + capacityBytes + ": with a path a capacity is needed");
    }
  }
}
