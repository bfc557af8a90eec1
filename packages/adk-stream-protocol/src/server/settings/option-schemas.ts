import * as z from 'zod'

import { MAX_DEADLINE_MS } from '../../approvals/policy.ts'
import { isObject } from '../../protocol/guards.ts'
import { MAX_TIMER_MS } from '../auth/authenticate.ts'

export const Count = z.int({ error: 'a whole number' }).min(0, { error: 'a number of at least 0' })
export const AtLeastOne = z
  .int({ error: 'a whole number' })
  .min(1, { error: 'a number of at least 1' })
export const Duration = z
  .number({ error: 'a number of milliseconds' })
  .min(0, { error: 'a number of milliseconds of at least 0' })
  .max(MAX_TIMER_MS, { error: `at most ${MAX_TIMER_MS} milliseconds (24 days)` })
export const Interval = Duration.min(1, { error: 'a number of milliseconds of at least 1' })
export const Deadline = z
  .number({ error: 'a number of milliseconds' })
  .positive({ error: 'a number of milliseconds above 0' })
export const ApprovalDeadline = Deadline.max(MAX_DEADLINE_MS, {
  error: `at most ${MAX_DEADLINE_MS} milliseconds (10 years)`,
})
export const Method = z.custom((value) => typeof value === 'function', { error: 'a function' })
export const Service = z.custom(isObject, { error: 'an object' })
