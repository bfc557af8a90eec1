import * as z from 'zod'

import { Method } from '../../server/settings/option-schemas.ts'
import type { OpenModule } from '../module.ts'
import type { DelegationOptions } from './delegation-routes.ts'
import { delegationRoutes, recordsOf } from './delegation-routes.ts'
import { storedDelegates } from './stored-delegates.ts'

/** The option of `createBridge` for delegation. */
export interface DelegationBridgeOptions {
  /**
   * Lets a person name somebody who decides in their place for a time, calls whose policy says `mayDelegate`. Default: nobody can.
   */
  readonly delegation?: DelegationOptions
}

export const DelegationBridgeOptionsSchema = {
  delegation: z
    .strictObject({
      allow: Method,
      maxMs: z
        .number({ error: 'a number of milliseconds' })
        .min(60_000)
        .max(366 * 24 * 3_600_000)
        .optional(),
    } satisfies Record<keyof DelegationOptions, z.ZodType>)
    .optional(),
}

/** People decide in the place of others. */
export const openDelegation: OpenModule<DelegationBridgeOptions> = ({ delegation, appName }) => {
  if (!delegation) return {}
  return {
    openKinds: (store) => {
      recordsOf(store)
      return []
    },
    openSubstitutes: (store) => storedDelegates(recordsOf(store), appName),
    createRoutes: (core) => delegationRoutes(core, delegation),
  }
}
