import * as z from 'zod'

import { Method } from '../../server/settings/option-schemas.ts'
import type { OpenModule } from '../module.ts'
import type { ApprovalLinkOptions } from './link-routes.ts'
import { approvalLinkRoutes } from './link-routes.ts'

/** The option of `createBridge` for links. */
export interface LinksBridgeOptions {
  /**
   * Enables links with which a person without an account can decide one approval once, for example on a phone. A link proves that its
   * holder received it, and nothing else: the person who creates it vouches for them. Default: there are no links.
   */
  readonly approvalLinks?: ApprovalLinkOptions
}

const Links = z.strictObject({
  issue: Method,
  expiresMs: z
    .number({ error: 'a number of milliseconds' })
    .positive({ error: 'a number of milliseconds above 0' })
    .optional(),
} satisfies Record<keyof ApprovalLinkOptions, z.ZodType>)

export const LinksBridgeOptionsSchema = { approvalLinks: Links.optional() }

/** Links with which people without an account decide. */
export const openLinks: OpenModule<LinksBridgeOptions> = ({ approvalLinks }) =>
  approvalLinks ? { createRoutes: (core) => approvalLinkRoutes(core, approvalLinks) } : {}
