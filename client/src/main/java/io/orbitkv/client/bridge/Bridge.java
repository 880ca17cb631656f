package io.orbitkv.client.bridge;

import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.SocketPaths;
import io.orbitkv.channel.StateDescriptor;
import io.orbitkv.channel.Status;
import io.orbitkv.client.ClientConfig;
import io.orbitkv.client.ConnectionState;
import io.orbitkv.client.Fence;
import io.orbitkv.client.Health;
import io.orbitkv.client.Lease;
import io.orbitkv.client.PublishActivity;
import io.orbitkv.client.ReconnectingClient;
import io.orbitkv.client.ReconnectingRegistration;
import io.orbitkv.client.Rehearsal;
import io.orbitkv.client.RestoreHandle;
import io.orbitkv.client.RestoreResult;
import io.orbitkv.client.SaveHandle;
import io.orbitkv.linux.Ids;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The client for callers through JNI, where a number costs nothing and an object a lot. Clients,
 * registrations, operations and fences are ids, valid until they are closed or dropped; buffers are
 * direct, and their contents are those of {@link MemoryCall} and {@link OperationCalls}. Failures
 * are thrown as the client throws them. Thread-safe.
 */
public final class Bridge {
  /** Answer of a wait whose operation has not ended. */
  public static final int PENDING = -1;

  /** Up to this a collection is quick; a larger heap is that of a JVM with other tasks. */
  private static final long SMALL_HEAP_BYTES = 256 << 20;

  private static final System.Logger LOGGER = System.getLogger(Bridge.class.getName());
  private static final Handles<ReconnectingClient> CLIENTS = new Handles<>("client");
  private static final Handles<ReconnectingRegistration> REGISTRATIONS =
      new Handles<>("registration");
  private static final Handles<RestoreHandle> RESTORES = new Handles<>("restore");
  private static final Handles<SaveHandle> SAVES = new Handles<>("save");
  private static final Handles<AtomicBoolean> FENCES = new Handles<>("fence");

  private Bridge() {}

  /**
   * Opens a client.
   *
   * @param socket socket of the Manager; empty for the default
   * @param verify whether restores check checksums, 0 or 1
   * @return its id
   */
  public static long open(
      String socket,
      String instanceId,
      String clientName,
      long timeoutMs,
      long spinNs,
      int copyThreads,
      int verify) {
    ClientConfig config =
        new ClientConfig(
            socketPath(socket),
            instanceId,
            clientName,
            Duration.ofMillis(timeoutMs),
            spinNs,
            copyThreads,
            verify != 0);
    return CLIENTS.add(ReconnectingClient.connect(config));
  }

  /**
   * Prepares the process for its first request: plays {@link Rehearsal}, and opens a restore and a
   * save that have ended. On a thread of its own it then goes on with that, and with {@link
   * CallRehearsal}.
   *
   * @param answer receives the ids of the restore and the save, which the caller drops, and their
   *     number of blocks
   */
  public static void rehearse(long client, ByteBuffer answer) {
    ReconnectingClient live = CLIENTS.get(client);
    Rehearsal.Played played = Rehearsal.play();
    OperationCalls.answer(played.lookup(), new CallBuffer(answer));
    new CallBuffer(answer)
        .put(RESTORES.add(played.restore()))
        .put(SAVES.add(played.save()))
        .put(played.blocks());
    Thread.ofPlatform().daemon().name("orbitkv-rehearsal").start(() -> goOn(live));
  }

  private static void goOn(ReconnectingClient live) {
    try {
      Rehearsal.repeat();
      CallRehearsal.play(live);
    } catch (Throwable t) { // the first request will be slower
      LOGGER.log(System.Logger.Level.DEBUG, "rehearsal", t);
    }
    if (Runtime.getRuntime().maxMemory() <= SMALL_HEAP_BYTES) {
      System.gc(); // else what the rehearsal left is collected during a request
    }
  }

  private static Path socketPath(String socket) {
    return socket.isEmpty()
        ? SocketPaths.defaultSocket(System.getenv(), Ids.uid())
        : Path.of(socket);
  }

