import { test } from 'vitest'

import { isLong } from './long-run.ts'

/**
 * Declares a test that only `npm run test:long` runs. A test is long if it takes seconds, and another test covers the same behaviour: with
 * other parameters, without a browser, or without a second process.
 */
// oxlint-disable-next-line vitest/no-disabled-tests, vitest/expect-expect, vitest/valid-title -- It declares no test itself.
export const longTest = test.skipIf(!isLong)
