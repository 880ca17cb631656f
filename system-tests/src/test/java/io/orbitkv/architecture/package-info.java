/**
 * Rules on the code as a whole: which module may use which ({@code ModuleArrowsTest}), and what the
 * deterministic modules must not touch ({@code PureModulesTest}, whose rules are {@code
 * PurityRules}). {@code DependencyPageTest} keeps docs/dependencies.md true.
 */
package io.orbitkv.architecture;
