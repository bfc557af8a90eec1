import { test } from 'vitest'

/**
 * Declares a test that needs POSIX, and is skipped on Windows. Files have no mode there, and each signal ends a process at once: a process
 * can neither handle it nor be paused, and there are no process groups.
 */
// oxlint-disable-next-line vitest/no-disabled-tests, vitest/expect-expect, vitest/valid-title -- It declares no test itself.
export const posixTest = test.skipIf(process.platform === 'win32')