  /** Socket that {@link #open} uses for this one. */
  public static String socket(String socket) {
    return socketPath(socket).toString();
  }

  /** Closes a client; its id stays valid, so that a failed close can be tried again. */
  public static void close(long client) {
    CLIENTS.get(client).close();
  }

  /** Forgets a client, which should be closed. */
  public static void dropClient(long client) {
    CLIENTS.remove(client);
  }

  /**
   * Writes how often a Manager was found again, when the connection became as it is, in
   * milliseconds of the system's clock, and the last error; 1 while a Manager is there, else 0.
   */
  public static int connection(long client, ByteBuffer answer) {
    ConnectionState state = CLIENTS.get(client).state();
    new CallBuffer(answer)
        .put(state.reconnects())
        .put(state.since().toEpochMilli())
        .put(state.lastError());
    return state.connected() ? 1 : 0;
  }

  /**
   * Writes publishes that are active, retained and overdue, and the nanoseconds since the oldest of
   * them; 1 while the Manager's process lives, else 0.
   */
  public static int publishActivity(long client, ByteBuffer answer) {
    PublishActivity activity = CLIENTS.get(client).publishActivity();
    new CallBuffer(answer)
        .put(activity.active())
        .put(activity.retained())
        .put(activity.overdue())
        .put(activity.longestNs());
    return activity.managerAlive() ? 1 : 0;
  }

  /** Low half of the Manager epoch; 0 while no Manager is there. */
  public static long epoch(long client) {
    return CLIENTS.get(client).epochLow();
  }

  /** Percent of the pool that is prepared, and 1,000 more once the Manager takes registrations. */
  public static int health(long client) {
    Health health = CLIENTS.get(client).health();
    return health.percent() + (health.ready() ? 1000 : 0);
  }

  /** What the Manager holds, as JSON. */
  public static String status(long client) {
    return CLIENTS.get(client).status();
  }

  /** Writes the digest of a state, in protobuf's text format, to the start of a buffer. */
  public static void namespace(String state, ByteBuffer digest) {
    digest.duplicate().clear().put(StateDescriptor.digest(MemoryCall.state(state)));
  }

  /** Looks a prefix up; answers its outcome. */
  public static int lookup(long client, ByteBuffer call, ByteBuffer answer) {
    return OperationCalls.answer(
        CLIENTS.get(client).lookup(OperationCalls.lookup(new CallBuffer(call))),
        new CallBuffer(answer));
  }

  /** Gives a lease back; 0 when it had ended already, else 1. */
  public static int release(long client, long leaseId, long epoch) {
    return CLIENTS.get(client).release(new Lease(leaseId, epoch, 0, 0, 0)) ? 1 : 0;
  }

  /** Gives a lease back without waiting for the answer. */
  public static void giveBack(long client, long leaseId, long epoch) {
    CLIENTS.get(client).giveBack(new Lease(leaseId, epoch, 0, 0, 0));
  }

  /** Voids the answers to a query up to a revision. */
  public static void cancelQuery(long client, long queryId, int revision) {
    CLIENTS.get(client).cancelQuery(queryId, revision);
  }

  /** Registers memory; answers the registration's id. */
  public static long register(long client, String state, ByteBuffer memory, int restoreOnly) {
    return REGISTRATIONS.add(
        CLIENTS
            .get(client)
            .register(
                MemoryCall.read(
                    MemoryCall.state(state), new CallBuffer(memory), restoreOnly != 0)));
  }

  /** 1 while the Manager knows the memory, else 0. */
  public static int isRegistered(long registration) {
    return REGISTRATIONS.get(registration).isRegistered() ? 1 : 0;
  }

  /** Generation of a registration with the Manager; 0 while none has it. */
  public static int generation(long registration) {
    return REGISTRATIONS.get(registration).generation();
  }

  /** Withdraws memory; its id stays valid, so that it can be tried again after a time-out. */
  public static void unregister(long registration) {
    REGISTRATIONS.get(registration).close();
  }

