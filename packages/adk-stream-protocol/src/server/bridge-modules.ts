import type { AuditHeadBridgeOptions } from '../modules/audit-head/audit-head-module.ts'
import {
  AuditHeadBridgeOptionsSchema,
  openAuditHead,
} from '../modules/audit-head/audit-head-module.ts'
import { openBrowser } from '../modules/browser/browser-module.ts'
import type { DelegationBridgeOptions } from '../modules/delegation/delegation-module.ts'
import {
  DelegationBridgeOptionsSchema,
  openDelegation,
} from '../modules/delegation/delegation-module.ts'
import type { GrantsBridgeOptions } from '../modules/grants/grants-module.ts'
import { GrantsBridgeOptionsSchema, openGrants } from '../modules/grants/grants-module.ts'
import type { DeveloperBridgeOptions } from '../modules/developer/developer-module.ts'
import {
  DeveloperBridgeOptionsSchema,
  openDeveloper,
} from '../modules/developer/developer-module.ts'
import type { LiveBridgeOptions } from '../modules/live/live-module.ts'
import { LiveBridgeOptionsSchema, openLive } from '../modules/live/live-module.ts'
import type { LinksBridgeOptions } from '../modules/links/links-module.ts'
import { LinksBridgeOptionsSchema, openLinks } from '../modules/links/links-module.ts'
import type { McpBridgeOptions } from '../modules/mcp/mcp-module.ts'
import { McpBridgeOptionsSchema, openMcp } from '../modules/mcp/mcp-module.ts'
import { openRemote } from '../modules/remote/remote-module.ts'
import { openReplies } from '../modules/replies/replies-module.ts'
import { openSignIn } from '../modules/sign-in/sign-in-module.ts'
import type { SignInBridgeOptions } from '../modules/sign-in/sign-in-options.ts'
import { SignInBridgeOptionsSchema } from '../modules/sign-in/sign-in-options.ts'
import type { NotifyBridgeOptions } from '../modules/notify/notify-module.ts'
import { NotifyBridgeOptionsSchema, openNotify } from '../modules/notify/notify-module.ts'
import type { ModuleList } from './open-modules.ts'

/** `dev` describes agents, and asks before it opens a bridge whether they can run live. */
export { type AgentDescription, describeAgents } from '../modules/developer/describe-agents.ts'
export { toLiveModelAgent } from '../modules/live/live-conversations.ts'

/** The options of `createBridge` that belong to modules. */
export interface ModuleOptions
  extends
    LiveBridgeOptions,
    SignInBridgeOptions,
    McpBridgeOptions,
    LinksBridgeOptions,
    NotifyBridgeOptions,
    GrantsBridgeOptions,
    DelegationBridgeOptions,
    DeveloperBridgeOptions,
    AuditHeadBridgeOptions {}

/** The modules of a bridge. This file is the only one that names them. */
export const BRIDGE_MODULES: ModuleList<ModuleOptions> = {
  openRuns: openLive,
  open: [
    openSignIn,
    openMcp,
    openLinks,
    openReplies,
    openBrowser,
    openRemote,
    openNotify,
    openGrants,
    openDelegation,
    openDeveloper,
    openAuditHead,
  ],
  options: {
    ...LiveBridgeOptionsSchema,
    ...SignInBridgeOptionsSchema,
    ...McpBridgeOptionsSchema,
    ...LinksBridgeOptionsSchema,
    ...NotifyBridgeOptionsSchema,
    ...GrantsBridgeOptionsSchema,
    ...DelegationBridgeOptionsSchema,
    ...DeveloperBridgeOptionsSchema,
    ...AuditHeadBridgeOptionsSchema,
  },
}

export { browserTool } from '../modules/browser/browser-tool.ts'
export { planTool } from '../modules/grants/plan-tool.ts'
