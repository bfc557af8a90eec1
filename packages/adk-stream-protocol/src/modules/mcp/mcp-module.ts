import * as z from 'zod'

import type { OpenModule } from '../module.ts'
import { createElicitationKind } from './elicitation-kind.ts'
import { shareToolsets } from './mcp-sessions.ts'

/** The option of `createBridge` for MCP servers. */
export interface McpBridgeOptions {
  /**
   * Whether MCP servers of the agent's toolsets may ask the owner of the chat for values, or to open a URL, while a call runs
   * (elicitation). The bridge then declares the capability to them. Default false: such a request is refused.
   */
  readonly elicitation?: boolean
}

export const McpBridgeOptionsSchema = {
  elicitation: z.boolean({ error: 'true or false' }).optional(),
}

/** The sessions of MCP servers, which turns share, and the questions that the servers ask people. */
export const openMcp: OpenModule<McpBridgeOptions> = ({ elicitation = false, agents }) => ({
  openKinds: () => [createElicitationKind(elicitation)],
  close: shareToolsets(agents.values(), { elicits: elicitation }),
})