  /** Forgets a registration that is withdrawn. */
  public static void dropRegistration(long registration) {
    REGISTRATIONS.remove(registration);
  }

  /** Opens a fence; answers its id. 0 is a fence that is done. */
  public static long fence() {
    return FENCES.add(new AtomicBoolean());
  }

  /** The work before the fence has ended. */
  public static void signal(long fence) {
    FENCES.get(fence).set(true);
  }

  /** Forgets a fence; an operation behind it keeps it. */
  public static void dropFence(long fence) {
    FENCES.remove(fence);
  }

  private static Fence fenceOf(long fence) {
    return fence == 0 ? Fence.done() : FENCES.get(fence)::get;
  }

  /** Begins a restore; answers its id. */
  public static long restore(long registration, ByteBuffer call, long fence) {
    return RESTORES.add(
        REGISTRATIONS
            .get(registration)
            .restore(OperationCalls.restoreItems(new CallBuffer(call)), fenceOf(fence)));
  }

  /** Operation id of a restore. */
  public static long restoreId(long restore) {
    return RESTORES.get(restore).operationId();
  }

  /** Waits for the end of a restore; answers {@link #PENDING} or the code of its status. */
  public static int waitRestore(long restore, long timeoutNs, ByteBuffer answer) {
    RestoreResult result = RESTORES.get(restore).await(Duration.ofNanos(timeoutNs));
    return result == null ? PENDING : OperationCalls.answer(result, new CallBuffer(answer));
  }

  /** Waits for a layer; answers how many have arrived: more than its index if it has. */
  public static int waitLayer(long restore, int layer, long timeoutNs) {
    RestoreHandle handle = RESTORES.get(restore);
    handle.awaitLayer(layer, Duration.ofNanos(timeoutNs));
    return handle.layersArrived();
  }

  /** 1 once the target pages are the caller's again, else 0. */
  public static int restorePagesFree(long restore) {
    return RESTORES.get(restore).pagesFree() ? 1 : 0;
  }

  /** Asks for the end of a restore. */
  public static void cancelRestore(long restore) {
    RESTORES.get(restore).cancel();
  }

  /** Forgets a restore, which goes on. */
  public static void dropRestore(long restore) {
    RESTORES.remove(restore);
  }

  /** Begins a save; answers its id. */
  public static long save(long registration, ByteBuffer call, long fence) {
    return SAVES.add(
        REGISTRATIONS
            .get(registration)
            .save(OperationCalls.saveItems(new CallBuffer(call)), fenceOf(fence)));
  }

  /** Operation id of a save. */
  public static long saveId(long save) {
    return SAVES.get(save).operationId();
  }

  /** Waits for the end of a save; answers {@link #PENDING} or the code of its status. */
  public static int waitSave(long save, long timeoutNs, ByteBuffer answer) {
    return SAVES
        .get(save)
        .waitSave(Duration.ofNanos(timeoutNs))
        .map(result -> OperationCalls.answer(result, new CallBuffer(answer)))
        .orElse(PENDING);
  }

  /** 1 once the source pages may be overwritten, else 0. */
  public static int savePagesFree(long save) {
    return SAVES.get(save).pagesFree() ? 1 : 0;
  }

  /** Asks for the end of a save. */
  public static void cancelSave(long save) {
    SAVES.get(save).cancel();
  }

  /** Forgets a save, which goes on. */
  public static void dropSave(long save) {
    SaveHandle dropped = SAVES.remove(save);
    if (dropped != null) {
      dropped.close();
    }
  }

  /** Name of a status. */
  public static String statusName(int code) {
    return Status.of(code).name();
  }

  /** Name of a reason for a miss. */
  public static String missName(int code) {
    return MissReason.of(code).name();
  }

  /** Objects that callers hold: clients, registrations, operations and fences together. */
  public static int openHandles() {
    return CLIENTS.size() + REGISTRATIONS.size() + RESTORES.size() + SAVES.size() + FENCES.size();
  }
}
