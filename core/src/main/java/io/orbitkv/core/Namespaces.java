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
    final Space[] spaces = new Space[Protocol.MAX_GROUPS];
    private final long[] words = new long[4];
    private Namespace next;

    Namespace(byte[] digest, int hashBytes) {
      this.hashBytes = hashBytes;
      MemorySegment segment = MemorySegment.ofArray(digest);
      for (int i = 0; i < 4; i++) {
        words[i] = Memory.getLong(segment, 8L * i);
      }
    }
  }

  /** One group of a namespace: blocks of one size that are found by hash. */
  static final class Space {
    final int id;
    final int group;
    final int blockBytes;
    final BlockPool.SizeClass size;

    Space(int id, int group, int blockBytes, BlockPool.SizeClass size) {
      this.id = id;
      this.group = group;
      this.blockBytes = blockBytes;
      this.size = size;
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
    Namespace found = find(MemorySegment.ofArray(request.namespace()), 0);
    if (found == null) {
      if (count == MAX_NAMESPACES) {
        throw new CoreException(Status.LIMIT, "namespaces=" + count + ", limit=" + MAX_NAMESPACES);
      }
      found = new Namespace(request.namespace(), request.hashBytes());
      int place = place(found.words[0]);
      found.next = table[place];
      table[place] = found;
      count++;
    }
    for (RegistrationRequest.Group group : request.groups()) {
      addGroup(found, group, pool);
    }
    return found;
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
      space = new Space(spaces.size(), group.id(), group.blockBytes(), size);
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
