package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Known namespaces by digest, and the spaces (namespace, group) in them. Finding one allocates
 * nothing.
 */
final class Namespaces {
  private static final int MAX_NAMESPACES = 16_384;

  /** One namespace. */
  static final class Namespace {
    final int hashBytes;
    final MemorySegment digest;
    final Space[] spaces = new Space[Protocol.MAX_GROUPS];
    private final long[] words = new long[4];
    private Namespace next;

    Namespace(byte[] digest, int hashBytes) {
      this.hashBytes = hashBytes;
      this.digest = MemorySegment.ofArray(digest.clone());
      for (int i = 0; i < 4; i++) {
        words[i] = Memory.getLong(this.digest, 8L * i);
      }
    }
  }

  /**
   * One group of a namespace: blocks of one size that are found by hash. A clear gives the group
   * another space, so that at once nothing of the former one is found any more.
   */
  static final class Space {
    final int id;
    final Namespace namespace;
    final int group;
    final int blockBytes;
    final BlockPool.SizeClass size;

    /** Blocks that lookups find in DRAM, and on SSD. */
    long residentBlocks;

    long ssdBlocks;

    /** The space that took its place at a clear, or null. */
    Space successor;

    Space(int id, Namespace namespace, int group, int blockBytes, BlockPool.SizeClass size) {
      this.id = id;
      this.namespace = namespace;
      this.group = group;
      this.blockBytes = blockBytes;
      this.size = size;
    }

    boolean isCleared() {
      return successor != null;
    }

    /** True when both are the same group, whether or not it was cleared between them. */
    boolean isSameGroup(Space other) {
      return other != null && namespace == other.namespace && group == other.group;
    }
  }

  private final Namespace[] table = new Namespace[2048];
  private final List<Space> spaces = new ArrayList<>();
  private int count;

  private static int place(long word) {
    return (int) word & 2047;
  }

  /** The namespace with the digest at {@code at}, or null. */
  Namespace find(MemorySegment data, long at) {
    long first = Memory.getLong(data, at);
    for (Namespace n = table[place(first)]; n != null; n = n.next) {
      if (n.words[0] == first
          && n.words[1] == Memory.getLong(data, at + 8)
          && n.words[2] == Memory.getLong(data, at + 16)
          && n.words[3] == Memory.getLong(data, at + 24)) {
        return n;
      }
    }
    return null;
  }

  /** Finds or adds the namespace of a registration, with its groups. */
  Namespace intern(RegistrationRequest request, BlockPool pool) {
    Namespace found = intern(request.namespace(), request.hashBytes());
    for (RegistrationRequest.Group group : request.groups()) {
      addGroup(found, group, pool);
    }
    return found;
  }

  private Namespace intern(byte[] digest, int hashBytes) {
    Namespace found = find(MemorySegment.ofArray(digest), 0);
    if (found != null) {
      return found;
    }
    if (count == MAX_NAMESPACES) {
      throw new CoreException(Status.LIMIT, "namespaces=" + count + ", limit=" + MAX_NAMESPACES);
    }
    Namespace added = new Namespace(digest, hashBytes);
    int place = place(added.words[0]);
    added.next = table[place];
    table[place] = added;
    count++;
    return added;
  }

  /**
   * Finds or adds a group that a file names; null when it can not be held or is known with other
   * sizes.
   */
  Space recover(byte[] digest, int group, int hashBytes, int blockBytes, BlockPool pool) {
    boolean fits = hashBytes >= Protocol.MIN_HASH_BYTES && pool.sizeClass(blockBytes) != null;
    if (!fits) {
      return null;
    }
    try {
      Namespace found = intern(digest, hashBytes);
      addGroup(found, new RegistrationRequest.Group(group, blockBytes, 1), pool);
      return found.hashBytes == hashBytes ? found.spaces[group] : null;
    } catch (CoreException e) {
      return null;
    }
  }

  /** Gives each group of a namespace a new space; the former ones count as cleared. */
  void clear(Namespace namespace) {
    for (int group = 0; group < namespace.spaces.length; group++) {
      Space former = namespace.spaces[group];
      if (former != null) {
        Space next = new Space(spaces.size(), namespace, group, former.blockBytes, former.size);
        former.successor = next;
        spaces.add(next);
        namespace.spaces[group] = next;
      }
    }
  }

  /** All namespaces. */
  List<Namespace> all() {
    List<Namespace> all = new ArrayList<>();
    for (Namespace first : table) {
      for (Namespace n = first; n != null; n = n.next) {
        all.add(n);
      }
    }
    return all;
  }

  private void addGroup(Namespace namespace, RegistrationRequest.Group group, BlockPool pool) {
    BlockPool.SizeClass size = pool.sizeClass(group.blockBytes());
    if (size == null) {
      throw new CoreException(
          Status.LIMIT,
          "block bytes="
              + group.blockBytes()
              + " of group "
              + group.id()
              + ", limit of this pool="
              + pool.slabBytes());
    }
    Space space = namespace.spaces[group.id()];
    if (space == null) {
      space = new Space(spaces.size(), namespace, group.id(), group.blockBytes(), size);
      spaces.add(space);
      namespace.spaces[group.id()] = space;
    } else if (space.blockBytes != group.blockBytes()) {
      throw new CoreException(
          Status.INVALID,
          "block bytes="
              + group.blockBytes()
              + " of group "
              + group.id()
              + ", its namespace has="
              + space.blockBytes);
    }
  }

  Space space(int id) {
    return spaces.get(id);
  }
}
