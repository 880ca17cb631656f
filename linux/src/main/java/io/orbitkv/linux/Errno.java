package io.orbitkv.linux;

/**
 * Error numbers that callers decide on, and the names of the common ones. The numbers are the same
 * on x86-64 and aarch64.
 *
 * @see <a href="https://man7.org/linux/man-pages/man3/errno.3.html">errno(3)</a>
 */
public final class Errno {
  public static final int EPERM = 1;
  public static final int ENOENT = 2;
  public static final int ESRCH = 3;
  public static final int EINTR = 4;
  public static final int EIO = 5;
  public static final int EBADF = 9;
  public static final int EAGAIN = 11;
  public static final int ENOMEM = 12;
  public static final int EACCES = 13;
  public static final int EFAULT = 14;
  public static final int EEXIST = 17;
  public static final int EINVAL = 22;
  public static final int EMFILE = 24;
  public static final int ENOSPC = 28;
  public static final int EPIPE = 32;
  public static final int ENOSYS = 38;
  public static final int EOPNOTSUPP = 95;
  public static final int EMSGSIZE = 90;
  public static final int ENOPROTOOPT = 92;
  public static final int EADDRINUSE = 98;
  public static final int ECONNABORTED = 103;
  public static final int ECONNRESET = 104;
  public static final int ETIMEDOUT = 110;
  public static final int ECONNREFUSED = 111;

  private Errno() {}

  /** Symbol of {@code errno}, as {@code "EACCES"}; {@code "unknown"} for the rare ones. */
  public static String name(int errno) {
    return switch (errno) {
      case EPERM -> "EPERM";
      case ENOENT -> "ENOENT";
      case ESRCH -> "ESRCH";
      case EINTR -> "EINTR";
      case EIO -> "EIO";
      case 6 -> "ENXIO";
      case EBADF -> "EBADF";
      case EAGAIN -> "EAGAIN";
      case ENOMEM -> "ENOMEM";
      case EACCES -> "EACCES";
      case EFAULT -> "EFAULT";
      case 16 -> "EBUSY";
      case EEXIST -> "EEXIST";
      case 19 -> "ENODEV";
      case 20 -> "ENOTDIR";
      case 21 -> "EISDIR";
      case EINVAL -> "EINVAL";
      case 23 -> "ENFILE";
      case EMFILE -> "EMFILE";
      case 27 -> "EFBIG";
      case ENOSPC -> "ENOSPC";
      case 29 -> "ESPIPE";
      case 30 -> "EROFS";
      default -> laterName(errno);
    };
  }

  private static String laterName(int errno) {
    return switch (errno) {
      case EPIPE -> "EPIPE";
      case 36 -> "ENAMETOOLONG";
      case ENOSYS -> "ENOSYS";
      case 40 -> "ELOOP";
      case 61 -> "ENODATA";
      case 88 -> "ENOTSOCK";
      case EMSGSIZE -> "EMSGSIZE";
      case 91 -> "EPROTOTYPE";
      case ENOPROTOOPT -> "ENOPROTOOPT";
      case EOPNOTSUPP -> "EOPNOTSUPP";
      case EADDRINUSE -> "EADDRINUSE";
      case ECONNABORTED -> "ECONNABORTED";
      case ECONNRESET -> "ECONNRESET";
      case 105 -> "ENOBUFS";
      case 106 -> "EISCONN";
      case 107 -> "ENOTCONN";
      case 109 -> "ETOOMANYREFS";
      case ETIMEDOUT -> "ETIMEDOUT";
      case ECONNREFUSED -> "ECONNREFUSED";
      case 133 -> "EHWPOISON";
      default -> "unknown";
    };
  }
}
