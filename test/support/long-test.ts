import { test } from 'vitest'

import { isLong } from './long-run.ts'

/**
 * Declares a test that only `npm run test:long` runs. A browser test is one of these if a test without a browser proves the rule, or
 * if another browser test goes the same way.
 */
// oxlint-disable-next-line vitest/no-disabled-tests, vitest/expect-expect, vitest/valid-title -- It declares no test itself.
export const longTest = test.skipIf(!isLong)
