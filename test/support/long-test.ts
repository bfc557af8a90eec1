import { test } from 'vitest'

import { isLong } from './long-run.ts'

/**
 * Declares a test that only `npm run test:long` runs. A browser test is long if a test without a browser, or another browser test,
 * covers the same behaviour.
 */
// oxlint-disable-next-line vitest/no-disabled-tests, vitest/expect-expect, vitest/valid-title -- It declares no test itself.
export const longTest = test.skipIf(!isLong)
