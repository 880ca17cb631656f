/**
 * The command line {@code orbitkv}. {@link io.orbitkv.app.Main} is its entry; each subcommand is
 * one class. Every flag can also come from the environment, see {@link
 * io.orbitkv.app.EnvironmentDefaults}.
 */
package io.orbitkv.app;
