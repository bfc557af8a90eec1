import type { GrantWrite } from './grant.ts'
import type { RequiredRecord } from './required-record.ts'

/** A change in a table of a feature, or a condition on one, in the transaction of a transition. */
export type FeatureWrite = GrantWrite | RequiredRecord
