import type { GrantWrite } from './grant.ts'

/** A change in a table of a feature that is stored in the transaction of a transition. */
export type FeatureWrite = GrantWrite
