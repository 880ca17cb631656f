/**
 * What tests of whole processes share: {@link io.orbitkv.testsupport.TestEngine} is an engine
 * process that does what it is told line by line, {@link io.orbitkv.testsupport.EngineMain} the
 * program that runs in it, {@link io.orbitkv.testsupport.StoppedProcess} a process that stands
 * still, and {@link io.orbitkv.testsupport.ProcFs} what the kernel says of a process.
 */
package io.orbitkv.testsupport;
